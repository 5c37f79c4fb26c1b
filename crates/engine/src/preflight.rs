//! Can a cluster be made of these machines? Asked before anything is changed.
//!
//! [`ask`] collects what the machines say, all at once; [`check_machines`] is pure and says what is wrong with that. A fact
//! that a machine did not report gives no finding.

mod ask;
mod existing_runtime;
mod fleet;
mod images;
mod kernel;
mod network;
mod ports;
mod room;
mod software;
mod subject;
mod system;
#[cfg(test)]
mod tests;
mod traces;
mod unreached;

use hatchery_host::script::Identity;
use hatchery_spec::{Cluster, cluster::Machine};

pub use self::ask::{AskOptions, Reply, ask};
pub(crate) use self::images::check as check_images;
use self::subject::Subject;
use crate::finding::{Finding, Findings, Severity};

/// All there is to say about machines and their answers, the worst first. `own` is for whom they are wanted.
pub fn check_machines(
    cluster: &Cluster,
    own: &Identity,
    answers: &[(&Machine, &Reply)],
) -> Vec<Finding> {
    let mut findings = Findings::default();
    let mut subjects = Vec::new();
    for &(node, reply) in answers {
        let (facts, managed) = match reply {
            Ok((facts, managed)) => (facts, managed),
            Err(error) => {
                unreached::check(node, error, &mut findings);
                continue;
            }
        };
        let holder = managed.cluster.as_ref();
        let ours = holder.is_some_and(|(id, _)| id == own.cluster.as_str());
        let subject = Subject {
            cluster,
            node,
            facts,
            managed,
            ours,
        };
        subjects.push(subject);
        // What another cluster does there is that cluster's affair.
        if !held(&subject, &mut findings) {
            system::check(&subject, &mut findings);
            kernel::check(&subject, &mut findings);
            room::check(&subject, &mut findings);
            software::check(&subject, &mut findings);
            ports::check(&subject, &mut findings);
            network::check(&subject, &mut findings);
            traces::check(&subject, &mut findings);
            existing_runtime::check(&subject, &mut findings);
        }
    }
    fleet::check(&subjects, &mut findings);
    findings.sorted()
}

fn held(subject: &Subject<'_>, findings: &mut Findings) -> bool {
    let holder = subject.managed.cluster.as_ref().filter(|_| !subject.ours);
    let Some((id, name)) = holder else {
        return false;
    };
    let cluster = if name.is_empty() || name == id {
        id.clone()
    } else {
        format!("{name} ({id})")
    };
    let remedy = if name == subject.cluster.id.as_str() {
        "if it is this cluster, use the --home that it was made with, or restore that from a backup; otherwise take the \
         machine out of the file, or remove it from the other cluster first"
            .to_owned()
    } else {
        format!("take it out of the file, or remove it from cluster {cluster} first")
    };
    subject.say(
        findings,
        (Severity::Error, "held"),
        format!("is held by another cluster, {cluster}"),
        remedy,
    );
    true
}
