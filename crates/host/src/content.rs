//! What a file on a machine is to contain, and where the bytes come from.

use std::{
    fmt, fs, io,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};
use snafu::{ResultExt as _, Snafu, ensure};

use crate::archive::{Archive, Kind};

/// A SHA-256 sum in lower-case hexadecimal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Hash(String);

impl Hash {
    /// The hash of these bytes.
    pub fn digest(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// From its 32 bytes.
    pub fn from_digest(digest: &[u8]) -> Self {
        Self(hex::encode(digest))
    }

    /// From its 64 lower-case hexadecimal digits, as machines print it.
    pub fn parse(text: &str) -> Result<Self, NotAHash> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        ensure!(
            text.len() == 64 && text.bytes().all(is_digit),
            NotAHashSnafu
        );
        Ok(Self(text.to_owned()))
    }

    /// As 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("not a SHA-256 sum of 64 lower-case hexadecimal digits"))]
pub struct NotAHash;

/// Bytes for a machine. Equal hashes are equal contents.
#[derive(Clone)]
pub struct Content {
    pub(crate) source: Source,
    size: u64,
    hash: Hash,
}

#[derive(Clone)]
pub(crate) enum Source {
    Bytes(Arc<[u8]>),
    File(PathBuf, Identity),
    Archived(Arc<Archive>, String),
    /// The bytes are not on the control machine.
    Machine,
}

/// A value by which it is seen whether a file is still the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Identity {
    pub(crate) fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A file on the control machine that can be sent.
#[derive(Debug, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// It cannot be read.
    #[snafu(display("cannot read {}: {source}", path.display()))]
    Read { path: PathBuf, source: io::Error },
    /// Only files can be sent.
    #[snafu(display("{} is not a file", path.display()))]
    NotAFile { path: PathBuf },
    /// An archive does not hold it.
    #[snafu(display("{} holds no file {name}", archive.display()))]
    NotArchived {
        /// The archive that has to hold it.
        archive: PathBuf,
        /// The path in the archive.
        name: String,
    },
}

impl Content {
    /// Bytes in memory, such as a rendered configuration.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self {
            size: bytes.len() as u64,
            hash: Hash::digest(&bytes),
            source: Source::Bytes(bytes),
        }
    }

    /// A file on the control machine, read once now for its hash and again when it is sent.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let mut file = fs::File::open(path).context(ReadSnafu { path })?;
        let metadata = file.metadata().context(ReadSnafu { path })?;
        ensure!(metadata.is_file(), NotAFileSnafu { path });
        let identity = Identity::from_metadata(&metadata);
        let (mut digest, mut buffer, mut size) = (Sha256::new(), vec![0; 1 << 18], 0);
        loop {
            let length = file.read(&mut buffer).context(ReadSnafu { path })?;
            if length == 0 {
                break;
            }
            digest.update(&buffer[..length]);
            size += length as u64;
        }
        Ok(Self {
            source: Source::File(path.to_owned(), identity),
            size,
            hash: Hash::from_digest(&digest.finalize()),
        })
    }

    /// A file of an archive, read out of it when it is sent.
    pub fn archived(archive: &Arc<Archive>, name: &str) -> Result<Self, Error> {
        let entry = archive.index().resolve(name);
        let Some((entry, Kind::File { size, sha256 })) = entry.map(|entry| (entry, &entry.kind))
        else {
            let archive = archive.path();
            return NotArchivedSnafu { archive, name }.fail();
        };
        Ok(Self {
            size: *size,
            hash: Hash::from_digest(&sha256.0),
            source: Source::Archived(Arc::clone(archive), entry.path.to_string()),
        })
    }

    /// Bytes that only the machine has, such as a private key that was made for it and never came back. A file of
    /// them is looked at as any other, and gets its mode and owner; a task that finds other bytes there fails with
    /// [`crate::machine::Error::Changed`] before it does anything.
    pub fn known(hash: Hash, size: u64) -> Self {
        Self {
            source: Source::Machine,
            size,
            hash,
        }
    }

    pub(crate) fn is_only_there(&self) -> bool {
        matches!(self.source, Source::Machine)
    }

    /// The bytes, where they are held in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The SHA-256 sum of the contents.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }
}

/// Never shows the bytes: they may be a private key.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, SHA-256 {}", self.size, self.hash.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_only_as_it_is_written() {
        let hash = Hash::digest(b"x");
        assert_eq!(Hash::parse(hash.as_str()), Ok(hash.clone()));
        let upper = hash.as_str().to_uppercase();
        let long = format!("{}0", hash.as_str());
        let odd = hash.as_str().replace(char::is_numeric, "g");
        let wide = "ü".repeat(32);
        for text in [
            "",
            "absent",
            &hash.as_str()[1..],
            &upper,
            &long,
            &odd,
            &wide,
        ] {
            assert_eq!(Hash::parse(text), Err(NotAHash), "{text}");
        }
    }

    #[test]
    fn known_content_shows_no_more_than_any_other() {
        let (bytes, known) = (Content::bytes(*b"x"), Content::known(Hash::digest(b"x"), 1));
        assert_eq!(format!("{bytes:?}"), format!("{known:?}"));
        assert!(known.is_only_there() && !bytes.is_only_there());
    }
}
