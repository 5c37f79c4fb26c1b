//! What can go wrong with a machine, always with its name and the step.

use std::time::Duration;

use snafu::Snafu;

use super::outcome::Report;
use crate::{
    facts, stream,
    transport::{self, Exit},
};

/// Why a machine is not as it was to be.
#[derive(Debug, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// It cannot be reached, or logging in failed.
    #[snafu(display("{source}"))]
    Transport { source: transport::Error },
    /// A step failed. What came before it is done and recorded; nothing after it was begun.
    #[snafu(display("{host}: {step} failed: {output}"))]
    Step {
        host: String,
        /// The step that was running.
        step: String,
        /// The last it printed.
        output: String,
        /// What was done before.
        report: Box<Report>,
    },
    /// A file is no longer the one that the task was made for, of which only the machine has the bytes. Nothing was done.
    #[snafu(display("{host}: {step} changed on the machine during the check"))]
    Changed {
        host: String,
        /// The step that was running.
        step: String,
    },
    /// It took too long. It may still be at it; the next run waits for that or ends it.
    #[snafu(display("{host}: {step} did not finish within {} s", after.as_secs()))]
    Deadline {
        host: String,
        /// The step that was running.
        step: String,
        /// How long was waited.
        after: Duration,
    },
    /// It serves another cluster.
    #[snafu(display("{host} is held by another cluster: {name} ({cluster})"))]
    Held {
        host: String,
        /// The other's id.
        cluster: String,
        /// The other's name.
        name: String,
    },
    /// Another run is at work on it, and its control process is connected.
    #[snafu(display("{host} is being worked on by another run ({run})"))]
    Busy {
        host: String,
        /// The other run.
        run: String,
    },
    /// A program is missing there.
    #[snafu(display("{host} has no program '{program}'"))]
    Needs { host: String, program: String },
    /// It could not begin.
    #[snafu(display("{host}: {reason}"))]
    Stopped { host: String, reason: String },
    /// The stream arrived, but its script did not begin: a full disk above all.
    #[snafu(display(
        "{host}: cannot unpack the task there{} ({exit}): {complaint}",
        if is_full(complaint) { ", no space left" } else { "" }
    ))]
    NotBegun {
        host: String,
        /// How the command ended.
        exit: Exit,
        /// What it said.
        complaint: String,
    },
    /// The stream could not be made here.
    #[snafu(display("{host}: {source}"))]
    Stream { host: String, source: stream::Error },
    /// Its answer is none.
    #[snafu(display("{host} gave an invalid answer: {text}"))]
    Garbled {
        host: String,
        /// The beginning of it.
        text: String,
    },
    /// Its answer has no end, or none that is worth waiting for.
    #[snafu(display("{host} answers with more than {} MiB, or more lines than it can have resources", limit >> 20))]
    TooLong {
        host: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// Its facts are none.
    #[snafu(display("{host}: {source}"))]
    Facts { host: String, source: facts::Error },
    /// The script was ended from outside, again and again.
    #[snafu(display("{host}: the script was killed during: {step}"))]
    Died {
        host: String,
        /// The step that was running.
        step: String,
    },
    /// Every attempt was lost.
    #[snafu(display("{host}: the connection was lost repeatedly"))]
    Restless { host: String },
}

impl Error {
    pub(super) fn transport(source: transport::Error) -> Self {
        Self::Transport { source }
    }

    /// Whether the connection was lost: what was asked for may have been done.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Transport { source } if source.is_lost())
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Transport { source } => return source.remedy(),
            Self::Step { output, .. }
            | Self::NotBegun {
                complaint: output, ..
            } if is_full(output) =>
            {
                "free some space on the machine's disk, then run again: it continues where it stopped".into()
            }
            Self::Step { .. } => {
                "fix what the machine reports, then run again: it continues where it stopped".into()
            }
            Self::Changed { .. } => "run the command again: it checks the machine again".into(),
            Self::Deadline { .. } => {
                "check what the machine is doing, then run again: it continues where it stopped".into()
            }
            Self::Held { name, cluster, .. } => format!(
                "take the machine out of the file, or remove it from cluster {name} ({cluster}) first"
            ),
            Self::Died { .. } => {
                "check whether the machine is out of memory or processes are killed there, then run again".into()
            }
            Self::Busy { .. } => "wait until the other run has ended, then run again".into(),
            Self::Needs { program, .. } => match program.as_str() {
                "flock" => "install util-linux there".into(),
                _ => format!("install {program} there"),
            },
            Self::Restless { .. } => "look at the network between here and the machine, then run again".into(),
            Self::Stream { .. } => "leave the files alone while they are in use, then run again".into(),
            Self::Garbled { .. } => {
                "a login script of the user may print to standard output; it must not when there is no terminal".into()
            }
            Self::TooLong { .. } => {
                "check that this is the right machine, and what its login shell prints".into()
            }
            Self::Stopped { .. } | Self::NotBegun { .. } | Self::Facts { .. } => return None,
        })
    }
}

/// tar and its like say it in several ways.
pub(super) fn is_full(words: &str) -> bool {
    [
        "No space left",
        "Wrote only",
        "short write",
        "Disk quota exceeded",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}
