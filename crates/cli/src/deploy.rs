//! `deploy`: creates a cluster, or brings it to what its file describes.

mod ending;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    MaxUnavailable, Settings as RunSettings,
    api::Drain,
    command_hook::Operator,
    event::Event,
    session::{Control, Locked, Planned},
    state::Holder,
};
use hatchery_spec::value::{GoDuration, Name};
use time::OffsetDateTime;
use tokio::sync::watch;

pub(crate) use self::ending::not_done;
use crate::{
    cleanup,
    cluster_file::{self, Given, GoodFile, Remembered},
    hooks::{self, Ground, Hooks},
    interrupt::{self, INTERRUPTED, Interrupts},
    output::{Output, Refused},
    progress::Progress,
    refusal,
    removal::Removal,
    saved_plan::SavedPlan,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// Do exactly what a plan of 'plan --save' says, or nothing when something has changed since then
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "vars"])]
    plan: Option<PathBuf>,
    /// When a new cluster cannot be made, put its machines back as they were [true or false; default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", hide_default_value = true, action = clap::ArgAction::Set, value_parser = go_boolean)]
    rollback: bool,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    removal: Removal,
    #[command(flatten)]
    hooks: hooks::Flags,
}

/// How machines are worked on.
#[derive(clap::Args)]
pub(crate) struct Settings {
    /// Maximum number of machines worked on concurrently
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) parallel: usize,
    /// Maximum number of running nodes that are changed at the same time, or the share of them
    #[arg(long, value_name = "N|N%", default_value = "10%")]
    max_unavailable: MaxUnavailable,
    /// How long a node, or the pods of an addon, may take to become ready
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: GoDuration,
}

impl Settings {
    fn of_run(&self) -> RunSettings {
        RunSettings {
            parallel: self.parallel,
            max_unavailable: self.max_unavailable,
            ready: self.timeout.get(),
            ..RunSettings::default()
        }
    }
}

pub(crate) fn duration(text: &str) -> Result<GoDuration, String> {
    GoDuration::parse(text).map_err(|mismatch| format!("{}; {}", mismatch.problem, mismatch.remedy))
}

/// A flag's value as eggo's library read it.
fn go_boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

pub(crate) async fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let saved = arguments.plan.as_deref().map(SavedPlan::read).transpose()?;
    let given = saved.as_ref().map(SavedPlan::given);
    let given = given.as_ref().unwrap_or(&arguments.given);
    let Some(file) = given.read(home, output).await? else {
        return Ok(ExitCode::from(2));
    };
    let hooks = arguments.hooks.load(Operator::Deploy, output)?;
    let change = Change {
        command: "deploy",
        file: &file,
        from: None,
        saved: saved.as_ref(),
        removal: arguments.removal,
        rollback: arguments.rollback,
        settings: &arguments.settings,
        drain: None,
        hooks: &hooks,
        named: None,
    };
    change.apply(home, output).await
}

/// A file that a cluster is to follow, and how.
pub(crate) struct Change<'a> {
    /// The command, shown to other runs that wait for the lock.
    pub(crate) command: &'static str,
    pub(crate) file: &'a GoodFile,
    /// The file that this one was made from: it has to be the remembered one still.
    pub(crate) from: Option<&'a str>,
    /// The plan that was agreed to: nothing else is done.
    pub(crate) saved: Option<&'a SavedPlan>,
    /// What the user says of machines that leave.
    pub(crate) removal: Removal,
    pub(crate) rollback: bool,
    pub(crate) settings: &'a Settings,
    /// How nodes that leave are drained, if it is said.
    pub(crate) drain: Option<Drain>,
    pub(crate) hooks: &'a Hooks,
    /// The machines that the command names: on these alone scripts run, and of these alone is true how nodes are drained.
    pub(crate) named: Option<&'a [Name]>,
}

impl<'a> Change<'a> {
    /// What a command makes of the remembered file for the machines that it names. Nobody is asked about these again.
    pub(crate) fn from_edit(
        command: &'static str,
        remembered: &'a Remembered,
        file: &'a GoodFile,
        machines: &'a [Name],
        settings: &'a Settings,
        hooks: &'a Hooks,
    ) -> Self {
        Self {
            command,
            file,
            from: Some(&remembered.text),
            saved: None,
            removal: Removal::ASKED_FOR,
            rollback: false,
            settings,
            drain: None,
            hooks,
            named: Some(machines),
        }
    }

    /// Brings the cluster to what the file says.
    pub(crate) async fn apply(
        &self,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<ExitCode> {
        let begin = Instant::now();
        let mut session = self.open(home).await?;
        let cluster = session.with_leaving(&self.file.cluster).await;
        let cluster = cluster.map_err(|error| refusal::state(&error))?;
        if !self.removal.agreed(&cluster)? {
            eprintln!("nothing was changed");
            return Ok(ExitCode::SUCCESS);
        }
        let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
        let asking = Progress::new(output, None, begin);
        let planned = interrupts.unless(session.plan(&cluster)).await;
        asking.end();
        let planned = match planned {
            None => return Ok(interrupt::untouched()),
            Some(Err(refusal)) => return Ok(refusal::show(&cluster.id, &refusal, output)),
            Some(Ok(planned)) => planned,
        };
        refusal::findings(&planned.findings, output);
        if let Some(saved) = self.saved {
            saved.agree(&session, self.file, &planned).await?;
        }
        let authorities = session.make_authorities(&planned).await;
        let authorities = authorities.map_err(|error| refusal::authorities(&error))?;
        let ground = Ground {
            cluster: &cluster,
            machines: &planned.machines,
            without: &self.without(&planned),
            parallel: self.settings.parallel,
        };
        match interrupts.unless(self.hooks.before(&ground, output)).await {
            None => return Ok(hooks::interrupted()),
            Some(Some(failed)) => return Ok(failed),
            Some(None) => {}
        }
        let was_up = session.was_up(&planned).await;
        let was_up = was_up.map_err(|error| refusal::state(&error))?;
        let log = session.begin_log(OffsetDateTime::now_utc());
        let log = log.map_err(|error| refusal::state(&error))?;
        let asked = begin.elapsed().as_secs_f64();
        let progress = Progress::new(output, Some(&log), begin);
        let emit = |event: Event| progress.emit(&event);
        let (stop, stopped) = watch::channel(false);
        let control = Control {
            emit: &emit,
            stop: stopped,
        };
        // Only now is anything of the cluster's done to machines.
        let running = session.run(&planned, &self.file.file, &authorities, control);
        let outcome = interrupts.stopping(&stop, &progress, running).await;
        let outcome = outcome.map_err(refusal::run)?;
        let phases = progress.end();
        let ending = ending::Ending(&outcome);
        let rolls_back = self.rollback && ending.is_failure();
        ending.show(&ending::Show {
            planned: &planned,
            log: &log,
            admin_conf: &session.admin_conf(),
            was_up,
            asked,
            phases,
            seconds: begin.elapsed().as_secs_f64(),
            rolls_back: rolls_back && !was_up,
            progress: &progress,
            output,
        });
        let mut without = self.without(&planned);
        if self.named.is_none() {
            // They are as they were before the cluster.
            without.extend(outcome.gone.iter().cloned());
        }
        let ground = Ground {
            without: &without,
            ..ground
        };
        let scripts = if outcome.api && outcome.left == 0 {
            let scripts = interrupts.unless(self.hooks.after(&ground, output)).await;
            scripts.unwrap_or_else(|| Some(hooks::interrupted_afterwards()))
        } else {
            None
        };
        if rolls_back && was_up {
            eprintln!(
                "not rolled back: cluster {} was up before this run",
                cluster.id
            );
        }
        if rolls_back && !was_up {
            let back = cleanup::roll_back(session, &planned, &mut interrupts, output);
            if back.await?.is_none() {
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
        planned.disconnect().await;
        Ok(scripts.unwrap_or_else(|| ending.exit_code()))
    }

    /// The cluster, locked, as long as it is the one that the file was made from.
    async fn open(&self, home: Option<&Path>) -> anyhow::Result<Locked> {
        let id = &self.file.cluster.id;
        let mut session = cluster_file::open(home, id).await?;
        session.settings = self.settings.of_run();
        session.settings.named = self.named.map(<[Name]>::to_vec);
        if let Some(drain) = self.drain {
            session.settings.drain = drain;
        }
        let holder = Holder::this_process(self.command, OffsetDateTime::now_utc());
        let session = session.lock(holder).await;
        let session = session.map_err(|error| refusal::state(&error))?;
        if let Some(from) = self.from {
            let is_same = session.is_deploy_file(from.as_bytes()).await;
            if !is_same.map_err(|error| refusal::state(&error))? {
                let refused = Refused::new(format!("another run has changed cluster {id}"));
                return Err(refused.remedy("run the command again").into());
            }
        }
        Ok(session)
    }

    /// Machines on which no script of the user's runs.
    fn without(&self, planned: &Planned) -> BTreeSet<Name> {
        let machines = planned.wanted.cluster.all_machines();
        let is_left_out = |name: &&Name| {
            planned.observed.is_silent(name)
                || self.named.is_some_and(|named| !named.contains(name))
        };
        let names = machines.map(|node| &node.name).filter(is_left_out);
        names.cloned().collect()
    }
}
