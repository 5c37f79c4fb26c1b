//! What there is to say before anything is changed, each thing once with all machines that it is true of.

use std::{collections::HashMap, fmt};

use serde::Serialize;

use crate::name_list::NameList;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A deployment would fail.
    Error,
    /// The deployment would succeed, and cause problems later.
    Warning,
    /// Worth knowing; nothing has to be done about it.
    Note,
}

impl Severity {
    /// In a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// The code of findings about packages, manifests and their versions.
pub(crate) const PACKAGE: &str = "package";

/// Something that the user should know before anything is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The stable name of its kind.
    pub code: &'static str,
    /// The machines that it is true of, in the cluster's order; none when it is about something else.
    pub machines: Vec<String>,
    /// What it is, as a sentence that begins with the machines where there are any.
    pub message: String,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// About packages, manifests and their versions.
    pub(crate) fn package(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::error(PACKAGE, message, remedy)
    }

    /// An error that is not about machines, or not yet.
    pub(crate) fn error(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            code,
            machines: Vec::new(),
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// The machines and the message.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.machines.is_empty() {
            write!(f, "{}: ", NameList(&self.machines))?;
        }
        f.write_str(&self.message)
    }
}

/// Findings as they are made.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    all: Vec<Finding>,
    known: HashMap<(&'static str, String, Option<String>), usize>,
}

impl Findings {
    /// Adds a finding, or machines to one that says the same.
    pub(crate) fn add(&mut self, finding: Finding) {
        let key = (
            finding.code,
            finding.message.clone(),
            finding.remedy.clone(),
        );
        match self.known.get(&key).and_then(|at| self.all.get_mut(*at)) {
            Some(known) => known.machines.extend(finding.machines),
            None => {
                self.known.insert(key, self.all.len());
                self.all.push(finding);
            }
        }
    }

    /// Whether there is one of this kind.
    pub(crate) fn has(&self, code: &str) -> bool {
        self.all.iter().any(|finding| finding.code == code)
    }

    /// All of them, the worst first.
    pub(crate) fn sorted(mut self) -> Vec<Finding> {
        self.all.sort_by_key(|finding| finding.severity);
        self.all
    }
}
