//! Why something cannot be remembered, or remembered things not be read.

use std::{io, path::PathBuf};

use snafu::Snafu;

use super::{Holder, Key};

/// What is wrong with what is remembered.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[snafu(display("cannot {action} {}: {source}", path.display()))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory that others could change or read.
    #[snafu(display("cannot keep secrets in {}: it {problem}", path.display()))]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Another value than expected: another process writes at the same time.
    #[snafu(display("{place} was changed by another process at the same time"))]
    Conflict {
        /// The key whose value it is.
        key: Key,
        /// Where it is.
        place: String,
    },
    /// Another run is at work.
    #[snafu(display("another run works on this cluster: {}", holder.as_ref().map_or_else(|| "it does not say which".to_owned(), ToString::to_string)))]
    Locked {
        /// Whose; unknown when it has only just begun.
        holder: Option<Holder>,
    },
    /// A value that is damaged.
    #[snafu(display("{place} is damaged: {problem}"))]
    Damaged {
        /// Where it is.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// A value in a form that only a later release knows.
    #[snafu(display("{place} was written by a later release of Hatchery"))]
    Newer {
        /// Where it is.
        place: String,
    },
    /// What is remembered under a cluster's name is another cluster.
    #[snafu(display("{place} belongs to the cluster {found}, not to {wanted}"))]
    OtherCluster {
        /// Where it is.
        place: String,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// The deploy file that is kept is not good any more.
    #[snafu(display("the remembered deploy file is no longer valid: {place}"))]
    DeployFile {
        /// Where it is.
        place: String,
    },
    /// The system gave no random bytes.
    #[snafu(display("the system gave no random bytes"))]
    Random,
    /// The work was cut off, as when the program ends.
    #[snafu(display("the work on the cluster's files was cut off"))]
    CutOff,
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Unsafe { path, .. } => format!(
                "give {} to this user alone, or choose another place with --home",
                path.display()
            ),
            Self::Locked { .. } => {
                "wait for it to end, or end it; nothing has to be removed by hand".to_owned()
            }
            Self::Conflict { .. } => "run the command again".to_owned(),
            Self::Damaged { .. } => "restore it from a backup".to_owned(),
            Self::Newer { .. } => "use that release, or a later one".to_owned(),
            Self::OtherCluster { found, .. } => format!(
                "a cluster cannot be renamed or copied by its directory: use cluster-id {found}, or move the directory away"
            ),
            Self::DeployFile { place } => {
                format!("correct it: check -f {place} shows what is wrong")
            }
            Self::Io { .. } | Self::Random | Self::CutOff => return None,
        })
    }
}
