//! `deploy`: makes a cluster, or what is left of making it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Mutex,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    authorities::Authorities,
    deployment::{self, Request, Survey},
    event::Event,
    reach::Surroundings,
    run::{Outcome, Run},
    state::{Directory, Expected, Holder, Key, Record, RunLog, Store as _},
};
use hatchery_spec::Cluster;
use secrecy::SecretSlice;
use time::OffsetDateTime;

use crate::{
    cluster_file::{self, Given},
    output::Output,
    refusal,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// How many machines are worked on at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
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
    runtime.block_on(deploy(
        &file.cluster,
        &file.text,
        arguments.parallel,
        home,
        output,
    ))
}

async fn deploy(
    cluster: &Cluster,
    text: &str,
    parallel: usize,
    home: PathBuf,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let now = OffsetDateTime::now_utc();
    let store = Directory::new(&home, &cluster.id);
    let lock = store
        .lock(Holder::this_process("deploy", now))
        .await
        .map_err(|error| refusal::state(&error))?;
    // Whether the machines can be used is known before the cluster exists.
    let record = Record::find(&store, &cluster.id)
        .await
        .map_err(|error| refusal::state(&error))?;
    let record = match record {
        Some(record) => record,
        None => Record::find_or_make(&store, &cluster.id, now)
            .await
            .map_err(|error| refusal::state(&error))?,
    };
    let surroundings = Surroundings::of_process(home);
    let request = Request {
        cluster,
        identity: &record.identity(),
        surroundings: &surroundings,
        base: std::env::current_dir().context("cannot tell where this runs")?,
        parallel,
    };
    let survey = match deployment::survey(&request, |_, _| ()).await {
        Ok(survey) => survey,
        Err(refusal) => return Ok(refusal::show(cluster, &refusal, output)),
    };
    refusal::findings(&survey.findings, output);
    for note in &survey.plan.notes {
        output.print(&format!("note: {note}\n"));
    }
    let authorities = Authorities::load_or_create(&store, &lock, &cluster.certificates, now).await;
    let authorities = authorities.map_err(|error| refusal::authorities(&error))?;
    let bytes = SecretSlice::from(text.as_bytes().to_vec());
    store
        .write(Key::DEPLOY_FILE, bytes, Expected::Anything)
        .await
        .map_err(|error| refusal::state(&error))?;
    let log = RunLog::begin(&store, now).map_err(|error| refusal::state(&error))?;
    let printer = Printer {
        output,
        log: &log,
        begin,
        gate: Mutex::new(()),
    };
    let tell = |event: Event| printer.tell(&event);
    let run = Run::new(
        cluster,
        &survey.machines,
        &survey.managed,
        &authorities,
        parallel,
        &tell,
    );
    let outcome = run.carry_out(&survey.plan).await;
    for machine in &survey.machines {
        machine.disconnect().await;
    }
    Ok(finish(cluster, &survey, &outcome, &log, begin, output))
}

/// The whole in the last lines.
fn finish(
    cluster: &Cluster,
    survey: &Survey,
    outcome: &Outcome,
    log: &RunLog,
    begin: Instant,
    output: &Output,
) -> ExitCode {
    let seconds = begin.elapsed().as_secs_f64();
    let changes = match outcome.changes {
        0 => "nothing had to be changed".to_owned(),
        count => number(count, "change"),
    };
    let version = survey.versions.kubernetes;
    let mut failed: Vec<String> = survey
        .missing
        .iter()
        .map(|place| cluster.machines()[*place].name.to_string())
        .collect();
    let whole = outcome
        .failed
        .iter()
        .any(|failure| failure.machine.is_none());
    for failure in &outcome.failed {
        let name = failure
            .machine
            .map(|place| cluster.machines()[place].name.to_string());
        if let Some(name) = name.filter(|name| !failed.contains(name)) {
            failed.push(name);
        }
    }
    if failed.is_empty() && !whole {
        output.print(&format!(
            "\ncluster {} is up: Kubernetes {version}, {changes}, {seconds:.1} s\n",
            cluster.id
        ));
        output.print(&format!("  next: {} kubeconfig --id {} > admin.conf && kubectl --kubeconfig admin.conf get nodes\n", output.program(), cluster.id));
        return ExitCode::SUCCESS;
    }
    let up = !whole;
    let what = if up { "is up in part" } else { "is not up" };
    output.print(&format!(
        "\ncluster {} {what}: {changes}, {seconds:.1} s\n",
        cluster.id
    ));
    output.print(&format!("  not done: {}\n", failed.join(", ")));
    output.print(&format!(
        "  log: {}\n  next: run the same command again; what is done stays done\n",
        log.path().display()
    ));
    if up {
        ExitCode::from(3)
    } else {
        ExitCode::FAILURE
    }
}

struct Printer<'a> {
    output: &'a Output,
    log: &'a RunLog,
    begin: Instant,
    /// Lines of one event stay together.
    gate: Mutex<()>,
}

impl Printer<'_> {
    fn tell(&self, event: &Event) {
        // A full disk does not stop a deployment.
        let _ = self.log.event(event);
        let _gate = self.gate.lock();
        if self.output.json() {
            if let Ok(value) = serde_json::to_value(event) {
                self.output.print(&format!("{value}\n"));
            }
            return;
        }
        let at = self.begin.elapsed().as_secs_f64();
        let line = match event {
            Event::Finished {
                title,
                changes,
                bytes,
                seconds,
                ..
            } => {
                let changes = match changes {
                    0 => "unchanged".to_owned(),
                    count => number(*count, "change"),
                };
                let sent = match bytes >> 20 {
                    0 => String::new(),
                    megabytes => format!(", {megabytes} MiB"),
                };
                format!("{at:6.1} s  {title}: {changes}{sent}, {seconds:.1} s\n")
            }
            Event::Failed {
                title,
                reason,
                remedy,
                ..
            } => {
                let remedy = remedy
                    .as_ref()
                    .map(|remedy| format!("          {remedy}\n"));
                format!(
                    "{at:6.1} s  {title} failed: {reason}\n{}",
                    remedy.unwrap_or_default()
                )
            }
            Event::Skipped { title, because, .. } => {
                format!("{at:6.1} s  {title}: not begun, since “{because}” failed\n")
            }
            Event::Note { text } => format!("note: {text}\n"),
            Event::Started { .. } | Event::Step { .. } => return,
        };
        self.output.print(&line);
    }
}
