//! Which version of a package a machine has, or would get from its repositories. Nothing is changed by asking.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use super::{Error, Machine};
use crate::{operation::PackageName, quote::quote, report::readable};

/// apt knows what its lists say. dnf and yum look into what they have fetched before; where that tells nothing they fetch it
/// into a place of its own, which goes again.
const SCRIPT: &str = r#"
LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
if command -v apt-cache >/dev/null; then
  exec apt-cache policy "$@" 2>/dev/null
fi
for m in dnf yum; do
  command -v $m >/dev/null || continue
  said=$($m -q -C list "$@" 2>/dev/null) && [ -n "$said" ] || {
    place=$(mktemp -d) || exit
    trap 'rm -rf "$place"' EXIT
    said=$($m -q --setopt=cachedir="$place" list "$@" 2>/dev/null)
  }
  printf '%s\n' "$said"
  exit
done
"#;

impl Machine {
    /// The version of each package that is there or would be installed, as the package manager writes it. What the machine
    /// knows nothing about is left out.
    pub async fn offered(
        &self,
        packages: &[PackageName],
        deadline: Duration,
    ) -> Result<BTreeMap<PackageName, String>, Error> {
        let mut question = "set --".to_owned();
        for package in packages {
            let _ = write!(question, " {}", quote(package.as_str()));
        }
        question += SCRIPT;
        let (output, _) = self.ask(&question, deadline, "packages").await?;
        Ok(read(packages, &readable(&output)))
    }
}

/// Reads what `apt-cache policy` prints, or what `dnf list` does: installed packages first, then those of repositories.
fn read(packages: &[PackageName], text: &str) -> BTreeMap<PackageName, String> {
    let mut found = BTreeMap::new();
    let mut about = None;
    let named = |name: &str| packages.iter().find(|one| one.as_str() == name);
    let mut put = |name: &PackageName, version: &str| {
        if version != "(none)" {
            found
                .entry(name.clone())
                .or_insert_with(|| version.to_owned());
        }
    };
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match (&words[..], about) {
            ([name], _) if !line.starts_with(' ') => {
                about = named(name.strip_suffix(':').unwrap_or(name));
            }
            (["Installed:" | "Candidate:", version], Some(name)) => put(name, version),
            ([name, version, _repository], _) if !line.starts_with(' ') => {
                let name = name.rsplit_once('.').map_or(*name, |(name, _)| name);
                if let Some(name) = named(name) {
                    put(name, version);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let packages = ["etcd-server", "kubernetes-node", "containerd"];
        let packages = packages.map(|name| PackageName::new(name).unwrap());
        let found = read(&packages, text);
        found
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect()
    }

    #[test]
    fn what_is_there_comes_before_what_might_be() {
        let apt = "etcd-server:\n  Installed: (none)\n  Candidate: 3.4.23-4+b7\n  Version table:\n     3.4.23-4+b7 500\n\
            containerd:\n  Installed: 1.6.20~ds1-1\n  Candidate: 1.6.36~ds1-1\n  Version table:\n *** 1.6.20~ds1-1 100\n\
            kubernetes-node:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        assert_eq!(
            found(apt),
            ["containerd 1.6.20~ds1-1", "etcd-server 3.4.23-4+b7"]
        );
        let dnf = "Installed Packages\ncontainerd.x86_64   1.6.22-1.oe2403   @anaconda\nAvailable Packages\n\
            containerd.x86_64  1.6.22-9.oe2403  update\nkubernetes-node.x86_64   1.29.1-1.oe2403   everything\n\
            kubernetes-node-devel.x86_64 9-9 x\n";
        assert_eq!(
            found(dnf),
            [
                "containerd 1.6.22-1.oe2403",
                "kubernetes-node 1.29.1-1.oe2403"
            ]
        );
        for nothing in ["", "Error: No matching Packages to list\n", "\n a b c\n"] {
            assert_eq!(found(nothing), [""; 0]);
        }
    }
}
