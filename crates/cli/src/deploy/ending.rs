//! The last lines of `deploy`: what was made, how long it took, what to type next.

use std::process::ExitCode;

use hatchery_engine::{
    deployment::Survey,
    plan::Subject,
    run::{Failure, Outcome},
    state::RunLog,
};
use hatchery_spec::{Cluster, cluster::Role};
use serde_json::json;

use crate::{
    check,
    interrupt::INTERRUPTED,
    output::Output,
    progress::{Phase, Progress},
    template::number,
};

/// How it ended.
pub(super) struct Ending {
    state: State,
    has_api: bool,
    not_done: Vec<NotDone>,
}

/// A machine, a node or an addon on which something is not done.
#[derive(Debug, PartialEq, Eq)]
struct NotDone {
    kind: &'static str,
    name: String,
    /// Why; more lines than one where others said something about it.
    reason: String,
    remedy: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    Partial,
    Failed,
    Stopped,
}

/// What there is to tell.
pub(super) struct Show<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) survey: &'a Survey,
    pub(super) outcome: &'a Outcome,
    pub(super) log: &'a RunLog,
    /// Where the administrator's kubeconfig is.
    pub(super) admin_conf: &'a str,
    /// How long it took until there was a plan.
    pub(super) asked: f64,
    pub(super) phases: Vec<Phase>,
    pub(super) seconds: f64,
    /// Whether all of it goes again.
    pub(super) rolls_back: bool,
    pub(super) progress: &'a Progress<'a>,
    pub(super) output: &'a Output,
}

/// Whether the whole control plane is what the run was to make of it. A master or member on which something is not done may
/// still run what it had before; a worker, or an addon, says nothing of that.
pub(super) fn has_control_plane(cluster: &Cluster, missing: &[usize], outcome: &Outcome) -> bool {
    let failed = outcome.failed.iter();
    let failed = failed.filter_map(|failure| match failure.subject {
        Subject::Machine(place) | Subject::Node(place) => Some(place),
        Subject::Addon(_) | Subject::Api => None,
    });
    let mut not_done = failed.chain(missing.iter().copied());
    let is_needed = |place: usize| {
        let machine = cluster.machine(place);
        machine.is(Role::Master) || machine.is(Role::Etcd)
    };
    outcome.api && outcome.left == 0 && !not_done.any(is_needed)
}

impl Ending {
    pub(super) fn of(cluster: &Cluster, survey: &Survey, outcome: &Outcome) -> Self {
        let mut not_done = Vec::new();
        for place in &survey.missing {
            let reason = match survey.replies.get(*place) {
                Some(Err(error)) => error.to_string(),
                _ => "it did not answer".to_owned(),
            };
            not_done.push(NotDone {
                kind: "machine",
                name: cluster.machine(*place).name.to_string(),
                reason,
                remedy: None,
            });
        }
        add_failures(cluster, &outcome.failed, &mut not_done);
        let state = if outcome.left > 0 {
            State::Stopped
        } else if !outcome.api {
            State::Failed
        } else if not_done.is_empty() {
            State::Up
        } else {
            State::Partial
        };
        Self {
            state,
            has_api: outcome.api,
            not_done,
        }
    }

    /// Their names; addons are called so.
    fn names(&self) -> Vec<String> {
        self.not_done.iter().map(NotDone::title).collect()
    }

    /// Whether the cluster answers.
    pub(super) fn has_api(&self) -> bool {
        self.has_api
    }

    /// Whether there is no cluster, and not because the user wanted to stop.
    pub(super) fn is_failure(&self) -> bool {
        self.state == State::Failed
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self.state {
            State::Up => ExitCode::SUCCESS,
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
        let state = match self.state {
            State::Up => "up",
            State::Partial => "partial",
            State::Failed => "failed",
            State::Stopped => "stopped",
        };
        json!({
            "event": "ended",
            "cluster": show.cluster.id,
            "state": state,
            "kubernetes": show.survey.versions.kubernetes.to_string(),
            "changes": show.outcome.changes,
            "notDone": self.names(),
            "failures": self.not_done.iter().map(NotDone::document).collect::<Vec<_>>(),
            "tasksLeft": show.outcome.left,
            "seconds": show.seconds,
            "phases": show.phases,
            "log": show.log.path(),
            "kubeconfig": self.has_api().then_some(show.admin_conf),
        })
    }

    fn text(&self, show: &Show<'_>) -> String {
        let (id, program) = (&show.cluster.id, show.output.program());
        let changes = match show.outcome.changes {
            0 => "nothing had to be changed".to_owned(),
            count => number(count, "change"),
        };
        let version = show.survey.versions.kubernetes;
        let roles = check::roles(show.cluster);
        let what = match self.state {
            State::Up => format!("is up: Kubernetes {version}, {roles}"),
            State::Partial => format!("is up in part: Kubernetes {version}"),
            State::Failed => "is not up".to_owned(),
            State::Stopped => format!(
                "is not finished: {} left",
                number(show.outcome.left, "task")
            ),
        };
        let mut text = format!("\ncluster {id} {what}; {changes}, {:.1} s\n", show.seconds);
        if show.outcome.changes > 0 {
            text += &phases(show.asked, &show.phases);
        }
        if !self.not_done.is_empty() {
            text += &format!("  not done: {}\n", self.names().join(", "));
        }
        text.extend(self.not_done.iter().map(NotDone::lines));
        if show.rolls_back {
            return text;
        }
        if self.state != State::Up {
            text += &format!("  log:  {}\n", show.log.path().display());
        }
        if self.has_api() {
            text += &format!(
                "  next: kubectl --kubeconfig {} get nodes\n",
                show.admin_conf
            );
            text += &format!("        {program} kubeconfig --id {id} --merge\n");
        }
        if self.state != State::Up {
            text += "  next: run the same command again; what is done stays done\n";
        }
        if matches!(self.state, State::Failed | State::Stopped) {
            text += &format!(
                "        {program} cleanup --id {id} puts the machines back as they were\n"
            );
        }
        text
    }
}

/// One for each machine, node or addon: the first that was begun says why, since those behind it only were not begun.
fn add_failures(cluster: &Cluster, failures: &[Failure], not_done: &mut Vec<NotDone>) {
    let (begun, skipped): (Vec<_>, Vec<_>) = failures.iter().partition(|failure| failure.begun);
    for failure in begun.into_iter().chain(skipped) {
        // What the API was not asked for because of another is that one's failure.
        if !failure.begun && failure.subject == Subject::Api {
            continue;
        }
        let machine = |place: &usize| cluster.machine(*place).name.to_string();
        let (kind, name) = match &failure.subject {
            Subject::Machine(place) => ("machine", machine(place)),
            Subject::Node(place) => ("node", machine(place)),
            Subject::Addon(name) => ("addon", name.clone()),
            Subject::Api => ("api", "API".to_owned()),
        };
        let is_addon = kind == "addon";
        let mut known = not_done.iter();
        if known.any(|one| one.name == name && (one.kind == "addon") == is_addon) {
            continue;
        }
        not_done.push(NotDone {
            kind,
            name,
            reason: failure.reason.clone(),
            remedy: failure.remedy.clone(),
        });
    }
}

impl NotDone {
    fn title(&self) -> String {
        match self.kind {
            "addon" => format!("addon {}", self.name),
            _ => self.name.clone(),
        }
    }

    fn document(&self) -> serde_json::Value {
        json!({
            "kind": self.kind,
            "name": self.name,
            "reason": self.reason,
            "remedy": self.remedy,
        })
    }

    fn lines(&self) -> String {
        let mut lines = self.reason.lines();
        let first = lines.next().unwrap_or_default();
        let mut text = format!("    {}: {first}\n", self.title());
        for line in lines.chain(self.remedy.iter().flat_map(|remedy| remedy.lines())) {
            text += &format!("      {}\n", line.trim_start());
        }
        text
    }
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
    use hatchery_spec::{Input, read};

    use super::*;

    #[test]
    fn each_node_and_addon_has_its_own_reason() {
        let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: w0, ip: 10.0.0.2}]\n";
        let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
        let failure = |subject: Subject, reason: &str, begun: bool| Failure {
            subject,
            title: String::new(),
            reason: reason.into(),
            remedy: (!begun).then(|| "never told".into()),
            begun,
        };
        let failures = [
            failure(Subject::Machine(1), "not begun", false),
            failure(Subject::Node(1), "waited 60 s\n  kubelet on w0: no", true),
            failure(Subject::Addon("web.yaml".into()), "no pods", true),
            failure(Subject::Addon("web.yaml".into()), "not begun", false),
            failure(Subject::Api, "not begun", false),
        ];
        let mut not_done = Vec::new();
        add_failures(&cluster.unwrap(), &failures, &mut not_done);
        let lines: String = not_done.iter().map(NotDone::lines).collect();
        assert_eq!(
            lines,
            "    w0: waited 60 s\n      kubelet on w0: no\n    addon web.yaml: no pods\n"
        );
        assert_eq!(not_done[0].kind, "node");
    }

    #[test]
    fn versions_are_reached_when_no_master_or_member_is_left() {
        let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: w0, ip: 10.0.0.2}]\n\
            etcds: [{name: e0, ip: 10.0.0.3}]\n";
        let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
        let cluster = cluster.unwrap();
        let place = |name: &str| {
            let mut machines = cluster.machines().iter();
            machines.position(|one| one.name.as_str() == name).unwrap()
        };
        let reached = |subject: Option<Subject>, missing: &[usize], api, left| {
            let failed = subject.map(|subject| Failure {
                subject,
                title: String::new(),
                reason: String::new(),
                remedy: None,
                begun: true,
            });
            let outcome = Outcome {
                failed: failed.into_iter().collect(),
                changes: 1,
                left,
                api,
                gone: Vec::new(),
            };
            has_control_plane(&cluster, missing, &outcome)
        };
        assert!(reached(None, &[], true, 0));
        assert!(!reached(None, &[], false, 0));
        assert!(!reached(None, &[], true, 1));
        assert!(reached(None, &[place("w0")], true, 0));
        assert!(reached(Some(Subject::Node(place("w0"))), &[], true, 0));
        assert!(reached(Some(Subject::Addon("a".into())), &[], true, 0));
        for name in ["m0", "e0"] {
            assert!(!reached(None, &[place(name)], true, 0));
            assert!(!reached(Some(Subject::Machine(place(name))), &[], true, 0));
        }
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
