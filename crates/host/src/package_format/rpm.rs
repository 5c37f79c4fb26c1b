//! Packages of rpm.

use super::PackageFormat;

/// The format of openEuler, Fedora and what descends from them.
pub static RPM: PackageFormat = PackageFormat {
    name: "rpm",
    program: "rpm",
    query: "rpm",
    distributions: &["rhel", "fedora", "centos", "openEuler", "suse"],
    database: None,
    split_name,
    functions: include_str!("rpm.sh"),
};

/// `NAME-VERSION-RELEASE.ARCH`.
fn split_name(stem: &str) -> Option<(String, String)> {
    let (stem, _arch) = stem.rsplit_once('.')?;
    let (rest, release) = stem.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    Some((name.to_owned(), format!("{version}-{release}")))
}
