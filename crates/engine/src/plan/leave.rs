//! Nodes that go: their pods first, then their names, then what is on their machines.
//!
//! What is on a machine comes last, since only by it a later run knows that something is left to do.

use std::collections::BTreeMap;

use hatchery_spec::value::Name;

use super::{ApiWork, Maker, SCRIPTS_BEFORE_CLEANUP, TaskId, Work, note};
use crate::owner::Owner;

impl Maker<'_> {
    /// The nodes that come with this plan.
    pub(super) fn joining(&self, nodes: &BTreeMap<Name, TaskId>) -> Vec<TaskId> {
        let is_new = |machine: &Name| !self.observed.has_records_of(machine, Owner::Worker);
        let new = nodes.iter().filter(|(machine, _)| is_new(machine));
        let mut new: Vec<_> = new.map(|(_, task)| *task).collect();
        new.sort();
        new
    }

    /// What becomes of machines that leave the cluster. One that does not answer loses its node all the same: its pods
    /// are to run elsewhere.
    pub(super) fn departures(&mut self) {
        for node in self.wanted.cluster.leaving() {
            let name = &node.name;
            let is_balancer = self.observed.has_records_of(name, Owner::LoadBalancer);
            if is_balancer && note::missing_load_balancer(self.wanted).is_some() {
                continue;
            }
            let drained = self.drain(name);
            let deleted = self.delete_node(name, drained);
            if self.observed.is_silent(name) {
                continue;
            }
            let mut needs = vec![deleted];
            if is_balancer {
                needs.extend(self.clients_of_the_api());
            }
            let machine = name.clone();
            let before = Work::BeforeUndo {
                machine: machine.clone(),
            };
            if self.observed.has_records_of(name, Owner::Precleanup) {
                needs = vec![self.graph.push(SCRIPTS_BEFORE_CLEANUP, &needs, before)];
            }
            let leaves = true;
            self.graph
                .push("leave", &needs, Work::Undo { machine, leaves });
        }
    }

    pub(super) fn drain(&mut self, node: &Name) -> TaskId {
        let mut needs: Vec<_> = self.api_ready.into_iter().collect();
        needs.extend(&self.new_nodes);
        self.graph
            .api("drain", &needs, ApiWork::Drain(node.clone()))
    }

    pub(super) fn delete_node(&mut self, node: &Name, drained: TaskId) -> TaskId {
        self.graph
            .api("delete node", &[drained], ApiWork::DeleteNode(node.clone()))
    }
}
