//! Why a cluster's authorities cannot be used.

use std::fmt;

use snafu::Snafu;

use crate::state;

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which file, or two that do not go together.
    pub file: String,
    /// What is wrong with it.
    pub reason: String,
    /// What the user can do about it.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

/// Why a cluster's authorities can be neither read nor made.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
#[non_exhaustive]
pub enum Error {
    /// What is remembered cannot be read or written.
    #[snafu(display("{source}"))]
    Store {
        /// The store's error.
        source: state::Error,
    },
    /// Files that cannot be used; all there are.
    #[snafu(display("{}", lines(problems)))]
    Unusable {
        /// What is wrong.
        problems: Vec<Problem>,
    },
    /// An authority cannot be made.
    #[snafu(display("{source}"))]
    Make {
        /// The underlying error.
        source: hatchery_pki::Error,
    },
    /// The service-account key cannot be made.
    #[snafu(display("{source}"))]
    MakeServiceAccount {
        /// The underlying error.
        source: hatchery_pki::InvalidServiceAccountKey,
    },
    /// The user's own authorities are said to lie below a home that there is not.
    #[snafu(display("{reason}"))]
    Home {
        /// Why the home directory is unknown.
        reason: String,
    },
    /// The system gave no random bytes.
    #[snafu(display("the system gave no random bytes for a key"))]
    Random,
}

impl Error {
    pub(crate) fn home(error: &std::io::Error) -> Self {
        Self::Home {
            reason: error.to_string(),
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// An error with what it comes from, in one line.
pub(super) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text += &format!(": {more}");
        }
        source = error.source();
    }
    text
}
