//! `deploy`: makes a cluster, or what is left of making it.

mod ending;

use std::{
    path::{Path, PathBuf},
    pin::pin,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use hatchery_engine::{
    api::Drain,
    authorities::Authorities,
    command_hook::Operator,
    deployment::{self, Request, Survey},
    event::Event,
    kubeconfig,
    plan::runs,
    run::{Outcome, Run, Timeouts},
    state::{
        Claim, Directory, Error as StateError, Expected, Holder, Key, Lock, Record, RunLog,
        Store as _,
    },
};
use hatchery_spec::{
    Cluster,
    value::{GoDuration, Name},
};
use secrecy::{ExposeSecret as _, SecretSlice};
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::{
    cleanup,
    cluster_file::{self, Given, GoodFile},
    hooks::{self, Ground, Hooks},
    interrupt::{self, INTERRUPTED, Interrupts},
    output::{Output, Refused},
    progress::Progress,
    recall, refusal,
    removal::Removal,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
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
    /// How long a node, or the pods of an addon, may take to become ready
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub(crate) timeout: GoDuration,
}

/// How long pods may take to leave a node.
pub(crate) const DRAIN: Drain = Drain {
    deadline: Duration::from_secs(300),
    force: false,
    skip: false,
    is_silent: false,
};

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

pub(crate) fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let Some(file) = arguments.given.read(home, output)? else {
        return Ok(ExitCode::from(2));
    };
    let hooks = arguments.hooks.load(Operator::Deploy, output)?;
    let home = cluster_file::home(home)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot begin")?;
    let change = Change {
        command: "deploy",
        file: &file,
        from: None,
        removal: arguments.removal,
        rollback: arguments.rollback,
        settings: &arguments.settings,
        drain: DRAIN,
        hooks: &hooks,
        named: None,
    };
    runtime.block_on(apply(change, home, output))
}

/// A file that a cluster is to follow, and how.
pub(crate) struct Change<'a> {
    /// The command, for whoever waits for the lock.
    pub(crate) command: &'static str,
    pub(crate) file: &'a GoodFile,
    /// The file that this one was made from: it has to be the remembered one still.
    pub(crate) from: Option<&'a [u8]>,
    /// What the user says of machines that leave.
    pub(crate) removal: Removal,
    pub(crate) rollback: bool,
    pub(crate) settings: &'a Settings,
    pub(crate) drain: Drain,
    pub(crate) hooks: &'a Hooks,
    /// The machines that the command names: on these alone scripts run, and of these alone is true how nodes are drained.
    pub(crate) named: Option<&'a [Name]>,
}

/// Brings a cluster to what a file says.
pub(crate) async fn apply(
    change: Change<'_>,
    home: PathBuf,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let Change {
        file,
        hooks,
        settings,
        ..
    } = change;
    let begin = Instant::now();
    let now = OffsetDateTime::now_utc();
    let state = |error| refusal::state(&error);
    let store = Directory::new(&home, &file.cluster.id);
    let lock = store.lock(Holder::this_process(change.command, now)).await;
    let lock = lock.map_err(state)?;
    if let Some(from) = change.from {
        let found = store.read(Key::DEPLOY_FILE).await.map_err(state)?;
        if found.is_none_or(|found| found.bytes.expose_secret() != from) {
            let refused = Refused::new(format!(
                "another run has changed cluster {}",
                file.cluster.id
            ));
            return Err(refused.remedy("run the command again").into());
        }
    }
    let known = recall::record(&home, &file.cluster.id).await?;
    let cluster = &recall::with_leaving(&file.cluster, &store, known.as_ref()).await?;
    if !change.removal.agreed(cluster)? {
        eprintln!("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
    let mut record = match &known {
        Some(record) => record.clone(),
        None => Record::new(&cluster.id, now).map_err(state)?,
    };
    let environment = cluster_file::environment(home);
    let request = Request {
        cluster,
        identity: &record.identity(),
        remembered: known.as_ref(),
        environment: &environment,
        base: std::env::current_dir().context("cannot tell where this runs")?,
        parallel: settings.parallel,
    };
    let asking = Progress::new(output, None, begin);
    let survey = interrupts
        .unless(deployment::survey(&request, |_, _| ()))
        .await;
    asking.end();
    let survey = match survey {
        None => return Ok(interrupt::untouched()),
        Some(Err(refusal)) => return Ok(refusal::show(cluster, &refusal, output)),
        Some(Ok(survey)) => survey,
    };
    refusal::findings(&survey.findings, output);
    let external_ca = environment.external_ca(&cluster.certificates)?;
    record.formed |= survey.formed;
    let authorities =
        Authorities::load_or_create(&store, &lock, record.formed, external_ca.as_deref(), now);
    let authorities = authorities.await;
    let authorities = authorities.map_err(|error| refusal::authorities(&error))?;
    let ground = Ground {
        cluster,
        machines: &survey.machines,
        without: &unhooked(cluster, &survey, change.named),
        parallel: settings.parallel,
    };
    match interrupts.unless(hooks.before(&ground, output)).await {
        None => return Ok(hooks::interrupted()),
        Some(Some(failed)) => return Ok(failed),
        Some(None) => {}
    }
    // Only now is anything of the cluster's done to machines. The file comes first: it says how claimed machines are
    // reached.
    let claims = record.claims();
    file.remember(&store, claims).await.map_err(state)?;
    claim(&mut record, cluster, &survey);
    if known.as_ref() != Some(&record) {
        record.save(&store, &lock).await.map_err(state)?;
    }
    let log = RunLog::begin(&store, now).map_err(state)?;
    let asked = begin.elapsed().as_secs_f64();
    let progress = Progress::new(output, Some(&log), begin);
    for note in &survey.plan.notes {
        progress.emit(&Event::Note { text: note.clone() });
    }
    let was_up = record.formed || was_up(&store, &survey).await.map_err(state)?;
    let work = Work {
        cluster,
        survey: &survey,
        authorities: &authorities,
        settings,
        drain: change.drain,
        named: change.named,
        store: &store,
        lock: &lock,
        record: &record,
    };
    let outcome = work.execute(&progress, &mut interrupts).await?;
    record.formed |= outcome.api;
    if ending::has_control_plane(cluster, &survey.missing, &outcome) {
        let before = record.clone();
        record.reach();
        if record != before {
            record.save(&store, &lock).await.map_err(state)?;
        }
    }
    if !outcome.gone.is_empty() {
        let gone = |claim: &Claim| {
            let mut gone = outcome.gone.iter();
            gone.any(|place| claim.is_on(cluster.machine(*place)))
        };
        record.release(|claim| !gone(claim));
        record.save(&store, &lock).await.map_err(state)?;
    }
    let forgotten = cluster_file::forget_earlier(cluster, &store, record.claims());
    forgotten.await.map_err(state)?;
    let ending = ending::Ending::of(cluster, &survey, &outcome);
    let phases = progress.end();
    let rolls_back = change.rollback && ending.is_failure();
    ending.show(&ending::Show {
        cluster,
        survey: &survey,
        outcome: &outcome,
        log: &log,
        admin_conf: &store.place(Key::ADMIN_CONF),
        asked,
        phases,
        seconds: begin.elapsed().as_secs_f64(),
        rolls_back: rolls_back && !was_up,
        progress: &progress,
        output,
    });
    let mut unhooked = unhooked(cluster, &survey, change.named);
    if change.named.is_none() {
        // They are as they were before the cluster.
        unhooked.extend(&outcome.gone);
    }
    let ground = Ground {
        without: &unhooked,
        ..ground
    };
    let scripts = if ending.has_api() && outcome.left == 0 {
        let scripts = interrupts.unless(hooks.after(&ground, output)).await;
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
        let rolling_back = roll_back(cluster, &survey, store, lock, settings.parallel, output);
        match interrupts.unless(rolling_back).await {
            Some(rolled_back) => rolled_back?,
            None => {
                eprintln!("\nstopped; cleanup -f with the same file goes on");
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
    } else {
        for machine in &survey.machines {
            machine.disconnect().await;
        }
    }
    Ok(scripts.unwrap_or_else(|| ending.exit_code()))
}

/// Machines on which no script of the user's runs.
fn unhooked(cluster: &Cluster, survey: &Survey, names: Option<&[Name]>) -> Vec<usize> {
    let is_left_out = |place: &usize| {
        let name = &cluster.machine(*place).name;
        survey.missing.contains(place) || names.is_some_and(|names| !names.contains(name))
    };
    (0..survey.machines.len()).filter(is_left_out).collect()
}

/// Writes down what is about to be touched, and with what. A machine that did not answer is not touched.
fn claim(record: &mut Record, cluster: &Cluster, survey: &Survey) {
    let machines = cluster.machines().iter().enumerate();
    let present = machines.filter(|(place, _)| !survey.missing.contains(place));
    record.claim(present.map(|(_, machine)| machine));
    record.begin(&survey.versions);
}

/// What is carried out, and with what.
struct Work<'a> {
    cluster: &'a Cluster,
    survey: &'a Survey,
    authorities: &'a Authorities,
    settings: &'a Settings,
    drain: Drain,
    named: Option<&'a [Name]>,
    store: &'a Directory,
    lock: &'a Lock,
    /// As it was written before the first task.
    record: &'a Record,
}

impl Work<'_> {
    /// Carries the plan out; the first Ctrl-C stops it in a clean state, the second leaves at once. The administrator's
    /// kubeconfig is there as soon as the API answers, whatever becomes of the rest.
    async fn execute(
        &self,
        progress: &Progress<'_>,
        interrupts: &mut Interrupts,
    ) -> anyhow::Result<Outcome> {
        let emit = |event: Event| progress.emit(&event);
        let (stop, stopped) = watch::channel(false);
        let run = Run::new(
            self.cluster,
            &self.survey.machines,
            &self.survey.managed,
            self.authorities,
            self.settings.parallel,
            &emit,
        );
        let run = run
            .without(&self.survey.missing)
            .stopped_by(stopped)
            .draining(self.drain, self.named)
            .with_timeouts(Timeouts {
                ready: self.settings.timeout.get(),
                ..Timeouts::default()
            });
        let mut up = run.up();
        let mut is_up = false;
        let mut work = pin!(run.execute(&self.survey.plan));
        loop {
            tokio::select! {
                biased;
                answers = async { up.wait_for(|up| *up).await.is_ok() }, if !is_up => {
                    is_up = true;
                    if answers {
                        self.remember_that_it_is_up().await?;
                        self.write_admin_conf().await?;
                    }
                }
                outcome = &mut work => return Ok(outcome),
                () = interrupts.next() => {
                    if stop.send_replace(true) {
                        progress.end();
                        progress.say("left at once; run the same command again to go on");
                        std::process::exit(INTERRUPTED.into());
                    }
                    progress.say("stopping: no new task begins, what is under way is finished; Ctrl-C again leaves at once");
                }
            }
        }
    }

    /// From now on etcd holds what belongs to somebody.
    async fn remember_that_it_is_up(&self) -> anyhow::Result<()> {
        if !self.record.formed {
            let mut record = self.record.clone();
            record.formed = true;
            let saved = record.save(self.store, self.lock).await;
            saved.map_err(|error| refusal::state(&error))?;
        }
        Ok(())
    }

    async fn write_admin_conf(&self) -> anyhow::Result<()> {
        let now = OffsetDateTime::now_utc();
        let text = kubeconfig::issue(self.cluster, self.authorities, now)?;
        let bytes = SecretSlice::from(text.expose_secret().as_bytes().to_vec());
        let written = self
            .store
            .write(Key::ADMIN_CONF, bytes, Expected::Anything)
            .await;
        written.map_err(|error| refusal::state(&error))?;
        Ok(())
    }
}

/// Whether the cluster's API has answered in an earlier run, or may have: etcd or an API server runs.
async fn was_up(store: &Directory, survey: &Survey) -> Result<bool, StateError> {
    let known = store.read(Key::ADMIN_CONF).await?.is_some();
    let mut managed = survey.managed.iter();
    let units = ["etcd.service", "kube-apiserver.service"];
    Ok(known || managed.any(|managed| units.iter().any(|unit| runs(managed, unit))))
}

/// Puts the machines of a cluster back that never was up.
async fn roll_back(
    cluster: &Cluster,
    survey: &Survey,
    store: Directory,
    lock: Lock,
    parallel: usize,
    output: &Output,
) -> anyhow::Result<()> {
    eprintln!("rolling back");
    let nodes: Vec<_> = cluster.all_machines().collect();
    let left = cleanup::clean(&nodes, &survey.machines, parallel, output).await;
    cleanup::finish(&cluster.id, &left, false, &store, lock, output).await?;
    Ok(())
}
