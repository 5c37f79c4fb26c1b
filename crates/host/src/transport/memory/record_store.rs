//! What a machine in memory has written down: who holds it, what is ours, and what was there first.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    request::Released,
    tree::{Looks, Node},
    world::World,
};

/// The directory of Hatchery on a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordStore {
    /// Whether the directory is there at all.
    pub(super) begun: bool,
    /// Whether resources were ever written down.
    pub(super) recording: bool,
    /// Id and name of the cluster that holds the machine.
    pub(super) cluster: Option<(String, String)>,
    pub(super) records: BTreeMap<String, Record>,
    /// Who needs a resource, also before it has a record.
    pub(super) owners: BTreeMap<String, BTreeSet<String>>,
    /// Units that have to be restarted because one of their files changes.
    pub(super) pending: BTreeSet<String>,
    /// The hash of each file that a run put there which came to its end.
    pub(super) put: BTreeMap<String, String>,
    /// The last run, and what it said.
    pub(super) report: Option<(String, String)>,
    sequence: u64,
    /// The step that is being written down, and what this run wrote down for which.
    pub(super) step: usize,
    made: Vec<(usize, String)>,
}

/// One resource: its name and what was there first.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) sequence: u64,
    pub(super) name: String,
    pub(super) original: Original,
}

#[derive(Clone, Debug)]
pub(super) enum Original {
    /// `file`, `link` or `absent`.
    Path(&'static str, Option<Node>),
    /// `/etc/hosts`, with what could be read there.
    Hosts(Option<Node>, Vec<u8>),
    Directory {
        /// Of one that was there.
        looks: Option<Looks>,
        ours: bool,
        /// What was in it.
        names: BTreeSet<String>,
    },
    HostsEntry,
    Sysctl(String),
    Module,
    KernelHostname,
    Firewall,
    FirewallZone,
    User,
    Package,
    Image(String),
    Script,
    Unit {
        enabled: bool,
        active: bool,
    },
}

impl Record {
    /// In the words of the machine's script.
    pub(super) fn kind(&self) -> &'static str {
        match &self.original {
            Original::Path(kind, _) => kind,
            Original::Hosts(..) => "hosts",
            Original::Directory { .. } => "directory",
            Original::HostsEntry => "hosts_entry",
            Original::Sysctl(_) => "sysctl",
            Original::Module => "module",
            Original::KernelHostname => "kernel_hostname",
            Original::Firewall => "firewall",
            Original::FirewallZone => "firewall_zone",
            Original::User => "user",
            Original::Package => "package",
            Original::Image(_) => "image",
            Original::Script => "script",
            Original::Unit { .. } => "unit",
        }
    }
}

impl RecordStore {
    pub(super) fn knows(&self, key: &str) -> bool {
        self.records.contains_key(key)
    }

    pub(super) fn own(&mut self, key: &str, owner: &str) {
        self.owners
            .entry(key.into())
            .or_default()
            .insert(owner.into());
    }

    /// The first original wins.
    pub(super) fn note(&mut self, key: &str, owner: &str, name: &str, original: Original) {
        self.own(key, owner);
        if self.knows(key) {
            return;
        }
        self.sequence += 1;
        let record = Record {
            sequence: self.sequence,
            name: name.into(),
            original,
        };
        self.records.insert(key.into(), record);
        self.made.push((self.step, key.into()));
    }

    /// Begins a run.
    pub(super) fn begin(&mut self) {
        self.made.clear();
    }

    /// What was only going to be done is not ours.
    pub(super) fn forget_after(&mut self, step: Option<usize>) {
        for (number, key) in std::mem::take(&mut self.made) {
            if step.is_none_or(|step| number > step) {
                self.forget(&key);
            }
        }
    }

    /// Whether it is a directory of ours whose contents no task has asked for yet.
    pub(super) fn made_for_another(&self, key: &str) -> bool {
        let original = self.records.get(key).map(|record| &record.original);
        matches!(
            original,
            Some(Original::Directory {
                looks: None,
                ours: false,
                ..
            })
        )
    }

    /// Notes what is at a path.
    pub(super) fn keep(
        &mut self,
        world: &World,
        key: &str,
        owner: &str,
        kind: &'static str,
        path: &str,
    ) -> Result<(), String> {
        self.own(key, owner);
        let was = world.files.at(path);
        if !self.knows(key) && matches!(was, Some(Node::Directory(_))) {
            return Err(format!("{path} is there and is neither a file nor a link"));
        }
        let original = match kind {
            "hosts" => {
                let text = world.files.bytes(path).map(|bytes| bytes.to_vec());
                Original::Hosts(was.cloned(), text.unwrap_or_default())
            }
            kind => Original::Path(kind, was.cloned()),
        };
        self.note(key, owner, path, original);
        Ok(())
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.records.remove(key);
        self.owners.remove(key);
        self.pending.remove(key);
        self.put.remove(key);
    }

    /// Whether it goes back to what it was.
    pub(super) fn released(&mut self, key: &str, released: &Released) -> bool {
        released.frees(key, self.owners.get_mut(key))
    }
}
