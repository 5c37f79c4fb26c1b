//! What is done on machines.

use std::{collections::BTreeSet, time::Duration};

use hatchery_host::{
    machine::{Event as HostEvent, Machine, Managed},
    task::Task as HostTask,
};
use hatchery_spec::value::Name;
use time::OffsetDateTime;

use super::{Cause, Done, Run, TaskError, gate::Before};
use crate::{
    material::Material,
    plan::{Concurrency, Task, Work},
};

/// The time that a machine has to say what would change.
const LOOK: Duration = Duration::from_secs(120);

impl Run<'_> {
    /// Whether anything on the machine differs from the wanted state.
    pub(super) async fn would_change(&self, work: &Work) -> Result<bool, TaskError> {
        let Some((name, machine, task)) = self.question(work)? else {
            return Ok(false);
        };
        // It is not in doubt that nothing was touched.
        let look = machine
            .look(&task)
            .await
            .map_err(|error| TaskError::Alone(Cause::new(error.to_string(), error.remedy())))?;
        Ok(!look.is_unchanged() || !self.owns_its_records(name, &task))
    }

    /// Those of these tasks for which their machine has nothing to change. Where that cannot be told each tells by itself.
    pub(super) async fn unchanged<'w>(
        &self,
        tasks: impl Iterator<Item = (usize, &'w Work)>,
    ) -> BTreeSet<usize> {
        let (mut numbers, mut questions) = (Vec::new(), Vec::new());
        let mut asked = None;
        for (number, work) in tasks {
            if let Ok(Some((name, machine, question))) = self.question(work)
                && self.owns_its_records(name, &question)
            {
                asked = Some(machine);
                numbers.push(number);
                questions.push(question);
            }
        }
        let Some(machine) = asked else {
            return BTreeSet::new();
        };
        let looks = machine.look_at_all(&questions).await.unwrap_or_default();
        let answered = numbers.into_iter().zip(&looks);
        let unchanged = answered.filter(|(_, look)| look.is_unchanged());
        unchanged.map(|(number, _)| number).collect()
    }

    /// Whether everything of a task that is on record has its owner there. Applying adds the owner; without it a resource that
    /// came from another owner would go when that one gives it up.
    fn owns_its_records(&self, machine: &Name, task: &HostTask) -> bool {
        let managed = self.context.observed.managed(machine);
        let mut known = managed.into_iter().flat_map(|managed| &managed.resources);
        let keys = task.record_keys();
        known.all(|one| {
            !keys.contains(&one.key) || one.owners.iter().any(|name| name == task.owner().as_str())
        })
    }

    fn question<'w>(
        &self,
        work: &'w Work,
    ) -> Result<Option<(&'w Name, &Machine, HostTask)>, TaskError> {
        let mut asked = self.host_task(work, false)?;
        if let Some((_, _, task)) = &mut asked {
            task.deadline = LOOK;
        }
        Ok(asked)
    }

    /// Makes the machine so, behind the health of the others where it is restarted alone.
    pub(super) async fn work(
        &self,
        task: &Task,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Done, TaskError> {
        let Some((name, machine, work)) = self.host_task(&task.work, true)? else {
            return Ok(Done::default());
        };
        let before = match task.concurrency {
            Concurrency::OneByOne(lane) => Some(self.before_restart(lane, name).await?),
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
                step(&format!("ended run {run}, whose control process was gone"));
            }
            HostEvent::Lost { reason } => step(&format!("connecting again: {reason}")),
        };
        let report = machine.apply(&work, &watch).await;
        let report = report.map_err(|error| {
            let cause = Cause::new(error.to_string(), error.remedy());
            match before.as_ref().is_none_or(Before::is_well) {
                true => TaskError::Failed(cause),
                false => TaskError::Alone(cause),
            }
        })?;
        if let Some(before) = &before {
            self.after_restart(name, before, step).await?;
        }
        Ok(Done {
            changes: report.changes(),
            bytes: report.bytes_sent,
        })
    }

    /// The machine, by name and itself, and what it is told. Certificates are issued only for what is sent.
    fn host_task<'w>(
        &self,
        work: &'w Work,
        issue: bool,
    ) -> Result<Option<(&'w Name, &Machine, HostTask)>, TaskError> {
        let Work::Machine {
            machine,
            owner,
            resources,
        } = work
        else {
            return Ok(None);
        };
        let nothing = Managed::default();
        let material = Material {
            authorities: self.access()?.authorities,
            cluster: self.context.cluster.id.as_str(),
            managed: self.context.observed.managed(machine).unwrap_or(&nothing),
            now: OffsetDateTime::now_utc(),
        };
        let made = material.make(resources, issue).map_err(TaskError::failed)?;
        let task = HostTask::new(owner.word(), made.operations).map_err(TaskError::failed)?;
        Ok(Some((machine, self.machine(machine)?, task)))
    }
}
