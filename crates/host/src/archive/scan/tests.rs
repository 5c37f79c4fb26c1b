//! Sound archives, and damaged ones.

use super::*;
use crate::archive::forge::{Forge, gzip, sealed, zstd};

pub(super) fn read(bytes: &[u8]) -> Result<Index, Flaw> {
    read_within(bytes, &Limits::default())
}

pub(super) fn read_within(bytes: &[u8], limits: &Limits) -> Result<Index, Flaw> {
    scan(bytes, bytes.len() as u64, limits).map(|(_, index)| index)
}

#[track_caller]
pub(super) fn refused(archive: Forge, message: &str) {
    let error = read(&archive.end()).expect_err("it was taken");
    assert_eq!(error.to_string(), message);
    assert!(error.remedy().is_some());
}

fn paths(index: &Index) -> Vec<&str> {
    index.entries().iter().map(|entry| &*entry.path).collect()
}

pub(super) fn forge() -> Forge {
    Forge::default()
}

#[test]
fn a_sound_archive_is_indexed_in_its_order() {
    let bytes = forge()
        .directory("./")
        .file("./z", b"hello")
        .directory("./bin/")
        .file("./bin/a", b"")
        .symlink("./bin/b", "../z")
        .hard_link("./bin/c", "./z")
        .end();
    for packed in [bytes.clone(), gzip(&bytes), zstd(&bytes)] {
        let index = read(&packed).unwrap();
        assert_eq!(paths(&index), ["z", "bin", "bin/a", "bin/b", "bin/c"]);
        let z = index.get("z").unwrap();
        let Kind::File { size: 5, sha256 } = z.kind else {
            panic!("{z:?}");
        };
        assert_eq!(
            sha256.to_string(),
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
        );
        assert_eq!((z.mode, z.mtime), (0o755, 15));
        let c = index.get("bin/c").unwrap();
        assert_eq!((&c.kind, c.offset), (&z.kind, z.offset));
    }
}

#[test]
fn paths_and_directories_are_looked_up() {
    let bytes = forge()
        .file("bin/x/deep", b"1")
        .file("bin-other", b"2")
        .file("bin/a", b"3")
        .symlink("current", "bin/x")
        .symlink("bin/link", "../current/deep")
        .directory("empty")
        .end();
    let index = read(&bytes).unwrap();
    let below = |directory| -> Vec<&str> { index.below(directory).map(|e| &*e.path).collect() };
    assert_eq!(below("./bin/"), ["bin/a", "bin/link", "bin/x/deep"]);
    assert_eq!(below("").len(), 6);
    assert!(below("../bin").is_empty() && below("/bin").is_empty());
    assert_eq!(Vec::from_iter(index.children("bin")), ["a", "link", "x"]);
    assert_eq!(index.children("").len(), 4);
    assert!(index.is_directory("bin/x") && index.is_directory("empty"));
    assert!(!index.is_directory("bin/a") && !index.is_directory("current"));
    assert_eq!(index.get("./bin//a").unwrap().path, "bin/a".into());
    assert!(index.get("bin/x").is_none() && index.get("../bin/a").is_none());
    assert_eq!(index.resolve("bin/link").unwrap().path, "bin/x/deep".into());
    assert_eq!(
        index.resolve("current/deep").unwrap().path,
        "bin/x/deep".into()
    );
    assert!(index.resolve("/bin/a").is_none() && index.resolve("../bin/a").is_none());
}

#[test]
fn a_link_inside_the_tree_may_dangle() {
    let bytes = forge().symlink("a/b", "../c/./d").end();
    assert_eq!(paths(&read(&bytes).unwrap()), ["a/b"]);
}

#[test]
fn extended_headers_give_names_sizes_and_times() {
    let long = "n".repeat(200);
    let bytes = forge()
        .pax(b'g', &[("comment", "made by hand"), ("mtime", "5")])
        .pax(
            b'x',
            &[
                ("path", &format!("p/{long}")),
                ("mtime", "-1.5"),
                ("size", "3"),
            ],
        )
        .header(b'0', b"short", b"", b"00000000000\0")
        .body(b"abc")
        .entry(b'K', b"././@LongLink", b"", format!("t{long}\0").as_bytes())
        .entry(
            b'L',
            b"././@LongLink",
            b"",
            format!("l/{long}\0").as_bytes(),
        )
        .symlink("short", "short")
        .pax(b'x', &[("linkpath", "l")])
        .symlink("last", "short")
        .entry(b'V', b"label", b"", b"")
        .end();
    let index = read(&bytes).unwrap();
    let [first, second, third] = index.entries() else {
        panic!("{index:?}");
    };
    assert_eq!(*first.path, format!("p/{long}"));
    assert_eq!(first.mtime, -2);
    assert!(matches!(first.kind, Kind::File { size: 3, .. }));
    assert_eq!(*second.path, format!("l/{long}"));
    assert_eq!(
        second.kind,
        Kind::Symlink {
            target: format!("t{long}").into()
        }
    );
    assert_eq!(third.kind, Kind::Symlink { target: "l".into() });
}

#[test]
fn numbers_of_all_makes_are_read() {
    let huge = forge()
        .header(b'0', b"a", b"", b"\x80\0\0\0\0\0\0\0\0\0\0\x03")
        .body(b"abc");
    assert!(read(&huge.end()).is_ok());
    let negative = forge().header(b'0', b"a", b"", &[0xff; 12]);
    refused(negative, "entry \"a\" has no readable size in its header");
    // Owners beyond octal are of no concern.
    let mut bytes = forge().file("a", b"").end();
    bytes[108..124].copy_from_slice(&[0xff; 16]);
    let block: [u8; BLOCK] = bytes[..BLOCK].try_into().unwrap();
    bytes[..BLOCK].copy_from_slice(&sealed(block));
    assert!(read(&bytes).is_ok());
}

#[test]
fn the_end_must_be_there_and_be_the_end() {
    let whole = forge().file("a", b"abc").file("b", b"xyz").end();
    assert!(read(&whole).is_ok());
    assert!(read(&[&whole[..], &[0; 9000]].concat()).is_ok());
    for pack in [|bytes: &[u8]| bytes.to_vec(), gzip, zstd] {
        let packed = |bytes: &[u8]| read(&pack(bytes)).unwrap_err().to_string();
        for cut in [1600, 2000, 2047] {
            assert_eq!(
                packed(&whole[..cut]),
                "it ends too early, after \"a\"",
                "at {cut}"
            );
        }
        assert_eq!(packed(&whole[..1024]), "it ends too early, after \"a\"");
        assert_eq!(packed(&whole[..700]), "it ends too early, at its beginning");
        let again = [&whole[..], &whole].concat();
        assert_eq!(packed(&again), "there is more data after its end");
        assert_eq!(packed(&[0; 1024]), "it is empty");
        assert_eq!(packed(&forge().directory("./").end()), "it is empty");
    }
    for packed in [gzip(&whole), zstd(&whole)] {
        let flaw = read(&[&packed[..], b"more"].concat()).unwrap_err();
        assert!(matches!(flaw, Flaw::Trailing), "{flaw}");
        let flaw = read(&packed[..packed.len() - 3]).unwrap_err();
        assert!(matches!(flaw, Flaw::Truncated { .. }), "{flaw}");
    }
    assert!(matches!(read(b""), Err(Flaw::Empty)));
    assert!(matches!(read(&gzip(b"")), Err(Flaw::Empty)));
}

#[test]
fn what_is_packed_otherwise_is_named() {
    let told = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let xz = [&b"\xfd7zXZ\0"[..], &[1; 600]].concat();
    assert_eq!(told(&xz), "it is xz-compressed, not a tar archive");
    assert_eq!(told(&gzip(&xz)), "it is xz-compressed, not a tar archive");
    let twice = gzip(&gzip(&forge().file("a", b"").end()));
    assert_eq!(told(&twice), "it is compressed twice, not a tar archive");
    assert_eq!(
        told(b"hello"),
        "it is an unknown kind of file, not a tar archive"
    );
    assert_eq!(
        read(&xz).unwrap_err().remedy(),
        Some("repack it as tar.gz or tar.zst")
    );
}

#[test]
fn the_fingerprint_is_of_contents_alone() {
    let print = |archive: Forge| read(&archive.end()).unwrap().fingerprint();
    let one = print(forge().file("a", b"1").file("b", b"2"));
    assert_eq!(one, print(forge().file("b", b"2").file("a", b"1")));
    let bytes = forge().file("a", b"1").file("b", b"2").end();
    assert_eq!(one, read(&zstd(&bytes)).unwrap().fingerprint());
    assert_ne!(one, print(forge().file("a", b"1").file("b", b"3")));
    assert_ne!(one, print(forge().file("a", b"1").file("c", b"2")));
    assert_ne!(one, print(forge().file("a", b"1").symlink("b", "a")));
}
