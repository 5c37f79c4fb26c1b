//! What machines have nothing to change for, asked of each once for all of its tasks.
//!
//! Most tasks of a cluster that lives find everything as it should be, and a question costs more than what it asks for.
//! An answer counts as long as nothing has changed on the machine, and nothing that the task needs has changed anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hatchery_spec::value::Name;
use tokio::sync::OnceCell;

use super::Run;
use crate::plan::{Plan, Work};

/// What was asked, and what has happened since.
#[derive(Debug, Default)]
pub(super) struct Looks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The tasks of each machine for which it has nothing to change.
    unchanged: BTreeMap<Name, Arc<OnceCell<BTreeSet<usize>>>>,
    /// Tasks that may have changed something, and all that need them.
    touched: BTreeSet<usize>,
    /// Machines on which something may have changed.
    machines: BTreeSet<Name>,
}

impl Looks {
    /// A task has ended. `changed` is false only where it is certain that nothing did.
    pub(super) fn ended(&self, plan: &Plan, number: usize, changed: bool) {
        let mut state = self.state();
        let task = &plan.tasks[number];
        if changed || state.follows_a_change(plan, number) {
            state.touched.insert(number);
        }
        if let (true, Some(machine)) = (changed, task.work.machine()) {
            state.machines.insert(machine.clone());
        }
    }

    /// Where the answer of a task's machine is, if it counts.
    fn answer(
        &self,
        plan: &Plan,
        number: usize,
        machine: &Name,
    ) -> Option<Arc<OnceCell<BTreeSet<usize>>>> {
        let mut state = self.state();
        if state.machines.contains(machine) || state.follows_a_change(plan, number) {
            return None;
        }
        let answer = state.unchanged.entry(machine.clone()).or_default();
        Some(Arc::clone(answer))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn follows_a_change(&self, plan: &Plan, number: usize) -> bool {
        let task = &plan.tasks[number];
        let mut before = task.needs.iter().chain(&task.after);
        before.any(|id| self.touched.contains(&id.0))
    }
}

impl Run<'_> {
    /// Whether the machine of a task is known to have nothing to change for it. One that is not of the cluster yet has.
    pub(super) async fn is_unchanged(&self, plan: &Plan, number: usize) -> bool {
        let Work::Machine { machine, .. } = &plan.tasks[number].work else {
            return false;
        };
        let managed = self.context.observed.managed(machine);
        if managed.is_none_or(|managed| managed.resources.is_empty()) {
            return false;
        }
        let Some(answer) = self.looks.answer(plan, number, machine) else {
            return false;
        };
        let all = plan.tasks.iter().enumerate();
        let own = all.filter(|(_, task)| task.work.machine() == Some(machine));
        let works = own.map(|(number, task)| (number, &task.work));
        let unchanged = answer.get_or_init(|| self.unchanged(works)).await;
        unchanged.contains(&number)
    }
}
