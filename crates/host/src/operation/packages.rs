//! Packages of a distribution, from its repositories or from files.

use std::fmt;

use super::values::ValueError;
use crate::{content::Content, package_format::FORMATS};

/// The name of a package as the machine's package manager knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageName(String);

impl PackageName {
    /// Letters, digits, `+`, `-`, `.` and `_`.
    pub fn new(name: impl Into<String>) -> Result<Self, ValueError> {
        let name = name.into();
        let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= 128
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b));
        if !fits {
            return Err(ValueError::new("package name", &name));
        }
        Ok(Self(name))
    }

    /// The name as package managers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A package that lies in a file.
#[derive(Clone, Debug)]
pub struct PackageFile {
    /// Its name, from the name of the file.
    pub name: PackageName,
    /// Its version with its revision, as the package manager prints it.
    pub version: String,
    /// The package's file.
    pub content: Content,
}

impl PackageFile {
    /// Reads name and version from the name of a package's file, such as `NAME_VERSION_ARCH.deb` or
    /// `NAME-VERSION-RELEASE.ARCH.rpm`.
    pub fn new(file_name: &str, content: Content) -> Result<Self, ValueError> {
        let wrong = || ValueError::new("name of a .deb or .rpm file", file_name);
        let (stem, ending) = file_name.rsplit_once('.').ok_or_else(wrong)?;
        let (name, version) = FORMATS
            .iter()
            .find(|format| format.name == ending)
            .and_then(|format| (format.split_name)(stem))
            .ok_or_else(wrong)?;
        let plain = version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-._~:^".contains(&b));
        if version.is_empty() || !plain {
            return Err(wrong());
        }
        Ok(Self {
            name: PackageName::new(name)?,
            version,
            content,
        })
    }
}

/// Where packages come from.
#[derive(Clone, Debug)]
pub enum PackageSource {
    /// The repositories that the machine is configured with.
    Repository(Vec<PackageName>),
    /// Files that are sent.
    Files(Vec<PackageFile>),
}

/// Packages that are installed in one transaction. A package that is there already is left as it is, unless it
/// was Hatchery that installed it and a file brings another version.
#[derive(Clone, Debug)]
pub struct Packages {
    /// Which, and from where.
    pub source: PackageSource,
}

impl fmt::Display for Packages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = match &self.source {
            PackageSource::Repository(names) => names.iter().map(PackageName::as_str).collect(),
            PackageSource::Files(files) => files.iter().map(|file| file.name.as_str()).collect(),
        };
        f.write_str(&names.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file_name: &str) -> Option<(String, String)> {
        let file = PackageFile::new(file_name, Content::bytes(*b"")).ok()?;
        Some((file.name.to_string(), file.version))
    }

    #[test]
    fn names_of_files_tell_name_and_version() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(read("etcd-3.4.14-2.aarch64.rpm"), pair("etcd", "3.4.14-2"));
        assert_eq!(
            read("nginx-mod-http-perl-1.18.0-3.oe1.x86_64.rpm"),
            pair("nginx-mod-http-perl", "1.18.0-3.oe1")
        );
        assert_eq!(
            read("socat_1.7.4.4-2_amd64.deb"),
            pair("socat", "1.7.4.4-2")
        );
        assert_eq!(
            read("g++_4%3a12.2.0-3_amd64.deb"),
            pair("g++", "4:12.2.0-3")
        );
        assert_eq!(
            read("libnetfilter_cthelper_1.0.1-1_amd64.deb"),
            pair("libnetfilter-cthelper", "1.0.1-1")
        );
        for bad in ["etcd.rpm", "etcd", "a.deb", "-1-2.x.rpm", "a_$(x)_b.deb"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
