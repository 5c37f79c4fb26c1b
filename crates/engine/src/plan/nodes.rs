//! Nodes and what runs on them, each judged by itself.

use std::collections::BTreeMap;

use hatchery_spec::{cluster::Role, value::Name};

use super::{Addon, ApiWork, Maker, Node, TaskId, note};
use crate::{owner::Owner, taints, wanted::Wanted};

impl Maker<'_> {
    /// A task for each node, which it gives by the node's name, and one for each addon that runs in pods.
    pub(super) fn nodes(&mut self, addons: &[Addon]) -> BTreeMap<Name, TaskId> {
        let Wanted {
            cluster, versions, ..
        } = self.wanted;
        let mut nodes = BTreeMap::new();
        let workers = self.present(|node| node.is(Role::Worker));
        if workers.is_empty() {
            return nodes;
        }
        if let Some(note) = note::missing_load_balancer(self.wanted) {
            self.notes.push(note);
            return nodes;
        }
        let applied: Vec<_> = addons.iter().map(|addon| addon.applied).collect();
        for machine in workers {
            let worker = self.tasks_of(Owner::Worker, &machine.name).into_iter();
            let needs: Vec<_> = worker.chain(self.api_ready).collect();
            let node = Node {
                name: machine.name.clone(),
                labels: taints::labels(versions, machine),
                taints: taints::for_node(cluster, versions, machine),
            };
            let work = ApiWork::Node(node);
            let task = self.graph.api_after("node ready", &needs, &applied, work);
            nodes.insert(machine.name.clone(), task);
        }
        let mut all: Vec<_> = nodes.values().copied().collect();
        all.sort();
        for addon in addons.iter().filter(|addon| !addon.workloads.is_empty()) {
            let work = ApiWork::RolledOut {
                addon: addon.name.clone(),
                workloads: addon.workloads.clone(),
            };
            let title = format!("{} ready", addon.title);
            self.graph.api_after(&title, &[addon.applied], &all, work);
        }
        nodes
    }
}
