//! What an archive's index knows of one entry.

use std::{fmt, sync::Arc};

/// A file, directory or symbolic link in an archive. A hard link is an entry like the one it
/// links to, under its own path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the archive's root, without `.` components, `/` at the end, or control
    /// characters.
    pub path: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// Permission bits only. Set-user-id, set-group-id and sticky bits are dropped: none of them
    /// belongs into a package, yet directories catch the latter two from where they are packed.
    pub mode: u32,
    /// Time of last change, in seconds since 1970.
    pub mtime: i64,
    /// Where a file's bytes begin in the unpacked stream; hard links share it.
    pub(super) offset: u64,
}

/// The kinds of entry that an archive may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// The size in bytes.
        size: u64,
        /// Of its bytes.
        sha256: Digest,
    },
    /// A directory that is listed; those that are only part of a path are not entries.
    Directory,
    /// A symbolic link that stays inside the archive's tree. What it names need not be there.
    Symlink {
        /// As written, relative to the link's directory.
        target: Arc<str>,
    },
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Directory => "directory",
            Self::Symlink { .. } => "symbolic link",
        }
    }
}

/// A SHA-256 digest; shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Digest {
    /// Reads what it is shown as.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let decoded = is_lower && hex::decode_to_slice(text, &mut digest).is_ok();
        decoded.then_some(Self(digest))
    }
}
