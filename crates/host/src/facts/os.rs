//! The distribution and the architecture.

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// A distribution, as its os-release has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Os {
    /// Such as `debian`, `openEuler`, `rocky`.
    pub id: Option<String>,
    /// Distributions that it is like, nearest first.
    pub id_like: Vec<String>,
    /// Such as `12` or `22.03`.
    pub version: Option<String>,
    /// The name for people, such as `Debian GNU/Linux 12 (bookworm)`.
    pub pretty_name: Option<String>,
}

impl Os {
    /// Whether it is one of these distributions or says that it is like one.
    pub fn is_like(&self, ids: &[&str]) -> bool {
        let mut own = self.id.iter().chain(&self.id_like);
        own.any(|own| ids.iter().any(|id| own.eq_ignore_ascii_case(id)))
    }
}

/// An architecture, by the names that Go has for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86.
    Amd64,
    /// 64-bit ARM.
    Arm64,
    /// 32-bit ARM.
    Arm,
    /// 64-bit POWER, little-endian.
    Ppc64le,
    /// IBM Z.
    S390x,
    /// 64-bit RISC-V.
    Riscv64,
    /// 64-bit LoongArch.
    Loong64,
    /// Another, as `uname -m` names it.
    Other(String),
}

impl Arch {
    /// From what `uname -m` says.
    pub fn from_machine(machine: &str) -> Self {
        match machine {
            "x86_64" => Self::Amd64,
            "aarch64" => Self::Arm64,
            "ppc64le" => Self::Ppc64le,
            "s390x" => Self::S390x,
            "riscv64" => Self::Riscv64,
            "loongarch64" => Self::Loong64,
            arm if arm.starts_with("armv") => Self::Arm,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Its usual name, such as `amd64`.
    pub fn name(&self) -> &str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::Arm => "arm",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
            Self::Riscv64 => "riscv64",
            Self::Loong64 => "loong64",
            Self::Other(machine) => machine,
        }
    }

    /// Whether the most significant byte comes first, also in what the kernel prints.
    pub(super) fn is_big_endian(&self) -> bool {
        match self {
            Self::S390x => true,
            Self::Other(machine) => machine == "ppc64" || machine == "ppc" || machine == "s390",
            _ => false,
        }
    }
}

pub(super) fn arch(answer: &Answer) -> Option<Arch> {
    answer
        .value("machine")
        .map(|machine| Arch::from_machine(&machine))
}

pub(super) fn os(answer: &Answer) -> Os {
    let value = |key: &str| {
        let mut lines = answer.each("os-release");
        let value = lines.find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
        Some(unquote(value)).filter(|value| !value.is_empty())
    };
    let id_like = value("ID_LIKE").unwrap_or_default();
    Os {
        id: value("ID"),
        id_like: id_like.split_whitespace().map(str::to_owned).collect(),
        version: value("VERSION_ID"),
        pretty_name: value("PRETTY_NAME"),
    }
}

/// A value as the shell would read it: quoted or not, with backslashes.
pub(super) fn unquote(value: &str) -> String {
    let value = value.trim();
    if let Some(inner) = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        return inner.to_owned();
    }
    let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    let mut plain = String::new();
    let mut characters = inner.unwrap_or(value).chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn os_release_may_quote_as_it_likes() {
        let text = "# comment\nNAME=\"x\"\nID='rocky'\nID_LIKE=\"rhel centos  fedora\"\nVERSION_ID=9.4\nPRETTY_NAME=\"Rocky \\\"9\\\" \\$\"\n";
        let os = os(&with_sections(&[("os-release", text)]));
        assert_eq!(os.id.as_deref(), Some("rocky"));
        assert_eq!(os.id_like, ["rhel", "centos", "fedora"]);
        assert_eq!(os.version.as_deref(), Some("9.4"));
        assert_eq!(os.pretty_name.as_deref(), Some("Rocky \"9\" $"));
        assert!(os.is_like(&["RHEL"]) && !os.is_like(&["debian"]));
    }

    #[test]
    fn no_os_release_is_no_distribution() {
        assert_eq!(os(&with_sections(&[])), Os::default());
        assert_eq!(
            os(&with_sections(&[("os-release", "ID=\nVERSION_ID=\"\"\n")])),
            Os::default()
        );
        assert_eq!(unquote("\""), "\"");
    }

    #[test]
    fn architectures_have_their_go_names() {
        for (machine, name) in [
            ("x86_64", "amd64"),
            ("aarch64", "arm64"),
            ("armv7l", "arm"),
            ("loongarch64", "loong64"),
            ("sw_64", "sw_64"),
        ] {
            assert_eq!(Arch::from_machine(machine).name(), name);
        }
    }
}
