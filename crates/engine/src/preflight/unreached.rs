//! Machines that gave no answer. The words leave the machine's name out where they can, so that what bars the way to
//! many is said once.

use hatchery_host::{machine::Error, transport};
use hatchery_spec::cluster::Machine;

use crate::finding::{Finding, Findings, Severity};

pub(super) fn check(node: &Machine, error: &Error, findings: &mut Findings) {
    let (code, message) = words(error);
    let remedy = match error {
        Error::Deadline { .. } => {
            Some("look whether the machine is overloaded or frozen, then run again".to_owned())
        }
        other => other.remedy(),
    };
    findings.add(Finding {
        severity: Severity::Error,
        code,
        machines: vec![node.name.to_string()],
        message,
        remedy,
    });
}

fn words(error: &Error) -> (&'static str, String) {
    match error {
        Error::Transport { source } => transport_words(source),
        Error::Deadline { after, .. } => (
            "no-answer",
            format!("did not answer within {} s", after.as_secs()),
        ),
        Error::Facts { source, .. } => ("no-facts", source.to_string()),
        other => ("no-facts", other.to_string()),
    }
}

fn transport_words(error: &transport::Error) -> (&'static str, String) {
    use transport::Error as E;
    match error {
        E::Unreachable {
            address, reason, ..
        } => (
            "unreachable",
            format!("cannot be reached at {address}: {reason}"),
        ),
        E::Handshake { reason, .. } => ("no-ssh", format!("does not begin SSH: {reason}")),
        E::HostKey { source, .. } => (
            "host-key",
            format!("shows a host key that is not trusted: {source}"),
        ),
        E::Key { source, .. } => ("login", format!("cannot be logged in to: {source}")),
        E::Authentication {
            user,
            tried,
            offered,
            ..
        } => {
            let list = |words: &[String]| match words {
                [] => "nothing".to_owned(),
                words => words.join(", "),
            };
            let (tried, offered) = (list(tried), list(offered));
            (
                "login",
                format!("does not let {user} in: tried {tried}; it offers {offered}"),
            )
        }
        E::Deadline { step, after, .. } => {
            let after = after.as_secs();
            (
                "no-answer",
                format!("did not answer within {after} s: {step}"),
            )
        }
        E::Bastion {
            bastion, source, ..
        } => {
            let (_, words) = transport_words(source);
            (
                "bastion",
                format!("cannot be reached: the bastion {bastion} {words}"),
            )
        }
        E::Privilege { source, .. } => {
            ("not-root", format!("does not let us become root: {source}"))
        }
        other => ("unreachable", other.to_string()),
    }
}
