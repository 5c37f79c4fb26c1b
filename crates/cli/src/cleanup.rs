//! `cleanup`: removes a cluster and puts its machines back as they were.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    command_hook::Operator,
    event::Event,
    name_list::NameList,
    outcome::{NotDone, Outcome, State},
    session::{Control, Locked, Planned, Removal},
    state::Holder,
};
use hatchery_spec::{cluster::Machine, value::Name};
use serde_json::json;
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::{
    cluster_file::{self, Named},
    deploy::not_done,
    hooks::{self, Ground},
    interrupt::{INTERRUPTED, Interrupts},
    output::{Output, Refused},
    progress::Progress,
    refusal,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// Clean only this machine, which was deleted from the cluster while it did not answer
    #[arg(long, value_name = "NAME|IP")]
    host: Option<String>,
    /// Do not ask; as eggo it does not where -f or --id is given
    #[arg(short, long)]
    yes: bool,
    /// Maximum number of machines worked on concurrently
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
    /// Forget machines that do not answer: they are gone for good
    #[arg(long)]
    forget_missing: bool,
    #[command(flatten)]
    hooks: hooks::Flags,
}

pub(crate) async fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let Some(file) = arguments.named.read(home, output).await? else {
        return Ok(ExitCode::from(2));
    };
    let hooks = arguments.hooks.load(Operator::Cleanup, output)?;
    let mut session = cluster_file::open(home, &file.cluster.id).await?;
    session.settings.parallel = arguments.parallel;
    let removal = session.plan_removal(&file.cluster).await;
    let mut removal = removal.map_err(|error| refusal::removal(&error, output))?;
    if let Some(host) = &arguments.host {
        removal = only(removal, host)?;
    }
    // Scripts around eggo run where nobody can answer; but eggo knew no default file for this.
    let asks = !(arguments.yes || output.is_eggo() && arguments.named.is_given());
    if asks && !agreed(&question(&removal))? {
        eprintln!("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    let begin = Instant::now();
    let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
    let holder = Holder::this_process("cleanup", OffsetDateTime::now_utc());
    let session = session.lock(holder).await;
    let mut session = session.map_err(|error| refusal::state(&error))?;
    let checked = session.check_removal(&removal).await;
    checked.map_err(|error| refusal::removal(&error, output))?;
    let machines = session.removal_machines(&removal);
    let machines = machines.map_err(|error| refusal::removal(&error, output))?;
    let cluster = &file.cluster;
    let left_out = removal.left_out();
    let ground = Ground {
        cluster,
        machines: &machines,
        without: &left_out,
        parallel: arguments.parallel,
    };
    match interrupts.unless(hooks.before(&ground, output)).await {
        None => return Ok(hooks::interrupted()),
        Some(Some(failed)) => return Ok(failed),
        Some(None) => {}
    }
    let log = match removal.is_known {
        true => {
            let log = session.begin_log(OffsetDateTime::now_utc());
            Some(log.map_err(|error| refusal::state(&error))?)
        }
        // Nothing is to be left behind by a cluster of which nothing is known.
        false => None,
    };
    // Last, since a cluster that is being removed cannot be changed any more.
    let begun = session.begin_removal(&removal).await;
    begun.map_err(|error| refusal::removal(&error, output))?;
    let progress = Progress::new(output, log.as_ref(), begin);
    let emit = |event: Event| progress.emit(&event);
    let (stop, stopped) = watch::channel(false);
    let control = Control {
        emit: &emit,
        stop: stopped,
    };
    let removing = session.remove(&removal, &machines, control);
    let outcome = interrupts.stopping(&stop, &progress, removing).await;
    progress.end();
    let outcome = outcome.map_err(|error| refusal::authorities(&error))?;
    // While it is still remembered whom the machines are known by.
    let scripts = match outcome.state {
        State::Stopped => None,
        _ => {
            let scripts = interrupts.unless(hooks.after(&ground, output)).await;
            scripts.unwrap_or_else(|| Some(hooks::interrupted_afterwards()))
        }
    };
    let forgotten = session.forget(&removal, &outcome, arguments.forget_missing);
    let ending = Ending {
        id: &cluster.id,
        host: arguments.host.as_deref(),
        again: Again::SameCommand,
        outcome: &outcome,
        is_forgotten: forgotten.await.map_err(refusal::run)?,
        seconds: begin.elapsed().as_secs_f64(),
    };
    ending.show(&progress, output);
    for machine in machines.values() {
        machine.disconnect().await;
    }
    Ok(scripts.unwrap_or_else(|| ending.exit_code()))
}

/// Only one machine, which is not the cluster's any more.
fn only(removal: Removal, host: &str) -> Result<Removal, Refused> {
    let id = removal.cluster.id.clone();
    let is_it = |node: &&Machine| node.name.as_str() == host || host.parse() == Ok(node.address);
    if let Some(node) = removal.cluster.machines().iter().find(is_it) {
        let refused = Refused::new(format!("{} is part of cluster {id}", node.name));
        return Err(refused.remedy(format!("take it out first: delete --id {id} {}", node.name)));
    }
    let Some(node) = removal.cluster.leaving().iter().find(is_it) else {
        let refused = Refused::new(format!("{host} is not known to belong to cluster {id}"));
        let left = removal.cluster.leaving().iter();
        let left: Vec<_> = left.map(|node| node.name.to_string()).collect();
        return Err(match left.as_slice() {
            [] => refused.remedy("all machines that ever left it are clean"),
            left => refused.remedy(format!("still to be cleaned: {}", NameList(left))),
        });
    };
    let name = node.name.clone();
    Ok(removal.of_machine(name))
}

/// What is about to happen, with machines that a file leaves out.
fn question(removal: &Removal) -> String {
    let id = &removal.cluster.id;
    if let Some(name) = &removal.only {
        return format!("what cluster {id} left on {name} is removed");
    }
    let count = number(removal.cluster.all_machines().count(), "machine");
    if !removal.is_known {
        return format!(
            "nothing is known here of a cluster {id}, but its machines say that they are held by one of this name \
             ({}): it is removed from {count}",
            removal.identity().cluster
        );
    }
    let beside = removal.cluster.leaving().iter();
    let beside: Vec<_> = beside.map(|node| node.name.to_string()).collect();
    match beside.as_slice() {
        [] => format!("cluster {id} is removed from {count}"),
        beside => format!(
            "cluster {id} is removed from {count}, also from those that it has and the file does not name ({})",
            NameList(beside)
        ),
    }
}

/// Asks on a terminal. Elsewhere the user has to have said it.
fn agreed(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        let refused = Refused::new(question);
        return Err(refused.remedy("say --yes where nobody can be asked").into());
    }
    eprint!("{question}, and they are put back as they were. Go on? [y/N] ");
    io::stderr().flush().ok();
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Puts the machines of a cluster back that never was up. Nothing when the user gave it up.
pub(crate) async fn roll_back(
    session: Locked,
    planned: &Planned,
    interrupts: &mut Interrupts,
    output: &Output,
) -> anyhow::Result<Option<()>> {
    eprintln!("rolling back");
    let begin = Instant::now();
    let cluster = &planned.wanted.cluster;
    let progress = Progress::new(output, None, begin);
    let emit = |event: Event| progress.emit(&event);
    let (stop, stopped) = watch::channel(false);
    let control = Control {
        emit: &emit,
        stop: stopped,
    };
    let rolling_back = session.roll_back(cluster, &planned.machines, control);
    let rolled_back = interrupts.stopping(&stop, &progress, rolling_back).await;
    let (outcome, is_forgotten) = rolled_back.map_err(refusal::run)?;
    progress.end();
    let ending = Ending {
        id: &cluster.id,
        host: None,
        again: Again::Cleanup(output.program()),
        outcome: &outcome,
        is_forgotten,
        seconds: begin.elapsed().as_secs_f64(),
    };
    ending.show(&progress, output);
    Ok((outcome.state != State::Stopped).then_some(()))
}

/// Which command goes on with a removal that did not come to its end.
#[derive(Clone, Copy)]
enum Again {
    SameCommand,
    /// That of this program.
    Cleanup(&'static str),
}

/// How it ended.
struct Ending<'a> {
    id: &'a Name,
    /// The only machine that was meant.
    host: Option<&'a str>,
    again: Again,
    outcome: &'a Outcome,
    /// Whether the cluster is, or the only machine.
    is_forgotten: bool,
    seconds: f64,
}

impl Ending<'_> {
    fn exit_code(&self) -> ExitCode {
        match self.outcome.state {
            State::Stopped => ExitCode::from(INTERRUPTED),
            State::Done => ExitCode::SUCCESS,
            State::Partial | State::Failed if self.is_forgotten => ExitCode::SUCCESS,
            State::Partial | State::Failed => ExitCode::from(3),
        }
    }

    fn show(&self, progress: &Progress<'_>, output: &Output) {
        progress.record(&self.document());
        if !output.json() {
            output.print(&self.text());
        }
    }

    fn document(&self) -> serde_json::Value {
        let names: Vec<_> = self.left().map(|one| one.name.as_str()).collect();
        let (forgotten, not_clean) = match self.is_forgotten {
            true => (names, Vec::new()),
            false => (Vec::new(), names),
        };
        json!({
            "event": "ended",
            "cluster": self.id,
            "state": match self.outcome.state {
                State::Stopped => "stopped",
                _ if self.is_forgotten && self.host.is_some() => "forgotten",
                _ if self.is_forgotten => "gone",
                State::Done => "clean",
                State::Partial | State::Failed => "partial",
            },
            "notClean": not_clean,
            "forgotten": forgotten,
            "failures": self.outcome.not_done,
            "seconds": self.seconds,
        })
    }

    fn left(&self) -> impl Iterator<Item = &NotDone> {
        self.outcome.not_done.iter()
    }

    fn text(&self) -> String {
        let id = self.id;
        let names = self.left().map(|one| one.name.as_str());
        let names: Vec<_> = names.collect();
        match (self.host, self.outcome.state) {
            (_, State::Stopped) => self.unfinished(),
            (Some(host), State::Done) => format!("\n{host} is as it was before cluster {id}\n"),
            _ if !self.is_forgotten => self.unfinished(),
            (Some(host), _) => {
                format!("\n{host} is forgotten without being cleaned; cluster {id} stays\n")
            }
            (None, _) if names.is_empty() => format!("\ncluster {id} is gone\n"),
            (None, _) => format!(
                "\ncluster {id} is gone\n  forgotten without being cleaned: {}\n",
                names.join(", ")
            ),
        }
    }

    /// Where something is left to do.
    fn unfinished(&self) -> String {
        let Self {
            id, host, outcome, ..
        } = self;
        let what = match host {
            Some(host) => format!("what cluster {id} left on {host}"),
            None => format!("cluster {id}"),
        };
        let how_far = match outcome.is_untouched() {
            true => "not removed",
            false => "partly removed",
        };
        let mut text = format!("\n{what} is {how_far}");
        if outcome.left > 0 {
            text += &format!(", {} left", number(outcome.left, "task"));
        }
        text.push('\n');
        text += &not_done("not clean", &outcome.not_done);
        text += &match self.again {
            Again::SameCommand => "  next: run the same command again\n".to_owned(),
            Again::Cleanup(program) => format!("  next: {program} cleanup --id {id}\n"),
        };
        let missing = self.left().filter(|one| one.is_missing);
        let missing: Vec<_> = missing.map(|one| one.name.as_str()).collect();
        if !missing.is_empty() {
            text += &format!(
                "        with --forget-missing where machines are gone for good: {}\n",
                missing.join(", ")
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use hatchery_engine::outcome::Kind;

    use super::*;

    /// What is said at the end of a removal on one machine of which nothing is seen.
    fn text(
        (host, again): (Option<&str>, Again),
        (state, changes): (State, usize),
        is_forgotten: bool,
    ) -> String {
        let missing = NotDone {
            kind: Kind::Machine,
            name: "w1".to_owned(),
            reason: "no route".to_owned(),
            remedy: None,
            is_missing: true,
        };
        let is_stopped = state == State::Stopped;
        let outcome = Outcome {
            state,
            not_done: match state {
                State::Partial => vec![missing],
                _ => Vec::new(),
            },
            changes,
            left: if is_stopped { 2 } else { 0 },
            api: false,
            gone: Vec::new(),
        };
        let ending = Ending {
            id: &Name::parse("lab").unwrap(),
            host,
            again,
            outcome: &outcome,
            is_forgotten,
            seconds: 1.0,
        };
        ending.text()
    }

    #[test]
    fn a_machine_alone_is_told_by_its_name() {
        let text = |state, is_forgotten| {
            let alone = (Some("w1"), Again::SameCommand);
            text(alone, (state, 1), is_forgotten)
        };
        assert_eq!(
            text(State::Stopped, false),
            "\nwhat cluster lab left on w1 is partly removed, 2 tasks left\n  next: run the same command again\n"
        );
        assert_eq!(
            text(State::Partial, false),
            "\nwhat cluster lab left on w1 is partly removed\n  not clean: w1\n    w1: no route\n\
             \x20 next: run the same command again\n\
             \x20       with --forget-missing where machines are gone for good: w1\n"
        );
        assert_eq!(
            text(State::Partial, true),
            "\nw1 is forgotten without being cleaned; cluster lab stays\n"
        );
        assert_eq!(
            text(State::Done, false),
            "\nw1 is as it was before cluster lab\n"
        );
    }

    #[test]
    fn nothing_is_called_removed_where_nothing_was_done() {
        let all = (None, Again::SameCommand);
        assert_eq!(
            text(all, (State::Stopped, 0), false),
            "\ncluster lab is not removed, 2 tasks left\n  next: run the same command again\n"
        );
    }

    #[test]
    fn who_rolls_back_goes_on_with_cleanup() {
        let text = |state, is_forgotten| {
            let rollback = (None, Again::Cleanup("eggo"));
            text(rollback, (state, 1), is_forgotten)
        };
        assert_eq!(
            text(State::Stopped, false),
            "\ncluster lab is partly removed, 2 tasks left\n  next: eggo cleanup --id lab\n"
        );
        assert!(text(State::Partial, false).contains("  next: eggo cleanup --id lab\n"));
        assert_eq!(text(State::Done, true), "\ncluster lab is gone\n");
    }
}
