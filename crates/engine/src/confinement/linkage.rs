//! Whether a program needs the system's dynamic loader.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

/// The kind of program header that names the loader.
const INTERPRETER: u32 = 3;
/// Programs have about ten program headers.
const MOST_HEADERS: u16 = 256;

/// Whether a program is linked dynamically. What is not a 64-bit ELF program of little-endian byte order is not.
pub(super) fn is_dynamic(program: &Path) -> io::Result<bool> {
    let mut file = File::open(program)?;
    let mut head = [0; 64];
    if read_whole(&mut file, &mut head)? && head.starts_with(b"\x7fELF\x02\x01") {
        let offset = number(&head[32..40]);
        let size = number(&head[54..56]);
        let count = number(&head[56..58]).min(MOST_HEADERS.into());
        for index in 0..count {
            let place = size
                .checked_mul(index)
                .and_then(|all| all.checked_add(offset));
            let Some(place) = place else { break };
            let mut kind = [0; 4];
            file.seek(SeekFrom::Start(place))?;
            if !read_whole(&mut file, &mut kind)? {
                break;
            }
            if u32::from_le_bytes(kind) == INTERPRETER {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Fills the buffer; false where the file ends before.
fn read_whole(file: &mut File, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().rev();
    digits.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_tell_whether_they_need_a_loader() {
        // Rust's tests are linked dynamically here; their loader is not.
        assert!(is_dynamic(Path::new("/proc/self/exe")).unwrap());
        let place = tempfile::tempdir().unwrap();
        for contents in [
            &b"#!/bin/sh\n"[..],
            b"",
            b"\x7fELF\x02\x01",
            // Headers that lie outside of the file, and of any file.
            &[b"\x7fELF\x02\x01".as_slice(), &[255; 94]].concat(),
        ] {
            let path = place.path().join("program");
            std::fs::write(&path, contents).unwrap();
            let said = is_dynamic(&path);
            assert!(!said.unwrap_or(false), "{contents:?}");
        }
    }
}
