//! Prints why a command is refused.

use std::process::ExitCode;

use hatchery_engine::{
    authorities,
    finding::{Finding, Severity},
    session::{Refusal, RefusalKind, RemovalError, RunError},
    state,
};
use hatchery_spec::value::Name;

use crate::output::{Failed, Output, Refused};

pub(crate) fn state(error: &state::Error) -> Refused {
    let refused = Refused::new(error.to_string());
    match error.remedy() {
        Some(remedy) => refused.remedy(remedy),
        None => refused,
    }
}

pub(crate) fn authorities(error: &authorities::Error) -> Refused {
    match error {
        authorities::Error::Store { source } => state(source),
        authorities::Error::Unusable { problems } => {
            let mut remedies: Vec<_> = problems.iter().map(|one| one.remedy.as_str()).collect();
            remedies.dedup();
            Refused::new(error.to_string()).remedy(remedies.join("\n  "))
        }
        _ => Refused::new(error.to_string()),
    }
}

/// What there is to say about machines, the worst first.
pub(crate) fn findings(findings: &[Finding], output: &Output) {
    for finding in findings {
        let colour = match finding.severity {
            Severity::Error => "31",
            Severity::Warning => "33",
            Severity::Note => "36",
        };
        let (begin, end) = output.bold(colour);
        let (severity, code) = (finding.severity.as_str(), finding.code);
        eprintln!("{begin}{severity}[{code}]{end}: {finding}");
        if let Some(remedy) = &finding.remedy {
            eprintln!("  {remedy}");
        }
    }
}

/// Prints why there is no plan; nothing was changed.
pub(crate) fn show(id: &Name, refusal: &Refusal, output: &Output) -> ExitCode {
    findings(&refusal.findings, output);
    match refusal.kind {
        RefusalKind::Cluster => eprintln!(
            "\nnothing was changed: cluster {id} is there, and cannot become the one of the file"
        ),
        RefusalKind::Machines => {
            eprintln!("\nnothing was changed: the machines of {id} cannot be used as they are");
            return ExitCode::FAILURE;
        }
        RefusalKind::ControlMachine | RefusalKind::File => eprintln!("\nnothing was changed"),
    }
    ExitCode::from(2)
}

/// Why a cluster cannot be removed.
pub(crate) fn removal(error: &RemovalError, output: &Output) -> Refused {
    if let RemovalError::Reach { findings: found } = error {
        findings(found, output);
    }
    let refused = Refused::new(error.to_string());
    match error.remedy() {
        Some(remedy) => refused.remedy(remedy),
        None => refused,
    }
}

/// Why a run could not be remembered. Machines may have been changed by then.
pub(crate) fn run(error: RunError) -> anyhow::Error {
    match error {
        RunError::State { source } => Failed::from(state(&source)).into(),
        error @ RunError::Kubeconfig { .. } => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_touched_nothing_is_refused() {
        let conflict = || state::Error::Conflict {
            key: state::Key::CLUSTER,
            place: "cluster.json".into(),
        };
        let is_refused = |error: &anyhow::Error| error.downcast_ref::<Refused>().is_some();
        assert!(is_refused(&state(&conflict()).into()));
        let failed = run(RunError::State { source: conflict() });
        assert!(!is_refused(&failed));
        assert_eq!(failed.to_string(), conflict().to_string());
    }
}
