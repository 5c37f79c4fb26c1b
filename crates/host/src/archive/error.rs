//! What opening or reading an archive can end with, and what the user can do about it.

use std::{io, path::PathBuf};

use snafu::Snafu;

use super::flaw::Flaw;

/// Why an archive could not be opened or read.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// Not there, or not for us.
    #[snafu(display("cannot open the archive {}: {source}", archive.display()))]
    Open { archive: PathBuf, source: io::Error },
    /// A directory, a pipe, …
    #[snafu(display("the archive {} is not a regular file", archive.display()))]
    NotAFile { archive: PathBuf },
    /// It is not fit for use.
    #[snafu(display("the archive {} is refused: {flaw}", archive.display()))]
    Flawed { archive: PathBuf, flaw: Flaw },
    /// It was written to, or replaced, in the meantime.
    #[snafu(display("the archive {} has changed while it was in use", archive.display()))]
    Changed { archive: PathBuf },
    /// A file in it has changed.
    #[snafu(display("the archive {} has changed while it was in use: {entry} has other contents than before", archive.display()))]
    ChangedEntry {
        archive: PathBuf,
        /// The file in it, as shown to users.
        entry: String,
    },
    /// Reading failed half way.
    #[snafu(display("cannot read {entry} in the archive {}: {source}", archive.display()))]
    Read {
        archive: PathBuf,
        /// The file in it, as shown to users.
        entry: String,
        source: io::Error,
    },
    /// Asked for something that it does not hold.
    #[snafu(display("the archive {} has no {entry}", archive.display()))]
    Missing {
        archive: PathBuf,
        /// What was asked for, as shown to users.
        entry: String,
    },
    /// Asked for the contents of something that has none.
    #[snafu(display("{entry} in the archive {} is a {kind}, not a file", archive.display()))]
    NoContents {
        archive: PathBuf,
        /// What was asked for, as shown to users.
        entry: String,
        /// What it is.
        kind: &'static str,
    },
    /// The receiver of the contents failed.
    #[snafu(display("cannot pass on {entry} from the archive {}: {source}", archive.display()))]
    PassOn {
        archive: PathBuf,
        /// The file in it, as shown to users.
        entry: String,
        source: io::Error,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::Open { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check its path in the deploy file",
                io::ErrorKind::PermissionDenied => "make it readable for this user",
                _ => return None,
            },
            Self::NotAFile { .. } => "name a tar.gz, tar.zst or tar file",
            Self::Flawed { flaw, .. } => return flaw.remedy(),
            Self::Changed { .. } | Self::ChangedEntry { .. } => {
                "run this again when it is no longer being written"
            }
            Self::Missing { .. } => "check its name; 'tar -tf ARCHIVE' lists what is there",
            Self::NoContents { .. } | Self::Read { .. } | Self::PassOn { .. } => return None,
        })
    }
}
