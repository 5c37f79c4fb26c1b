//! Versions of programs beside Kubernetes.

use std::fmt;

use super::Mismatch;

/// The version of a program such as etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// As in `3.5.9` the 3.
    pub major: u32,
    /// As in `3.5.9` the 5.
    pub minor: u32,
    /// As in `3.5.9` the 9; 0 if it is not given.
    pub patch: u32,
}

impl Release {
    /// Parses `3.5`, `3.5.9` or `v3.5.9`.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let wrong = || Mismatch::new("not a version", "write it as 3.5.9 or 3.5");
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        };
        let parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let numbers: Option<Vec<u32>> = parts.map(number).collect();
        match numbers.ok_or_else(wrong)?[..] {
            [major, minor] => Ok(Self {
                major,
                minor,
                patch: 0,
            }),
            [major, minor, patch] => Ok(Self {
                major,
                minor,
                patch,
            }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert_eq!(Release::parse("v3.5").unwrap().to_string(), "3.5.0");
        assert_eq!(Release::parse("2.4.2").unwrap().to_string(), "2.4.2");
        for bad in [
            "",
            "3",
            "3.5.1.2",
            "3.x",
            "3.5-rc1",
            "3..5",
            "+3.5",
            "99999999999.1",
        ] {
            assert!(Release::parse(bad).is_err(), "{bad}");
        }
    }
}
