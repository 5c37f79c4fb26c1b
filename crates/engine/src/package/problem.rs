//! What is wrong with an archive, or with what a list expects of it, as findings.

use std::{fmt, path::Path};

use hatchery_host::archive;

use crate::finding::{Finding, PACKAGE, Severity};

impl Finding {
    /// About an archive: `what` follows its name in the sentence.
    pub(super) fn in_archive(
        archive: &Path,
        what: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self::package(format!("the archive {} {what}", archive.display()), remedy)
    }

    /// An archive that cannot be read.
    pub(super) fn unreadable_archive(error: &archive::Error) -> Self {
        Self {
            severity: Severity::Error,
            code: PACKAGE,
            machines: Vec::new(),
            message: error.to_string(),
            remedy: error.remedy().map(str::to_owned),
        }
    }
}

/// Adds a problem unless it is known already, such as from another role.
pub(super) fn tell(problems: &mut Vec<Finding>, problem: Finding) {
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}
