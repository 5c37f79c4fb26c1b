//! Formats of packages, one file each: what a machine keeps its packages with.
//!
//! A new one is a file here, a file of functions beside it, and a line in [`FORMATS`].

mod deb;
mod rpm;

use std::fmt;

pub use deb::DEB;
pub use rpm::RPM;

/// A format of packages and what the machine's script does with it.
pub struct PackageFormat {
    /// As its functions in the script begin, and as files of it end.
    pub name: &'static str,
    /// The program that installs files of it.
    pub(crate) program: &'static str,
    /// The program that is asked for what is installed.
    pub(crate) query: &'static str,
    /// Distributions that use it, also where programs of another are there.
    pub(crate) distributions: &'static [&'static str],
    /// What is there where it was used, on a distribution that is not known; `None` for what is left then.
    pub(crate) database: Option<&'static str>,
    /// Name and version of a package, from the name of its file without the ending.
    pub(crate) split_name: fn(&str) -> Option<(String, String)>,
    /// Its functions in the machine's script.
    pub(crate) functions: &'static str,
}

/// In the order in which the machine's script looks for them.
pub(crate) const FORMATS: [&PackageFormat; 2] = [&DEB, &RPM];

impl PartialEq for PackageFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PackageFormat {}

impl fmt::Debug for PackageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
