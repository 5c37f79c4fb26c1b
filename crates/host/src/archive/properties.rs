//! Properties of reading any bytes whatever.

use proptest::{collection::vec, prelude::*};

use super::{
    Limits,
    forge::{Forge, gzip, zstd},
    scan,
};

/// Small enough that breaking one would show.
fn limits() -> Limits {
    Limits {
        entries: 50,
        unpacked: 1 << 20,
        ratio_allowance: 64 << 10,
        ..Limits::default()
    }
}

fn check(bytes: &[u8]) {
    let Ok((_, index)) = scan(bytes, bytes.len() as u64, &limits()) else {
        return;
    };
    assert!(!index.entries().is_empty() && index.entries().len() <= 50);
    for entry in index.entries() {
        assert_eq!(index.get(&entry.path), Some(entry));
        assert!(!entry.path.starts_with('/') && !entry.path.chars().any(char::is_control));
        assert!(
            entry
                .path
                .split('/')
                .all(|part| !matches!(part, "" | "." | ".."))
        );
        assert_eq!(entry.mode & !0o777, 0);
    }
    assert_eq!(index.below("").count(), index.entries().len());
}

/// Names that collide, nest and lead astray now and then.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "(\\./)?[ab](/[abc]){0,2}/?",
        1 => "(\\.\\./){0,2}[ab]",
        1 => "\\PC{0,20}",
    ]
}

fn archive() -> impl Strategy<Value = Vec<u8>> {
    let flag = prop::sample::select(&b"0001222555xLg3S"[..]);
    let entry = (flag, name(), name(), vec(any::<u8>(), 0..600));
    vec(entry, 0..8).prop_map(|entries| {
        let forged =
            entries
                .into_iter()
                .fold(
                    Forge::default(),
                    |archive, (flag, name, link, contents)| match flag {
                        b'0' => archive.file(&name, &contents),
                        b'x' => archive.pax(flag, &[("path", &name)]),
                        b'L' => archive.entry(flag, b"long", b"", name.as_bytes()),
                        _ => archive.entry(flag, name.as_bytes(), link.as_bytes(), b""),
                    },
                );
        forged.end()
    })
}

fn packed() -> impl Strategy<Value = Vec<u8>> {
    (archive(), 0..3_u8).prop_map(|(bytes, how)| match how {
        0 => bytes,
        1 => gzip(&bytes),
        _ => zstd(&bytes),
    })
}

fn files() -> Vec<u8> {
    let contents: Vec<u8> = (0..3000_u32).map(|n| (n * n % 251) as u8).collect();
    Forge::default()
        .file("a", &contents)
        .file("b/c", &contents[..700])
        .end()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_an_archive_or_an_error(bytes in vec(any::<u8>(), 0..4096), how in 0..4_usize) {
        let magic: &[u8] = [&b""[..], b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd", b"BZh"][how];
        check(&[magic, &bytes].concat());
    }

    #[test]
    fn forged_archives_are_sound_or_an_error(bytes in packed()) {
        check(&bytes);
    }

    #[test]
    fn changed_archives_are_sound_or_an_error(
        mut bytes in packed(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&bytes);
    }

    #[test]
    fn no_flipped_bit_of_compressed_contents_goes_unseen(at in any::<prop::sample::Index>(), bit in 0..8_u8, how in any::<bool>()) {
        let whole = files();
        let sound = scan(&whole[..], whole.len() as u64, &limits()).unwrap().1;
        let mut packed = if how { gzip(&whole) } else { zstd(&whole) };
        let at = at.index(packed.len());
        packed[at] ^= 1 << bit;
        // Some bits carry nothing, as gzip's time stamp and padding: then nothing may differ.
        if let Ok((_, index)) = scan(&packed[..], packed.len() as u64, &limits()) {
            prop_assert_eq!(index, sound);
        }
    }

    #[test]
    fn no_cut_goes_unseen(at in any::<prop::sample::Index>(), how in 0..3_u8) {
        let whole = files();
        let packed = match how { 0 => whole, 1 => gzip(&whole), _ => zstd(&whole) };
        // A plain archive may lose all but the first of its zeros.
        let needed = if how == 0 { packed.len() - 512 } else { packed.len() };
        let cut = &packed[..at.index(needed)];
        prop_assert!(scan(cut, cut.len() as u64, &limits()).is_err());
    }
}
