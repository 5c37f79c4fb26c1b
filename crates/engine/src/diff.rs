//! What carrying out a plan would change, in a user's words. Everything is looked at, nothing is changed.

mod words;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hatchery_host::{
    machine::{self, Machine},
    task::Task as HostTask,
};
use hatchery_spec::Cluster;
use serde::Serialize;
use snafu::Snafu;
use time::OffsetDateTime;

use self::words::{applied, of_machine};
use crate::{
    api::{self, Api},
    authorities::Authorities,
    deployment::Survey,
    material::{self, Material},
    plan::{ApiWork, Manifest, Node, Task, Work},
};

/// What would happen to one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Of which kind.
    pub kind: Kind,
    /// To what.
    pub what: String,
    /// More of it, or why.
    pub why: String,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something that was not there.
    New,
    /// Something that is there becomes another.
    Changed,
    /// Something goes.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// On which machine; none for the cluster's API.
    pub machine: Option<String>,
    /// Which part of it, in a user's words.
    pub title: String,
    /// What would change; nothing when all is as it should be.
    pub changes: Vec<Change>,
    /// What cannot be told before something else has happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

/// What a plan would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// One for each task, in the plan's order.
    pub parts: Vec<Part>,
}

/// Why nothing can be told.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A machine gives no answer.
    #[snafu(transparent)]
    Machine {
        /// Why.
        source: machine::Error,
    },
    /// A task contradicts itself.
    #[snafu(transparent)]
    Task {
        /// How.
        source: hatchery_host::task::Error,
    },
    /// A secret cannot be made.
    #[snafu(transparent)]
    Material {
        /// Why.
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
        self.parts
            .iter()
            .all(|part| part.changes.is_empty() && part.later.is_none())
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
pub struct Looking<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// What was found.
    pub survey: &'a Survey,
    /// Who signs, or would.
    pub authorities: &'a Authorities,
    /// The cluster's API, where it answers.
    pub api: Option<&'a Api>,
    /// So many machines at the same time.
    pub parallel: usize,
}

/// The machines have so long for a look.
const DEADLINE: Duration = Duration::from_secs(120);

/// Looks at every task of a plan.
///
/// # Errors
/// The first machine that gives no answer.
pub async fn look(looking: Looking<'_>) -> Result<Diff, Error> {
    let tasks: Vec<_> = looking.survey.plan.tasks.iter().enumerate().collect();
    let mut places = vec![Vec::new(); looking.survey.machines.len()];
    for (number, task) in &tasks {
        if let Some(machine) = task.work.machine() {
            places[machine].push((*number, *task));
        }
    }
    // One after the other on each machine: its sshd allows few at a time.
    let looks = places
        .into_iter()
        .enumerate()
        .map(|(place, tasks)| async move {
            let mut parts = Vec::new();
            for (number, task) in tasks {
                parts.push((number, look_at(&looking, place, task).await?));
            }
            Ok::<_, Error>(parts)
        });
    let looks = stream::iter(looks).buffer_unordered(looking.parallel.max(1));
    let mut parts: Vec<_> = looks.try_collect::<Vec<_>>().await?.concat();
    let mut nodes = Vec::new();
    for (number, task) in tasks {
        match &task.work {
            Work::Api(ApiWork::Node(node)) => nodes.push((number, node)),
            Work::Api(work) => parts.push((number, ask(looking.api, &task.title, work).await)),
            Work::Machine { .. } | Work::Release { .. } | Work::Leave { .. } => {}
        }
    }
    // A thousand nodes are one part.
    if let Some((number, _)) = nodes.first() {
        let number = *number;
        let nodes: Vec<_> = nodes.into_iter().map(|(_, node)| node).collect();
        parts.push((number, ask_nodes(looking.api, &nodes).await));
    }
    parts.sort_by_key(|(number, _)| *number);
    let mut parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
    tell_once(&mut parts);
    Ok(Diff { parts })
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

async fn look_at(looking: &Looking<'_>, place: usize, task: &Task) -> Result<Part, Error> {
    let name = looking.cluster.machine(place).name.to_string();
    let title = task.title.strip_prefix(&format!("{name}: "));
    let mut part = Part {
        title: title.unwrap_or(&task.title).to_owned(),
        machine: Some(name),
        ..Part::default()
    };
    match &task.work {
        Work::Release { released, .. } => part.changes = words::released(released),
        Work::Leave { .. } => {
            part.changes = words::left(&looking.survey.managed[place]);
        }
        _ => {}
    }
    if let Work::Machine {
        owner, resources, ..
    } = &task.work
    {
        let material = Material {
            authorities: looking.authorities,
            cluster: looking.cluster.id.as_str(),
            managed: &looking.survey.managed[place],
            now: OffsetDateTime::now_utc(),
        };
        let made = material.make(resources, false)?;
        let mut question = HostTask::new(owner.clone(), made.operations)?;
        question.deadline = DEADLINE;
        let machine: &Arc<Machine> = &looking.survey.machines[place];
        let differences = machine.look(&question).await?;
        part.changes = of_machine(resources, &made.issued, question.operations(), &differences);
    }
    Ok(part)
}

async fn ask(api: Option<&Api>, title: &str, work: &ApiWork) -> Part {
    let mut part = Part {
        title: title.to_owned(),
        ..Part::default()
    };
    let asked = match (api, work) {
        (
            _,
            ApiWork::Ready
            | ApiWork::Node(_)
            | ApiWork::RolledOut { .. }
            | ApiWork::Drain(_)
            | ApiWork::ListAddons(_),
        )
        | (None, ApiWork::PruneAddons(_)) => return part,
        (Some(api), ApiWork::PruneAddons(wanted)) => {
            let gone = api.would_prune_addons(wanted).await;
            gone.map(|gone| gone.iter().map(words::pruned).collect())
        }
        (None, ApiWork::DeleteNode(node)) => {
            part.later = Some(format!("node {} is drained and deleted", node.name));
            return part;
        }
        (Some(api), ApiWork::DeleteNode(node)) => api.has_node(&node.name).await.map(|has| {
            let change = Change {
                kind: Kind::Gone,
                what: format!("node {}", node.name),
                why: "drained and deleted".into(),
            };
            has.then_some(change).into_iter().collect()
        }),
        (None, ApiWork::Apply(manifests)) => {
            let count: usize = manifests.iter().map(|one| one.objects.len()).sum();
            part.later = Some(format!(
                "{count} objects are applied after the masters are up"
            ));
            return part;
        }
        (Some(api), ApiWork::Apply(manifests)) => ask_api(api, manifests).await,
    };
    match asked {
        Ok(changes) => part.changes = changes,
        Err(error) => part.later = Some(format!("the API cannot tell: {error}")),
    }
    part
}

async fn ask_api(api: &Api, manifests: &[Manifest]) -> Result<Vec<Change>, api::Error> {
    let mut changes = Vec::new();
    for manifest in manifests {
        let would = api.would_apply(&manifest.objects, true).await?;
        changes.extend(would.iter().filter_map(|one| {
            let name = match &one.namespace {
                Some(namespace) => format!("{} {namespace}/{}", one.kind, one.name),
                None => format!("{} {}", one.kind, one.name),
            };
            applied(name, &one.effect)
        }));
    }
    Ok(changes)
}

async fn ask_nodes(api: Option<&Api>, nodes: &[&Node]) -> Part {
    let mut part = Part {
        title: "nodes ready".to_owned(),
        ..Part::default()
    };
    let Some(api) = api else {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        part.later = Some(format!(
            "labelled after the masters are up: {}",
            names.join(", ")
        ));
        return part;
    };
    for node in nodes {
        let would = api.would_label_and_taint(&node.name, &node.labels, &node.taints);
        match would.await {
            Ok(effect) => part
                .changes
                .extend(applied(format!("node {}", node.name), &effect)),
            Err(error) => {
                part.later = Some(format!("the API cannot tell: {error}"));
                break;
            }
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_tasks_would_make_is_told_once() {
        let part = |machine: &str, kind| Part {
            machine: Some(machine.into()),
            changes: vec![Change {
                kind,
                what: "directory /etc/kubernetes".into(),
                why: String::new(),
            }],
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
