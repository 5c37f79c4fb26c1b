//! Why a cluster cannot become what is wanted. Nothing was touched.

use std::fmt;

use crate::{
    finding::{Finding, Severity},
    plan,
};

/// All reasons against a change, of the first kind that there is.
#[derive(Debug)]
pub struct Refusal {
    /// Of what kind it is.
    pub kind: RefusalKind,
    /// What there is to say, the worst first.
    pub findings: Vec<Finding>,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The cluster that is there cannot become the one of the file.
    Cluster,
    /// Something is missing on the control machine.
    ControlMachine,
    /// Machines are not as they must be.
    Machines,
    /// Archives are not as they must be, versions do not go together, or a value cannot be used on a machine.
    File,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, findings: Vec<Finding>) -> Self {
        Self { kind, findings }
    }

    /// What the file or its packages cannot give.
    pub(crate) fn file(findings: Vec<Finding>) -> Self {
        Self::new(RefusalKind::File, findings)
    }
}

/// All findings in one line.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let findings: Vec<_> = self.findings.iter().map(ToString::to_string).collect();
        f.write_str(&findings.join("; "))
    }
}

impl From<plan::Error> for Refusal {
    fn from(error: plan::Error) -> Self {
        let machines = error.machine().map(ToString::to_string);
        let finding = Finding {
            severity: Severity::Error,
            code: "value",
            machines: machines.into_iter().collect(),
            message: error.reason(),
            remedy: None,
        };
        Self::file(vec![finding])
    }
}
