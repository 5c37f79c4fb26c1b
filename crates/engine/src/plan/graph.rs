//! Tasks that name what they need.

use std::fmt;

use hatchery_spec::value::Name;

use super::{ApiWork, Work};
use crate::{owner::Owner, resource::Resource};

/// A task, by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// One thing to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// What is done, in a user's words and without the machine's name.
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

impl fmt::Display for Task {
    /// The title behind the machine's or the node's name: `w0: runtime`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject().machine() {
            Some(machine) => write!(f, "{machine}: {}", self.title),
            None => f.write_str(&self.title),
        }
    }
}

/// How a task goes together with others that could run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// As many at a time as the run allows.
    #[default]
    Free,
    /// These wait for each other while they run, so that all of them together count as one.
    Together,
    /// In turn, each behind the health of those before. A machine on which nothing has to be changed does not take part.
    OneByOne(Lane),
}

impl Concurrency {
    /// Whether it waits for its turn.
    pub fn is_one_by_one(self) -> bool {
        matches!(self, Self::OneByOne(_))
    }
}

/// Services that are restarted in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Members of etcd, one at a time: more than half of them have to run.
    Etcd,
    /// API servers with what belongs to them, one at a time.
    ControlPlane,
    /// Kubelets and runtimes of nodes that live, as many at a time as may be unavailable.
    Workers,
}

/// Whom a task is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A machine.
    Machine(Name),
    /// The node of a machine.
    Node(Name),
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
            | Work::BeforeUndo { machine }
            | Work::Undo { machine, .. } => Subject::Machine(machine.clone()),
            Work::Api(ApiWork::Drain(name) | ApiWork::DeleteNode(name)) => {
                Subject::Node(name.clone())
            }
            Work::Api(ApiWork::Node(node)) => Subject::Node(node.name.clone()),
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
    pub fn machine(&self) -> Option<&Name> {
        match self {
            Self::Machine(name) | Self::Node(name) => Some(name),
            Self::Addon(_) | Self::Api => None,
        }
    }
}

/// A part of what is done on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Packages that come by themselves, ahead of the rest of what [`Owner::Prepare`] has.
    Packages,
    /// All that an owner has.
    Of(Owner),
}

impl Part {
    fn owner(self) -> Owner {
        match self {
            Self::Packages => Owner::Prepare,
            Self::Of(owner) => owner,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) tasks: Vec<Task>,
    /// Which part of which machine is which task.
    known: Vec<(Part, Name, TaskId)>,
}

impl Graph {
    pub(super) fn machine(
        &mut self,
        machine: &Name,
        part: Part,
        needs: &[TaskId],
        resources: Vec<Resource>,
    ) {
        let title = match part {
            Part::Packages => "packages",
            Part::Of(owner) => owner.as_str(),
        };
        let work = Work::Machine {
            machine: machine.clone(),
            owner: part.owner(),
            resources,
        };
        let id = self.push(title, needs, work);
        self.known.push((part, machine.clone(), id));
    }

    pub(super) fn api(&mut self, title: &str, needs: &[TaskId], work: ApiWork) -> TaskId {
        self.push(title, needs, Work::Api(work))
    }

    pub(super) fn api_after(
        &mut self,
        title: &str,
        needs: &[TaskId],
        after: &[TaskId],
        work: ApiWork,
    ) -> TaskId {
        let id = self.api(title, needs, work);
        self.last_comes_after(after);
        id
    }

    /// A task of any kind, behind these.
    pub(super) fn push(&mut self, title: &str, needs: &[TaskId], work: Work) -> TaskId {
        let id = TaskId(self.tasks.len());
        self.tasks.push(Task {
            title: title.to_owned(),
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
    pub(super) fn all_on(&self, machine: &Name) -> Vec<TaskId> {
        let known = self.known.iter().filter(|(_, name, _)| name == machine);
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

    pub(super) fn find(&self, part: Part, machine: &Name) -> Option<TaskId> {
        let mut known = self.known.iter();
        let found = known.find(|(one, name, _)| *one == part && name == machine);
        found.map(|(_, _, id)| *id)
    }

    /// The last task of a machine.
    pub(super) fn last_on(&self, machine: &Name) -> Option<TaskId> {
        let mut known = self.known.iter().rev();
        let found = known.find(|(_, name, _)| name == machine);
        found.map(|(_, _, id)| *id)
    }
}
