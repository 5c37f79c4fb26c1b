//! When the user's own scripts run.

use std::collections::BTreeMap;

use hatchery_spec::{
    cluster::{Machine, Schedule},
    value::Name,
};

use super::{Component, Error, Maker, Part, TaskId};
use crate::{components::hooks, owner::Owner};

impl Maker<'_> {
    /// The user's scripts that come before everything else, and those that wait for the end.
    pub(super) fn hooks(&mut self, node: &Machine) -> Result<(), Error> {
        let parts: [(Owner, Schedule, Component); 3] = [
            (Owner::Precleanup, Schedule::Precleanup, hooks::precleanup),
            (
                Owner::Postcleanup,
                Schedule::Postcleanup,
                hooks::postcleanup,
            ),
            (Owner::Prejoin, Schedule::Prejoin, hooks::prejoin),
        ];
        for (owner, schedule, component) in parts {
            // What is kept for the way back would run if it were only given up: it is replaced by nothing.
            let is_replaced =
                schedule != Schedule::Prejoin && self.observed.has_records_of(&node.name, owner);
            if self.has_hooks(&node.name, schedule) || is_replaced {
                let needs = self.prepared(&node.name);
                self.add(node, owner, &needs, &[component])?;
            }
        }
        Ok(())
    }

    /// The user's scripts for machines that have joined: when the machine's own node is ready, and on machines that are no
    /// nodes when all others are, or will not be.
    pub(super) fn postjoin(&mut self, nodes: &BTreeMap<Name, TaskId>) -> Result<(), Error> {
        for node in self.present(|_| true) {
            if self.has_hooks(&node.name, Schedule::Postjoin) {
                let own = nodes.get(&node.name).copied();
                let last = self.graph.last_on(&node.name);
                let needs: Vec<_> = last.into_iter().chain(own).collect();
                self.add(node, Owner::Postjoin, &needs, &[hooks::postjoin])?;
                if own.is_none() {
                    let mut all: Vec<_> = nodes.values().copied().collect();
                    all.sort();
                    self.graph.last_comes_after(&all);
                }
            }
        }
        Ok(())
    }

    fn has_hooks(&self, machine: &Name, schedule: Schedule) -> bool {
        let installation = self.wanted.installations.get(machine);
        let mut hooks = installation.into_iter().flat_map(|brought| &brought.hooks);
        hooks.any(|hook| hook.schedule == schedule)
    }

    /// What has to be done on a machine before any component.
    pub(super) fn prepared(&self, machine: &Name) -> Vec<TaskId> {
        let owners = [
            Owner::Prejoin,
            Owner::Postcleanup,
            Owner::Precleanup,
            Owner::Prepare,
        ];
        let mut found = owners.into_iter().map(Part::Of);
        let found = found.find_map(|part| self.graph.find(part, machine));
        found.into_iter().collect()
    }
}
