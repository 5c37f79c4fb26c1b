//! A path on a machine that can be handed to every tool there without surprises.

use std::fmt;

use serde::{Deserialize, Serialize};
use snafu::{Snafu, ensure};

/// An absolute, normalised path of a machine.
///
/// The tools of a machine print names line by line and some of them escape odd ones, so control
/// characters and backslashes are refused, and so is whatever makes two spellings of one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachinePath(String);

/// Why a path is not taken.
#[derive(Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{path:?} is not a valid path on a machine: {reason}"))]
pub struct Error {
    path: String,
    reason: &'static str,
}

impl MachinePath {
    /// Takes a path, or says why not.
    pub fn new(path: impl Into<String>) -> Result<Self, Error> {
        let path = path.into();
        if let Some(reason) = fault(&path) {
            return Err(Error { path, reason });
        }
        Ok(Self(path))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory it lies in, unless that is the root.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/')?;
        (!parent.is_empty()).then(|| Self(parent.to_owned()))
    }

    /// A path below it.
    pub fn join(&self, name: &str) -> Result<Self, Error> {
        Self::new(format!("{}/{name}", self.0))
    }

    /// Whether it is `other` or lies below it, by component.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0
            .strip_prefix(&other.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn fault(path: &str) -> Option<&'static str> {
    let Some(inner) = path.strip_prefix('/') else {
        return Some("it does not begin with /");
    };
    if inner.is_empty() {
        return Some("it is the root directory");
    }
    if path.len() > 1024 {
        return Some("it is longer than 1024 bytes");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Some("it contains a control character or a backslash");
    }
    if path.ends_with(' ') {
        return Some("it ends with a space");
    }
    for component in inner.split('/') {
        match component {
            "" => return Some("it contains an empty component"),
            "." | ".." => return Some("it contains . or .."),
            long if long.len() > 200 => return Some("a component is longer than 200 bytes"),
            _ => {}
        }
    }
    None
}

impl fmt::Display for MachinePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for MachinePath {
    type Error = Error;

    fn try_from(path: String) -> Result<Self, Error> {
        Self::new(path)
    }
}

impl From<MachinePath> for String {
    fn from(path: MachinePath) -> Self {
        path.0
    }
}

/// A word of the record: who needs a resource, a user, a group. Lower-case letters, digits, `-`, `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Word(String);

/// Why a word is not valid.
#[derive(Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{word:?} is not a word of at most 63 letters, digits, '-', '_' and '.'"))]
pub struct WordError {
    word: String,
}

impl Word {
    /// Checks a word.
    pub fn new(word: impl Into<String>) -> Result<Self, WordError> {
        let word = word.into();
        let fits = !word.is_empty()
            && word.len() <= 63
            && word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        ensure!(fits, WordSnafu { word });
        Ok(Self(word))
    }

    /// The word as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Word {
    type Error = WordError;

    fn try_from(word: String) -> Result<Self, WordError> {
        Self::new(word)
    }
}

impl From<Word> for String {
    fn from(word: Word) -> Self {
        word.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for good in ["/etc/hosts", "/opt/a b/c", "/etc/ünï", "/.x"] {
            assert_eq!(MachinePath::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "etc",
            "/",
            "/etc/",
            "//etc",
            "/etc/../x",
            "/./x",
            "/a\nb",
            "/a\\b",
            "/a ",
            "/a\u{7f}",
        ] {
            assert!(MachinePath::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn being_within_goes_by_component() {
        let path = |text: &str| MachinePath::new(text).unwrap();
        assert!(path("/etc/a").is_within(&path("/etc")));
        assert!(path("/etc").is_within(&path("/etc")));
        assert!(!path("/etcetera").is_within(&path("/etc")));
        assert_eq!(path("/etc/a").parent(), Some(path("/etc")));
        assert_eq!(path("/etc").parent(), None);
    }

    #[test]
    fn an_owner_is_a_plain_word() {
        assert!(Word::new("etcd-member.1").is_ok());
        for bad in ["", "a b", "a@b", "-a", "a/b", "*", "a\n"] {
            assert!(Word::new(bad).is_err(), "{bad:?}");
        }
    }
}
