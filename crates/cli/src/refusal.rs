//! How it looks when something stands against a command.

use std::process::ExitCode;

use hatchery_engine::{
    authorities,
    deployment::Refusal,
    name_list::NameList,
    preflight::{Finding, Severity},
    reach, state,
};
use hatchery_spec::Cluster;

use crate::output::{Output, Refused};

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

/// All that is missing on this machine, in one refusal.
pub(crate) fn reach(errors: &[reach::Error]) -> Refused {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let mut remedies: Vec<_> = errors.iter().map(|error| error.problem.remedy()).collect();
    remedies.dedup();
    Refused::new(lines.join("\n       ")).remedy(remedies.join("\n  "))
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
        let machines = NameList(&finding.machines);
        eprintln!(
            "{begin}{severity}[{code}]{end}: {machines}: {}",
            finding.message
        );
        if let Some(remedy) = &finding.remedy {
            eprintln!("  {remedy}");
        }
    }
}

/// Says why there is no plan; nothing was touched.
pub(crate) fn show(cluster: &Cluster, refusal: &Refusal, output: &Output) -> ExitCode {
    match refusal {
        Refusal::Living(found) => {
            findings(found, output);
            eprintln!(
                "\nnothing was changed: cluster {} is there, and cannot become the one of the file",
                cluster.id
            );
            return ExitCode::from(2);
        }
        Refusal::Reach(errors) => return output.error(&reach(errors).into()),
        Refusal::Machines(_, found) => {
            findings(found, output);
            eprintln!(
                "\nnothing was changed: the machines of {} cannot be used as they are",
                cluster.id
            );
            return ExitCode::FAILURE;
        }
        Refusal::Packages(problems) => {
            for problem in problems {
                let (begin, end) = output.bold("31");
                eprintln!("{begin}error{end}: {problem}");
                if let Some(remedy) = &problem.remedy {
                    eprintln!("  {remedy}");
                }
            }
        }
        Refusal::Plan(error) => {
            let (begin, end) = output.bold("31");
            eprintln!("{begin}error{end}: {error}");
        }
    }
    eprintln!("\nnothing was changed");
    ExitCode::from(2)
}
