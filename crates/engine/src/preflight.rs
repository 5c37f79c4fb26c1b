//! Can a cluster be made of these machines? Asked before anything is changed.
//!
//! [`ask`] collects what the machines say, all at once; [`judge`] is pure and says what is wrong with that. A fact
//! that a machine did not tell gives no finding.

mod ask;
mod finding;
mod fleet;
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

use hatchery_spec::{Cluster, cluster::Machine};

pub use self::{
    ask::{Manners, Reply, ask},
    finding::{Finding, Severity},
};
use self::{finding::Findings, subject::Subject};
use crate::reach;

/// All there is to say about machines and their answers, the worst first.
pub fn judge(cluster: &Cluster, answers: &[(&Machine, &Reply)]) -> Vec<Finding> {
    let mut findings = Findings::default();
    let mut subjects = Vec::new();
    let own = reach::identity(cluster)
        .map(|identity| identity.cluster)
        .ok();
    for &(node, reply) in answers {
        let (facts, managed) = match reply {
            Ok((facts, managed)) => (facts, managed),
            Err(error) => {
                unreached::judge(node, error, &mut findings);
                continue;
            }
        };
        let holder = managed.cluster.as_ref();
        let ours = holder
            .zip(own.as_ref())
            .is_some_and(|((id, _), own)| id == own.as_str());
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
            system::judge(&subject, &mut findings);
            kernel::judge(&subject, &mut findings);
            room::judge(&subject, &mut findings);
            software::judge(&subject, &mut findings);
            ports::judge(&subject, &mut findings);
            network::judge(&subject, &mut findings);
            traces::judge(&subject, &mut findings);
        }
    }
    fleet::judge(&subjects, &mut findings);
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
    subject.say(
        findings,
        (Severity::Error, "held"),
        format!("is held by another cluster, {cluster}"),
        format!("take it out of the file, or remove it from cluster {cluster} first"),
    );
    true
}
