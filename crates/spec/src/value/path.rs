//! Paths of files, on the machines and on the control machine.

use std::fmt;

use super::Mismatch;

/// An absolute path without `.`, `..`, doubled or trailing slashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsolutePath(String);

/// A path on the control machine: absolute, or below the user's home (`~/…`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalPath(String);

impl AbsolutePath {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        if !text.starts_with('/') {
            return Err(Mismatch::new("not an absolute path", "start it with /"));
        }
        clean(text).map(Self)
    }

    /// Normalized, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is this directory or below it, by path component.
    pub fn is_within(&self, directory: &str) -> bool {
        directory == "/"
            || self
                .0
                .strip_prefix(directory)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl LocalPath {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        if let Some(rest) = text.strip_prefix("~/") {
            return clean(&format!("/{rest}")).map(|path| Self(format!("~{path}")));
        }
        if !text.starts_with('/') {
            return Err(Mismatch::new(
                "not an absolute path",
                "start it with / or ~/",
            ));
        }
        clean(text).map(Self)
    }

    /// The path, perhaps beginning with `~/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn clean(text: &str) -> Result<String, Mismatch> {
    if text.chars().any(char::is_control) {
        return Err(Mismatch::new(
            "not a path: it contains control characters",
            "remove them",
        ));
    }
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                return Err(Mismatch::new(
                    "not a valid path: it contains ..",
                    "write the path without ..",
                ));
            }
            part => parts.push(part),
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for LocalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(
            AbsolutePath::parse("/a//b/./c/").unwrap().as_str(),
            "/a/b/c"
        );
        assert_eq!(AbsolutePath::parse("/").unwrap().as_str(), "/");
        for bad in ["", "a", "~/a", "/a/../b", "/a\nb"] {
            assert!(AbsolutePath::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            LocalPath::parse("~/.ssh//id").unwrap().as_str(),
            "~/.ssh/id"
        );
        assert!(LocalPath::parse("~root/x").is_err() && LocalPath::parse("~/../x").is_err());
    }

    #[test]
    fn within_goes_by_component() {
        let path = AbsolutePath::parse("/usr/bin/x").unwrap();
        assert!(path.is_within("/usr/bin") && path.is_within("/usr/bin/x") && path.is_within("/"));
        assert!(!path.is_within("/usr/bi") && !path.is_within("/usr/bin/x/y"));
    }
}
