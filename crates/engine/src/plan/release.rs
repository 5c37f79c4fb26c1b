//! What machines have of an earlier file and no longer need.
//!
//! A task names all that its owner needs on a machine, so whatever the machine's record holds for that owner beside it goes
//! back to what it was, and an owner without a task gives up everything. That comes after the machine's own tasks: what
//! replaces a thing is there before the thing goes.

use std::collections::{BTreeMap, BTreeSet};

use hatchery_host::{
    content::{Content, Hash},
    machine::ManagedResource,
    operation::{Access, File, Operation},
    path::{MachinePath, Word},
    script::{RecordKey, Release},
    task::Task as HostTask,
};

use hatchery_spec::cluster::{Machine, Role};

use super::{Error, Maker, TaskId, Work, note};
use crate::{
    owner::Owner,
    resource::{self, Resource},
};

/// Something that one of its owners no longer needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Such as `file /etc/x` or `unit kubelet.service`.
    pub what: String,
    /// In the machine's terms.
    pub release: Release,
    /// Whether another owner still needs it, so that it stays.
    pub stays: bool,
}

impl Released {
    /// Whether it belongs to what makes a machine a node.
    fn is_of_node(&self) -> bool {
        self.release.owner.as_str() == Owner::Worker.as_str()
    }

    /// Whether it belongs to what leads to the API.
    fn is_of_balancer(&self) -> bool {
        self.release.owner.as_str() == Owner::LoadBalancer.as_str()
    }
}

/// The records that each owner has on a machine once a plan is done.
type Wanted = BTreeMap<Word, BTreeSet<RecordKey>>;

/// Packages and images stay until the machine leaves: what else needs them by now is not recorded.
const KEPT: [&str; 2] = ["package", "image"];

impl Maker<'_> {
    /// A task for each machine that has something of an earlier file.
    pub(super) fn releases(&mut self) -> Result<(), Error> {
        for node in self.present(|_| true) {
            let Some(managed) = self.observed.managed(&node.name) else {
                continue;
            };
            if managed.resources.is_empty() {
                continue;
            }
            let wanted = self.records(node)?;
            let resources = managed.resources.iter();
            let released = resources.flat_map(|one| released(one, node, &wanted));
            let mut released: Vec<_> = released.collect();
            // Nobody can say that the new one is reached.
            if note::missing_load_balancer(self.wanted).is_some() {
                released.retain(|one| !one.is_of_balancer());
            }
            if released.is_empty() {
                continue;
            }
            let is_no_node = !node.is(Role::Worker) && released.iter().any(Released::is_of_node);
            let mut needs = self.graph.all_on(&node.name);
            if is_no_node {
                let drained = self.drain(&node.name);
                needs.push(self.delete_node(&node.name, drained));
            }
            if released.iter().any(Released::is_of_balancer) {
                needs.extend(self.clients_of_the_api());
            }
            if released
                .iter()
                .any(|one| one.what == "unit coredns.service")
            {
                needs.extend(self.graph.rolled_out());
            }
            let work = Work::Release {
                machine: node.name.clone(),
                released,
            };
            self.graph.push("release", &needs, work);
        }
        Ok(())
    }

    /// What leads to the API from now on, and all clients of its endpoint: a former one goes when all of them have moved.
    /// Pods of the network plugin are among them, so addons have to be rolled out.
    pub(super) fn clients_of_the_api(&self) -> Vec<TaskId> {
        let balancers = self.all(Owner::LoadBalancer, Role::LoadBalancer);
        let masters = self.all(Owner::Master, Role::Master);
        let workers = self.all(Owner::Worker, Role::Worker);
        [balancers, masters, workers, self.graph.rolled_out()].concat()
    }

    /// The records that each owner has on a machine once the plan is done.
    fn records(&self, node: &Machine) -> Result<Wanted, Error> {
        let name = || node.name.clone();
        let mut operations: BTreeMap<Word, Vec<Vec<Operation>>> = BTreeMap::new();
        for task in self.graph.all_on(&node.name) {
            if let Work::Machine {
                owner, resources, ..
            } = &self.graph.tasks[task.0].work
            {
                let stood_for: Result<Vec<_>, _> = resources.iter().map(stand_ins).collect();
                let stood_for = stood_for.map_err(|source| Error::Machine {
                    machine: name(),
                    source,
                })?;
                let all = operations.entry(owner.word()).or_default();
                all.push(stood_for.into_iter().flatten().collect());
            }
        }
        let mut wanted: Wanted = BTreeMap::new();
        for (owner, tasks) in operations {
            let keys = wanted.entry(owner.clone()).or_default();
            for operations in tasks {
                // One that contradicts itself says so when it is looked at; nothing may go because of it.
                let task = HostTask::new(owner.clone(), operations);
                let task = task.map_err(|source| Error::Task {
                    machine: name(),
                    source,
                })?;
                keys.extend(task.record_keys());
            }
        }
        Ok(wanted)
    }
}

fn released(one: &ManagedResource, node: &Machine, wanted: &Wanted) -> Vec<Released> {
    if KEPT.contains(&one.kind.as_str()) {
        return Vec::new();
    }
    // What came along with packages of a run that died goes with them.
    let owners = one.owners.iter();
    let owners = owners.filter(|owner| *owner != Owner::Unowned.as_str());
    // A name that is not a word is not one of ours.
    let owners = owners.filter_map(|owner| Word::new(owner.as_str()).ok());
    let (needed, given_up): (Vec<_>, Vec<_>) = owners.partition(|owner| {
        wanted
            .get(owner)
            .is_some_and(|keys| keys.contains(&one.key))
    });
    let is_kept = |owner: &Word| one.kind == "script" && keeps_script(owner, node, wanted);
    let given_up = given_up.into_iter().filter(|owner| !is_kept(owner));
    given_up
        .map(|owner| Released {
            stays: !needed.is_empty(),
            what: title(one),
            release: Release {
                owner,
                key: one.key.clone(),
            },
        })
        .collect()
}

/// What it is called, as where it is made.
fn title(one: &ManagedResource) -> String {
    let name = &one.name;
    let is_port = || ["/tcp", "/udp"].iter().any(|end| name.ends_with(end));
    match one.kind.as_str() {
        "firewall" if is_port() => format!("open port {name}"),
        "firewall" => format!("trusted network {name}"),
        kind => format!("{} {name}", kind.replace('_', " ")),
    }
}

/// Whether a script that is no longer named stays. The undo script of ours may do anything, so one that merely got another name
/// must not end what runs: it goes with its owner, or with the machine's role. The user's own only forget that they ran.
fn keeps_script(owner: &Word, node: &Machine, wanted: &Wanted) -> bool {
    let users = [Owner::Prejoin, Owner::Postjoin].map(Owner::as_str);
    let is_users = users.contains(&owner.as_str());
    !is_users && node.is(Role::Worker) && wanted.contains_key(owner)
}

/// Files in place of what is made only when it is sent: the same records.
fn stand_ins(resource: &Resource) -> Result<Vec<Operation>, resource::Error> {
    let file = |path: &MachinePath| {
        Ok(Operation::File(File {
            path: path.clone(),
            content: Content::known(Hash::digest(b""), 0),
            access: Access::root(0o600)?,
        }))
    };
    match resource {
        Resource::Operation(operation) => Ok(vec![operation.clone()]),
        Resource::Secret(secret) => Ok(vec![file(&secret.path)?]),
        Resource::Leaf(leaf) => {
            let config = leaf.kubeconfig.as_ref().map(|config| &config.path);
            let paths = [&leaf.certificate, &leaf.key].into_iter().chain(config);
            paths.map(file).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_is_called_as_it_came() {
        let named = |kind: &str, name: &str| {
            title(&ManagedResource {
                key: RecordKey::parse("k").unwrap(),
                kind: kind.into(),
                name: name.into(),
                state: None,
                size: None,
                put: None,
                text: None,
                owners: Vec::new(),
            })
        };
        assert_eq!(named("firewall", "8123/tcp"), "open port 8123/tcp");
        assert_eq!(
            named("firewall", "30000-32767/udp"),
            "open port 30000-32767/udp"
        );
        assert_eq!(
            named("firewall", "10.244.0.0/16"),
            "trusted network 10.244.0.0/16"
        );
        assert_eq!(named("hosts_entry", "10.0.0.1"), "hosts entry 10.0.0.1");
    }
}
