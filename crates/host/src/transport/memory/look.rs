//! What a task finds on a machine in memory: for each step the reason for a change, in the words of the machine's
//! script, or nothing.

use super::{
    record_store::RecordStore,
    request::{Step, What},
    tree::{Looks, Node},
    world::World,
};
use crate::content::Hash;

/// One reason for each step; an empty one asks for nothing.
pub(super) fn look(world: &World, store: &RecordStore, steps: &[Step]) -> Vec<String> {
    let mut needs: Vec<String> = Vec::with_capacity(steps.len());
    for step in steps {
        needs.push(need(world, store, step, &needs));
    }
    needs
}

fn need(world: &World, store: &RecordStore, step: &Step, before: &[String]) -> String {
    let unless = |so: bool, reason: &str| if so { String::new() } else { reason.to_owned() };
    match &step.what {
        What::Parent { path } => match world.files.at(path) {
            None => "absent".into(),
            Some(Node::Directory(_)) => String::new(),
            Some(Node::Link(_)) => unless(world.files.is_directory(path), "dangling"),
            Some(Node::File(..)) => "not-a-directory".into(),
        },
        What::Directory { path, looks, ours } => match world.files.at(path) {
            None => "absent".into(),
            Some(Node::Directory(found)) if found != looks => found.told(),
            Some(Node::Directory(_)) if *ours && store.made_for_another(&step.key) => "ours".into(),
            Some(Node::Directory(_)) => unless(!ours || store.knows(&step.key), "unrecorded"),
            Some(Node::File(..) | Node::Link(_)) => "not-a-directory".into(),
        },
        What::File {
            path,
            looks,
            size,
            hash,
        } => file(world.files.at(path), looks, *size, hash),
        What::Link { path, target } => match world.files.at(path) {
            None => "absent".into(),
            Some(Node::Link(found)) => unless(found == target, "content"),
            Some(Node::File(..) | Node::Directory(_)) => "kind".into(),
        },
        What::Absent { path } => unless(world.files.at(path).is_none(), "there"),
        What::Unit {
            name,
            enabled,
            running,
            triggers,
        } => {
            let state = world.unit(name);
            let mut reasons = Vec::new();
            match (enabled, world.unit_file_state(name)) {
                (Some(true), "enabled") => {}
                (Some(true), _) => reasons.push("disabled"),
                (Some(false), "enabled") => reasons.push("enabled"),
                _ => {}
            }
            if running.is_some_and(|running| running != state.active) {
                reasons.push(state.active_word());
            }
            if store.pending.contains(&step.key) {
                reasons.push("pending");
            }
            if triggers
                .iter()
                .any(|number| before.get(*number).is_some_and(|need| !need.is_empty()))
            {
                reasons.push("trigger");
            }
            reasons.join(" ")
        }
        What::Sysctl { path, value, .. } => match world.sysctl(path) {
            Some(found) if found == value => String::new(),
            Some(found) => format!("value {found}"),
            None => "absent".into(),
        },
        What::Module { name } => unless(world.modules.contains(name), "absent"),
        What::HostsEntry { line, .. } => {
            let hosts = world
                .files
                .bytes("/etc/hosts")
                .map(|bytes| String::from_utf8_lossy(bytes));
            unless(
                hosts.is_some_and(|hosts| hosts.split('\n').any(|found| found == line)),
                "absent",
            )
        }
        What::Hostname { name } => {
            let file = world
                .files
                .bytes("/etc/hostname")
                .map(|bytes| String::from_utf8_lossy(bytes));
            let words = file.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            match (world.hostname == *name, words.as_deref() == Some(name)) {
                (false, _) => format!("name {}", world.hostname),
                (true, false) => "file".into(),
                (true, true) => String::new(),
            }
        }
        What::Firewall { port: entry, .. } | What::TrustedNetwork { network: entry, .. } => {
            let open = world
                .firewall
                .as_ref()
                .is_none_or(|open| open.contains(entry));
            unless(open, "closed")
        }
        What::User { name } => unless(world.users.contains(name), "absent"),
        What::Package { name, version, .. } => match (world.packages.get(name), version) {
            (None, _) => "absent".into(),
            (Some(found), Some(version)) => {
                unless(found == version || !store.knows(&step.key), "version")
            }
            (Some(_), None) => String::new(),
        },
        What::Image {
            runtime,
            references,
        } => {
            let lacking = |reference: &&String| {
                !world
                    .images
                    .contains(&(runtime.clone(), (*reference).clone()))
            };
            let lacking: Vec<_> = references
                .iter()
                .filter(lacking)
                .map(String::as_str)
                .collect();
            unless(lacking.is_empty(), &format!("absent {}", lacking.join(" ")))
        }
        // No shell runs here: a check that says yes or no whatever comes does so, any other finds what was done.
        What::Script { name, check } => match check.trim() {
            "true" | ":" => String::new(),
            "false" => "undone".into(),
            _ => unless(world.scripts.get(name) == Some(check), "undone"),
        },
    }
}

fn file(found: Option<&Node>, looks: &Looks, size: u64, hash: &str) -> String {
    match found {
        None => "absent".into(),
        Some(Node::File(_, bytes))
            if bytes.len() as u64 != size || Hash::digest(bytes).as_str() != hash =>
        {
            "content".into()
        }
        Some(Node::File(found, _)) if found != looks => found.told(),
        Some(Node::File(..)) => String::new(),
        Some(Node::Directory(_) | Node::Link(_)) => "kind".into(),
    }
}
