//! From what a machine's script says to what a user reads.

use std::collections::BTreeMap;

use hatchery_host::{
    machine::{Difference, Managed},
    operation::{Operation, Unit},
    path::MachinePath,
};

use super::{Change, Kind};
use crate::{
    api::{Effect, ObjectRef},
    components::hooks,
    plan::Released,
    resource::Resource,
};

/// What a task would change. A certificate is one thing with its key and its kubeconfig.
pub(super) fn of_machine(
    resources: &[Resource],
    issued: &[(MachinePath, String)],
    operations: &[Operation],
    differences: &[Difference],
) -> Vec<Change> {
    let reason = |certificate: &MachinePath| {
        let found = issued.iter().find(|(path, _)| path == certificate);
        found.map(|(_, reason)| reason.as_str())
    };
    // Files that go with a certificate that is issued.
    let mut companions = Vec::new();
    for resource in resources {
        if let Resource::Leaf(leaf) = resource
            && reason(&leaf.certificate).is_some()
        {
            companions.push(&leaf.key);
            companions.extend(leaf.kubeconfig.as_ref().map(|config| &config.path));
        }
    }
    let mut changes = Vec::new();
    for (operation, difference) in operations.iter().zip(differences) {
        let Difference::Change(reasons) = difference else {
            continue;
        };
        let (above, own): (Vec<_>, Vec<_>) = reasons
            .iter()
            .partition(|reason| reason.starts_with("directory "));
        changes.extend(above.into_iter().map(|reason| directory_above(reason)));
        if own.is_empty() {
            continue;
        }
        if let Operation::File(file) = operation {
            if companions.contains(&&file.path) {
                continue;
            }
            if let Some(why) = reason(&file.path) {
                let kind = match own.iter().any(|reason| *reason == "absent") {
                    true => Kind::New,
                    false => Kind::Changed,
                };
                changes.push(Change {
                    lines: Vec::new(),
                    kind,
                    what: format!("certificate {}", file.path),
                    why: format!("issued, since {why}"),
                });
                continue;
            }
        }
        changes.push(change(operation, &own));
    }
    changes
}

/// What a machine gives up. Several owners can give up the same.
pub(super) fn released(released: &[Released]) -> Vec<Change> {
    let mut goes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in released.iter().filter(|one| !one.stays) {
        let owners = goes.entry(&one.what).or_default();
        owners.push(one.release.owner.as_str());
    }
    let goes = goes.into_iter();
    let changes = goes.map(|(what, owners)| {
        Change::new(
            Kind::Gone,
            what,
            format!("no longer needed by {}", owners.join(", ")),
        )
    });
    changes.collect()
}

/// What is put back on a machine that leaves: how much of each kind.
pub(super) fn left(managed: &Managed) -> Vec<Change> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in &managed.resources {
        *counts.entry(&resource.kind).or_default() += 1;
    }
    let counts = counts.into_iter();
    let changes = counts.map(|(kind, count)| Change {
        lines: Vec::new(),
        kind: Kind::Gone,
        what: format!("{count} of kind {}", kind.replace('_', " ")),
        why: "the machine leaves the cluster and is put back as it was".into(),
    });
    changes.collect()
}

/// An object that no addon brings any more.
pub(super) fn pruned(object: &ObjectRef) -> Change {
    let ObjectRef { kind, name, .. } = object;
    Change {
        lines: Vec::new(),
        kind: Kind::Gone,
        what: match &object.namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        },
        why: "no addon contains it any longer".into(),
    }
}

/// An object of the API.
pub(super) fn applied(what: String, effect: &Effect) -> Option<Change> {
    let (kind, why) = match effect {
        Effect::Unchanged => return None,
        Effect::Created => (Kind::New, "new".to_owned()),
        Effect::Changed { fields } => (Kind::Changed, fields.join(", ")),
    };
    Some(Change::new(kind, what, why))
}

/// Such as `directory /a/b: absent`.
fn directory_above(reason: &str) -> Change {
    let (what, why) = reason.split_once(": ").unwrap_or((reason, ""));
    let (kind, why) = path(why);
    Change {
        lines: Vec::new(),
        kind,
        what: what.to_owned(),
        why,
    }
}

fn change(operation: &Operation, reasons: &[&String]) -> Change {
    let first = reasons.first().map_or("", |reason| reason.as_str());
    let (kind, why) = match operation {
        Operation::File(_) | Operation::Directory(_) | Operation::Link(_) => path(first),
        Operation::Absent(_) => (Kind::Gone, "removed".to_owned()),
        Operation::Unit(wanted) => unit(wanted, first),
        Operation::Packages(_) => return packages(reasons),
        Operation::Sysctl(sysctl) => match first.strip_prefix("value ") {
            Some(value) => (Kind::Changed, format!("{value} becomes {}", sysctl.value())),
            None => (Kind::New, format!("becomes {}", sysctl.value())),
        },
        Operation::HostsEntry(_) => (Kind::New, "written to /etc/hosts".to_owned()),
        Operation::Module(_) => (Kind::New, "loaded".to_owned()),
        Operation::Hostname(_) => match first.strip_prefix("name ") {
            Some(name) => (Kind::Changed, format!("is {name}")),
            None => (Kind::Changed, "written to /etc/hostname".to_owned()),
        },
        Operation::Firewall(_) => match first {
            "not-permanent" => (Kind::Changed, "stays open after a restart".to_owned()),
            _ => (Kind::New, "opened".to_owned()),
        },
        Operation::TrustedNetwork(_) => match first {
            "not-permanent" => (Kind::Changed, "stays trusted after a restart".to_owned()),
            _ => (Kind::New, "added to firewalld's zone trusted".to_owned()),
        },
        Operation::User(_) => (Kind::New, "made".to_owned()),
        Operation::Images(images) => {
            let lacking = first.strip_prefix("absent ").map(|lacking| {
                let lacking: Vec<_> = lacking.split(' ').collect();
                lacking.join(", ")
            });
            let lacking = lacking.unwrap_or_else(|| images.references().join(", "));
            return Change {
                lines: Vec::new(),
                kind: Kind::New,
                what: "images".to_owned(),
                why: format!("imported: {lacking}"),
            };
        }
        Operation::Script(script) if hooks::is_kept(&script.name) => {
            (Kind::New, "kept until cleanup".to_owned())
        }
        Operation::Script(_) => (Kind::Changed, "run".to_owned()),
        _ => (Kind::Changed, first.to_owned()),
    };
    Change {
        lines: Vec::new(),
        kind,
        what: operation.title(),
        why,
    }
}

fn path(reason: &str) -> (Kind, String) {
    let (word, rest) = reason.split_once(' ').unwrap_or((reason, ""));
    let changed = |why: &str| (Kind::Changed, why.to_owned());
    match word {
        "absent" => (Kind::New, "new".to_owned()),
        "content" | "hash" => changed("its content changes"),
        "mode" => match rest.split(' ').next() {
            Some(mode) if !mode.is_empty() => (
                Kind::Changed,
                format!("its mode or owner changes from {mode}"),
            ),
            _ => changed("its mode or owner changes"),
        },
        "kind" | "not-a-directory" | "dangling" => changed("replaces something of another kind"),
        "unrecorded" | "ours" => changed("is there already, and is recorded as ours"),
        _ => changed(reason),
    }
}

fn unit(wanted: &Unit, reason: &str) -> (Kind, String) {
    let mut actions = Vec::new();
    for word in reason.split(' ') {
        let action = match word {
            "disabled" => "enabled",
            "enabled" => "disabled",
            "trigger" | "pending" => "restarted, since its files change",
            // Its state of now.
            _ if wanted.running == Some(false) => "stopped",
            _ => "started",
        };
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    // What is started has its new files anyway.
    if actions.contains(&"started") {
        actions.retain(|action| !action.starts_with("restarted"));
    }
    (Kind::Changed, actions.join(", "))
}

/// Such as `package socat: absent`, one for each.
fn packages(reasons: &[&String]) -> Change {
    let mut names = Vec::new();
    let mut all_new = true;
    for reason in reasons {
        let (what, why) = reason.split_once(": ").unwrap_or((reason, ""));
        let name = what.strip_prefix("package ").unwrap_or(what);
        match why {
            "absent" => names.push(name.to_owned()),
            "version" => {
                all_new = false;
                names.push(format!("{name} (another version)"));
            }
            why => names.push(format!("{name} ({why})")),
        }
    }
    Change {
        lines: Vec::new(),
        kind: if all_new { Kind::New } else { Kind::Changed },
        what: if names.len() == 1 {
            "package"
        } else {
            "packages"
        }
        .to_owned(),
        why: format!("installed: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
