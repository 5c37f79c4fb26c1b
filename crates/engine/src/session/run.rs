//! A plan is run, and what is remembered follows it: what is about to be touched is written down before, what was reached
//! after.

use std::pin::pin;

use futures::{FutureExt as _, future::BoxFuture};
use hatchery_spec::{Cluster, value::Name};
use snafu::Snafu;
use tokio::sync::watch;

use super::{Locked, Planned};
use crate::{
    api_access::Machines,
    authorities::Authorities,
    event::Event,
    kubeconfig,
    observed::Observed,
    outcome::Outcome,
    plan::Plan,
    run::{Context, Run},
    state::{self, Claim, DeployFile, Key, deploy_file},
};

/// How a run is watched and stopped.
#[derive(Clone)]
pub struct Control<'a> {
    /// Receives the events of the run.
    pub emit: &'a (dyn Fn(Event) + Send + Sync),
    /// Becomes true when the user wants to stop: no task begins then, and what is under way on machines is finished.
    pub stop: watch::Receiver<bool>,
}

/// Why a run did not come to an outcome.
#[derive(Debug, Snafu)]
pub enum RunError {
    /// What is remembered cannot be read or written.
    #[snafu(transparent)]
    State {
        /// The store's error.
        source: state::Error,
    },
    /// The administrator's kubeconfig cannot be made.
    #[snafu(transparent)]
    Kubeconfig {
        /// The underlying error.
        source: kubeconfig::Error,
    },
}

/// Waits for the end of work on machines, and does something else once the API answers. Where that fails, the work is not
/// given up: it would be cut off in the middle of changes.
async fn execute<T, E>(
    work: impl Future<Output = T>,
    mut up: watch::Receiver<bool>,
    once_up: impl Future<Output = Result<(), E>>,
) -> (T, Result<(), E>) {
    let mut work = pin!(work);
    let is_up = tokio::select! {
        biased;
        answers = async { up.wait_for(|up| *up).await.is_ok() } => answers,
        done = &mut work => return (done, Ok(())),
    };
    let done_once_up = match is_up {
        true => once_up.await,
        false => Ok(()),
    };
    (work.await, done_once_up)
}

impl Locked {
    /// Whether the cluster's API has answered in an earlier run, or may have: etcd or an API server runs.
    ///
    /// # Errors
    /// When what is remembered cannot be read.
    pub async fn was_up(&self, planned: &Planned) -> Result<bool, state::Error> {
        let known = self.store().read(Key::ADMIN_CONF).await?.is_some();
        Ok(self.record.formed || known || planned.observed.has_control_plane())
    }

    /// Brings the cluster to what was planned, or as far as it goes; `file` is what it was planned from.
    ///
    /// # Errors
    /// When what happens cannot be remembered.
    pub fn run<'r>(
        &'r mut self,
        planned: &'r Planned,
        file: &'r DeployFile,
        authorities: &'r Authorities,
        control: Control<'r>,
    ) -> BoxFuture<'r, Result<Outcome, RunError>> {
        // Boxed, since the compiler cannot tell otherwise that it may move between threads.
        self.run_all(planned, file, authorities, control).boxed()
    }

    async fn run_all(
        &mut self,
        planned: &Planned,
        file: &DeployFile,
        authorities: &Authorities,
        control: Control<'_>,
    ) -> Result<Outcome, RunError> {
        let cluster = &planned.wanted.cluster;
        // The file comes first: it says how claimed machines are reached.
        file.remember(cluster, self.store(), self.record.claims())
            .await?;
        self.claim(planned).await?;
        for note in &planned.plan.notes {
            (control.emit)(Event::Note { text: note.clone() });
        }
        let settings = self.settings.clone();
        let run = Run::new(
            Context {
                cluster,
                machines: &planned.machines,
                observed: &planned.observed,
                authorities: Some(authorities),
                settings: &settings,
                emit: control.emit,
            },
            control.stop,
        );
        let remembering = async {
            // From now on etcd holds what belongs to somebody, whatever becomes of the rest.
            self.remember_that_it_is_up().await?;
            self.write_admin_conf(cluster, authorities).await
        };
        let (executed, is_remembered) =
            execute(run.execute(&planned.plan), run.up(), remembering).await;
        let outcome = Outcome::of_run(cluster, &planned.observed, executed);
        // Machines that are clean are noted even where an earlier write failed.
        let remembered = self.remember(cluster, &outcome).await;
        is_remembered?;
        remembered?;
        Ok(outcome)
    }

    /// Writes down what is about to be touched, and with what. A machine that did not answer is not touched.
    async fn claim(&mut self, planned: &Planned) -> Result<(), state::Error> {
        let Planned {
            wanted, observed, ..
        } = planned;
        let machines = wanted.cluster.machines().iter();
        let present = machines.filter(|node| !observed.is_silent(&node.name));
        self.record.claim(present);
        self.record.begin(&wanted.versions);
        if self.session.record.as_ref() != Some(&self.record) {
            self.save().await?;
        }
        Ok(())
    }

    async fn remember_that_it_is_up(&mut self) -> Result<(), state::Error> {
        if !self.record.formed {
            self.record.formed = true;
            self.save().await?;
        }
        Ok(())
    }

    /// Notes what was reached, and machines that are the cluster's no more.
    async fn remember(&mut self, cluster: &Cluster, outcome: &Outcome) -> Result<(), state::Error> {
        let before = self.record.clone();
        self.record.formed |= outcome.api;
        if outcome.has_control_plane(cluster) {
            self.record.reach();
        }
        if !outcome.gone.is_empty() {
            self.release(cluster, &outcome.gone);
        }
        if self.record != before {
            self.save().await?;
        }
        deploy_file::forget_earlier(cluster, self.store(), self.record.claims()).await
    }

    /// Gives up the claims on machines that are clean.
    pub(super) fn release(&mut self, cluster: &Cluster, gone: &[Name]) {
        let machines = cluster.all_machines();
        let gone: Vec<_> = machines.filter(|node| gone.contains(&node.name)).collect();
        let is_gone = |claim: &Claim| gone.iter().any(|node| claim.address == node.address);
        self.record.release(|claim| !is_gone(claim));
    }

    /// Writes the record as it is now.
    pub(super) async fn save(&mut self) -> Result<(), state::Error> {
        self.record.save(self.store(), &self.lock).await?;
        self.session.record = Some(self.record.clone());
        Ok(())
    }

    /// Executes a plan that puts machines back. Nobody signs where the API is not asked.
    pub(super) fn undo<'r>(
        &'r self,
        cluster: &'r Cluster,
        plan: &'r Plan,
        machines: &'r Machines,
        authorities: Option<&'r Authorities>,
        control: Control<'r>,
    ) -> BoxFuture<'r, Outcome> {
        self.undo_all(cluster, plan, machines, authorities, control)
            .boxed()
    }

    async fn undo_all(
        &self,
        cluster: &Cluster,
        plan: &Plan,
        machines: &Machines,
        authorities: Option<&Authorities>,
        control: Control<'_>,
    ) -> Outcome {
        let observed = Observed::default();
        let context = Context {
            cluster,
            machines,
            observed: &observed,
            authorities,
            settings: &self.settings,
            emit: control.emit,
        };
        Outcome::of_removal(Run::new(context, control.stop).execute(plan).await)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use super::*;

    #[tokio::test]
    async fn work_ends_though_it_cannot_be_remembered() {
        let (up, is_up) = watch::channel(false);
        let (go_on, going_on) = tokio::sync::oneshot::channel();
        let work = async {
            up.send_replace(true);
            going_on.await.unwrap();
            "done"
        };
        let failing = async {
            go_on.send(()).unwrap();
            Err("the disk is full")
        };
        let executed = execute(work, is_up, failing).await;
        assert_eq!(executed, ("done", Err("the disk is full")));
    }

    #[tokio::test]
    async fn nothing_is_remembered_of_an_api_that_never_answers() {
        let (up, is_up) = watch::channel(false);
        let begun = Cell::new(false);
        let once_up = async {
            begun.set(true);
            pending::<Result<(), ()>>().await
        };
        assert_eq!(
            execute(async { "done" }, is_up, once_up).await,
            ("done", Ok(()))
        );
        // Nor when nobody is left who could say so.
        drop(up);
        assert!(!begun.get());
    }
}
