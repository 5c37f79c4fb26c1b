//! Tasks that name what they need.

use hatchery_host::path::Word;

use super::{ApiWork, Work};
use crate::wish::Wish;

/// A task, by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// One thing to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// In a user's words.
    pub title: String,
    /// Tasks that must have succeeded.
    pub needs: Vec<TaskId>,
    /// Tasks that must have ended, well or not.
    pub after: Vec<TaskId>,
    /// What it does.
    pub work: Work,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) tasks: Vec<Task>,
    /// Which part of which machine is which task.
    known: Vec<(&'static str, usize, TaskId)>,
}

impl Graph {
    pub(super) fn machine(
        &mut self,
        machine: usize,
        part: &'static str,
        name: &str,
        owner: Word,
        needs: &[TaskId],
        wishes: Vec<Wish>,
    ) {
        let id = TaskId(self.tasks.len());
        self.known.push((part, machine, id));
        self.tasks.push(Task {
            title: format!("{name}: {part}"),
            needs: needs.to_vec(),
            after: Vec::new(),
            work: Work::Machine {
                machine,
                owner,
                wishes,
            },
        });
    }

    pub(super) fn api(&mut self, title: &str, needs: &[TaskId], work: ApiWork) -> TaskId {
        self.api_after(title, needs, &[], work)
    }

    pub(super) fn api_after(
        &mut self,
        title: &str,
        needs: &[TaskId],
        after: &[TaskId],
        work: ApiWork,
    ) -> TaskId {
        let id = TaskId(self.tasks.len());
        self.tasks.push(Task {
            title: title.to_owned(),
            needs: needs.to_vec(),
            after: after.to_vec(),
            work: Work::Api(work),
        });
        id
    }

    pub(super) fn find(&self, part: &str, machine: usize) -> Option<TaskId> {
        let found = self
            .known
            .iter()
            .find(|(one, place, _)| *one == part && *place == machine);
        found.map(|(_, _, id)| *id)
    }

    /// The last task of a machine.
    pub(super) fn last_on(&self, machine: usize) -> Option<TaskId> {
        let mut known = self.known.iter().rev();
        known
            .find(|(_, place, _)| *place == machine)
            .map(|(_, _, id)| *id)
    }
}
