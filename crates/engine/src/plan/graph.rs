//! Tasks that name what they need.

use hatchery_host::path::Word;

use super::{ApiWork, Work};
use crate::resource::Resource;

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
    /// How it goes together with other tasks.
    pub concurrency: Concurrency,
    /// What it does.
    pub work: Work,
}

/// How a task goes together with others that could run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// As many at a time as the run allows.
    #[default]
    Free,
    /// These wait for each other while they run, so that all of them together count as one.
    Together,
    /// One at a time, each behind the health of the one before. A machine on which nothing has to be changed does not
    /// take part.
    OneByOne(Lane),
}

impl Concurrency {
    /// Whether it waits for its turn.
    pub fn is_one_by_one(self) -> bool {
        matches!(self, Self::OneByOne(_))
    }
}

/// Services of which only one may be restarted at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Members of etcd: more than half of them have to run.
    Etcd,
    /// API servers with what belongs to them.
    ControlPlane,
}

/// Whom a task is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A machine, by its place in the cluster's list.
    Machine(usize),
    /// The node of a machine.
    Node(usize),
    /// Something that is applied, by its manifest's name.
    Addon(String),
    /// The cluster's API as a whole.
    Api,
}

impl Task {
    /// Whom it is about.
    pub fn subject(&self) -> Subject {
        match &self.work {
            Work::Machine { machine, .. }
            | Work::Release { machine, .. }
            | Work::Leave { machine } => Subject::Machine(*machine),
            Work::Api(ApiWork::Drain(one) | ApiWork::DeleteNode(one)) => Subject::Node(one.machine),
            Work::Api(ApiWork::Node(node)) => Subject::Node(node.machine),
            Work::Api(ApiWork::RolledOut { addon, .. }) => Subject::Addon(addon.clone()),
            Work::Api(ApiWork::Apply(manifests)) => match manifests.first() {
                Some(manifest) => Subject::Addon(manifest.name.clone()),
                None => Subject::Api,
            },
            Work::Api(ApiWork::Ready | ApiWork::ListAddons(_) | ApiWork::PruneAddons(_)) => {
                Subject::Api
            }
        }
    }
}

impl Subject {
    /// The machine, also that of a node.
    pub fn machine(&self) -> Option<usize> {
        match self {
            Self::Machine(place) | Self::Node(place) => Some(*place),
            Self::Addon(_) | Self::Api => None,
        }
    }
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
        resources: Vec<Resource>,
    ) {
        let id = TaskId(self.tasks.len());
        self.known.push((part, machine, id));
        self.tasks.push(Task {
            title: format!("{name}: {part}"),
            needs: needs.to_vec(),
            after: Vec::new(),
            concurrency: Concurrency::Free,
            work: Work::Machine {
                machine,
                owner,
                resources,
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
            concurrency: Concurrency::Free,
            work: Work::Api(work),
        });
        id
    }

    /// A task of any kind, behind these.
    pub(super) fn push(&mut self, title: String, needs: &[TaskId], work: Work) -> TaskId {
        let id = TaskId(self.tasks.len());
        self.tasks.push(Task {
            title,
            needs: needs.to_vec(),
            after: Vec::new(),
            concurrency: Concurrency::Free,
            work,
        });
        id
    }

    /// Tasks that wait for addons to run.
    pub(super) fn rolled_out(&self) -> Vec<TaskId> {
        let tasks = self.tasks.iter().enumerate();
        let waits =
            tasks.filter(|(_, task)| matches!(task.work, Work::Api(ApiWork::RolledOut { .. })));
        waits.map(|(number, _)| TaskId(number)).collect()
    }

    /// Every task on a machine.
    pub(super) fn all_on(&self, machine: usize) -> Vec<TaskId> {
        let known = self.known.iter().filter(|(_, place, _)| *place == machine);
        known.map(|(_, _, id)| *id).collect()
    }

    /// The task that was added last waits until these have ended.
    pub(super) fn last_comes_after(&mut self, tasks: &[TaskId]) {
        if let Some(task) = self.tasks.last_mut() {
            task.after.extend(tasks);
        }
    }

    /// The task that was added last goes together with others like this.
    pub(super) fn last_runs(&mut self, concurrency: Concurrency) {
        if let Some(task) = self.tasks.last_mut() {
            task.concurrency = concurrency;
        }
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
