//! Processor architectures.

use serde::Serialize;

use super::Mismatch;

/// An architecture, named as Go and Kubernetes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86_64.
    Amd64,
    /// aarch64.
    Arm64,
    /// LoongArch, 64 bit.
    Loong64,
    /// POWER, 64 bit, little-endian.
    Ppc64le,
    /// RISC-V, 64 bit.
    Riscv64,
    /// IBM Z.
    S390x,
}

impl Arch {
    /// All there are.
    pub const ALL: [Self; 6] = [
        Self::Amd64,
        Self::Arm64,
        Self::Loong64,
        Self::Ppc64le,
        Self::Riscv64,
        Self::S390x,
    ];

    /// Parses an architecture by any of its usual names.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        match text.to_ascii_lowercase().as_str() {
            "amd64" | "x86_64" | "x86-64" | "x64" | "x86" => Ok(Self::Amd64),
            "arm64" | "aarch64" | "arm" | "armv8" => Ok(Self::Arm64),
            "loong64" | "loongarch64" => Ok(Self::Loong64),
            "ppc64le" => Ok(Self::Ppc64le),
            "riscv64" => Ok(Self::Riscv64),
            "s390x" => Ok(Self::S390x),
            _ => Err(Mismatch::new(
                "not a known architecture",
                "use amd64 (x86_64), arm64 (aarch64), loong64, ppc64le, riscv64 or s390x",
            )),
        }
    }

    /// Its name in Go and Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::Loong64 => "loong64",
            Self::Ppc64le => "ppc64le",
            Self::Riscv64 => "riscv64",
            Self::S390x => "s390x",
        }
    }
}

impl std::fmt::Display for Arch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_many_names() {
        for arch in Arch::ALL {
            assert_eq!(Arch::parse(arch.as_str()), Ok(arch));
        }
        assert_eq!(Arch::parse("X86_64"), Ok(Arch::Amd64));
        assert_eq!(Arch::parse("aarch64"), Ok(Arch::Arm64));
        assert!(Arch::parse("armv7l").is_err() && Arch::parse("").is_err());
    }
}
