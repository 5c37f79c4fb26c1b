//! What running a plan would change, in a user's words. Everything is looked at, nothing is changed.

mod api_part;
mod lines;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hatchery_host::{
    machine::{self, Difference, Machine, Managed},
    operation::{File, Operation},
    path::MachinePath,
    task::Task as HostTask,
};
use hatchery_spec::value::Name;
use serde::{Deserialize, Serialize};
use snafu::Snafu;
use time::OffsetDateTime;

use self::words::of_machine;
use crate::{
    api_access::ApiAccess,
    material::{self, Material},
    plan::{ApiWork, Plan, Task, Work},
    resource::Resource,
};

/// What would happen to one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Of which kind.
    pub kind: Kind,
    /// What changes: a file, a unit, an object.
    pub what: String,
    /// More of it, or why.
    pub why: String,
    /// The lines of a file that change, each behind `+`, `-` or a blank; secrets are hidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

impl Change {
    fn new(kind: Kind, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            why: why.into(),
            lines: Vec::new(),
        }
    }
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something that was not there.
    New,
    /// Something that is there becomes another.
    Changed,
    /// Something is removed.
    Gone,
}

impl Kind {
    /// The mark in front of a line.
    pub fn mark(self) -> char {
        match self {
            Self::New => '+',
            Self::Changed => '~',
            Self::Gone => '-',
        }
    }
}

/// What one task would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// On which machine; none for the cluster's API.
    pub machine: Option<String>,
    /// Which part of it, in a user's words.
    pub title: String,
    /// What would change; nothing when all is as it should be.
    pub changes: Vec<Change>,
    /// Changes that are known only after something else has happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

impl Part {
    /// Whether there is nothing to do, now or later.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.later.is_none()
    }
}

/// What a plan would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// One for each task, in the plan's order.
    pub parts: Vec<Part>,
}

/// Why the changes cannot be listed.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A machine gives no answer.
    #[snafu(transparent)]
    Machine {
        /// The machine's error.
        source: machine::Error,
    },
    /// A task contradicts itself.
    #[snafu(transparent)]
    Task {
        /// What is wrong with the task.
        source: hatchery_host::task::Error,
    },
    /// A secret cannot be made.
    #[snafu(transparent)]
    Material {
        /// The underlying error.
        source: material::Error,
    },
}

impl Diff {
    /// How many things would change.
    pub fn changes(&self) -> usize {
        self.parts.iter().map(|part| part.changes.len()).sum()
    }

    /// How many of them through the cluster's API.
    pub fn api_changes(&self) -> usize {
        let parts = self.parts.iter().filter(|part| part.machine.is_none());
        parts.map(|part| part.changes.len()).sum()
    }

    /// On how many machines something would change.
    pub fn machines(&self) -> usize {
        let changed = self.parts.iter().filter(|part| !part.changes.is_empty());
        let names: BTreeSet<_> = changed.filter_map(|part| part.machine.as_deref()).collect();
        names.len()
    }

    /// Whether there is nothing to do, now or later.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(Part::is_empty)
    }
}

/// The time that a machine has to answer.
const DEADLINE: Duration = Duration::from_secs(120);
/// The time that the API has to answer at all.
const API: Duration = Duration::from_secs(10);

/// Compares every task of a plan, on a limited number of machines concurrently; the API is asked where the cluster has one.
///
/// # Errors
/// The first machine that gives no answer.
pub(crate) async fn look(
    plan: &Plan,
    access: ApiAccess<'_>,
    has_api: bool,
    parallel: usize,
) -> Result<Diff, Error> {
    let asking = async {
        match has_api {
            true => tokio::time::timeout(API, access.connect(&|_| ()))
                .await
                .ok()?
                .ok(),
            false => None,
        }
    };
    let (api, looks) = tokio::join!(asking, look_at_machines(plan, access, parallel));
    let mut parts = looks?;
    let mut nodes = Vec::new();
    for (number, task) in plan.tasks.iter().enumerate() {
        match &task.work {
            Work::Api(ApiWork::Node(node)) => nodes.push((number, node)),
            Work::Api(work) => {
                parts.push((number, api_part::ask(api.as_ref(), task, work).await));
            }
            _ => {}
        }
    }
    // A thousand nodes are one part.
    if let Some((number, _)) = nodes.first() {
        let number = *number;
        let nodes: Vec<_> = nodes.into_iter().map(|(_, node)| node).collect();
        parts.push((number, api_part::ask_nodes(api.as_ref(), &nodes).await));
    }
    parts.sort_by_key(|(number, _)| *number);
    let mut parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
    tell_once(&mut parts);
    Ok(Diff { parts })
}

/// What would change on each machine.
async fn look_at_machines(
    plan: &Plan,
    access: ApiAccess<'_>,
    parallel: usize,
) -> Result<Vec<(usize, Part)>, Error> {
    let mut tasks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (number, task) in plan.tasks.iter().enumerate() {
        if let Some(machine) = task.work.machine() {
            tasks.entry(machine).or_default().push((number, task));
        }
    }
    let looks = tasks
        .into_iter()
        .map(|(machine, tasks)| look_at_machine(access, machine, tasks));
    let looks: Vec<_> = looks.collect();
    let looks = stream::iter(looks).buffer_unordered(parallel.max(1));
    Ok(looks.try_collect::<Vec<_>>().await?.concat())
}

/// What several tasks would make is made by the first of them.
fn tell_once(parts: &mut [Part]) {
    let mut told = BTreeSet::new();
    for part in parts {
        let machine = &part.machine;
        part.changes.retain(|change| {
            change.kind != Kind::New || told.insert((machine.clone(), change.what.clone()))
        });
    }
}

/// What the tasks of one machine would change, asked together.
async fn look_at_machine(
    access: ApiAccess<'_>,
    name: &Name,
    tasks: Vec<(usize, &Task)>,
) -> Result<Vec<(usize, Part)>, Error> {
    let nothing = Managed::default();
    let managed = access.observed.managed(name).unwrap_or(&nothing);
    let (mut parts, mut asked, mut questions) = (Vec::new(), Vec::new(), Vec::new());
    for (number, task) in tasks {
        let mut part = Part {
            machine: Some(name.to_string()),
            title: task.title.clone(),
            ..Part::default()
        };
        match &task.work {
            Work::Release { released, .. } => part.changes = words::released(released),
            Work::Undo { .. } => part.changes = words::left(managed),
            Work::Machine {
                owner, resources, ..
            } => {
                let material = Material {
                    authorities: access.authorities,
                    cluster: access.cluster.id.as_str(),
                    managed,
                    now: OffsetDateTime::now_utc(),
                };
                let made = material.make(resources, false)?;
                let mut question = HostTask::new(owner.word(), made.operations)?;
                question.deadline = DEADLINE;
                asked.push((parts.len(), resources, made.issued));
                questions.push(question);
            }
            Work::BeforeUndo { .. } | Work::Api(_) => {}
        }
        parts.push((number, part));
    }
    let machine = access.machines.get(name);
    let Some(machine) = machine.filter(|_| !questions.is_empty()) else {
        return Ok(parts);
    };
    let looks = machine.look_at_all(&questions).await?;
    for ((place, resources, issued), (question, look)) in
        asked.into_iter().zip(questions.iter().zip(looks))
    {
        let (operations, differences) = (question.operations(), look.differences);
        let part = &mut parts[place].1;
        part.changes = of_machine(resources, &issued, operations, &differences);
        add_lines(machine, resources, (operations, &differences), part).await?;
    }
    Ok(parts)
}

/// Adds to each file that changes, and is not a secret, how its lines do.
async fn add_lines(
    machine: &Machine,
    resources: &[Resource],
    (operations, differences): (&[Operation], &[Difference]),
    part: &mut Part,
) -> Result<(), Error> {
    let is_open = |wanted: &File| {
        let mut resources = resources.iter();
        resources.any(|one| matches!(one, Resource::Operation(Operation::File(file)) if file.path == wanted.path))
    };
    let changed = operations
        .iter()
        .zip(differences)
        .filter_map(|one| match one {
            (Operation::File(file), Difference::Change(_)) if is_open(file) => {
                Some((&file.path, file.content.in_memory()?))
            }
            _ => None,
        });
    let changed: BTreeMap<&MachinePath, &[u8]> = changed.collect();
    if changed.is_empty() || part.changes.iter().all(|one| one.kind == Kind::New) {
        return Ok(());
    }
    let paths: Vec<_> = changed.keys().map(|path| (*path).clone()).collect();
    let contents = machine.contents(&paths, DEADLINE).await?;
    for (path, new) in changed {
        let title = format!("file {path}");
        let mut changes = part.changes.iter_mut();
        if let Some(change) = changes.find(|one| one.kind == Kind::Changed && one.what == title)
            && let Some(old) = contents.get(path)
        {
            change.lines = lines::changed(old, new).unwrap_or_default();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_tasks_would_make_is_told_once() {
        let part = |machine: &str, kind| Part {
            machine: Some(machine.into()),
            changes: vec![Change::new(kind, "directory /etc/kubernetes", "")],
            ..Part::default()
        };
        let mut parts = [
            part("a", Kind::New),
            part("a", Kind::New),
            part("b", Kind::New),
            part("b", Kind::Changed),
        ];
        tell_once(&mut parts);
        let counts = parts.each_ref().map(|part| part.changes.len());
        assert_eq!(counts, [1, 0, 1, 1]);
        let diff = Diff {
            parts: parts.into(),
        };
        assert_eq!((diff.changes(), diff.machines()), (3, 2));
    }
}
