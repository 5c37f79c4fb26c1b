//! Carries out a plan: whatever needs nothing unfinished runs, so many things at a time.
//!
//! A task that fails takes with it those that need it, and nothing else.

mod api_access;
mod events;
mod gate;
mod leave;
mod machine_work;
mod nodes;
mod queue;

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered};
use hatchery_host::machine::{Machine, Managed};
use hatchery_spec::{Cluster, value::Name};
use tokio::sync::{OnceCell, watch};

use self::queue::{End, Next, Queue, Stage};
use crate::{
    api::{Api, Drain, Effect},
    authorities::Authorities,
    event::Event,
    plan::{ApiWork, Plan, Subject, Work},
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
    pub emit: &'a (dyn Fn(Event) + Send + Sync),
    api: OnceCell<Api>,
    /// Machines that are left out, since they did not answer.
    missing: &'a [usize],
    /// Becomes true when the user wants to stop.
    stop: Option<watch::Receiver<bool>>,
    /// Becomes true when the cluster's API has answered.
    up: watch::Sender<bool>,
    timeouts: Timeouts,
    drain: Drain,
    named: Option<&'a [Name]>,
    /// How many kubelets were asked what is wrong.
    kubelets_asked: AtomicUsize,
}

/// How long is waited for what happens by itself.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a node, or the pods of an addon, once all that it needs is done.
    pub ready: Duration,
    /// For a service that was restarted, before the next one is.
    pub restart: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(300),
            restart: Duration::from_secs(120),
        }
    }
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
    /// Whether the cluster's API answered.
    pub api: bool,
    /// Machines that were put back as they were found.
    pub gone: Vec<usize>,
}

/// A task that was not done.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whom it is about.
    pub subject: Subject,
    /// In a user's words.
    pub title: String,
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

/// How far a task came.
enum Progress {
    Done(Done),
    /// Something has to be changed, for which it waits its turn.
    Waits,
}

/// Why one task was not done.
#[derive(Debug)]
enum TaskError {
    Failed {
        reason: String,
        remedy: Option<String>,
    },
    /// It would have done harm at this moment. Nothing was touched.
    Refused {
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
        emit: &'a (dyn Fn(Event) + Send + Sync),
    ) -> Self {
        Self {
            cluster,
            machines,
            managed,
            authorities,
            parallel,
            emit,
            api: OnceCell::new(),
            missing: &[],
            stop: None,
            up: watch::Sender::new(false),
            timeouts: Timeouts::default(),
            drain: Drain {
                deadline: Duration::from_secs(300),
                force: false,
                skip: false,
                is_silent: false,
            },
            named: None,
            kubelets_asked: AtomicUsize::new(0),
        }
    }

    /// Other times than usual.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// How nodes that leave are drained; where some are named, pods of the others are neither deleted nor left.
    #[must_use]
    pub fn draining(mut self, drain: Drain, named: Option<&'a [Name]>) -> Self {
        (self.drain, self.named) = (drain, named);
        self
    }

    /// Becomes true as soon as the cluster's API has answered.
    pub fn up(&self) -> watch::Receiver<bool> {
        self.up.subscribe()
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
    pub async fn execute(&self, plan: &Plan) -> Outcome {
        let mut queue = Queue::new(plan, self.parallel);
        self.begin(plan);
        let mut outcome = Outcome::default();
        let mut running: FuturesUnordered<
            LocalBoxFuture<'_, (usize, Result<Progress, TaskError>)>,
        > = FuturesUnordered::new();
        loop {
            if self.is_stopped() {
                let left = queue.close();
                outcome.left += left.untouched;
                for number in left.begun {
                    self.give_up(plan, number, &mut outcome);
                }
            }
            while let Some(next) = queue.next() {
                match next {
                    Next::Skip { task, because } => {
                        let because = &plan.tasks[because].title;
                        self.skip(plan, task, because, &mut outcome);
                    }
                    Next::Begin { task, stage } => {
                        let work = async move { (task, self.task(plan, task, stage).await) };
                        running.push(work.boxed_local());
                    }
                }
            }
            let Some((number, done)) = running.next().await else {
                break;
            };
            match done {
                Ok(Progress::Waits) if self.is_stopped() => {
                    self.give_up(plan, number, &mut outcome);
                    queue.end(number, End::Bad);
                }
                Ok(Progress::Waits) => queue.put_back(number),
                Ok(Progress::Done(done)) => {
                    outcome.changes += done.changes;
                    match &plan.tasks[number].work {
                        Work::Api(ApiWork::Ready) => outcome.api = true,
                        Work::Leave { machine } => outcome.gone.push(*machine),
                        _ => {}
                    }
                    queue.end(number, End::Good);
                }
                Err(TaskError::Failed { reason, remedy }) => {
                    self.fail(plan, number, reason, remedy, &mut outcome);
                    queue.end(number, End::BadForLane);
                }
                Err(TaskError::Refused { reason, remedy }) => {
                    self.fail(plan, number, reason, remedy, &mut outcome);
                    queue.end(number, End::Bad);
                }
                Err(TaskError::Stopped) => {
                    self.give_up(plan, number, &mut outcome);
                    queue.end(number, End::Bad);
                }
            }
        }
        outcome
    }

    async fn task(&self, plan: &Plan, number: usize, stage: Stage) -> Result<Progress, TaskError> {
        if self.is_stopped() {
            return Err(TaskError::Stopped);
        }
        let task = &plan.tasks[number];
        let machine = self.name(plan, number);
        let begin = Instant::now();
        let step = |step: &str| {
            (self.emit)(Event::Step {
                task: number,
                machine: machine.clone(),
                step: step.to_owned(),
            });
        };
        let goes_on = stage == Stage::Work && task.concurrency.is_one_by_one();
        if !goes_on {
            (self.emit)(Event::Started {
                task: number,
                title: task.title.clone(),
                machine: machine.clone(),
            });
        }
        let done = match &task.work {
            Work::Machine { .. } if stage == Stage::Look => {
                if self.would_change(&task.work).await? {
                    step("waiting for its turn");
                    return Ok(Progress::Waits);
                }
                Done {
                    changes: 0,
                    bytes: 0,
                }
            }
            Work::Machine { .. } => self.work(task, &step).await?,
            Work::Release { machine, released } => self.release(*machine, released).await?,
            Work::Leave { machine } => self.leave(*machine).await?,
            Work::Api(work) => {
                let asked = tokio::select! {
                    asked = self.ask(work, &step) => asked,
                    // Every request is whole in itself, so it may end between any two.
                    () = self.stopped() => return Err(TaskError::Stopped),
                };
                Done {
                    changes: asked?,
                    bytes: 0,
                }
            }
        };
        (self.emit)(Event::Finished {
            task: number,
            title: task.title.clone(),
            machine,
            changes: done.changes,
            bytes: done.bytes,
            seconds: begin.elapsed().as_secs_f64(),
        });
        Ok(Progress::Done(done))
    }

    async fn ask(
        &self,
        work: &ApiWork,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<usize, TaskError> {
        let api = self.api(step).await.map_err(TaskError::from)?;
        let mut changes = 0;
        match work {
            ApiWork::Ready => {
                self.up.send_replace(true);
            }
            ApiWork::Apply(manifests) => {
                for manifest in manifests {
                    let applied = api.apply(&manifest.objects, true).await;
                    let applied = applied.map_err(TaskError::from)?;
                    let changed = applied.iter().filter(|one| one.effect != Effect::Unchanged);
                    changes += changed.count();
                }
            }
            ApiWork::Node(node) => changes += self.node(api, node, step).await?,
            ApiWork::ListAddons(objects) => api.list_addon_objects(objects).await?,
            ApiWork::PruneAddons(wanted) => changes += api.prune_addons(wanted).await?.len(),
            ApiWork::Drain(node) => {
                let mut names = self.named.into_iter().flatten();
                let is_meant = self.named.is_none() || names.any(|name| name.as_str() == node.name);
                let drain = Drain {
                    deadline: self.drain.deadline,
                    force: self.drain.force && is_meant,
                    skip: self.drain.skip && is_meant,
                    is_silent: self.missing.contains(&node.machine),
                };
                let drained = api.drain(&node.name, drain, step).await;
                changes += drained.map_err(|error| leave::not_drained(&error))?;
            }
            ApiWork::DeleteNode(node) => {
                changes += usize::from(api.delete_node(&node.name).await?);
            }
            ApiWork::RolledOut { workloads, .. } => self.rolled_out(api, workloads, step).await?,
        }
        Ok(changes)
    }
}

impl TaskError {
    fn plain(error: impl std::fmt::Display) -> Self {
        Self::Failed {
            reason: error.to_string(),
            remedy: None,
        }
    }
}

#[cfg(test)]
mod tests;
