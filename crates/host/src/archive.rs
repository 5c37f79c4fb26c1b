//! Offline packages: tar archives on the control machine, read once, trusted never.
//!
//! [`Archive::open`] walks an archive (plain, gzip or zstd; recognised by content) in one
//! streaming pass, refuses what is not sound, and keeps an [`Index`]: paths, kinds, sizes and
//! SHA-256 digests, no contents. From that is decided which bytes a machine lacks. Those alone
//! are read again by [`Archive::read_selected`]: in place from a plain archive, in one sequential
//! pass from a compressed one, and without a copy on disk from either. A [`Scan`] can be kept, so
//! that the first pass is made once for each archive and not once for each run.
//!
//! ```no_run
//! use std::{collections::BTreeSet, io, path::Path};
//! use hatchery_host::archive::Archive;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let archive = Archive::open(Path::new("packages-amd64.tar.gz"))?;
//! let wanted: BTreeSet<String> = archive.index().below("bin").map(|entry| entry.path.to_string()).collect();
//! archive.read_selected(&wanted, |entry, contents| {
//!     println!("{}", entry.path);
//!     io::copy(contents, &mut io::sink()).map(drop)
//! })?;
//! # Ok(())
//! # }
//! ```

mod compression;
mod entry;
mod error;
mod excerpt;
mod flaw;
#[cfg(test)]
mod forge;
mod header;
mod index;
mod limits;
mod links;
mod member;
mod name;
#[cfg(test)]
mod properties;
mod recall;
mod scan;
mod selection;
mod spool;
mod stream;

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io::{self, BufReader, Read},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use snafu::{ResultExt as _, ensure};

pub use self::{
    compression::Compression,
    entry::{Digest, Entry, Kind},
    error::Error,
    excerpt::excerpt,
    flaw::{Fault, Flaw},
    index::Index,
    limits::Limits,
    recall::Scan,
    scan::scan,
};
use self::{
    error::{ChangedSnafu, NotAFileSnafu, OpenSnafu},
    spool::Spool,
};

/// An archive whose entries are known and sound. It can be read by several threads at once.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    file: File,
    identity: Identity,
    compression: Compression,
    index: Index,
    limits: Limits,
    spool: Arc<Spool>,
}

/// A value by which it is seen whether a file is still the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Archive {
    /// Reads an archive within the usual limits.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_within(path, Limits::default())
    }

    /// Reads an archive within limits of the caller's.
    pub fn open_within(path: &Path, limits: Limits) -> Result<Self, Error> {
        let (file, identity) = file_at(path)?;
        let packed = BufReader::with_capacity(scan::BUFFER, Place::new(&file, 0));
        let scanned = scan(packed, identity.size, &limits);
        // An archive that is being written looks damaged: the cause is told, not the symptom.
        identity.expect_at(path)?;
        let (compression, index) = scanned.map_err(|flaw| Error::Flawed {
            archive: path.to_owned(),
            flaw,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            identity,
            compression,
            index,
            limits,
            spool: Arc::default(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is packed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// What it holds.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// A digest of what it holds: see [`Index::fingerprint`].
    pub fn fingerprint(&self) -> Digest {
        self.index.fingerprint()
    }

    /// Hands over the contents of the wanted files, in archive order, each once. What `each`
    /// leaves unread is passed over.
    ///
    /// The last bytes of a file are only handed over when all of it has the digest of the index:
    /// a consumer that got as many bytes as [`Kind::File`] promises got the right ones.
    ///
    /// A compressed archive is unpacked once for all who read it, up to the last file that one of them wants, into a
    /// file without a name in `/var/tmp`. Where there is no room for that, each reader unpacks it for itself.
    pub fn read_selected(
        &self,
        wanted: &BTreeSet<String>,
        mut each: impl FnMut(&Entry, &mut dyn Read) -> io::Result<()>,
    ) -> Result<(), Error> {
        let passes = selection::passes(self, wanted)?;
        self.identity.expect_at(&self.path)?;
        passes
            .iter()
            .try_for_each(|pass| selection::read(self, pass, &mut each))
    }
}

fn file_at(archive: &Path) -> Result<(File, Identity), Error> {
    // Asked first, since opening a named pipe would wait for somebody to write into it.
    let metadata = fs::metadata(archive).context(OpenSnafu { archive })?;
    ensure!(metadata.is_file(), NotAFileSnafu { archive });
    let file = File::open(archive).context(OpenSnafu { archive })?;
    let identity = Identity::from_metadata(&file.metadata().context(OpenSnafu { archive })?);
    Ok((file, identity))
}

impl Identity {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Fails when the file at a path is no longer this one.
    fn expect_at(&self, archive: &Path) -> Result<(), Error> {
        let now = fs::metadata(archive).context(OpenSnafu { archive })?;
        ensure!(Self::from_metadata(&now) == *self, ChangedSnafu { archive });
        Ok(())
    }
}

/// A place in a file that moves on with reading and leaves the file's own offset alone.
struct Place<'a> {
    file: &'a File,
    at: u64,
}

impl<'a> Place<'a> {
    fn new(file: &'a File, at: u64) -> Self {
        Self { file, at }
    }
}

impl Read for Place<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
