//! The way back of a machine in memory.

use super::{
    record_store::{Original, RecordStore},
    request::Released,
    tree::Node,
    world::World,
};

/// What became of one resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Restored {
    /// It is as it was.
    Undone,
    /// A directory of ours that holds other people's files.
    Kept,
    /// It is not as it was, and why.
    Left(String),
}

/// The keys of what goes back to what it was, the latest first.
pub(super) fn chosen(store: &mut RecordStore, released: &Released) -> Vec<String> {
    let keys: Vec<_> = store.records.keys().cloned().collect();
    let mut chosen: Vec<_> = keys
        .into_iter()
        .filter(|key| store.released(key, released))
        .collect();
    let sequence = |key: &String| store.records.get(key).map_or(0, |record| record.sequence);
    chosen.sort_by_key(|key| std::cmp::Reverse(sequence(key)));
    chosen
}

/// Units stop while their files are still there.
pub(super) fn stop_unit(world: &mut World, store: &RecordStore, key: &str) {
    let Some(record) = store.records.get(key) else {
        return;
    };
    if let Original::Unit {
        enabled,
        active: false,
    } = record.original
    {
        world.set_unit(&record.name, |state| {
            state.active = false;
            state.enabled &= enabled;
        });
    }
}

/// Puts one resource back and forgets it, unless it is left.
pub(super) fn restore(world: &mut World, store: &mut RecordStore, key: &str) -> Restored {
    let Some(record) = store.records.get(key).cloned() else {
        return Restored::Undone;
    };
    let name = &record.name;
    let outcome = match record.original {
        Original::Hosts(was, text) => restore_hosts(world, was, &text),
        Original::Path(_, was) => restore_path(world, name, was),
        Original::Directory { looks, ours, names } => {
            if ours && world.files.is_directory(name) {
                for found in world.files.names(name) {
                    if !names.contains(&found) {
                        world.files.remove_all(&format!("{name}/{found}"));
                    }
                }
            }
            match looks {
                Some(looks) => world.files.set_looks(name, &looks),
                None if world.files.is_directory(name) && !world.files.remove_directory(name) => {
                    store.forget(key);
                    return Restored::Kept;
                }
                None => {}
            }
            Ok(())
        }
        Original::HostsEntry => remove_hosts_entry(world, name),
        Original::Sysctl(value) => {
            if world.sysctl(name).is_some() {
                world.set_sysctl(name, &value);
            }
            Ok(())
        }
        Original::Module => {
            world.modules.remove(name);
            Ok(())
        }
        Original::KernelHostname => {
            world.hostname.clone_from(name);
            Ok(())
        }
        Original::Firewall => {
            if let Some(open) = &mut world.firewall {
                open.remove(name);
            }
            Ok(())
        }
        Original::FirewallZone => Ok(()),
        Original::User => {
            world.users.remove(name);
            Ok(())
        }
        Original::Package => {
            world.packages.remove(name);
            Ok(())
        }
        Original::Image(runtime) => {
            for reference in name.split(' ') {
                world
                    .images
                    .remove(&(runtime.clone(), reference.to_owned()));
            }
            Ok(())
        }
        Original::Script => {
            world.scripts.remove(name);
            Ok(())
        }
        // Its file is gone: there is nothing to enable or to start.
        Original::Unit { enabled, active } if (enabled || active) && !world.has_unit(name) => {
            Ok(())
        }
        Original::Unit { enabled, active } => {
            world.set_unit(name, |state| {
                *state = super::world::UnitState { enabled, active }
            });
            Ok(())
        }
    };
    match outcome {
        Ok(()) => {
            store.forget(key);
            Restored::Undone
        }
        Err(why) => Restored::Left(why),
    }
}

fn restore_path(world: &mut World, path: &str, was: Option<Node>) -> Result<(), String> {
    let outcome = match was {
        None => world.files.remove(path),
        Some(node) => {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            // The script's own mask makes what was in between private.
            let made = world.files.make_directories(parent, 0o700);
            made.and_then(|()| world.files.put(path, node))
        }
    };
    outcome.map_err(|why| format!("{why}\ncannot put {path} back"))
}

/// Every line that stays ends with a line break afterwards. Our lines are never behind a link.
fn remove_hosts_entry(world: &mut World, line: &str) -> Result<(), String> {
    let Some(Node::File(looks, bytes)) = world.files.at("/etc/hosts").cloned() else {
        return Ok(());
    };
    let mut text = Vec::new();
    for found in bytes.split_inclusive(|byte| *byte == b'\n') {
        let found = found.strip_suffix(b"\n").unwrap_or(found);
        if found != line.as_bytes() {
            text.extend_from_slice(found);
            text.push(b'\n');
        }
    }
    let put = world
        .files
        .put("/etc/hosts", Node::File(looks, text.into()));
    put.map_err(|why| format!("{why}\ncannot write /etc/hosts"))
}

/// The original comes back when only our lines had been added; otherwise what others wrote stays.
fn restore_hosts(world: &mut World, was: Option<Node>, text: &[u8]) -> Result<(), String> {
    let found = world.files.bytes("/etc/hosts");
    let is_others = found.is_some_and(|found| {
        let found = &found[..];
        found != text && found.strip_suffix(b"\n") != Some(text)
    });
    match (&was, world.files.at("/etc/hosts")) {
        (None, _) if found.is_some_and(|found| !found.is_empty()) => Ok(()),
        (None, _) => world.files.remove("/etc/hosts"),
        (Some(Node::Link(_)), Some(Node::Link(_))) => Ok(()),
        _ if is_others => Ok(()),
        _ => restore_path(world, "/etc/hosts", was),
    }
}
