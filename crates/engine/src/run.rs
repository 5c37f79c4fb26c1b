//! Executes a plan: whatever needs nothing unfinished runs, so many things at a time.
//!
//! A task that fails takes with it those that need it, and nothing else.

mod api_work;
mod events;
mod gate;
mod looks;
mod machine_work;
mod nodes;
mod queue;
mod settings;
#[cfg(test)]
mod tests;
mod undo;

use std::{sync::atomic::AtomicUsize, time::Instant};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use hatchery_host::machine::Machine;
use hatchery_spec::{Cluster, value::Name};
use tokio::sync::{OnceCell, watch};

pub use self::settings::{MaxUnavailable, Settings};
use self::{
    looks::Looks,
    queue::{End, Limits, Next, Queue, Stage},
};
use crate::{
    api::{self, Api},
    api_access::{ApiAccess, Machines},
    authorities::Authorities,
    event::Event,
    observed::Observed,
    plan::{ApiWork, Plan, Subject, Work},
};

/// All that is needed to execute a plan.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The cluster that the plan is for.
    pub(crate) cluster: &'a Cluster,
    /// All machines that the plan names.
    pub(crate) machines: &'a Machines,
    /// What they were like before.
    pub(crate) observed: &'a Observed,
    /// Who signs. A cluster that goes needs nobody.
    pub(crate) authorities: Option<&'a Authorities>,
    /// How it is done.
    pub(crate) settings: &'a Settings,
    /// Receives the events of the run.
    pub(crate) emit: &'a (dyn Fn(Event) + Send + Sync),
}

/// The execution of one plan.
pub(crate) struct Run<'a> {
    context: Context<'a>,
    api: OnceCell<Api>,
    /// Becomes true when the user wants to stop.
    stop: watch::Receiver<bool>,
    /// Becomes true when the cluster's API has answered.
    up: watch::Sender<bool>,
    /// How many kubelets were asked what is wrong.
    kubelets_asked: AtomicUsize,
    looks: Looks,
}

/// The result of executing a plan.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// Tasks that failed or were not begun.
    pub(crate) failures: Vec<Failure>,
    /// How many things changed.
    pub(crate) changes: usize,
    /// How many tasks were not begun, or given up, because the user wanted to stop.
    pub(crate) left: usize,
    /// Whether the cluster's API answered.
    pub(crate) api: bool,
    /// Machines that were put back as they were found.
    pub(crate) gone: Vec<Name>,
}

/// A task that was not done.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) subject: Subject,
    pub(crate) cause: Cause,
    /// Whether it was begun at all.
    pub(crate) begun: bool,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// In sentences; the first line says most.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) remedy: Option<String>,
    /// Whether nothing at all is where the machine was.
    pub(crate) is_missing: bool,
}

impl Cause {
    fn new(reason: impl Into<String>, remedy: Option<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy,
            is_missing: false,
        }
    }
}

/// What one task did.
#[derive(Debug, Default)]
struct Done {
    changes: usize,
    bytes: u64,
}

impl Done {
    fn changes(changes: usize) -> Self {
        Self { changes, bytes: 0 }
    }
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
    /// What shares its lane may fail of the same.
    Failed(Cause),
    /// It says nothing of what shares its lane: nothing was touched, or it was not well before.
    Alone(Cause),
    /// The user wants to stop.
    Stopped,
}

impl<'a> Run<'a> {
    /// Nothing is begun yet. No task begins once `stop` is true; what is under way on machines is finished then, and waiting
    /// for the API is given up.
    pub(crate) fn new(context: Context<'a>, stop: watch::Receiver<bool>) -> Self {
        Self {
            context,
            api: OnceCell::new(),
            stop,
            up: watch::Sender::new(false),
            kubelets_asked: AtomicUsize::new(0),
            looks: Looks::default(),
        }
    }

    /// Becomes true as soon as the cluster's API has answered.
    pub(crate) fn up(&self) -> watch::Receiver<bool> {
        self.up.subscribe()
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Returns when the user wants to stop.
    async fn stopped(&self) {
        if self.stop.clone().wait_for(|stop| *stop).await.is_err() {
            // Nobody is left who could say so.
            std::future::pending::<()>().await;
        }
    }

    /// Executes it to the end, or as far as it goes.
    pub(crate) fn execute<'r>(&'r self, plan: &'r Plan) -> BoxFuture<'r, Executed> {
        self.execute_all(plan).boxed()
    }

    async fn execute_all(&self, plan: &Plan) -> Executed {
        let settings = self.context.settings;
        let limits = Limits {
            parallel: settings.parallel,
            workers: settings
                .max_unavailable
                .for_workers(self.context.cluster.workers().len()),
        };
        let mut queue = Queue::new(plan, limits);
        self.begin(plan);
        let mut executed = Executed::default();
        let mut running: FuturesUnordered<BoxFuture<'_, (usize, Result<Progress, TaskError>)>> =
            FuturesUnordered::new();
        loop {
            if self.is_stopped() {
                let left = queue.close();
                executed.left += left.untouched;
                for number in left.begun {
                    self.give_up(plan, number, &mut executed);
                }
            }
            while let Some(next) = queue.next() {
                match next {
                    Next::Skip { task, because } => {
                        let because = plan.tasks[because].to_string();
                        self.skip(plan, task, &because, &mut executed);
                    }
                    Next::Begin { task, stage } => {
                        let work = async move { (task, self.task(plan, task, stage).await) };
                        running.push(work.boxed());
                    }
                }
            }
            let Some((number, done)) = running.next().await else {
                break;
            };
            let changed = match &done {
                Ok(Progress::Waits) => None,
                Ok(Progress::Done(done)) => Some(done.changes > 0),
                Err(_) => Some(true),
            };
            if let Some(changed) = changed {
                self.looks.ended(plan, number, changed);
            }
            match done {
                Ok(Progress::Waits) if self.is_stopped() => {
                    self.give_up(plan, number, &mut executed);
                    queue.end(number, End::Bad);
                }
                Ok(Progress::Waits) => queue.put_back(number),
                Ok(Progress::Done(done)) => {
                    executed.changes += done.changes;
                    match &plan.tasks[number].work {
                        Work::Api(ApiWork::Ready) => executed.api = true,
                        Work::Undo { machine, .. } => executed.gone.push(machine.clone()),
                        _ => {}
                    }
                    queue.end(number, End::Good);
                }
                Err(TaskError::Failed(cause)) => {
                    self.fail(plan, number, cause, &mut executed);
                    queue.end(number, End::BadForLane);
                }
                Err(TaskError::Alone(cause)) => {
                    self.fail(plan, number, cause, &mut executed);
                    queue.end(number, End::Bad);
                }
                Err(TaskError::Stopped) => {
                    self.give_up(plan, number, &mut executed);
                    queue.end(number, End::Bad);
                }
            }
        }
        executed
    }

    async fn task(&self, plan: &Plan, number: usize, stage: Stage) -> Result<Progress, TaskError> {
        if self.is_stopped() {
            return Err(TaskError::Stopped);
        }
        let task = &plan.tasks[number];
        let machine = name(plan, number);
        let begin = Instant::now();
        let step = |step: &str| {
            self.emit(Event::Step {
                task: number,
                machine: machine.clone(),
                step: step.to_owned(),
            });
        };
        let goes_on = stage == Stage::Work && task.concurrency.is_one_by_one();
        if !goes_on {
            self.emit(Event::Started {
                task: number,
                title: task.title.clone(),
                machine: machine.clone(),
            });
        }
        let done = match &task.work {
            Work::Machine { .. } if !goes_on && self.is_unchanged(plan, number).await => {
                Done::default()
            }
            Work::Machine { .. } if stage == Stage::Look => {
                if self.would_change(&task.work).await? {
                    step("waiting for its turn");
                    return Ok(Progress::Waits);
                }
                Done::default()
            }
            Work::Machine { .. } => self.work(task, &step).await?,
            Work::Release { machine, released } => self.release(machine, released).await?,
            Work::BeforeUndo { machine } => self.before_undo(machine).await?,
            Work::Undo { machine, leaves } => self.undo(machine, *leaves).await?,
            Work::Api(work) => {
                let asked = tokio::select! {
                    asked = self.ask(work, &step) => asked,
                    // Every request is whole in itself, so it may end between any two.
                    () = self.stopped() => return Err(TaskError::Stopped),
                };
                Done::changes(asked?)
            }
        };
        self.emit(Event::Finished {
            task: number,
            title: task.title.clone(),
            machine,
            changes: done.changes,
            bytes: done.bytes,
            seconds: begin.elapsed().as_secs_f64(),
        });
        Ok(Progress::Done(done))
    }

    /// The cluster's API, reached once for all tasks.
    async fn api(&self, step: &(dyn Fn(&str) + Send + Sync)) -> Result<&Api, api::Error> {
        let connect = || async { self.access()?.connect(step).await };
        self.api.get_or_try_init(connect).await
    }

    fn access(&self) -> Result<ApiAccess<'a>, api::Error> {
        let Context {
            cluster,
            machines,
            observed,
            authorities,
            ..
        } = self.context;
        let authorities = authorities.ok_or(api::Error::Credentials {
            what: "the cluster's authority",
            reason: "there is none".to_owned(),
        })?;
        Ok(ApiAccess {
            cluster,
            machines,
            observed,
            authorities,
        })
    }

    fn machine(&self, name: &Name) -> Result<&'a Machine, TaskError> {
        let machine = self.context.machines.get(name);
        let unknown = || Cause::new(format!("no machine of the cluster is called {name}"), None);
        machine
            .map(AsRef::as_ref)
            .ok_or_else(|| TaskError::Alone(unknown()))
    }

    fn emit(&self, event: Event) {
        (self.context.emit)(event);
    }
}

/// The machine that a task is about, also by way of its node.
fn name(plan: &Plan, number: usize) -> Option<String> {
    let subject = plan.tasks[number].subject();
    subject.machine().map(ToString::to_string)
}

impl TaskError {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(Cause::new(error.to_string(), None))
    }
}

impl From<api::Error> for TaskError {
    fn from(error: api::Error) -> Self {
        let remedy = error.remedy();
        Self::Failed(Cause::new(error.to_string(), remedy))
    }
}
