//! What a task does to a machine in memory: first it writes down what is there, then it changes it.

use std::collections::BTreeSet;

use super::{
    incoming::Content,
    record_store::{Original, RecordStore},
    request::{Step, What},
    tree::{Looks, Node},
    world::World,
};

/// Whether a step that needs something needs bytes for it.
pub(super) fn wants_content(step: &Step, need: &str) -> bool {
    match &step.what {
        What::File { .. } => matches!(need, "absent" | "content" | "kind"),
        What::Package { from_file, .. } => *from_file,
        What::Image { .. } => true,
        _ => false,
    }
}

/// Writes down the original of what a step is going to change, and who needs it.
pub(super) fn record(
    world: &World,
    store: &mut RecordStore,
    step: &Step,
    need: &str,
    owner: &str,
) -> Result<(), String> {
    let key = &step.key;
    if need.is_empty() {
        record_owner(store, step, owner);
        return Ok(());
    }
    match &step.what {
        What::Parent { path } | What::Directory { path, .. }
            if matches!(need, "not-a-directory" | "dangling") =>
        {
            return Err(format!("{path} is not a directory"));
        }
        What::Parent { path } => {
            let original = Original::Directory {
                looks: None,
                ours: false,
                names: BTreeSet::new(),
            };
            store.note(key, owner, path, original);
        }
        What::Directory { path, ours, .. } => {
            if *ours && store.made_for_another(key) {
                store.records.remove(key);
                let original = Original::Directory {
                    looks: None,
                    ours: true,
                    names: BTreeSet::new(),
                };
                store.note(key, owner, path, original);
                return Ok(());
            }
            let looks = match world.files.at(path) {
                Some(Node::Directory(looks)) => Some(looks.clone()),
                _ => None,
            };
            let original = Original::Directory {
                looks,
                ours: *ours,
                names: world.files.names(path).into_iter().collect(),
            };
            store.note(key, owner, path, original);
        }
        What::File { path, .. } => store.keep(world, key, owner, "file", path)?,
        What::Link { path, .. } => store.keep(world, key, owner, "link", path)?,
        What::Absent { path } => store.keep(world, key, owner, "absent", path)?,
        What::Unit { name, .. } => {
            let original = Original::Unit {
                enabled: world.unit_file_state(name) == "enabled",
                active: world.unit(name).active,
            };
            store.note(key, owner, name, original);
            if wants_restart(need) {
                store.pending.insert(key.clone());
            }
        }
        What::Sysctl { path, .. } => {
            store.own(key, owner);
            if let Some(value) = world.sysctl(path) {
                store.note(key, owner, path, Original::Sysctl(value.into()));
            }
        }
        What::Module { name } => store.note(key, owner, name, Original::Module),
        What::HostsEntry { line, base } => {
            store.keep(world, base, owner, "hosts", "/etc/hosts")?;
            store.note(key, owner, line, Original::HostsEntry);
        }
        What::Hostname { .. } => {
            let kernel = format!("{key}.kernel");
            if !store.knows(key) {
                store.note(&kernel, owner, &world.hostname, Original::KernelHostname);
            }
            store.own(&kernel, owner);
            store.keep(world, key, owner, "file", "/etc/hostname")?;
        }
        What::Firewall { port: entry, zone }
        | What::TrustedNetwork {
            network: entry,
            zone,
        } => {
            store.note(zone, owner, "public", Original::FirewallZone);
            store.note(key, owner, entry, Original::Firewall);
        }
        What::User { name } => store.note(key, owner, name, Original::User),
        What::Package { name, .. } => store.note(key, owner, name, Original::Package),
        What::Image { runtime, .. } => {
            let lacking = need.strip_prefix("absent ").unwrap_or(need);
            store.note(key, owner, lacking, Original::Image(runtime.clone()));
        }
        What::Script { name, .. } => store.note(key, owner, name, Original::Script),
    }
    Ok(())
}

/// What is as it should be and is ours has one owner more.
fn record_owner(store: &mut RecordStore, step: &Step, owner: &str) {
    if !store.knows(&step.key) {
        return;
    }
    store.own(&step.key, owner);
    match &step.what {
        What::HostsEntry { base: other, .. }
        | What::Firewall { zone: other, .. }
        | What::TrustedNetwork { zone: other, .. } => {
            store.own(other, owner);
        }
        What::Hostname { .. } => store.own(&format!("{}.kernel", step.key), owner),
        _ => {}
    }
}

fn wants_restart(need: &str) -> bool {
    need.ends_with("trigger") || need.ends_with("pending")
}

/// Makes a step so that needs something.
pub(super) fn apply(
    world: &mut World,
    store: &mut RecordStore,
    step: &Step,
    owner: &str,
    content: Option<Content>,
) -> Result<(), String> {
    match &step.what {
        What::Parent { path } => {
            if !world.files.is_directory(path) {
                let made = world.files.make_directory(path, Looks::root(0o755));
                made.map_err(|why| format!("{why}\ncannot make {path}"))?;
            }
        }
        What::Directory { path, looks, .. } => {
            if !world.files.is_directory(path) {
                let made = world.files.make_directory(path, looks.clone());
                made.map_err(|why| format!("{why}\ncannot make {path}"))?;
            }
            world.files.set_looks(path, looks);
        }
        What::File {
            path, looks, size, ..
        } => {
            let found = match world.files.at(path) {
                Some(Node::File(_, bytes)) => Some(bytes.clone()),
                _ => None,
            };
            // Without new bytes only the mode is another.
            let node = match (content, found) {
                (Some(content), _) => Node::File(content.looks, content.bytes),
                (None, Some(bytes)) => Node::File(looks.clone(), bytes),
                (None, None) => return Err(format!("cannot set owner and mode of {path}")),
            };
            place(world, path, node)?;
            return settle(world, path, looks, *size);
        }
        What::Link { path, target } => place(world, path, Node::Link(target.clone()))?,
        What::Absent { path } => {
            let removed = world.files.remove(path);
            removed.map_err(|why| format!("{why}\ncannot remove {path}"))?;
        }
        What::Unit {
            name,
            enabled,
            running,
            ..
        } => {
            if !world.has_unit(name) && (*enabled == Some(true) || *running == Some(true)) {
                let verb = if *enabled == Some(true) {
                    "enable"
                } else {
                    "start"
                };
                return Err(format!(
                    "Unit {name} could not be found.\ncannot {verb} {name}"
                ));
            }
            world.set_unit(name, |state| {
                state.enabled = enabled.unwrap_or(state.enabled);
                state.active = running.unwrap_or(state.active);
            });
            store.pending.remove(&step.key);
        }
        What::Sysctl { name, path, value } => {
            let Some(was) = world.sysctl(path) else {
                return Err(format!("the kernel has no {name}; is its module loaded?"));
            };
            store.note(&step.key, owner, path, Original::Sysctl(was.into()));
            world.set_sysctl(path, value);
        }
        What::Module { name } => {
            world.modules.insert(name.clone());
        }
        What::HostsEntry { line, .. } => add_hosts_entry(world, line)?,
        What::Hostname { name } => {
            let node = Node::File(Looks::root(0o644), format!("{name}\n").into_bytes().into());
            place(world, "/etc/hostname", node)?;
            world.hostname.clone_from(name);
        }
        What::Firewall { port: entry, .. } | What::TrustedNetwork { network: entry, .. } => {
            if let Some(open) = &mut world.firewall {
                open.insert(entry.clone());
            }
        }
        What::User { name } => {
            world.users.insert(name.clone());
        }
        What::Package { name, version, .. } => {
            let version = version.clone().unwrap_or_else(|| "1".into());
            world.packages.insert(name.clone(), version);
        }
        What::Image {
            runtime,
            references,
        } => {
            let images = references
                .iter()
                .map(|reference| (runtime.clone(), reference.clone()));
            world.images.extend(images);
        }
        What::Script { name, check } => {
            world.scripts.insert(name.clone(), check.clone());
        }
    }
    Ok(())
}

fn place(world: &mut World, path: &str, node: Node) -> Result<(), String> {
    let put = world.files.put(path, node);
    put.map_err(|why| format!("mv: {why}\ncannot put {path} in place"))
}

fn settle(world: &World, path: &str, looks: &Looks, size: u64) -> Result<(), String> {
    match world.files.at(path) {
        Some(Node::File(_, bytes)) if bytes.len() as u64 != size => Err(format!(
            "{path} has {} bytes instead of {size}",
            bytes.len()
        )),
        Some(Node::File(found, _)) if found != looks => Err(format!(
            "{path} is {found} instead of {looks}; is there such a user and group?"
        )),
        _ => Ok(()),
    }
}

/// Behind what is there, with the line break that it may lack.
fn add_hosts_entry(world: &mut World, line: &str) -> Result<(), String> {
    let (looks, mut text) = match world.files.behind("/etc/hosts") {
        Some(Node::File(looks, bytes)) => (looks.clone(), bytes.to_vec()),
        _ => (Looks::root(0o644), Vec::new()),
    };
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
    place(world, "/etc/hosts", Node::File(looks, text.into()))
}
