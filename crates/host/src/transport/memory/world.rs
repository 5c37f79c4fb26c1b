//! Everything of a machine in memory that a task can change.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Looks, Node, Tree};

/// A machine apart from what Hatchery writes down about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct World {
    pub(super) files: Tree,
    pub(super) hostname: String,
    pub(super) modules: BTreeSet<String>,
    pub(super) packages: BTreeMap<String, String>,
    /// The units that packages bring with them.
    pub(super) brought: BTreeMap<String, BTreeSet<String>>,
    /// Store and reference.
    pub(super) images: BTreeSet<(String, String)>,
    /// Users of the system, beside those that every machine has.
    pub(super) users: BTreeSet<String>,
    /// Ports and networks that firewalld lets through, when it runs.
    pub(super) firewall: Option<BTreeSet<String>>,
    /// Steps of their own by name, with the check that would find them done.
    pub(super) scripts: BTreeMap<String, String>,
    pub(super) missing_sysctls: BTreeSet<String>,
    /// Only what is not "0".
    sysctls: BTreeMap<String, String>,
    /// Only those that are enabled or run.
    units: BTreeMap<String, UnitState>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitState {
    pub(super) enabled: bool,
    pub(super) active: bool,
}

impl UnitState {
    pub(super) fn active_word(self) -> &'static str {
        if self.active { "active" } else { "inactive" }
    }
}

/// Where files of units lie.
const UNIT_DIRECTORIES: [&str; 3] = [
    "/etc/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

impl World {
    /// A fresh machine's directories, and its name in the files that hold it.
    pub(super) fn fresh(hostname: &str, hosts: &str) -> Self {
        let mut world = Self {
            hostname: hostname.into(),
            ..Self::default()
        };
        for directory in [
            "/etc/systemd/system",
            "/etc/sysctl.d",
            "/etc/modules-load.d",
            "/home",
            "/opt",
            "/root",
            "/run",
            "/srv",
            "/tmp",
            "/usr/bin",
            "/usr/lib/systemd/system",
            "/usr/local/bin",
            "/usr/local/lib",
            "/usr/sbin",
            "/var/lib",
            "/var/log",
        ] {
            // Nothing is there yet that could be in the way.
            let _ = world.files.make_directories(directory, 0o755);
        }
        world.name_in_files(hostname, hosts);
        world
    }

    fn name_in_files(&mut self, hostname: &str, hosts: &str) {
        for (path, text) in [
            ("/etc/hostname", format!("{hostname}\n")),
            ("/etc/hosts", hosts.to_owned()),
        ] {
            let _ = self.files.put(
                path,
                Node::File(Looks::root(0o644), text.into_bytes().into()),
            );
        }
    }

    /// Puts something there with every directory above it, whatever else was there.
    pub(super) fn furnish(&mut self, path: &str, node: Node) {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let _ = self.files.make_directories(parent, 0o755);
        self.files.remove_all(path);
        let _ = match node {
            Node::Directory(looks) => self.files.make_directory(path, looks),
            node => self.files.put(path, node),
        };
    }

    /// A kernel parameter by its path below `/proc/sys`; whatever was not set is there and zero.
    pub(super) fn sysctl(&self, path: &str) -> Option<&str> {
        if self.missing_sysctls.contains(path) {
            return None;
        }
        Some(self.sysctls.get(path).map_or("0", String::as_str))
    }

    pub(super) fn set_sysctl(&mut self, path: &str, value: &str) {
        match value {
            "0" => self.sysctls.remove(path),
            _ => self.sysctls.insert(path.into(), value.into()),
        };
    }

    pub(super) fn unit(&self, name: &str) -> UnitState {
        self.units.get(name).copied().unwrap_or_default()
    }

    pub(super) fn set_unit(&mut self, name: &str, change: impl FnOnce(&mut UnitState)) {
        let mut state = self.unit(name);
        change(&mut state);
        match state == UnitState::default() {
            true => self.units.remove(name),
            false => self.units.insert(name.into(), state),
        };
    }

    /// Whether systemd finds a file of it.
    pub(super) fn has_unit(&self, name: &str) -> bool {
        let in_file =
            |directory: &&str| self.files.behind(&format!("{directory}/{name}")).is_some();
        let brings = |(package, units): (&String, &BTreeSet<String>)| {
            units.contains(name) && self.packages.contains_key(package)
        };
        UNIT_DIRECTORIES.iter().any(in_file) || self.brought.iter().any(brings)
    }

    /// The unit's state as systemd names it; nothing where there is no such unit.
    pub(super) fn unit_file_state(&self, name: &str) -> &'static str {
        match (self.has_unit(name), self.unit(name).enabled) {
            (false, _) => "",
            (true, true) => "enabled",
            (true, false) => "disabled",
        }
    }
}
