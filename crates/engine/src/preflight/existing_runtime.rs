//! A container runtime that serves somebody already is shared only by the user's word.

use hatchery_spec::cluster::{Role, RuntimeKind};

use super::{
    Severity::{Error, Note},
    subject::Subject,
};
use crate::components::docker_shared;
use crate::finding::Findings;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let before = &subject.facts.runtime_use;
    if !subject.is(Role::Worker) || subject.ours && !before.recorded && has_runtime(subject) {
        return;
    }
    let (name, uses) = match subject.cluster.runtime.kind {
        RuntimeKind::Docker if before.uses_docker() => {
            let mut uses = Vec::new();
            if before.docker.containers > 0 {
                uses.push(containers(before.docker.containers));
            }
            if before.docker.settings {
                uses.push("settings in /etc/docker/daemon.json".to_owned());
            }
            ("docker", uses.join(", "))
        }
        RuntimeKind::Containerd if before.uses_containerd() => {
            ("containerd", containers(before.containerd_containers))
        }
        _ => return,
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
    let text = before.docker.settings_text.as_deref();
    let unreadable = match (before.docker.settings, text) {
        (true, None) => Some("it cannot be read".to_owned()),
        (_, Some(text)) => docker_shared::parse(text).err(),
        (false, None) => None,
    };
    if let (RuntimeKind::Docker, Some(reason)) = (subject.cluster.runtime.kind, unreadable) {
        subject.say(
            findings,
            (Error, "runtime-settings"),
            format!("has an /etc/docker/daemon.json that cannot be completed: {reason}"),
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

fn containers(count: usize) -> String {
    match count {
        1 => "1 container".to_owned(),
        more => format!("{more} containers"),
    }
}

/// Whether the cluster has set up the runtime already, before such things were written down.
fn has_runtime(subject: &Subject<'_>) -> bool {
    let ours = ["/etc/docker/daemon.json", "/etc/containerd/config.toml"];
    let mut resources = subject.managed.resources.iter();
    resources.any(|resource| ours.contains(&resource.name.as_str()))
}
