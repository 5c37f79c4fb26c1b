//! apt.

use super::{PackageManager, Repositories};
use crate::package_format::DEB;

/// The package manager of Debian and its derivatives.
pub static APT: PackageManager = PackageManager {
    name: "apt",
    format: &DEB,
    repositories: Some(Repositories {
        program: "apt-get",
        functions: include_str!("apt.sh"),
        read_offered,
    }),
};

/// `apt-cache policy`: the name and a colon, then indented what is installed and what would be.
fn read_offered(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut name = "";
    for line in text.lines() {
        if !line.starts_with(' ') {
            name = line.strip_suffix(':').unwrap_or_default();
        } else if let Some((_, version)) = line.trim().split_once(": ").filter(|(key, version)| {
            ["Installed", "Candidate"].contains(key) && *version != "(none)"
        }) {
            found.push((name.to_owned(), version.to_owned()));
        }
    }
    found
}
