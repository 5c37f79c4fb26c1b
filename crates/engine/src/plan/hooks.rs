//! When the user's own scripts run.

use std::collections::BTreeMap;

use hatchery_spec::cluster::{Machine, Schedule};

use super::{Error, Maker, Part, TaskId};
use crate::components::hooks;

impl Maker<'_> {
    /// The user's scripts that come before everything else, and those that wait for the end.
    pub(super) fn hooks(&mut self, place: usize, node: &Machine) -> Result<(), Error> {
        let parts: [(&'static str, Schedule, Part); 3] = [
            (hooks::BEFORE, Schedule::Precleanup, hooks::precleanup),
            (hooks::AFTER, Schedule::Postcleanup, hooks::postcleanup),
            ("prejoin", Schedule::Prejoin, hooks::prejoin),
        ];
        for (owner, schedule, part) in parts {
            // What is kept for the way back would run if it were only given up: it is replaced by nothing.
            let is_replaced = schedule != Schedule::Prejoin && self.has_records_of(place, owner);
            if self.has_hooks(place, schedule) || is_replaced {
                let needs = self.prepared(place);
                self.add(place, node, owner, &needs, &[part])?;
            }
        }
        Ok(())
    }

    /// Whether a machine has something on behalf of an owner.
    pub(super) fn has_records_of(&self, place: usize, owner: &str) -> bool {
        let managed = self.basis.managed.get(place);
        let mut resources = managed.into_iter().flat_map(|one| &one.resources);
        resources.any(|one| one.owners.iter().any(|name| name == owner))
    }

    /// The user's scripts for machines that have joined: when the machine's own node is ready, and on machines that are no
    /// nodes when all others are, or will not be.
    pub(super) fn postjoin(&mut self, nodes: &BTreeMap<usize, TaskId>) -> Result<(), Error> {
        for (place, node) in self.present(|_| true) {
            if self.has_hooks(place, Schedule::Postjoin) {
                let own = nodes.get(&place).copied();
                let needs: Vec<_> = self.graph.last_on(place).into_iter().chain(own).collect();
                self.add(place, node, "postjoin", &needs, &[hooks::postjoin])?;
                if own.is_none() {
                    let all: Vec<_> = nodes.values().copied().collect();
                    self.graph.last_comes_after(&all);
                }
            }
        }
        Ok(())
    }

    fn has_hooks(&self, place: usize, schedule: Schedule) -> bool {
        let node_context = self.basis.sites.get(&place);
        let mut hooks = node_context
            .into_iter()
            .flat_map(|(_, brought)| &brought.hooks);
        hooks.any(|hook| hook.schedule == schedule)
    }

    /// What has to be done on a machine before any component.
    pub(super) fn prepared(&self, place: usize) -> Vec<TaskId> {
        let owners = ["prejoin", hooks::AFTER, hooks::BEFORE, "prepare"];
        let found = owners
            .iter()
            .find_map(|owner| self.graph.find(owner, place));
        found.into_iter().collect()
    }
}
