//! Why a host key is not trusted, and what to do about it.

use std::{fmt, path::PathBuf};

use snafu::Snafu;

/// Why a host key is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Mismatch {
    /// It is not the one that is known.
    #[snafu(display("it shows {shown}, but {} known from {place}", known(expected)))]
    Changed {
        /// The fingerprint shown.
        shown: String,
        /// The fingerprints known.
        expected: Vec<String>,
        /// Where the first of them stands.
        place: Place,
        /// The machine, as files name it.
        host: String,
    },
    /// The key is unknown.
    #[snafu(display("it shows {shown}, which is unknown"))]
    Unknown {
        /// The fingerprint shown.
        shown: String,
        /// The public key shown.
        key: String,
        /// The machine, as files name it.
        host: String,
    },
    /// It was revoked.
    #[snafu(display("it shows {shown}, which {place} revokes"))]
    Revoked {
        /// The fingerprint shown.
        shown: String,
        place: Place,
    },
    /// A file of host keys cannot be used.
    #[snafu(display("cannot use the host keys in {}: {reason}", file.display()))]
    File { file: PathBuf, reason: String },
}

fn known(expected: &[String]) -> String {
    match expected {
        [one] => format!("{one} is"),
        more => format!("{} are", more.join(", ")),
    }
}

/// Where a host key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Place {
    /// In the deploy file.
    Pinned,
    /// In a file of host keys.
    Line {
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned => f.write_str("the configuration"),
            Self::Line { file, line } => write!(f, "{} line {line}", file.display()),
        }
    }
}

impl Mismatch {
    /// What the user can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Changed {
                place: Place::Pinned,
                shown,
                ..
            } => format!(
                "find out why it changed; if the machine was installed anew, compare with 'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub' on its console and pin {shown}"
            ),
            Self::Changed {
                place: Place::Line { file, .. },
                host,
                ..
            } => format!(
                "find out why it changed: somebody may be in between. If the machine was installed anew, forget the old key with: ssh-keygen -R '{host}' -f '{}'",
                file.display()
            ),
            Self::Unknown { host, key, .. } => format!(
                "compare it on the machine's console, then pin it, or add this line to a known_hosts file: {host} {key}"
            ),
            Self::Revoked { .. } => "give the machine a new host key".into(),
            Self::File { .. } => "check who may read and write the file".into(),
        }
    }
}
