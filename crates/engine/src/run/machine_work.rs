//! What is done on machines.

use std::time::Duration;

use hatchery_host::{
    machine::{Event as Told, Outlook},
    task::Task as HostTask,
};
use time::OffsetDateTime;

use super::{Done, Run, Trouble};
use crate::{
    material::Material,
    plan::{Concurrency, Task, Work},
};

/// A machine has so long to tell what would change.
const LOOK: Duration = Duration::from_secs(120);

impl Run<'_> {
    /// Whether anything on the machine is not as it is to be.
    pub(super) async fn would_change(&self, work: &Work) -> Result<bool, Trouble> {
        let Some((place, mut task)) = self.host_task(work, false)? else {
            return Ok(false);
        };
        task.deadline = LOOK;
        let outlooks = self.machines[place].look(&task).await;
        // It is not in doubt that nothing was touched.
        let outlooks = outlooks.map_err(|error| Trouble::Refused {
            remedy: error.remedy(),
            reason: error.to_string(),
        })?;
        Ok(outlooks.iter().any(|one| *one != Outlook::Unchanged))
    }

    /// Makes the machine so, behind the health of the others where it is restarted alone.
    pub(super) async fn work(
        &self,
        task: &Task,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Done, Trouble> {
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
        let watch = |told: Told<'_>| match told {
            Told::Step { title } => step(title),
            Told::Said { title, text } => {
                for line in text.lines() {
                    step(&format!("{title}: {line}"));
                }
            }
            Told::Waiting { run } => step(&format!("waiting for run {run}")),
            Told::Fenced { run } => step(&format!("ended run {run}, to which nobody listened")),
            Told::Lost { reason } => step(&format!("connecting again: {reason}")),
        };
        let report = self.machines[place].apply(&work, &watch).await;
        let report = report.map_err(|error| Trouble::Failed {
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
    fn host_task(&self, work: &Work, issue: bool) -> Result<Option<(usize, HostTask)>, Trouble> {
        let Work::Machine {
            machine,
            owner,
            wishes,
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
        let made = material.make(wishes, issue).map_err(Trouble::plain)?;
        let task = HostTask::new(owner.clone(), made.operations).map_err(Trouble::plain)?;
        Ok(Some((*machine, task)))
    }
}
