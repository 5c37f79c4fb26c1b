//! The processor that something is built for, from its first bytes or its name.

use hatchery_spec::value::Arch;

/// The number of bytes at the beginning of a program that are looked at.
pub(super) const HEAD: usize = 20;

/// Of a program, if it is one that says so and we know it.
pub(super) fn of_program(head: &[u8]) -> Option<Arch> {
    let head: &[u8; HEAD] = head.get(..HEAD)?.try_into().ok()?;
    // ELF, 64 bits.
    if !head.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let little = head[5] == 1;
    let number = [head[18], head[19]];
    let number = if little {
        u16::from_le_bytes(number)
    } else {
        u16::from_be_bytes(number)
    };
    match (number, little) {
        (62, true) => Some(Arch::Amd64),
        (183, true) => Some(Arch::Arm64),
        (258, true) => Some(Arch::Loong64),
        (21, true) => Some(Arch::Ppc64le),
        (243, true) => Some(Arch::Riscv64),
        (22, false) => Some(Arch::S390x),
        _ => None,
    }
}

/// Of a package, by the end of its file's name; nothing for one that suits all.
pub(super) fn of_package(file: &str) -> Option<Arch> {
    let name = file
        .strip_suffix(".deb")
        .and_then(|stem| stem.rsplit_once('_'))
        .or_else(|| file.strip_suffix(".rpm")?.rsplit_once('.'))
        .map(|(_, name)| name)?;
    match name {
        "ppc64el" => Some(Arch::Ppc64le),
        name => Arch::parse(name).ok(),
    }
}

/// Of the machine that this program runs on.
pub(super) fn own() -> Option<Arch> {
    Arch::parse(std::env::consts::ARCH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_tell_their_processor() {
        let own_program = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(of_program(&own_program), own());
        assert_eq!(of_program(b"#!/bin/sh\nexec something else\n"), None);
        assert_eq!(of_program(b"\x7fELF\x02"), None);
        let mut head = [0; HEAD];
        head[..6].copy_from_slice(b"\x7fELF\x02\x02");
        head[19] = 22;
        assert_eq!(of_program(&head), Some(Arch::S390x));
    }

    #[test]
    fn packages_tell_theirs_by_their_names() {
        for (file, arch) in [
            ("etcd-3.4.14-2.aarch64.rpm", Some(Arch::Arm64)),
            ("etcd_3.4.23-1_amd64.deb", Some(Arch::Amd64)),
            ("nginx-filesystem-1.18.0-1.oe1.noarch.rpm", None),
            ("nginx-common_1.18.0-6_all.deb", None),
            ("a_1_ppc64el.deb", Some(Arch::Ppc64le)),
            ("kubelet", None),
        ] {
            assert_eq!(of_package(file), arch, "{file}");
        }
    }
}
