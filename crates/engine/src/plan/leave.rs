//! Nodes that go: their pods first, then their names, then what is on their machines.
//!
//! What is on a machine is the last, since it alone tells a later run that something is left to do.

use std::collections::BTreeMap;

use super::{ApiWork, Departure, Maker, TaskId, Work, note, release};

impl Maker<'_> {
    /// The nodes that come with this plan.
    pub(super) fn joining(&self, nodes: &BTreeMap<usize, TaskId>) -> Vec<TaskId> {
        let new = nodes
            .iter()
            .filter(|(place, _)| !self.has_records_of(**place, "worker"));
        new.map(|(_, task)| *task).collect()
    }

    /// What becomes of machines that leave the cluster. One that does not answer loses its node all the same: its pods
    /// are to run elsewhere.
    pub(super) fn departures(&mut self) {
        let first = self.basis.cluster.machines().len();
        for (place, machine) in (first..).zip(self.basis.cluster.leaving()) {
            let is_balancer = self.has_records_of(place, release::BALANCER);
            if is_balancer && note::missing_load_balancer(&self.basis).is_some() {
                continue;
            }
            let departure = Departure {
                name: machine.name.to_string(),
                machine: place,
            };
            let drained = self.drain(departure.clone());
            let deleted = self.delete_node(departure, drained);
            if self.basis.missing.contains(&place) {
                continue;
            }
            let mut needs = vec![deleted];
            if is_balancer {
                needs.extend(self.clients_of_the_api());
            }
            let title = format!("{}: leave", machine.name);
            let work = Work::Leave { machine: place };
            self.graph.push(title, &needs, work);
        }
    }

    pub(super) fn drain(&mut self, departure: Departure) -> TaskId {
        let title = format!("{}: drain", departure.name);
        let mut needs: Vec<_> = self.api_ready.into_iter().collect();
        needs.extend(&self.new_nodes);
        self.graph
            .push(title, &needs, Work::Api(ApiWork::Drain(departure)))
    }

    pub(super) fn delete_node(&mut self, departure: Departure, drained: TaskId) -> TaskId {
        let title = format!("{}: delete node", departure.name);
        let work = Work::Api(ApiWork::DeleteNode(departure));
        self.graph.push(title, &[drained], work)
    }
}
