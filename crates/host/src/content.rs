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
    /// Of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }

    /// From its 32 bytes.
    pub fn from_digest(digest: &[u8]) -> Self {
        Self(hex(digest))
    }

    /// As 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes that a machine is to have. Equal hashes are equal contents.
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
}

/// What tells whether a file is still the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Identity {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A file on the control machine that is to be sent.
#[derive(Debug, Snafu)]
pub enum Error {
    /// It cannot be read.
    #[snafu(display("cannot read {}: {source}", path.display()))]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Only files can be sent.
    #[snafu(display("{} is not a file", path.display()))]
    NotAFile {
        /// Which.
        path: PathBuf,
    },
    /// An archive does not hold it.
    #[snafu(display("{} holds no file {name}", archive.display()))]
    NotArchived {
        /// Which archive.
        archive: PathBuf,
        /// Which file.
        name: String,
    },
}

impl Content {
    /// Bytes in memory, such as a rendered configuration.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self {
            size: bytes.len() as u64,
            hash: Hash::of(&bytes),
            source: Source::Bytes(bytes),
        }
    }

    /// A file on the control machine, read once now for its hash and again when it is sent.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let mut file = fs::File::open(path).context(ReadSnafu { path })?;
        let metadata = file.metadata().context(ReadSnafu { path })?;
        ensure!(metadata.is_file(), NotAFileSnafu { path });
        let identity = Identity::of(&metadata);
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

    /// How many bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Their hash.
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
