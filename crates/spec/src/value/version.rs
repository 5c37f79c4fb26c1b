//! Kubernetes versions.

use std::fmt;

use super::Mismatch;

/// A version of Kubernetes; without a patch number any patch will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Always 1 so far.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
    /// The patch number.
    pub patch: Option<u32>,
}

impl Version {
    /// The oldest that can be deployed.
    pub const OLDEST: Self = Self {
        major: 1,
        minor: 20,
        patch: None,
    };

    /// Parses `1.20`, `1.20.2` or `v1.20.2`.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let expected = "write it as 1.28 or 1.28.3";
        let wrong = || Mismatch::new("not a version of Kubernetes", expected);
        let numbers = text
            .strip_prefix('v')
            .unwrap_or(text)
            .split('.')
            .map(|part| {
                let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| part.parse().ok()).flatten()
            })
            .collect::<Option<Vec<u32>>>()
            .ok_or_else(wrong)?;
        let version = match numbers[..] {
            [major, minor] => Self {
                major,
                minor,
                patch: None,
            },
            [major, minor, patch] => Self {
                major,
                minor,
                patch: Some(patch),
            },
            _ => return Err(wrong()),
        };
        if version.major != 1 {
            return Err(wrong());
        }
        if version < Self::OLDEST {
            return Err(Mismatch::new(
                "older than any supported version",
                format!("use {} or later", Self::OLDEST),
            ));
        }
        Ok(version)
    }

    /// Whether it is this minor version or a later one.
    pub fn at_least(self, minor: u32) -> bool {
        self.minor >= minor
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(Version::parse("v1.20.2").unwrap().to_string(), "1.20.2");
        assert_eq!(Version::parse("1.30").unwrap().minor, 30);
        for bad in [
            "", "1", "1.10", "1.19.9", "2.0", "1.20.2.3", "1.x", "1.20-rc1", "1..2", "+1.20",
        ] {
            assert!(Version::parse(bad).is_err(), "{bad}");
        }
        assert!(Version::parse("1.20.0").unwrap() >= Version::OLDEST);
    }
}
