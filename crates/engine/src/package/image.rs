//! Which images an image archive brings: what `docker save` writes, or an OCI layout.

use std::{
    collections::BTreeMap,
    io::{BufReader, Read},
};

use hatchery_host::archive::{Limits, excerpt};
use serde::Deserialize;

use super::reference;

/// Longer than any list of images.
const MOST_LIST: u64 = 4 << 20;

/// The full references in an image archive of `size` bytes, or what is wrong with it.
pub(super) fn references(contents: &mut dyn Read, size: u64) -> Result<Vec<String>, String> {
    let packed = BufReader::with_capacity(128 << 10, contents);
    let wanted = ["manifest.json", "index.json"];
    let found = excerpt(packed, size, &Limits::default(), &wanted, MOST_LIST);
    let found = found.map_err(|flaw| flaw.to_string())?;
    let names = match (found.get("manifest.json"), found.get("index.json")) {
        (Some(manifest), _) => saved(manifest)?,
        (None, Some(index)) => laid_out(index)?,
        (None, None) => return Err("it has neither manifest.json nor index.json".to_owned()),
    };
    let mut references = Vec::new();
    for name in names {
        let full = reference::full(&name).ok_or_else(|| {
            format!(
                "it names an image {:?}",
                name.chars().take(100).collect::<String>()
            )
        })?;
        if !references.contains(&full) {
            references.push(full);
        }
    }
    if references.is_empty() {
        return Err("it holds no image that has a name".to_owned());
    }
    Ok(references)
}

#[derive(Deserialize)]
struct Saved {
    #[serde(rename = "RepoTags", default)]
    tags: Option<Vec<String>>,
}

fn saved(manifest: &[u8]) -> Result<Vec<String>, String> {
    let images: Vec<Saved> = serde_json::from_slice(manifest)
        .map_err(|error| format!("its manifest.json is not a list of images: {error}"))?;
    Ok(images
        .into_iter()
        .flat_map(|image| image.tags.unwrap_or_default())
        .collect())
}

#[derive(Deserialize)]
struct LaidOut {
    manifests: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

fn laid_out(index: &[u8]) -> Result<Vec<String>, String> {
    let index: LaidOut = serde_json::from_slice(index)
        .map_err(|error| format!("its index.json is not an index of images: {error}"))?;
    let name = |image: Described| {
        let notes = image.annotations?;
        let full = notes.get("io.containerd.image.name");
        // Some write the tag alone into the other one, which names nothing.
        let name = notes.get("org.opencontainers.image.ref.name");
        full.or(name.filter(|name| name.contains(['/', ':'])))
            .cloned()
    };
    Ok(index.manifests.into_iter().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::tests::forge, *};

    fn read(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let tar = forge::tar(files);
        references(&mut &tar[..], tar.len() as u64)
    }

    #[test]
    fn what_docker_save_writes() {
        let manifest = r#"[{"Config":"a.json","RepoTags":["x:1","a/b:2"],"Layers":[]},
            {"RepoTags":null},{"RepoTags":["x:1"]}]"#;
        let found = read(&[("layer.tar", "…"), ("manifest.json", manifest)]).unwrap();
        assert_eq!(found, ["docker.io/library/x:1", "docker.io/a/b:2"]);
    }

    #[test]
    fn an_oci_layout() {
        let index = r#"{"schemaVersion":2,"manifests":[
            {"annotations":{"org.opencontainers.image.ref.name":"localhost/x:1"}},
            {"annotations":{"io.containerd.image.name":"docker.io/library/y:2","org.opencontainers.image.ref.name":"2"}},
            {"annotations":{"org.opencontainers.image.ref.name":"latest"}},{}]}"#;
        let found = read(&[("oci-layout", "{}"), ("index.json", index)]).unwrap();
        assert_eq!(found, ["localhost/x:1", "docker.io/library/y:2"]);
    }

    #[test]
    fn what_is_no_image_archive_says_why() {
        let wrong = |files: &[(&str, &str)]| read(files).unwrap_err();
        assert!(wrong(&[("x", "")]).contains("neither"));
        assert!(wrong(&[("manifest.json", "{}")]).contains("not a list of images"));
        assert!(wrong(&[("manifest.json", "[]")]).contains("no image that has a name"));
        assert!(wrong(&[("manifest.json", r#"[{"RepoTags":["a b"]}]"#)]).contains("\"a b\""));
        assert!(
            references(&mut &b"hello"[..], 5)
                .unwrap_err()
                .contains("not a tar archive")
        );
    }

    proptest! {
        #[test]
        fn any_manifest_is_survived(text in "\\PC{0,60}") {
            let _ = read(&[("manifest.json", &text)]);
            let _ = read(&[("index.json", &text)]);
        }
    }
}
