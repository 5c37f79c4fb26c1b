//! What machines give up, and machines that are put back as they were found.

use std::time::Duration;

use hatchery_host::{
    machine::{Error, Machine, Undone},
    path::Word,
    transport::{Error as Transport, Unreachable},
};
use hatchery_spec::value::Name;

use super::{Cause, Done, Run, TaskError};
use crate::{owner::Owner, plan::Released, traces::KubernetesTraces};

/// The timeout of one round of putting things back.
const DEADLINE: Duration = Duration::from_secs(600);
/// Scripts of the user's have limits of their own.
const SCRIPTS: Duration = Duration::from_secs(2 * 3600);
const FACTS: Duration = Duration::from_secs(60);

impl Run<'_> {
    /// Pods first: while they run, nothing below them can go.
    pub(super) async fn release(
        &self,
        machine: &Name,
        released: &[Released],
    ) -> Result<Done, TaskError> {
        let machine = self.machine(machine)?;
        let releases = released.iter().map(|one| one.release.clone());
        let (pods, others): (Vec<_>, Vec<_>) =
            releases.partition(|one| one.owner.as_str() == Owner::Pods.as_str());
        let mut changes = 0;
        for releases in [pods, others] {
            if !releases.is_empty() {
                changes += count(machine.release(&releases, DEADLINE).await)?;
            }
        }
        Ok(Done::changes(changes))
    }

    /// Runs the user's scripts that come before everything else.
    pub(super) async fn before_undo(&self, machine: &Name) -> Result<Done, TaskError> {
        let machine = self.machine(machine)?;
        let undone = undo(machine, &[Owner::Precleanup], SCRIPTS).await;
        count(undone).map(Done::changes)
    }

    /// Pods first, and what the user wants to be run afterwards last.
    pub(super) async fn undo(&self, name: &Name, leaves: bool) -> Result<Done, TaskError> {
        let machine = self.machine(name)?;
        let managed = self.context.observed.managed(name);
        if leaves && managed.is_none_or(|managed| managed.cluster.is_none()) {
            runs_nothing(machine).await?;
        }
        let mut changes = 0;
        let rounds: [(&[Owner], Duration); 3] = [
            (&[Owner::Pods], DEADLINE),
            (&Owner::UNDONE_TOGETHER, DEADLINE),
            // What could not be put back would be in the way of what comes after all has been.
            (&[], SCRIPTS),
        ];
        for (owners, deadline) in rounds {
            let undone = undo(machine, owners, deadline).await;
            let is_first = owners == [Owner::Pods];
            changes += match undone {
                // The second round says what it leaves of it.
                Ok(undone) if is_first => undone.restored.len(),
                undone => count(undone)?,
            };
        }
        machine.disconnect().await;
        Ok(Done::changes(changes))
    }
}

/// A machine that serves another cluster by now has nothing of this one: it is held by one at a time, by an id that no other
/// has.
async fn undo(machine: &Machine, owners: &[Owner], deadline: Duration) -> Result<Undone, Error> {
    let owners: Vec<Word> = owners.iter().map(|owner| owner.word()).collect();
    match machine.undo(&owners, deadline).await {
        Err(Error::Held { .. }) => Ok(Undone::default()),
        undone => undone,
    }
}

/// A machine without a record is clean, or has lost it: then it would run on, and nobody would know.
async fn runs_nothing(machine: &Machine) -> Result<(), TaskError> {
    let facts = machine
        .facts(FACTS)
        .await
        .map_err(|error| not_undone(&error))?;
    match KubernetesTraces::from_facts(&facts.0).has_active_unit() {
        false => Ok(()),
        true => Err(TaskError::Alone(Cause::new(
            "its own record in /var/lib/hatchery is lost, and services of a cluster run on it",
            Some(
                "bring that directory back from a backup of the machine, or stop the services there, and run again".into(),
            ),
        ))),
    }
}

/// How many things are as they were, when nothing is left that could not be put back.
fn count(undone: Result<Undone, Error>) -> Result<usize, TaskError> {
    let undone = undone.map_err(|error| not_undone(&error))?;
    if undone.left.is_empty() {
        return Ok(undone.restored.len());
    }
    let left = undone.left.iter();
    let left: Vec<_> = left
        .map(|one| format!("{}: {}", one.resource, one.reason))
        .collect();
    let reason = format!("not as it was: {}", left.join("\n  "));
    Err(TaskError::Failed(Cause::new(reason, None)))
}

fn not_undone(error: &Error) -> TaskError {
    TaskError::Failed(Cause {
        is_missing: is_missing(error),
        ..Cause::new(error.to_string(), error.remedy())
    })
}

/// Whether nothing at all is where the machine was. Whatever answers, if only by refusing the connection, may be the machine
/// while it boots or is overloaded: forgotten, it would run on without anybody who has its keys. Nor is one missing behind a
/// bastion that is away.
fn is_missing(error: &Error) -> bool {
    let Error::Transport {
        source: Transport::Unreachable { reason, .. },
    } = error
    else {
        return false;
    };
    *reason != Unreachable::Refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_machine_where_nothing_answers_is_missing() {
        let host = || "m0".to_owned();
        let unreachable = |reason| Transport::Unreachable {
            host: host(),
            address: "10.0.0.1:22".into(),
            reason,
        };
        let missing = |source| is_missing(&Error::Transport { source });
        let late = Unreachable::Timeout(Duration::from_secs(10));
        for reason in [Unreachable::NoRoute, late] {
            assert!(missing(unreachable(reason)));
        }
        let there = [
            unreachable(Unreachable::Refused),
            Transport::Handshake {
                host: host(),
                reason: "the other side closes the connection before it sends anything".into(),
            },
            Transport::Deadline {
                host: host(),
                step: "logging in",
                after: Duration::from_secs(30),
            },
            Transport::Lost {
                host: host(),
                reason: String::new(),
            },
            Transport::Bastion {
                host: host(),
                bastion: "b".into(),
                source: Box::new(unreachable(Unreachable::NoRoute)),
            },
        ];
        for source in there {
            assert!(!missing(source.clone()), "{source}");
        }
    }
}
