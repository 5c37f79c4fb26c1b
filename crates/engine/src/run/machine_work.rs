//! What is done on machines.

use std::time::Duration;

use hatchery_host::{
    machine::{Difference, Event as HostEvent},
    task::Task as HostTask,
};
use time::OffsetDateTime;

use super::{Done, Run, TaskError};
use crate::{
    material::Material,
    plan::{Concurrency, Task, Work},
};

/// A machine has so long to tell what would change.
const LOOK: Duration = Duration::from_secs(120);

impl Run<'_> {
    /// Whether anything on the machine is not as it is to be.
    pub(super) async fn would_change(&self, work: &Work) -> Result<bool, TaskError> {
        let Some((place, mut task)) = self.host_task(work, false)? else {
            return Ok(false);
        };
        task.deadline = LOOK;
        let differences = self.machines[place].look(&task).await;
        // It is not in doubt that nothing was touched.
        let differences = differences.map_err(|error| TaskError::Refused {
            remedy: error.remedy(),
            reason: error.to_string(),
        })?;
        Ok(differences.iter().any(|one| *one != Difference::Unchanged))
    }

    /// Makes the machine so, behind the health of the others where it is restarted alone.
    pub(super) async fn work(
        &self,
        task: &Task,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Done, TaskError> {
        let Some((place, work)) = self.host_task(&task.work, true)? else {
            return Ok(Done {
                changes: 0,
                bytes: 0,
            });
        };
        let before = match task.concurrency {
            Concurrency::OneByOne(lane) => Some((lane, self.before_restart(lane, place).await?)),
            Concurrency::Free | Concurrency::Together => None,
        };
        let watch = |event: HostEvent<'_>| match event {
            HostEvent::Step { title } => step(title),
            HostEvent::Said { title, text } => {
                for line in text.lines() {
                    step(&format!("{title}: {line}"));
                }
            }
            HostEvent::Waiting { run } => step(&format!("waiting for run {run}")),
            HostEvent::Fenced { run } => {
                step(&format!("ended run {run}, to which nobody listened"));
            }
            HostEvent::Lost { reason } => step(&format!("connecting again: {reason}")),
        };
        let report = self.machines[place].apply(&work, &watch).await;
        let report = report.map_err(|error| TaskError::Failed {
            remedy: error.remedy(),
            reason: error.to_string(),
        })?;
        if let Some((lane, before)) = &before {
            self.after_restart(*lane, place, before, step).await?;
        }
        Ok(Done {
            changes: report.changes(),
            bytes: report.bytes_sent,
        })
    }

    /// The machine's place and what it is told. Certificates are issued only for what is sent.
    fn host_task(&self, work: &Work, issue: bool) -> Result<Option<(usize, HostTask)>, TaskError> {
        let Work::Machine {
            machine,
            owner,
            resources,
        } = work
        else {
            return Ok(None);
        };
        let material = Material {
            authorities: self.authorities,
            cluster: self.cluster.id.as_str(),
            managed: &self.managed[*machine],
            now: OffsetDateTime::now_utc(),
        };
        let made = material.make(resources, issue).map_err(TaskError::plain)?;
        let task = HostTask::new(owner.clone(), made.operations).map_err(TaskError::plain)?;
        Ok(Some((*machine, task)))
    }
}
