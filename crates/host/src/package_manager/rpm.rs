//! rpm without anything that brings packages from repositories.

use super::PackageManager;
use crate::package_format;

/// A machine with rpm and neither dnf nor yum.
pub static RPM: PackageManager = PackageManager {
    name: "rpm",
    format: &package_format::RPM,
    repositories: None,
};
