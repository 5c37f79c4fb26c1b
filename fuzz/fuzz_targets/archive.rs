//! Any bytes are a sound archive or an error, within bounds.
//!
//! The last byte says how the input is used: as it is, or as a tar stream whose header checksums
//! are put right first (no mutation would hit upon them), plain or compressed.
#![no_main]

use std::io::Write as _;

use hatchery_host::archive::{Index, Kind, Limits, scan};
use libfuzzer_sys::fuzz_target;

const BLOCK: usize = 512;
const ENTRIES: usize = 64;

fuzz_target!(|input: &[u8]| {
    let Some((how, start)) = input.split_last() else {
        return;
    };
    let bytes = match how {
        1 => sealed(start),
        2 => gzip(&sealed(start)),
        3 => zstd::encode_all(&sealed(start)[..], 1).expect("memory takes all"),
        _ => input.to_vec(),
    };
    let limits = Limits {
        entries: ENTRIES,
        unpacked: 4 << 20,
        ratio_allowance: 256 << 10,
        names: 16 << 10,
        extension: 4 << 10,
        links: 8,
        link_steps: 10_000,
        zstd_window_log: 20,
        ..Limits::default()
    };
    if let Ok((_, index)) = scan(&bytes[..], bytes.len() as u64, &limits) {
        check(&index);
    }
});

fn check(index: &Index) {
    assert!((1..=ENTRIES).contains(&index.entries().len()));
    assert_eq!(index.below("").count(), index.entries().len());
    for entry in index.entries() {
        assert_eq!(index.get(&entry.path), Some(entry));
        assert!(!entry.path.chars().any(char::is_control));
        for part in entry.path.split('/') {
            assert!(!matches!(part, "" | "." | ".."));
        }
        assert_eq!(entry.mode & !0o777, 0);
        if entry.kind != Kind::Directory {
            assert_eq!(index.below(&entry.path).count(), 0);
        }
        for (at, _) in entry.path.match_indices('/') {
            assert!(index.is_directory(&entry.path[..at]));
        }
        if let Kind::Symlink { target } = &entry.kind {
            assert!(!target.starts_with('/'));
        }
        // Ends inside, or at nothing that is there.
        if let Some(end) = index.resolve(&entry.path) {
            assert!(!matches!(end.kind, Kind::Symlink { .. }));
        }
    }
    index.fingerprint();
}

/// With the checksum of every block that calls itself a header put right.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for block in bytes.chunks_exact_mut(BLOCK) {
        if block[257..262] == *b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}
