//! Packages of dpkg.

use super::PackageFormat;

/// Packages of Debian and its derivatives.
pub static DEB: PackageFormat = PackageFormat {
    name: "deb",
    program: "dpkg",
    query: "dpkg-query",
    distributions: &["debian", "ubuntu"],
    database: Some("/var/lib/dpkg/status"),
    split_name,
    functions: include_str!("deb.sh"),
};

/// `NAME_VERSION_ARCH`.
fn split_name(stem: &str) -> Option<(String, String)> {
    let (stem, _arch) = stem.rsplit_once('_')?;
    let (name, version) = stem.rsplit_once('_')?;
    // A file name cannot carry the colon of an epoch, which is written as %3a; a Debian package's own
    // name has no underscore, but the file may bear the name of another distribution.
    Some((name.replace('_', "-"), version.replace("%3a", ":")))
}
