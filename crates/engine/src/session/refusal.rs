//! Why a cluster cannot become what is wanted. Nothing was touched.

use crate::{
    finding::{Finding, Severity},
    package::Problem,
    plan, reach,
};

/// All that stands against a change, of the first kind that does.
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
    /// Archives are not as they must be, versions do not go together, or a value cannot be told to a machine.
    File,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, findings: Vec<Finding>) -> Self {
        Self { kind, findings }
    }
}

impl From<Vec<reach::Error>> for Refusal {
    fn from(errors: Vec<reach::Error>) -> Self {
        let findings = errors.into_iter().map(Into::into);
        Self::new(RefusalKind::ControlMachine, findings.collect())
    }
}

impl From<Vec<Problem>> for Refusal {
    fn from(problems: Vec<Problem>) -> Self {
        let findings = problems.into_iter().map(Into::into);
        Self::new(RefusalKind::File, findings.collect())
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
        Self::new(RefusalKind::File, vec![finding])
    }
}

impl From<reach::Error> for Finding {
    fn from(error: reach::Error) -> Self {
        Self {
            severity: Severity::Error,
            code: "access",
            message: error.problem.to_string(),
            remedy: Some(error.problem.remedy()),
            machines: error.machines,
        }
    }
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        Self {
            severity: Severity::Error,
            code: "package",
            machines: Vec::new(),
            message: problem.message,
            remedy: problem.remedy,
        }
    }
}
