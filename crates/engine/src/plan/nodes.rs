//! Nodes and what runs on them, each judged by itself.

use std::collections::BTreeMap;

use hatchery_spec::cluster::Role;

use super::{Addon, ApiWork, Maker, Node, TaskId, note};
use crate::taints;

impl Maker<'_> {
    /// A task for each node, which it gives by the machine's place, and one for each addon that runs in pods.
    pub(super) fn nodes(&mut self, addons: &[Addon]) -> BTreeMap<usize, TaskId> {
        let (cluster, versions) = (self.basis.cluster, self.basis.versions);
        let mut nodes = BTreeMap::new();
        let workers = self.present(|node| node.is(Role::Worker));
        if workers.is_empty() {
            return nodes;
        }
        if let Some(note) = note::missing_load_balancer(&self.basis) {
            self.notes.push(note);
            return nodes;
        }
        let applied: Vec<_> = addons.iter().map(|addon| addon.applied).collect();
        for (place, machine) in workers {
            let worker = self.of("worker", place).into_iter();
            let needs: Vec<_> = worker.chain(self.api_ready).collect();
            let node = Node {
                name: machine.name.to_string(),
                machine: place,
                labels: taints::labels(versions, machine),
                taints: taints::of(cluster, versions, machine),
            };
            let title = format!("{}: node ready", machine.name);
            let task = self
                .graph
                .api_after(&title, &needs, &applied, ApiWork::Node(node));
            nodes.insert(place, task);
        }
        let all: Vec<_> = nodes.values().copied().collect();
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
