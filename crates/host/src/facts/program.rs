//! Programs, which package manager a machine has, the shell and kernel settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{answer::Answer, os::Os};
use crate::{
    package_format::{FORMATS, PackageFormat},
    package_manager::{PACKAGE_MANAGERS, PackageManager},
};

/// What `/bin/sh` is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    /// Debian's `dash`.
    Dash,
    /// GNU `bash`.
    Bash,
    /// BusyBox's ash.
    Busybox,
    /// Another shell, by the name of its program.
    Other(String),
}

pub(super) fn programs(answer: &Answer) -> BTreeMap<String, String> {
    let name = |path: &str| {
        path.rsplit_once('/')
            .map_or(path, |(_, name)| name)
            .to_owned()
    };
    let lines = answer.each("programs");
    lines.map(|path| (name(path), path.to_owned())).collect()
}

/// A machine may have tools of several formats; the distribution decides, then what was used.
pub(super) fn package_manager(
    answer: &Answer,
    os: &Os,
    programs: &BTreeMap<String, String>,
) -> Option<&'static PackageManager> {
    let is_usual = |format: &&PackageFormat| os.is_like(format.distributions);
    let was_used =
        |format: &&PackageFormat| format.database.is_none_or(|path| answer.has_path(path));
    let mut formats = FORMATS.into_iter();
    let format = formats
        .clone()
        .find(is_usual)
        .or_else(|| formats.find(was_used));
    let mut there: Vec<_> = PACKAGE_MANAGERS
        .into_iter()
        .filter(|one| one.is_there(programs))
        .collect();
    // Among equals the order stays.
    there.sort_by_key(|one| Some(one.format) != format);
    there.first().copied()
}

pub(super) fn shell(answer: &Answer) -> Option<Shell> {
    let path = answer.value("sh")?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    Some(match name {
        "dash" => Shell::Dash,
        "bash" => Shell::Bash,
        name if name.starts_with("busybox") => Shell::Busybox,
        // A shell under its plain name could be any.
        "sh" => return None,
        name => Shell::Other(name.to_owned()),
    })
}

/// `/proc/sys/net/ipv4/ip_forward:1` is `net.ipv4.ip_forward` and `1`.
pub(super) fn sysctls(answer: &Answer) -> BTreeMap<String, String> {
    let setting = |line: &str| {
        let (path, value) = line.strip_prefix("/proc/sys/")?.split_once(':')?;
        Some((path.replace('/', "."), value.trim().to_owned()))
    };
    answer.each("sysctls").filter_map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::answer::with_sections,
        package_manager::{APT, DNF, RPM, YUM},
    };

    fn manager(id: &str, installed: &[&str], paths: &str) -> Option<&'static PackageManager> {
        let os = Os {
            id: Some(id.to_owned()),
            ..Os::default()
        };
        let programs = installed.iter().map(|name| format!("/usr/bin/{name}\n"));
        let answer = with_sections(&[
            ("programs", &programs.collect::<String>()),
            ("paths", paths),
        ]);
        package_manager(&answer, &os, &super::programs(&answer))
    }

    #[test]
    fn the_distribution_decides_between_two_families() {
        let both = ["apt-get", "dpkg", "rpm", "dnf", "yum"];
        let dpkg = "/var/lib/dpkg/status\n";
        assert_eq!(manager("debian", &both, ""), Some(&APT));
        assert_eq!(manager("openEuler", &both, dpkg), Some(&DNF));
        assert_eq!(manager("strange", &both, dpkg), Some(&APT));
        assert_eq!(manager("strange", &both, ""), Some(&DNF));
        assert_eq!(manager("centos", &["rpm", "yum"], ""), Some(&YUM));
        assert_eq!(manager("centos", &["rpm"], ""), Some(&RPM));
        assert_eq!(manager("debian", &["dpkg"], dpkg), None);
    }

    #[test]
    fn shells_and_settings() {
        let shell = |path: &str| shell(&with_sections(&[("values", &format!("sh {path}\n"))]));
        assert_eq!(shell("/usr/bin/dash"), Some(Shell::Dash));
        assert_eq!(shell("/bin/busybox"), Some(Shell::Busybox));
        assert_eq!(shell("/bin/mksh"), Some(Shell::Other("mksh".into())));
        assert_eq!(shell("/bin/sh"), None);
        let answer = with_sections(&[(
            "sysctls",
            "/proc/sys/net/ipv4/ip_local_port_range:32768\t60999\n/proc/sys/x\n",
        )]);
        let range = (
            "net.ipv4.ip_local_port_range".to_owned(),
            "32768 60999".to_owned(),
        );
        assert_eq!(sysctls(&answer), BTreeMap::from([range]));
    }
}
