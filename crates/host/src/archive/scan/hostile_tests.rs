//! Archives made to do harm.

use super::{
    tests::{forge, read, read_within, refused},
    *,
};
use crate::archive::forge::{Forge, gzip, zstd};

#[test]
fn names_that_lead_out_are_refused() {
    refused(
        forge().file("/etc/passwd", b""),
        "entry \"/etc/passwd\" has an absolute path",
    );
    refused(
        forge().file("a/../../b", b""),
        "entry \"a/../../b\" has '..' in its path",
    );
    refused(
        forge().pax(b'x', &[("path", "../x")]).file("a", b""),
        "entry \"../x\" has '..' in its path",
    );
    refused(
        forge()
            .entry(b'L', b"././@LongLink", b"", b"/x\0")
            .file("a", b""),
        "entry \"/x\" has an absolute path",
    );
    refused(
        forge().file("./", b"").file(".", b""),
        "entry \".\" has no name",
    );
    refused(
        forge().file("a\nb", b""),
        "entry \"a\\nb\" has a control character in its name",
    );
    refused(
        forge().entry(b'0', b"\xff", b"", b""),
        "entry \"\u{fffd}\" has a name that is not UTF-8",
    );
}

#[test]
fn links_that_lead_out_are_refused() {
    let out = |name: &str, target: &str| {
        format!("entry \"{name}\" links to \"{target}\", which points outside the archive")
    };
    refused(forge().symlink("a", "/etc"), &out("a", "/etc"));
    refused(forge().symlink("a", "../b"), &out("a", "../b"));
    refused(
        forge().symlink("a/b", "x/../../../c"),
        &out("a/b", "x/../../../c"),
    );
    // Each is harmless alone, both together are not.
    refused(
        forge().symlink("d/up", "..").symlink("x", "d/up/../y"),
        &out("x", "d/up/../y"),
    );
    refused(
        forge().hard_link("a", "/etc/shadow"),
        &out("a", "/etc/shadow"),
    );
    refused(forge().hard_link("a", "../b"), &out("a", "../b"));
    refused(
        forge().hard_link("a", "b").file("b", b""),
        "entry \"a\" is a hard link to \"b\", which is not an earlier file in the archive",
    );
    refused(
        forge().directory("b").hard_link("a", "b"),
        "entry \"a\" is a hard link to \"b\", which is not an earlier file in the archive",
    );
    refused(forge().symlink("a", ""), "entry \"a\" is a link to nothing");
    refused(
        forge().symlink("a", "b\u{1b}c"),
        "entry \"a\" links to \"b\\u{1b}c\", which has a control character in its name",
    );
    // A hard link to a symbolic link begins elsewhere.
    refused(
        forge().symlink("d/a", "../x").hard_link("b", "d/a"),
        &out("b", "../x"),
    );
}

#[test]
fn links_that_never_end_are_refused() {
    let round = |name: &str, target: &str| {
        format!("entry \"{name}\" links to \"{target}\", which is a loop or follows too many links")
    };
    refused(forge().symlink("a", "a"), &round("a", "a"));
    refused(
        forge()
            .symlink("a", "b")
            .symlink("b", "c/x")
            .symlink("c", "a"),
        &round("a", "b"),
    );
    let chain = |links: usize| {
        (0..links).fold(forge().file("l0", b""), |archive, number| {
            archive.symlink(&format!("l{}", number + 1), &format!("l{number}"))
        })
    };
    assert!(read(&chain(40).end()).is_ok());
    refused(chain(41), &round("l41", "l40"));
    let limits = Limits {
        link_steps: 100,
        ..Limits::default()
    };
    assert!(matches!(
        read_within(&chain(40).end(), &limits),
        Err(Flaw::Tangled)
    ));
}

#[test]
fn one_path_is_one_thing() {
    let twice = "entry \"./a\" occurs twice";
    refused(forge().file("a", b"").file("./a", b""), twice);
    refused(forge().file("a", b"").directory("./a"), twice);
    refused(forge().directory("a").directory("./a"), twice);
    refused(forge().directory("a").symlink("./a", "b"), twice);
    refused(
        forge().symlink("a", "b").file("a/c", b""),
        "entry \"a/c\" lies below \"a\", which is a symbolic link",
    );
    refused(
        forge().file("a", b"").file("a/b/c", b""),
        "entry \"a/b/c\" lies below \"a\", which is a file",
    );
    refused(
        forge().file("a/b/c", b"").symlink("a", "x"),
        "entry \"a\" is a symbolic link, while other entries lie below it",
    );
    let fine = forge()
        .file("a/b", b"")
        .file("a.b", b"")
        .directory("a")
        .file("a/c", b"");
    assert_eq!(read(&fine.end()).unwrap().entries().len(), 4);
}

#[test]
fn what_is_no_file_directory_or_link_is_refused() {
    for (flag, what) in [
        (b'3', "is a character device"),
        (b'4', "is a block device"),
        (b'6', "is a named pipe"),
        (b'S', "is stored as a sparse file"),
        (b'M', "is of the unknown type 'M'"),
        (b'\xff', "is of the unknown type '\\xff'"),
    ] {
        refused(
            forge().entry(flag, b"x", b"", b""),
            &format!("entry \"x\" {what}"),
        );
    }
    refused(
        forge()
            .pax(b'x', &[("GNU.sparse.major", "1")])
            .file("x", b""),
        "entry \"x\" is stored as a sparse file",
    );
    for flag in [b'1', b'2', b'5'] {
        refused(
            forge().file("y", b"").entry(flag, b"x", b"y", b"abc"),
            "entry \"x\" is not a file but has 3 bytes of data",
        );
    }
}

#[test]
fn extended_headers_that_contradict_are_refused() {
    let says_twice = "entry \"b\" has an extended header that has a duplicate record";
    let long = |archive: Forge| archive.entry(b'L', b"././@LongLink", b"", b"b\0");
    let pax = |archive: Forge| archive.pax(b'x', &[("path", "b")]);
    refused(pax(long(forge())).file("a", b""), says_twice);
    refused(long(pax(forge())).file("a", b""), says_twice);
    refused(pax(pax(forge())).file("a", b""), says_twice);
    refused(
        forge().pax(b'g', &[("size", "1")]).file("a", b""),
        "entry \"PaxHeaders/x\" has an extended header that gives one path, size or link target to all entries",
    );
    refused(
        forge().entry(b'x', b"h", b"", b"nonsense").file("a", b""),
        "entry \"h\" has an extended header that is not a list of PAX records",
    );
    refused(
        pax(forge()),
        "it is damaged at its beginning: an extended header belongs to no entry",
    );
}

#[test]
fn more_than_the_limits_is_refused() {
    let many = forge().file("a", b"").file("b", b"").file("c", b"").end();
    let limits = Limits {
        entries: 2,
        ..Limits::default()
    };
    assert!(matches!(
        read_within(&many, &limits),
        Err(Flaw::Entries { most: 2 })
    ));
    let limits = Limits {
        names: 2,
        ..Limits::default()
    };
    assert!(matches!(
        read_within(&many, &limits),
        Err(Flaw::Names { most: 2 })
    ));

    let links = (0..4).fold(forge().file("a", b""), |archive, number| {
        archive.hard_link(&format!("l{number}"), "a")
    });
    let limits = Limits {
        links: 5,
        ..Limits::default()
    };
    assert!(read_within(&links.clone().end(), &limits).is_ok());
    let limits = Limits {
        links: 4,
        ..Limits::default()
    };
    let flaw = read_within(&links.end(), &limits).unwrap_err();
    assert_eq!(
        flaw.to_string(),
        "entry \"l3\" is one of more than 4 hard links to the same file"
    );

    let limits = Limits {
        extension: 20,
        ..Limits::default()
    };
    let pax = forge()
        .pax(b'x', &[("path", "a-rather-long-name")])
        .file("a", b"")
        .end();
    let flaw = read_within(&pax, &limits).unwrap_err();
    assert_eq!(
        flaw.to_string(),
        "entry \"PaxHeaders/x\" has an extended header of 27 bytes"
    );
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    let limits = Limits {
        ratio_allowance: 10 << 10,
        ratio: 10,
        ..Limits::default()
    };
    let zeros = forge().file("a", &vec![0; 1 << 20]).end();
    assert!(read_within(&zeros, &limits).is_ok());
    for packed in [gzip(&zeros), zstd(&zeros)] {
        let flaw = read_within(&packed, &limits).unwrap_err();
        assert!(matches!(flaw, Flaw::Bomb { .. }), "{flaw}");
    }
    // Zeros behind the end cost as much.
    let padded = gzip(&[&forge().file("a", b"").end()[..], &[0; 1 << 20]].concat());
    assert!(matches!(
        read_within(&padded, &limits),
        Err(Flaw::Bomb { .. })
    ));
    // Nor does a size alone cost anything.
    let claim = forge().header(b'0', b"a", b"", b"77777777777\0").end();
    assert!(matches!(
        read_within(&claim, &limits),
        Err(Flaw::Bomb { .. })
    ));
}
