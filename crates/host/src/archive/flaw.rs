//! Why an archive cannot be used, as far as its bytes show.

use std::io;

use snafu::Snafu;

/// What is wrong with an archive.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
#[allow(missing_docs, reason = "the names say it")]
pub enum Flaw {
    /// Another format than the three that are read.
    #[snafu(display("it is {found}, not a tar archive"))]
    Foreign {
        /// What it is instead.
        found: &'static str,
    },
    /// It has no entries.
    #[snafu(display("it is empty"))]
    Empty,
    /// The compressed stream or a tar header is broken.
    #[snafu(display("it is damaged {}: {what}", place(after.as_deref())))]
    Damaged {
        /// The last entry that was whole, as shown to users.
        after: Option<String>,
        /// What was found.
        what: String,
    },
    /// It ends in the middle.
    #[snafu(display("it ends too early, {}", place(after.as_deref())))]
    Truncated {
        /// The last entry that was whole, as shown to users.
        after: Option<String>,
    },
    /// Bytes that belong to nothing.
    #[snafu(display("there is more data after its end"))]
    Trailing,
    /// Larger than anything sensible.
    #[snafu(display("it unpacks to more than {most} bytes, from {packed} packed ones"))]
    Bomb {
        /// How much was allowed.
        most: u64,
        /// How large the archive itself is.
        packed: u64,
    },
    /// Too many entries.
    #[snafu(display("it has more than {most} entries"))]
    Entries {
        /// How many were allowed.
        most: usize,
    },
    /// Too many bytes of names.
    #[snafu(display("its paths and link targets are longer than {most} bytes in total"))]
    Names {
        /// How much was allowed.
        most: usize,
    },
    /// Links that take too long to follow.
    #[snafu(display("its symbolic links have too many levels"))]
    Tangled,
    /// One entry is refused.
    #[snafu(display("entry {entry} {fault}"))]
    Entry {
        /// Its name, escaped and quoted.
        entry: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The file itself could not be read.
    #[snafu(display("it cannot be read: {source}"))]
    Unreadable { source: io::Error },
}

/// What is wrong with one entry.
#[derive(Debug, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Fault {
    /// `/a`.
    #[snafu(display("has an absolute path"))]
    Absolute,
    /// `a/../b`.
    #[snafu(display("has '..' in its path"))]
    Parent,
    /// Nothing, or only dots for something that is not a directory.
    #[snafu(display("has no name"))]
    NoName,
    /// Bytes that are not UTF-8.
    #[snafu(display("has a name that is not UTF-8"))]
    NotUtf8,
    /// A new line, an escape, …
    #[snafu(display("has a control character in its name"))]
    ControlCharacter,
    /// Longer than a system call takes.
    #[snafu(display("has a path of more than {most} bytes"))]
    LongPath {
        /// How much is allowed.
        most: usize,
    },
    /// Longer than a file system takes.
    #[snafu(display("has a path component of more than {most} bytes"))]
    LongComponent {
        /// How much is allowed.
        most: usize,
    },
    /// Deeper than anything sensible.
    #[snafu(display("has a path of more than {most} components"))]
    Deep {
        /// How many are allowed.
        most: usize,
    },
    /// The same path twice, in whatever spelling.
    #[snafu(display("occurs twice"))]
    Duplicate,
    /// Below something that is not a directory.
    #[snafu(display("lies below {ancestor}, which is a {kind}"))]
    BelowLeaf {
        /// What it lies below, as shown to users.
        ancestor: String,
        /// A file or a symbolic link.
        kind: &'static str,
    },
    /// A file or link where other entries expect a directory.
    #[snafu(display("is a {kind}, while other entries lie below it"))]
    Covers {
        /// A file or a symbolic link.
        kind: &'static str,
    },
    /// A link without target.
    #[snafu(display("is a link to nothing"))]
    NoTarget,
    /// A link whose target is not a valid path.
    #[snafu(display("links to {target}, which {why}"))]
    BadTarget {
        /// As shown to users.
        target: String,
        /// What is wrong with it.
        why: Box<Fault>,
    },
    /// A link out of the tree.
    #[snafu(display("links to {target}, which points outside the archive"))]
    LeadsOut {
        /// As shown to users.
        target: String,
    },
    /// A link that ends nowhere.
    #[snafu(display("links to {target}, which is a loop or follows too many links"))]
    Loop {
        /// As shown to users.
        target: String,
    },
    /// A hard link to something that does not come before it.
    #[snafu(display("is a hard link to {target}, which is not an earlier file in the archive"))]
    NoSuchFile {
        /// As shown to users.
        target: String,
    },
    /// A file with a great many names.
    #[snafu(display("is one of more than {most} hard links to the same file"))]
    Links {
        /// How many are allowed.
        most: usize,
    },
    /// Devices and the like.
    #[snafu(display("is a {what}"))]
    Special { what: &'static str },
    /// A file with holes.
    #[snafu(display("is stored as a sparse file"))]
    Sparse,
    /// A kind of entry that we do not read.
    #[snafu(display("is of the unknown type '{}'", flag.escape_ascii()))]
    UnknownType {
        /// The type flag in its header.
        flag: u8,
    },
    /// A directory or link that claims to hold bytes: readers of tar differ on what that means.
    #[snafu(display("is not a file but has {size} bytes of data"))]
    Contents { size: u64 },
    /// An extended header too large to keep.
    #[snafu(display("has an extended header of {size} bytes"))]
    Extension {
        /// The size in bytes.
        size: u64,
    },
    /// An extended header that is malformed or has duplicate records.
    #[snafu(display("has an extended header that {what}"))]
    BadExtension {
        /// What is wrong with it.
        what: &'static str,
    },
    /// More than is read of a file that should be small.
    #[snafu(display("is larger than {most} bytes"))]
    Large {
        /// How much is read.
        most: u64,
    },
    /// A numeric field that holds no number.
    #[snafu(display("has no readable {field} in its header"))]
    BadNumber { field: &'static str },
}

impl Flaw {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::Foreign { .. } => "repack it as tar.gz or tar.zst",
            Self::Empty => "name the archive that holds the files, or pack it again",
            Self::Damaged { .. } | Self::Truncated { .. } | Self::Trailing => {
                "fetch or pack it again, and compare its checksum with the origin's"
            }
            Self::Bomb { .. } | Self::Entries { .. } | Self::Names { .. } => {
                "if it comes from where you think it does, split it into smaller archives"
            }
            Self::Tangled => "pack it again with files in place of links (tar --dereference)",
            Self::Entry { fault, .. } => return fault.remedy(),
            Self::Unreadable { .. } => return None,
        })
    }
}

impl Fault {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::Absolute | Self::Parent => {
                "pack it again from inside its directory: tar -C DIRECTORY -czf ARCHIVE ."
            }
            Self::NoName
            | Self::NotUtf8
            | Self::ControlCharacter
            | Self::LongPath { .. }
            | Self::LongComponent { .. }
            | Self::Deep { .. } => "rename the file and pack the archive again",
            Self::Duplicate | Self::BelowLeaf { .. } | Self::Covers { .. } => {
                "pack it again into a new archive, naming each file once"
            }
            Self::NoTarget
            | Self::BadTarget { .. }
            | Self::LeadsOut { .. }
            | Self::Loop { .. }
            | Self::NoSuchFile { .. } => {
                "pack it again with the file in place of the link (tar --dereference --hard-dereference), or leave it out"
            }
            Self::Links { .. } => "pack it again with tar --hard-dereference",
            Self::Special { .. } => "leave it out and pack the archive again",
            Self::Sparse => "pack it again without --sparse (with bsdtar: --no-read-sparse)",
            Self::UnknownType { .. }
            | Self::Contents { .. }
            | Self::Extension { .. }
            | Self::BadExtension { .. }
            | Self::Large { .. }
            | Self::BadNumber { .. } => "pack it again with GNU tar",
        })
    }
}

fn place(after: Option<&str>) -> String {
    after.map_or_else(
        || "at its beginning".into(),
        |entry| format!("after {entry}"),
    )
}
