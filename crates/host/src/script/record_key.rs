//! Names of records on a machine.

use std::fmt;

use crate::{
    content::Hash,
    path::{MachinePath, Word},
};

/// The name of a resource's record on a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey(pub(super) String);

impl RecordKey {
    /// A name as the machine reports it, when it is valid: it becomes a file name and a word of a script.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= 200
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        fits.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A resource that one of its owners no longer needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// Who gives it up.
    pub owner: Word,
    /// The key of its record on the machine.
    pub key: RecordKey,
}

/// The name of a record: hexadecimal, so that it is a safe word and a safe file name.
pub(super) fn key(kind: &str, name: &str) -> String {
    let hash = Hash::digest(format!("{kind}\0{name}").as_bytes());
    hash.as_str().chars().take(24).collect()
}

pub(super) fn path_key(path: &MachinePath) -> String {
    key("path", path.as_str())
}

/// The machine names the dependencies that came along by itself, so this key is readable.
pub(super) fn package_key(name: &str) -> String {
    format!("package-{}", name.replace(['.', '+'], "_"))
}
