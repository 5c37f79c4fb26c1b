//! Tar archives made by hand, sound or not, for tests.

use std::io::Write as _;

use super::header::BLOCK;

/// An archive under construction. Nothing is checked.
#[derive(Default, Clone)]
pub(super) struct Forge(pub(super) Vec<u8>);

impl Forge {
    /// An entry of any type; the size in the header is that of its contents.
    pub(super) fn entry(self, flag: u8, name: &[u8], link: &[u8], contents: &[u8]) -> Self {
        let size = format!("{:011o}\0", contents.len());
        self.header(flag, name, link, size.as_bytes())
            .body(contents)
    }

    pub(super) fn file(self, name: &str, contents: &[u8]) -> Self {
        self.entry(b'0', name.as_bytes(), b"", contents)
    }

    pub(super) fn directory(self, name: &str) -> Self {
        self.entry(b'5', name.as_bytes(), b"", b"")
    }

    pub(super) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name.as_bytes(), target.as_bytes(), b"")
    }

    pub(super) fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(b'1', name.as_bytes(), target.as_bytes(), b"")
    }

    /// A PAX header with these records for the entry after it.
    pub(super) fn pax(self, flag: u8, records: &[(&str, &str)]) -> Self {
        let body: String = records
            .iter()
            .map(|(key, value)| record(key, value))
            .collect();
        self.entry(flag, b"PaxHeaders/x", b"", body.as_bytes())
    }

    pub(super) fn header(mut self, flag: u8, name: &[u8], link: &[u8], size: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        block[..name.len()].copy_from_slice(name);
        block[100..108].copy_from_slice(b"0004755\0");
        block[124..124 + size.len()].copy_from_slice(size);
        block[136..148].copy_from_slice(b"00000000017\0");
        block[156] = flag;
        block[157..157 + link.len()].copy_from_slice(link);
        block[257..265].copy_from_slice(b"ustar\x0000");
        self.0.extend(sealed(block));
        self
    }

    pub(super) fn body(mut self, contents: &[u8]) -> Self {
        self.0.extend_from_slice(contents);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// With the two blocks that end an archive.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

/// A header with its checksum set.
pub(super) fn sealed(mut block: [u8; BLOCK]) -> [u8; BLOCK] {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The length of a PAX record counts its own digits.
fn record(key: &str, value: &str) -> String {
    let bare = key.len() + value.len() + 3;
    let digits = (1..20)
        .find(|digits| (bare + digits).to_string().len() == *digits)
        .unwrap();
    format!("{} {key}={value}\n", bare + digits)
}
