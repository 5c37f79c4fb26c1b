//! A few small files out of a tar stream of which nothing is known, such as one inside an archive.

use std::{collections::BTreeMap, io::BufRead};

use super::{
    flaw::{Fault, Flaw},
    limits::Limits,
    member::{self, Shape},
    name, scan,
};

/// Reads a tar stream (plain, gzip or zstd) of `packed_size` bytes to its end, and keeps the files
/// that are wanted and there, each of at most `most` bytes. Other entries are passed over, and only
/// their headers are checked.
pub fn excerpt(
    packed: impl BufRead,
    packed_size: u64,
    limits: &Limits,
    wanted: &[&str],
    most: u64,
) -> Result<BTreeMap<String, Vec<u8>>, Flaw> {
    let (_, mut stream) = scan::begin(packed, packed_size, limits)?;
    let mut found = BTreeMap::new();
    let mut buffer = vec![0; scan::BUFFER];
    let mut entries = 0;
    while let Some(member) = member::next(&mut stream, limits)? {
        entries += 1;
        if entries > limits.entries {
            let most = limits.entries;
            return Err(Flaw::Entries { most });
        }
        let shown = name::display(&member.name);
        let path = name::normalise(&member.name, limits).ok();
        let path = path.filter(|path| wanted.contains(&path.as_str()));
        if let Shape::File { size } = member.shape {
            let refused = |fault| Flaw::Entry {
                entry: shown.clone(),
                fault,
            };
            if path.is_some() && size > most {
                return Err(refused(Fault::Large { most }));
            }
            let mut contents = Vec::new();
            stream.each_piece(size, &mut buffer, |piece| {
                if path.is_some() {
                    contents.extend_from_slice(piece);
                }
            })?;
            stream.skip_padding()?;
            // Readers differ on which of the two counts.
            if path.is_some_and(|path| found.insert(path, contents).is_some()) {
                return Err(refused(Fault::Duplicate));
            }
        }
        stream.passed(shown);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::forge::{Forge, gzip, zstd},
        *,
    };

    fn read(packed: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, Flaw> {
        let size = packed.len() as u64;
        excerpt(packed, size, &Limits::default(), &["a", "d/b"], 10)
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let tar = Forge::default()
            .file("x", &[1; 2000])
            .file("./a", b"one")
            .symlink("../out", "/etc/passwd")
            .file("d/b", b"two")
            .end();
        let expected = BTreeMap::from([
            ("a".to_owned(), b"one".to_vec()),
            ("d/b".to_owned(), b"two".to_vec()),
        ]);
        for packed in [gzip(&tar), zstd(&tar), tar] {
            assert_eq!(read(&packed).unwrap(), expected);
        }
        let none = Forge::default().file("x", b"").end();
        assert!(read(&none).unwrap().is_empty());
    }

    #[test]
    fn what_is_large_twice_or_cut_off_is_refused() {
        let large = Forge::default().file("a", &[0; 11]).end();
        let refused = read(&large).unwrap_err().to_string();
        assert_eq!(refused, "entry \"a\" is larger than 10 bytes");
        let twice = Forge::default().file("a", b"1").file("./a", b"2").end();
        assert!(read(&twice).is_err());
        let cut = Forge::default().file("x", &[1; 2000]).end();
        assert!(matches!(read(&cut[..1500]), Err(Flaw::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            at in 0usize..3000, byte: u8, length in 0usize..4000,
        ) {
            let mut tar = Forge::default().file("x", &[1; 600]).file("a", b"one").end();
            let at = at % tar.len();
            tar[at] = byte;
            tar.truncate(length);
            let _ = read(&tar);
        }
    }
}
