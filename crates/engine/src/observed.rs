//! What is: how the machines of a cluster answered, and what they have of it.

use std::collections::BTreeMap;

use hatchery_host::{facts::Facts, machine::Managed};
use hatchery_spec::{Cluster, cluster::Machine, value::Name};

use crate::{owner::Owner, preflight::Reply};

/// The unit of an etcd member.
pub(crate) const ETCD: &str = "etcd.service";
/// The unit of an API server.
pub(crate) const API_SERVER: &str = "kube-apiserver.service";
/// The unit of a node.
pub(crate) const KUBELET: &str = "kubelet.service";

/// The answers of a cluster's machines, by name. A machine that was not asked is not in it.
#[derive(Debug, Default)]
pub struct Observed {
    replies: BTreeMap<Name, Reply>,
}

impl Observed {
    /// From the machines' answers.
    pub fn new(replies: impl IntoIterator<Item = (Name, Reply)>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
        }
    }

    /// What a machine answered.
    pub fn reply(&self, machine: &Name) -> Option<&Reply> {
        self.replies.get(machine)
    }

    /// What a machine is like, if it answered.
    pub fn facts(&self, machine: &Name) -> Option<&Facts> {
        let (facts, _) = self.replies.get(machine)?.as_ref().ok()?;
        Some(facts)
    }

    /// What a machine has of ours, if it answered.
    pub fn managed(&self, machine: &Name) -> Option<&Managed> {
        let (_, managed) = self.replies.get(machine)?.as_ref().ok()?;
        Some(managed)
    }

    /// Whether a machine was asked and did not answer.
    pub fn is_silent(&self, machine: &Name) -> bool {
        matches!(self.replies.get(machine), Some(Err(_)))
    }

    /// The machines of a cluster that did not answer, in the cluster's order.
    pub fn silent<'a>(&self, cluster: &'a Cluster) -> Vec<&'a Machine> {
        let machines = cluster.all_machines();
        machines
            .filter(|machine| self.is_silent(&machine.name))
            .collect()
    }

    /// Whether a service of ours is active on a machine. One that is only starting is not: a new member of etcd is until
    /// there are enough of them.
    pub fn runs(&self, machine: &Name, unit: &str) -> bool {
        self.managed(machine)
            .is_some_and(|managed| runs(managed, unit))
    }

    /// Whether etcd or an API server runs on some machine.
    pub fn has_control_plane(&self) -> bool {
        let mut machines = self.replies.keys();
        machines.any(|name| [ETCD, API_SERVER].iter().any(|unit| self.runs(name, unit)))
    }

    /// Whether a machine has something on behalf of an owner.
    pub(crate) fn has_records_of(&self, machine: &Name, owner: Owner) -> bool {
        let managed = self.managed(machine);
        let mut resources = managed.into_iter().flat_map(|one| &one.resources);
        resources.any(|one| one.owners.iter().any(|name| name == owner.as_str()))
    }
}

fn runs(managed: &Managed, unit: &str) -> bool {
    let mut resources = managed.resources.iter();
    resources.any(|resource| {
        let state = resource.state.as_deref().unwrap_or_default();
        resource.kind == "unit"
            && resource.name == unit
            && state.split(',').next() == Some("active")
    })
}
