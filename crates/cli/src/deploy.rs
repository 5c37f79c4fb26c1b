//! `deploy`: makes a cluster, or what is left of making it.

mod ending;

use std::{
    path::{Path, PathBuf},
    pin::pin,
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    authorities::Authorities,
    deployment::{self, Request, Survey},
    event::Event,
    kubeconfig,
    reach::Surroundings,
    run::{Outcome, Run},
    state::{Directory, Expected, Holder, Key, Lock, Record, RunLog, Store as _},
};
use secrecy::{ExposeSecret as _, SecretSlice};
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::{
    cleanup,
    cluster_file::{self, Given, GoodFile},
    interrupt::{self, INTERRUPTED, Interrupts},
    output::Output,
    progress::Progress,
    refusal,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// How many machines are worked on at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
    /// When a new cluster cannot be made, put its machines back as they were
    #[arg(long)]
    rollback: bool,
}

pub(crate) fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let Some(file) = arguments.given.read(home, output)? else {
        return Ok(ExitCode::from(2));
    };
    let home = cluster_file::home(home)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot begin")?;
    runtime.block_on(deploy(&file, arguments, home, output))
}

async fn deploy(
    file: &GoodFile,
    arguments: &Arguments,
    home: PathBuf,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let now = OffsetDateTime::now_utc();
    let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
    let cluster = &file.cluster;
    let state = |error| refusal::state(&error);
    let store = Directory::new(&home, &cluster.id);
    let lock = store.lock(Holder::this_process("deploy", now)).await;
    let lock = lock.map_err(state)?;
    let known = Record::find(&store, &cluster.id).await.map_err(state)?;
    let record = match &known {
        Some(record) => record.clone(),
        None => Record::new(&cluster.id, now).map_err(state)?,
    };
    let surroundings = Surroundings::of_process(home);
    let request = Request {
        cluster,
        identity: &record.identity(),
        surroundings: &surroundings,
        base: std::env::current_dir().context("cannot tell where this runs")?,
        parallel: arguments.parallel,
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
    let authorities = Authorities::load_or_create(&store, &lock, &cluster.certificates, now).await;
    let authorities = authorities.map_err(|error| refusal::authorities(&error))?;
    // Machines and authorities can be used: only now does the cluster exist.
    if known.is_none() {
        record.keep(&store).await.map_err(state)?;
    }
    file.remember(&store).await.map_err(state)?;
    let log = RunLog::begin(&store, now).map_err(state)?;
    let asked = begin.elapsed().as_secs_f64();
    let progress = Progress::new(output, Some(&log), begin);
    for note in &survey.plan.notes {
        progress.tell(&Event::Note { text: note.clone() });
    }
    let outcome = carry_out(
        file,
        &survey,
        &authorities,
        arguments.parallel,
        &progress,
        &mut interrupts,
    )
    .await;
    let ending = ending::Ending::of(cluster, &survey, &outcome);
    if ending.has_api() {
        let text = kubeconfig::issue(cluster, &authorities, OffsetDateTime::now_utc())?;
        let bytes = SecretSlice::from(text.expose_secret().as_bytes().to_vec());
        let written = store.write(Key::ADMIN_CONF, bytes, Expected::Anything);
        written.await.map_err(state)?;
    }
    let phases = progress.end();
    let rolls_back = arguments.rollback && ending.is_failure();
    ending.show(&ending::Show {
        cluster,
        survey: &survey,
        outcome: &outcome,
        log: &log,
        admin_conf: &store.place(Key::ADMIN_CONF),
        asked,
        phases,
        seconds: begin.elapsed().as_secs_f64(),
        rolls_back: rolls_back && is_new(&survey),
        progress: &progress,
        output,
    });
    if rolls_back {
        roll_back(file, &survey, store, lock, arguments.parallel, output).await?;
    } else {
        for machine in &survey.machines {
            machine.disconnect().await;
        }
    }
    Ok(ending.exit_code())
}

/// Carries the plan out; the first Ctrl-C stops it in a clean state, the second leaves at once.
async fn carry_out(
    file: &GoodFile,
    survey: &Survey,
    authorities: &Authorities,
    parallel: usize,
    progress: &Progress<'_>,
    interrupts: &mut Interrupts,
) -> Outcome {
    let tell = |event: Event| progress.tell(&event);
    let (stop, stopped) = watch::channel(false);
    let run = Run::new(
        &file.cluster,
        &survey.machines,
        &survey.managed,
        authorities,
        parallel,
        &tell,
    );
    let run = run.without(&survey.missing).stopped_by(stopped);
    let mut work = pin!(run.carry_out(&survey.plan));
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
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

/// Whether no machine held anything of ours when it was asked.
fn is_new(survey: &Survey) -> bool {
    let mut managed = survey.managed.iter();
    managed.all(|managed| managed.cluster.is_none())
}

/// Puts the machines of a cluster back that this run was the first to touch.
async fn roll_back(
    file: &GoodFile,
    survey: &Survey,
    store: Directory,
    lock: Lock,
    parallel: usize,
    output: &Output,
) -> anyhow::Result<()> {
    if !is_new(survey) {
        eprintln!(
            "not rolled back: cluster {} was there before this run",
            file.cluster.id
        );
        return Ok(());
    }
    eprintln!("rolling back");
    let bad = cleanup::clean(&file.cluster, &survey.machines, parallel, output).await;
    cleanup::finish(&file.cluster, &bad, &store, lock, output).await?;
    Ok(())
}
