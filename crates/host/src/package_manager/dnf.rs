//! dnf.

use super::{PackageManager, Repositories};
use crate::package_format::RPM;

/// The usual one of distributions with rpm.
pub static DNF: PackageManager = PackageManager {
    name: "dnf",
    format: &RPM,
    repositories: Some(Repositories {
        program: "dnf",
        functions: include_str!("dnf.sh"),
        read_offered: super::yum::read_offered,
    }),
};
