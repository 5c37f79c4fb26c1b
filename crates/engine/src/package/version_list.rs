//! `versions.yaml` at the top of an archive: which versions it brings, so that no program has to be run to find out.
//!
//! ```yaml
//! kubernetes: 1.37.0
//! etcd: 3.7.3
//! containerd: 2.4.2
//! coredns: 1.15.0
//! ```

use std::collections::BTreeMap;

use hatchery_spec::value::Release;

use super::{
    bundle::Bundle,
    layout::{self, Found, FoundFile},
    version,
};
use crate::{finding::Finding, name_list::NameList};

/// Where it lies.
const PLACE: &str = "versions.yaml";

/// The file, to be read with the archive.
pub(super) fn file(bundle: &Bundle) -> Option<FoundFile<'_>> {
    match layout::at(bundle.index(), PLACE)? {
        Found::File(file) => Some(file),
        Found::Directory(_) => None,
    }
}

/// The versions by name; none where an archive has no list.
pub(super) fn read(bundle: &Bundle) -> Result<BTreeMap<String, Release>, Finding> {
    let Some(text) = file(bundle).and_then(|file| bundle.manifest(&file)) else {
        return Ok(BTreeMap::new());
    };
    text.and_then(|text| parse(&text)).map_err(|why| {
        bundle.problem(
            format!("holds {PLACE}, but {why}"),
            "write NAME: VERSION in each line, such as kubernetes: 1.28.3, or remove the file",
        )
    })
}

fn parse(text: &str) -> Result<BTreeMap<String, Release>, String> {
    let lines: BTreeMap<String, String> = serde_saphyr::from_str(text)
        .map_err(|_| "it is not a list of names with versions".to_owned())?;
    let known = version::names();
    let strangers: Vec<_> = lines
        .keys()
        .filter(|name| !known.contains(&name.as_str()))
        .cloned()
        .collect();
    if !strangers.is_empty() {
        let known = known.map(str::to_owned);
        return Err(format!(
            "it names {}, where only {} count",
            NameList(&strangers),
            NameList(&known)
        ));
    }
    let release = |(name, text): (String, String)| match Release::parse(&text) {
        Ok(release) => Ok((name, release)),
        Err(wrong) => Err(format!("{name} has \"{text}\", which is {}", wrong.problem)),
    };
    lines.into_iter().map(release).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_or_refused() {
        let list = parse("kubernetes: 1.30\netcd: v3.5.9 # ours\ncontainerd: \"2.4.2\"\n").unwrap();
        let shown: Vec<_> = list
            .iter()
            .map(|(name, one)| format!("{name} {one}"))
            .collect();
        assert_eq!(
            shown,
            ["containerd 2.4.2", "etcd 3.5.9", "kubernetes 1.30.0"]
        );
        assert!(parse("").unwrap_or_default().is_empty());
        for (text, reason) in [
            ("kubernetes: new\n", "not a version"),
            ("kubelet: 1.30.1\n", "kubelet"),
            ("- kubernetes\n", "not a list of names"),
            ("kubernetes: [1.30]\n", "not a list of names"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
