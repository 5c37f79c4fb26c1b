//! Carries out a plan: whatever needs nothing unfinished runs, so many things at a time.
//!
//! A task that fails takes with it those that need it, and nothing else.

mod api_access;
mod telling;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered};
use hatchery_host::{
    machine::{Event as Told, Machine, Managed},
    task::Task as HostTask,
};
use hatchery_spec::Cluster;
use time::OffsetDateTime;
use tokio::sync::{Mutex, OnceCell, Semaphore, watch};

use crate::{
    api::{self, Api, Effect},
    authorities::Authorities,
    event::Event,
    material::Material,
    plan::{ApiWork, Plan, Work},
};

/// All that is needed to carry out a plan.
pub struct Run<'a> {
    /// What for.
    pub cluster: &'a Cluster,
    /// The cluster's machines, in its order.
    pub machines: &'a [Arc<Machine>],
    /// What each machine had of ours when it was asked.
    pub managed: &'a [Managed],
    /// Who signs.
    pub authorities: &'a Authorities,
    /// So many machines at the same time.
    pub parallel: usize,
    /// Who is told.
    pub tell: &'a (dyn Fn(Event) + Send + Sync),
    api: OnceCell<Api>,
    /// Machines that are left out, since they did not answer.
    missing: &'a [usize],
    /// One task at a time on each machine: a second one would only wait there.
    turns: Vec<Mutex<()>>,
    /// Becomes true when the user wants to stop.
    stop: Option<watch::Receiver<bool>>,
}

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Tasks that failed or were not begun.
    pub failed: Vec<Failure>,
    /// How many things changed.
    pub changes: usize,
    /// How many tasks were not begun, or given up, because the user wanted to stop.
    pub left: usize,
}

/// A task that was not done.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In a user's words.
    pub title: String,
    /// On which machine.
    pub machine: Option<usize>,
    /// Why.
    pub reason: String,
    /// What to do.
    pub remedy: Option<String>,
    /// Whether it was begun at all.
    pub begun: bool,
}

/// What one task did.
struct Done {
    changes: usize,
    bytes: u64,
}

/// Why one task was not done.
enum Trouble {
    Failed {
        reason: String,
        remedy: Option<String>,
    },
    /// The user wants to stop.
    Stopped,
}

impl<'a> Run<'a> {
    /// Nothing is begun yet.
    pub fn new(
        cluster: &'a Cluster,
        machines: &'a [Arc<Machine>],
        managed: &'a [Managed],
        authorities: &'a Authorities,
        parallel: usize,
        tell: &'a (dyn Fn(Event) + Send + Sync),
    ) -> Self {
        Self {
            cluster,
            machines,
            managed,
            authorities,
            parallel,
            tell,
            api: OnceCell::new(),
            missing: &[],
            turns: machines.iter().map(|_| Mutex::new(())).collect(),
            stop: None,
        }
    }

    /// No task begins once this is true. What is under way on machines is finished; waiting for the API is given up.
    #[must_use]
    pub fn stopped_by(mut self, stop: watch::Receiver<bool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// These machines are asked last, and nobody waits for pods on them.
    #[must_use]
    pub fn without(mut self, missing: &'a [usize]) -> Self {
        self.missing = missing;
        self
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| *stop.borrow())
    }

    /// Returns when the user wants to stop.
    async fn stopped(&self) {
        if let Some(stop) = &self.stop
            && stop.clone().wait_for(|stop| *stop).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Carries it out to the end, or as far as it goes.
    pub async fn carry_out(&self, plan: &Plan) -> Outcome {
        let room = Semaphore::new(self.parallel.max(1));
        self.begin(plan);
        let mut outcome = Outcome::default();
        let mut waiting: BTreeSet<usize> = (0..plan.tasks.len()).collect();
        let (mut good, mut bad) = (BTreeSet::new(), BTreeSet::new());
        let mut running: FuturesUnordered<LocalBoxFuture<'_, (usize, Result<Done, Trouble>)>> =
            FuturesUnordered::new();
        loop {
            if self.is_stopped() {
                outcome.left += std::mem::take(&mut waiting).len();
            }
            for number in waiting.clone() {
                let task = &plan.tasks[number];
                if let Some(cause) = task.needs.iter().find(|need| bad.contains(&need.0)) {
                    waiting.remove(&number);
                    bad.insert(number);
                    let because = &plan.tasks[cause.0].title;
                    self.skip(plan, number, because, &mut outcome);
                    continue;
                }
                let done = |id: &usize| good.contains(id) || bad.contains(id);
                if task.needs.iter().all(|need| good.contains(&need.0))
                    && task.after.iter().all(|one| done(&one.0))
                {
                    waiting.remove(&number);
                    let (room, good) = (&room, good.clone());
                    let task = async move { (number, self.task(plan, number, room, &good).await) };
                    running.push(task.boxed_local());
                }
            }
            let Some((number, done)) = running.next().await else {
                break;
            };
            match done {
                Ok(done) => {
                    good.insert(number);
                    outcome.changes += done.changes;
                }
                Err(Trouble::Failed { reason, remedy }) => {
                    bad.insert(number);
                    self.fail(plan, number, reason, remedy, &mut outcome);
                }
                Err(Trouble::Stopped) => {
                    bad.insert(number);
                    outcome.left += 1;
                    (self.tell)(Event::Stopped {
                        task: number,
                        title: plan.tasks[number].title.clone(),
                        machine: self.name(plan, number),
                    });
                }
            }
        }
        outcome
    }

    async fn task(
        &self,
        plan: &Plan,
        number: usize,
        room: &Semaphore,
        good: &BTreeSet<usize>,
    ) -> Result<Done, Trouble> {
        let task = &plan.tasks[number];
        let machine = self.name(plan, number);
        let begin = Instant::now();
        let started = || {
            (self.tell)(Event::Started {
                task: number,
                title: task.title.clone(),
                machine: machine.clone(),
            });
        };
        let step = |step: &str| {
            (self.tell)(Event::Step {
                task: number,
                machine: machine.clone(),
                step: step.to_owned(),
            });
        };
        let done = match &task.work {
            Work::Machine {
                machine,
                owner,
                wishes,
            } => {
                let _turn = self.turns[*machine].lock().await;
                // Nobody closes it.
                let _permit = room.acquire().await;
                if self.is_stopped() {
                    return Err(Trouble::Stopped);
                }
                started();
                let material = Material {
                    authorities: self.authorities,
                    cluster: self.cluster.id.as_str(),
                    managed: &self.managed[*machine],
                    now: OffsetDateTime::now_utc(),
                };
                let made = material.make(wishes, true).map_err(Trouble::plain)?;
                let work = HostTask::new(owner.clone(), made.operations).map_err(Trouble::plain)?;
                let watch = |told: Told<'_>| match told {
                    Told::Step { title } => step(title),
                    Told::Said { title, text } => {
                        for line in text.lines() {
                            step(&format!("{title}: {line}"));
                        }
                    }
                    Told::Waiting { run } => step(&format!("waiting for run {run}")),
                    Told::Fenced { run } => {
                        step(&format!("ended run {run}, to which nobody listened"));
                    }
                    Told::Lost { reason } => step(&format!("connecting again: {reason}")),
                };
                let report = self.machines[*machine].apply(&work, &watch).await;
                let report = report.map_err(|error| Trouble::Failed {
                    remedy: error.remedy(),
                    reason: error.to_string(),
                })?;
                Done {
                    changes: report.changes(),
                    bytes: report.bytes_sent,
                }
            }
            Work::Api(work) => {
                started();
                let asked = tokio::select! {
                    asked = self.ask(work, good, &step) => asked,
                    // Every request is whole in itself, so it may end between any two.
                    () = self.stopped() => return Err(Trouble::Stopped),
                };
                match asked {
                    Ok(changes) => Done { changes, bytes: 0 },
                    Err(error) => {
                        let said = self.kubelets(work, &error).await;
                        return Err(Trouble::Failed {
                            remedy: error.remedy(),
                            reason: format!("{error}{said}"),
                        });
                    }
                }
            }
        };
        (self.tell)(Event::Finished {
            task: number,
            title: task.title.clone(),
            machine,
            changes: done.changes,
            bytes: done.bytes,
            seconds: begin.elapsed().as_secs_f64(),
        });
        Ok(done)
    }

    async fn ask(
        &self,
        work: &ApiWork,
        good: &BTreeSet<usize>,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<usize, api::Error> {
        let api = self.api(step).await?;
        let changed = |effect: &Effect| usize::from(*effect != Effect::Unchanged);
        let mut changes = 0;
        match work {
            ApiWork::Apply(manifests) => {
                for manifest in manifests {
                    let applied = api.apply(&manifest.objects, true).await?;
                    changes += applied
                        .iter()
                        .map(|one| changed(&one.effect))
                        .sum::<usize>();
                }
            }
            ApiWork::Nodes(nodes) => {
                let nodes: Vec<_> = nodes
                    .iter()
                    .filter(|node| good.contains(&node.task.0))
                    .collect();
                let names: Vec<_> = nodes.iter().map(|node| node.name.clone()).collect();
                api.nodes_ready(&names, NODE, step).await?;
                for node in nodes {
                    changes += changed(
                        &api.label_and_taint(&node.name, &node.labels, &node.taints)
                            .await?,
                    );
                }
            }
            ApiWork::RolledOut(workloads) => {
                let absent = self.absent_nodes(api).await?;
                for one in workloads {
                    let (namespace, name) = (&one.namespace, &one.name);
                    api.rolled_out(one.kind, namespace, name, absent, ROLLOUT, step)
                        .await?;
                }
            }
        }
        Ok(changes)
    }
}

/// A node has so long to come up.
const NODE: Duration = Duration::from_secs(300);
/// Pods have so long.
const ROLLOUT: Duration = Duration::from_secs(300);

impl Trouble {
    fn plain(error: impl std::fmt::Display) -> Self {
        Self::Failed {
            reason: error.to_string(),
            remedy: None,
        }
    }
}

#[cfg(test)]
mod tests;
