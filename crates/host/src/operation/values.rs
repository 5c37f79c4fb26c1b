//! Small values of operations that are checked once.

use std::fmt;

use snafu::Snafu;

/// A value that no tool on a machine would take, or that would mean something else to it.
#[derive(Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{value:?} is not a valid {what}"))]
pub struct ValueError {
    what: &'static str,
    value: String,
}

impl ValueError {
    pub(crate) fn new(what: &'static str, value: &str) -> Self {
        Self {
            what,
            value: value.to_owned(),
        }
    }
}

/// Permission bits, from 0 to 0o7777.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(u16);

impl Mode {
    /// Up to `0o7777`.
    pub fn new(bits: u16) -> Result<Self, ValueError> {
        if bits > 0o7777 {
            return Err(ValueError::new("file mode", &format!("{bits:o}")));
        }
        Ok(Self(bits))
    }

    /// The permission bits as a number.
    pub fn bits(self) -> u16 {
        self.0
    }
}

/// As `stat` prints it: octal, without leading zeros.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:o}", self.0)
    }
}

/// The name of a unit of systemd, with its suffix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnitName(String);

impl UnitName {
    /// Such as `sshd.service`.
    pub fn new(name: impl Into<String>) -> Result<Self, ValueError> {
        let name = name.into();
        let suffixes = [
            ".service", ".socket", ".timer", ".target", ".mount", ".slice", ".path",
        ];
        let fits = suffixes
            .iter()
            .any(|suffix| name.len() > suffix.len() && name.ends_with(suffix))
            && name.len() < 256
            && !name.starts_with('-')
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b":-_.@".contains(&b));
        if !fits {
            return Err(ValueError::new("unit of systemd", &name));
        }
        Ok(Self(name))
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A port or a range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    first: u16,
    last: u16,
}

impl Port {
    /// A range of one port.
    pub fn one(port: u16) -> Result<Self, ValueError> {
        Self::range(port, port)
    }

    /// From one to another, both included.
    pub fn range(first: u16, last: u16) -> Result<Self, ValueError> {
        if first == 0 || last < first {
            return Err(ValueError::new("port", &format!("{first}-{last}")));
        }
        Ok(Self { first, last })
    }

    pub(crate) fn for_tool(self, separator: char) -> String {
        if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{}{separator}{}", self.first, self.last)
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.for_tool('-'))
    }
}

/// Of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP
    Tcp,
    /// UDP
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_named_with_their_suffix() {
        assert!(UnitName::new("kubelet.service").is_ok());
        assert!(UnitName::new("getty@tty1.service").is_ok());
        for bad in [
            "kubelet",
            ".service",
            "a b.service",
            "-x.service",
            "a;b.service",
        ] {
            assert!(UnitName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_and_modes_have_bounds() {
        assert_eq!(
            Port::range(30000, 32767).unwrap().to_string(),
            "30000-32767"
        );
        assert!(Port::one(0).is_err());
        assert!(Port::range(2, 1).is_err());
        assert!(Mode::new(0o10000).is_err());
        assert_eq!(Mode::new(0o600).unwrap().to_string(), "600");
    }
}
