//! Which version of a package a machine has, or would get from its repositories. Nothing is changed by asking.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use super::{Error, Machine};
use crate::{operation::PackageName, package_manager, quote::quote, report::readable, script};

const BEGIN: &str = "
LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
";
/// The name of the package manager is on a line before what it says.
const ASK: &str = r#"
for one in $package_managers; do
  command -v "${one##*:}" >/dev/null || continue
  echo "${one%%:*}"
  "${one%%:*}_offered" "$@"
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
        question += BEGIN;
        question += &script::without_comments(package_manager::functions());
        question += &package_manager::lists();
        question += ASK;
        let (output, _) = self.ask(&question, deadline, "packages").await?;
        Ok(read(packages, &readable(&output)))
    }
}

/// Of several versions the first counts: that of the package that is installed.
fn read(packages: &[PackageName], text: &str) -> BTreeMap<PackageName, String> {
    let (manager, text) = text.split_once('\n').unwrap_or((text, ""));
    let mut found = BTreeMap::new();
    let said = package_manager::with_repositories()
        .find(|(one, _)| one.name == manager)
        .map(|(_, own)| (own.read_offered)(text));
    for (name, version) in said.into_iter().flatten() {
        if let Some(name) = packages.iter().find(|one| one.as_str() == name) {
            found.entry(name.clone()).or_insert(version);
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
        let apt = "apt\netcd-server:\n  Installed: (none)\n  Candidate: 3.4.23-4+b7\n  Version table:\n     3.4.23-4+b7 500\n\
            containerd:\n  Installed: 1.6.20~ds1-1\n  Candidate: 1.6.36~ds1-1\n  Version table:\n *** 1.6.20~ds1-1 100\n\
            kubernetes-node:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        assert_eq!(
            found(apt),
            ["containerd 1.6.20~ds1-1", "etcd-server 3.4.23-4+b7"]
        );
        let dnf = "dnf\nInstalled Packages\ncontainerd.x86_64   1.6.22-1.oe2403   @anaconda\nAvailable Packages\n\
            containerd.x86_64  1.6.22-9.oe2403  update\nkubernetes-node.x86_64   1.29.1-1.oe2403   everything\n\
            kubernetes-node-devel.x86_64 9-9 x\n";
        assert_eq!(
            found(dnf),
            [
                "containerd 1.6.22-1.oe2403",
                "kubernetes-node 1.29.1-1.oe2403"
            ]
        );
        for nothing in [
            "",
            "apt\n",
            "dnf\nError: No matching Packages to list\n",
            "yum\n\n a b c\n",
            "c\netcd-server.x 1 y\n",
        ] {
            assert_eq!(found(nothing), [""; 0]);
        }
    }
}
