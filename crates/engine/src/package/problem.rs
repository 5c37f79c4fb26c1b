//! What is wrong with an archive, or with what a list expects of it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use hatchery_host::archive;
use serde::Serialize;

/// Something that a deployment would fail of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The archive it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<PathBuf>,
    /// What it is, as a sentence.
    pub message: String,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Problem {
    /// About an archive: `what` follows its name in the sentence.
    pub(super) fn of(archive: &Path, what: impl fmt::Display, remedy: impl Into<String>) -> Self {
        Self {
            archive: Some(archive.to_owned()),
            message: format!("the archive {} {what}", archive.display()),
            remedy: Some(remedy.into()),
        }
    }

    /// About something else.
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            archive: None,
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(super) fn unreadable(archive: &Path, error: &archive::Error) -> Self {
        Self {
            archive: Some(archive.to_owned()),
            message: error.to_string(),
            remedy: error.remedy().map(str::to_owned),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Adds a problem unless it was told before, such as for another role.
pub(super) fn tell(problems: &mut Vec<Problem>, problem: Problem) {
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}
