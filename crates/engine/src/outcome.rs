//! The outcome of a change: of each machine, node and addon, and overall.

use std::collections::BTreeSet;

use hatchery_spec::{Cluster, cluster::Role, value::Name};
use serde::Serialize;

use crate::{
    observed::Observed,
    plan::Subject,
    run::{Executed, Failure},
};

/// The outcome of a change.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The overall outcome.
    pub state: State,
    /// Machines, nodes and addons on which something is not done.
    pub not_done: Vec<NotDone>,
    /// How many things changed.
    pub changes: usize,
    /// How many tasks were not begun, or given up, because the user wanted to stop.
    pub left: usize,
    /// Whether the cluster's API answered.
    pub api: bool,
    /// Machines that were put back as they were found.
    pub gone: Vec<Name>,
}

/// The overall outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// All of it is done.
    Done,
    /// The cluster is up, and something is not done; or some machines of a cluster that goes are not clean.
    Partial,
    /// There is no running cluster.
    Failed,
    /// The user wanted to stop.
    Stopped,
}

/// Something on which not all was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotDone {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Why; more lines than one where others said something about it.
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// Whether nothing at all is where the machine was.
    pub is_missing: bool,
}

/// What something is on which not all was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A machine.
    Machine,
    /// A node of the cluster.
    Node,
    /// Something that was applied.
    Addon,
    /// The cluster's API as a whole.
    Api,
}

impl Outcome {
    /// Of a run that was to make a cluster so.
    pub(crate) fn of_run(cluster: &Cluster, observed: &Observed, executed: Executed) -> Self {
        let mut not_done = Vec::new();
        for node in cluster.all_machines() {
            if let Some(Err(error)) = observed.reply(&node.name) {
                not_done.push(NotDone {
                    kind: Kind::Machine,
                    name: node.name.to_string(),
                    reason: error.to_string(),
                    remedy: None,
                    is_missing: false,
                });
            }
        }
        let failed = !executed.api;
        Self::new(executed, not_done, failed)
    }

    /// Of a run that was to put all machines of a cluster back.
    pub(crate) fn of_removal(executed: Executed) -> Self {
        Self {
            api: false,
            ..Self::new(executed, Vec::new(), false)
        }
    }

    /// `not_done` is what is known beside the failures; `failed` says that there is no cluster, unless the user stopped.
    fn new(executed: Executed, mut not_done: Vec<NotDone>, failed: bool) -> Self {
        add_failures(executed.failures, &mut not_done);
        let state = if executed.left > 0 {
            State::Stopped
        } else if failed {
            State::Failed
        } else if not_done.is_empty() {
            State::Done
        } else {
            State::Partial
        };
        Self {
            state,
            not_done,
            changes: executed.changes,
            left: executed.left,
            api: executed.api,
            gone: executed.gone,
        }
    }

    /// Whether it was stopped before anything was done to a machine.
    pub fn is_untouched(&self) -> bool {
        self.state == State::Stopped
            && self.changes == 0
            && self.gone.is_empty()
            && self.not_done.is_empty()
    }

    /// Whether the whole control plane is what the run was to make of it. A master or member on which something is not done
    /// may still run what it had before; workers and addons do not count.
    pub(crate) fn has_control_plane(&self, cluster: &Cluster) -> bool {
        let mut not_done = self.not_done.iter();
        let is_needed = |one: &NotDone| {
            let mut machines = cluster.machines().iter();
            matches!(one.kind, Kind::Machine | Kind::Node)
                && machines.any(|node| {
                    node.name.as_str() == one.name && (node.is(Role::Master) || node.is(Role::Etcd))
                })
        };
        self.api && self.left == 0 && !not_done.any(is_needed)
    }
}

/// One for each machine, node or addon: the first that was begun says why, since those behind it only were not begun.
fn add_failures(failures: Vec<Failure>, not_done: &mut Vec<NotDone>) {
    let is_addon = |kind| kind == Kind::Addon;
    let mut known: BTreeSet<(bool, String)> = not_done
        .iter()
        .map(|one| (is_addon(one.kind), one.name.clone()))
        .collect();
    let (begun, skipped): (Vec<_>, Vec<_>) = failures.into_iter().partition(|one| one.begun);
    for Failure {
        subject,
        cause,
        begun,
    } in begun.into_iter().chain(skipped)
    {
        // What the API was not asked for because of another is that one's failure.
        if !begun && subject == Subject::Api {
            continue;
        }
        let (kind, name) = match subject {
            Subject::Machine(name) => (Kind::Machine, name.to_string()),
            Subject::Node(name) => (Kind::Node, name.to_string()),
            Subject::Addon(name) => (Kind::Addon, name),
            Subject::Api => (Kind::Api, "API".to_owned()),
        };
        if known.insert((is_addon(kind), name.clone())) {
            not_done.push(NotDone {
                kind,
                name,
                reason: cause.reason,
                remedy: cause.remedy,
                is_missing: cause.is_missing,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;
    use crate::run::Cause;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn failure(subject: Subject, reason: &str, begun: bool) -> Failure {
        Failure {
            subject,
            cause: Cause {
                reason: reason.into(),
                remedy: (!begun).then(|| "never told".into()),
                is_missing: false,
            },
            begun,
        }
    }

    #[test]
    fn each_node_and_addon_has_its_own_reason() {
        let addon = || Subject::Addon("web.yaml".into());
        let failures = vec![
            failure(Subject::Machine(name("w0")), "not begun", false),
            failure(Subject::Node(name("w0")), "waited 60 s", true),
            failure(addon(), "no pods", true),
            failure(addon(), "not begun", false),
            failure(Subject::Api, "not begun", false),
        ];
        let mut not_done = Vec::new();
        add_failures(failures, &mut not_done);
        let found: Vec<_> = not_done
            .iter()
            .map(|one| (one.kind, one.name.as_str(), one.reason.as_str()))
            .collect();
        let expected = [
            (Kind::Node, "w0", "waited 60 s"),
            (Kind::Addon, "web.yaml", "no pods"),
        ];
        assert_eq!(found, expected);
        assert!(not_done.iter().all(|one| one.remedy.is_none()));
    }

    #[test]
    fn versions_are_reached_when_no_master_or_member_is_left() {
        let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: w0, ip: 10.0.0.2}]\n\
            etcds: [{name: e0, ip: 10.0.0.3}]\n";
        let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
        let cluster = cluster.unwrap();
        let reached = |subject: Option<Subject>, silent: &[&str], api, left| {
            let late = |machine: &&str| hatchery_host::machine::Error::Deadline {
                host: (*machine).to_owned(),
                after: std::time::Duration::ZERO,
                step: String::new(),
            };
            let silent = silent
                .iter()
                .map(|machine| (name(machine), Err(late(machine))));
            let executed = Executed {
                failures: subject
                    .map(|subject| failure(subject, "", true))
                    .into_iter()
                    .collect(),
                changes: 1,
                left,
                api,
                gone: Vec::new(),
            };
            let outcome = Outcome::of_run(&cluster, &Observed::new(silent), executed);
            outcome.has_control_plane(&cluster)
        };
        assert!(reached(None, &[], true, 0));
        assert!(!reached(None, &[], false, 0));
        assert!(!reached(None, &[], true, 1));
        assert!(reached(None, &["w0"], true, 0));
        assert!(reached(Some(Subject::Node(name("w0"))), &[], true, 0));
        assert!(reached(Some(Subject::Addon("a".into())), &[], true, 0));
        for machine in ["m0", "e0"] {
            assert!(!reached(None, &[machine], true, 0));
            let subject = Subject::Machine(name(machine));
            assert!(!reached(Some(subject), &[], true, 0));
        }
    }
}
