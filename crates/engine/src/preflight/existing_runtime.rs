//! A container runtime that is in use already is shared only with the user's consent.

use hatchery_spec::cluster::Role;

use super::{
    Severity::{Error, Note},
    subject::Subject,
};
use crate::{components::runtime, finding::Findings};

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let before = &subject.facts.runtime_use;
    if !subject.is(Role::Worker) || subject.ours && !before.recorded && has_runtime(subject) {
        return;
    }
    let name = subject.cluster.runtime.kind.as_str();
    let runtime = runtime::for_cluster(subject.cluster);
    let Some(uses) = runtime.uses(before) else {
        return;
    };
    if !subject.cluster.runtime.allow_existing {
        subject.say(
            findings,
            (Error, "runtime-in-use"),
            format!("has {name} in use already ({uses})"),
            format!(
                "use another machine, or allow it in the file with 'allow-existing-runtime: true': what {name} has is kept, \
                 and it is restarted"
            ),
        );
        return;
    }
    if let Some(reason) = runtime.unreadable(before) {
        subject.say(
            findings,
            (Error, "runtime-settings"),
            format!(
                "has an {} that cannot be completed: {reason}",
                runtime.configuration()
            ),
            "correct the file there; 'python3 -m json.tool' shows where it is wrong",
        );
        return;
    }
    subject.say(
        findings,
        (Note, "runtime-in-use"),
        format!("shares its {name} with the cluster ({uses})"),
        "",
    );
}

/// Whether the cluster has set up the runtime already, before such things were written down.
fn has_runtime(subject: &Subject<'_>) -> bool {
    let ours = runtime::for_cluster(subject.cluster).configuration();
    let mut resources = subject.managed.resources.iter();
    resources.any(|resource| resource.name == ours)
}
