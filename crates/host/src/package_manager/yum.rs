//! yum.

use super::{PackageManager, Repositories};
use crate::package_format::RPM;

/// The package manager before dnf, as on CentOS 7.
pub static YUM: PackageManager = PackageManager {
    name: "yum",
    format: &RPM,
    repositories: Some(Repositories {
        program: "yum",
        functions: include_str!("yum.sh"),
        read_offered,
    }),
};

/// `yum list`: name and architecture, version, repository; what is installed comes first.
pub(super) fn read_offered(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with(' '));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter_map(|words| {
            let &[name, version, _repository] = words.as_slice() else {
                return None;
            };
            let name = name.rsplit_once('.').map_or(name, |(name, _arch)| name);
            Some((name.to_owned(), version.to_owned()))
        })
        .collect()
}
