//! What machines give up, and machines that leave.

use std::time::Duration;

use hatchery_host::machine::{Error, Machine, Undone};

use super::{Done, Run, TaskError};
use crate::{api, cleanup, components::pods, plan::Released, traces::KubernetesTraces};

/// One round of putting things back takes at most so long.
const DEADLINE: Duration = Duration::from_secs(600);

const FACTS: Duration = Duration::from_secs(60);

impl Run<'_> {
    /// Pods first: while they run, nothing below them can go.
    pub(super) async fn release(
        &self,
        machine: usize,
        released: &[Released],
    ) -> Result<Done, TaskError> {
        let releases = released.iter().map(|one| one.release.clone());
        let (pods, others): (Vec<_>, Vec<_>) =
            releases.partition(|one| one.owner.as_str() == pods::OWNER);
        let mut changes = 0;
        for releases in [pods, others] {
            if !releases.is_empty() {
                let undone = self.machines[machine].release(&releases, DEADLINE).await;
                changes += count(undone)?;
            }
        }
        Ok(Done { changes, bytes: 0 })
    }

    pub(super) async fn leave(&self, machine: usize) -> Result<Done, TaskError> {
        let has_record = self
            .managed
            .get(machine)
            .is_some_and(|one| one.cluster.is_some());
        let machine = &self.machines[machine];
        if !has_record {
            runs_nothing(machine).await?;
        }
        let undone = match cleanup::leave(machine).await {
            // It serves another cluster by now and has nothing of this one.
            Err(Error::Held { .. }) => Ok(Undone::default()),
            undone => undone,
        };
        machine.disconnect().await;
        Ok(Done {
            changes: count(undone)?,
            bytes: 0,
        })
    }
}

/// A machine without a record is clean, or has lost it: then it would run on, and nobody would know.
async fn runs_nothing(machine: &Machine) -> Result<(), TaskError> {
    let facts = machine
        .facts(FACTS)
        .await
        .map_err(|error| TaskError::Refused {
            remedy: error.remedy(),
            reason: error.to_string(),
        })?;
    match KubernetesTraces::from_facts(&facts.0).has_active_unit() {
        false => Ok(()),
        true => Err(TaskError::Refused {
            reason: "its own record in /var/lib/hatchery is lost, and services of a cluster run on it".into(),
            remedy: Some(
                "bring that directory back from a backup of the machine, or stop the services there, and run again".into(),
            ),
        }),
    }
}

/// The node is kept from new pods, and nothing else has happened.
pub(super) fn not_drained(error: &api::Error) -> TaskError {
    let remedy = match error {
        api::Error::Deadline { .. } => Some(
            "loosen what holds the pods back and run again, or delete the machine with --force"
                .to_owned(),
        ),
        error => error.remedy(),
    };
    TaskError::Failed {
        reason: error.to_string(),
        remedy,
    }
}

/// How many things are as they were, when nothing is left that could not be put back.
fn count(undone: Result<Undone, Error>) -> Result<usize, TaskError> {
    let undone = undone.map_err(|error| TaskError::Failed {
        remedy: error.remedy(),
        reason: error.to_string(),
    })?;
    if undone.left.is_empty() {
        return Ok(undone.restored.len());
    }
    let left = undone.left.iter();
    let left: Vec<_> = left
        .map(|one| format!("{}: {}", one.resource, one.reason))
        .collect();
    Err(TaskError::Failed {
        reason: left.join("\n  "),
        remedy: None,
    })
}
