//! The last lines of `deploy`: what was made, how long it took, what to type next.

use std::process::ExitCode;

use hatchery_engine::{
    outcome::{Kind, NotDone, Outcome, State},
    session::Planned,
    state::RunLog,
};
use serde_json::json;

use crate::{
    check,
    interrupt::INTERRUPTED,
    output::Output,
    progress::{Phase, Progress},
    template::number,
};

/// How it ended.
pub(super) struct Ending<'a>(pub(super) &'a Outcome);

/// What is printed at the end of a run.
pub(super) struct Show<'a> {
    pub(super) planned: &'a Planned,
    pub(super) log: &'a RunLog,
    /// Where the administrator's kubeconfig is.
    pub(super) admin_conf: &'a str,
    /// Whether the cluster's API may have answered before this run.
    pub(super) was_up: bool,
    /// How long it took until there was a plan.
    pub(super) asked: f64,
    pub(super) phases: Vec<Phase>,
    pub(super) seconds: f64,
    /// Whether all of it goes again.
    pub(super) rolls_back: bool,
    pub(super) progress: &'a Progress<'a>,
    pub(super) output: &'a Output,
}

impl Ending<'_> {
    /// Whether there is no cluster, for another reason than that the user stopped.
    pub(super) fn is_failure(&self) -> bool {
        self.0.state == State::Failed
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self.0.state {
            State::Done => ExitCode::SUCCESS,
            State::Partial => ExitCode::from(3),
            State::Failed => ExitCode::FAILURE,
            State::Stopped => ExitCode::from(INTERRUPTED),
        }
    }

    pub(super) fn show(&self, show: &Show<'_>) {
        show.progress.record(&self.document(show));
        if !show.output.json() {
            show.output.print(&self.text(show));
        }
    }

    fn document(&self, show: &Show<'_>) -> serde_json::Value {
        let outcome = self.0;
        let state = match outcome.state {
            State::Done => "up",
            State::Partial => "partial",
            State::Failed => "failed",
            State::Stopped => "stopped",
        };
        json!({
            "event": "ended",
            "cluster": show.planned.wanted.cluster.id,
            "state": state,
            "kubernetes": show.planned.wanted.versions.kubernetes.to_string(),
            "changes": outcome.changes,
            "notDone": titles(&outcome.not_done),
            "failures": outcome.not_done,
            "removed": outcome.gone,
            "tasksLeft": outcome.left,
            "seconds": show.seconds,
            "phases": show.phases,
            "log": show.log.path(),
            "kubeconfig": outcome.api.then_some(show.admin_conf),
        })
    }

    fn text(&self, show: &Show<'_>) -> String {
        let (outcome, wanted) = (self.0, &show.planned.wanted);
        let (id, program) = (&wanted.cluster.id, show.output.program());
        let changes = match outcome.changes {
            0 => "nothing had to be changed".to_owned(),
            count => number(count, "change"),
        };
        let version = wanted.versions.kubernetes;
        let roles = check::roles(&wanted.cluster);
        let what = match outcome.state {
            State::Done => format!("is up: Kubernetes {version}, {roles}"),
            State::Partial => format!("is partly up: Kubernetes {version}"),
            State::Failed => "is not up".to_owned(),
            State::Stopped => format!("is not finished: {} left", number(outcome.left, "task")),
        };
        let mut text = format!("\ncluster {id} {what}; {changes}, {:.1} s\n", show.seconds);
        if outcome.changes > 0 {
            text += &phases(show.asked, &show.phases);
        }
        text += &not_done("not done", &outcome.not_done);
        if show.rolls_back {
            return text;
        }
        if outcome.state != State::Done {
            text += &format!("  log:  {}\n", show.log.path().display());
        }
        if outcome.api {
            text += &format!(
                "  next: kubectl --kubeconfig {} get nodes\n",
                show.admin_conf
            );
            text += &format!("        {program} kubeconfig --id {id} --merge\n");
        }
        if outcome.state != State::Done {
            text += "  next: run the same command again; what is done stays done\n";
        }
        if may_go_back(outcome, show.was_up) {
            text += &format!(
                "        {program} cleanup --id {id} puts the machines back as they were\n"
            );
        }
        text
    }
}

/// Whether it costs nobody anything to put the machines back: there never was a cluster.
fn may_go_back(outcome: &Outcome, was_up: bool) -> bool {
    matches!(outcome.state, State::Failed | State::Stopped) && !was_up && !outcome.api
}

/// What they are called; addons are called so.
fn titles(not_done: &[NotDone]) -> Vec<String> {
    not_done.iter().map(title).collect()
}

fn title(one: &NotDone) -> String {
    match one.kind {
        Kind::Addon => format!("addon {}", one.name),
        Kind::Machine | Kind::Node | Kind::Api => one.name.clone(),
    }
}

/// Everything on which something is not done, each with its reason; nothing where all is.
pub(crate) fn not_done(head: &str, not_done: &[NotDone]) -> String {
    if not_done.is_empty() {
        return String::new();
    }
    let mut text = format!("  {head}: {}\n", titles(not_done).join(", "));
    for one in not_done {
        let mut lines = one.reason.lines();
        let first = lines.next().unwrap_or_default();
        text += &format!("    {}: {first}\n", title(one));
        for line in lines.chain(one.remedy.iter().flat_map(|remedy| remedy.lines())) {
            text += &format!("      {}\n", line.trim_start());
        }
    }
    text
}

/// How long each phase took, in columns.
fn phases(asked: f64, phases: &[Phase]) -> String {
    let ask = "look at machines and packages";
    let titles = phases.iter().map(|phase| phase.title.chars().count());
    let width = titles.max().unwrap_or(0).max(ask.len());
    let mut text = format!("  {ask:<width$}  {asked:>6.1} s\n");
    for Phase { title, from, to } in phases {
        let took = to - from;
        text += &format!("  {title:<width$}  {took:>6.1} s  from {from:.1} s to {to:.1} s\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_reason() {
        let one = |kind, name: &str, reason: &str, remedy: Option<&str>| NotDone {
            kind,
            name: name.into(),
            reason: reason.into(),
            remedy: remedy.map(Into::into),
            is_missing: false,
        };
        let all = [
            one(Kind::Node, "w0", "waited 60 s\n  kubelet on w0: no", None),
            one(Kind::Addon, "web.yaml", "no pods", Some("look there")),
        ];
        assert_eq!(
            not_done("not done", &all),
            "  not done: w0, addon web.yaml\n    w0: waited 60 s\n      kubelet on w0: no\n    addon web.yaml: no pods\n      look there\n"
        );
        assert_eq!(not_done("not done", &[]), "");
    }

    #[test]
    fn nobody_is_advised_to_remove_a_cluster_that_was_up() {
        let may_go_back = |state, api, was_up| {
            let outcome = Outcome {
                state,
                not_done: Vec::new(),
                changes: 1,
                left: 1,
                api,
                gone: Vec::new(),
            };
            may_go_back(&outcome, was_up)
        };
        for state in [State::Failed, State::Stopped] {
            assert!(may_go_back(state, false, false));
            assert!(!may_go_back(state, false, true));
            assert!(!may_go_back(state, true, false));
        }
        assert!(!may_go_back(State::Partial, false, false));
    }

    #[test]
    fn phases_stand_in_columns() {
        let phase = |title: &str, from, to| Phase {
            title: title.into(),
            from,
            to,
        };
        assert_eq!(
            phases(
                1.25,
                &[phase("prepare", 1.3, 13.0), phase("etcd", 13.0, 113.1)]
            ),
            "  look at machines and packages     1.2 s\n\
             \x20 prepare                          11.7 s  from 1.3 s to 13.0 s\n\
             \x20 etcd                            100.1 s  from 13.0 s to 113.1 s\n"
        );
    }
}
