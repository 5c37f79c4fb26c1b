//! `plan`: shows what `deploy` would change, and changes nothing.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use hatchery_engine::{
    authorities::{Authorities, Foreseen},
    deployment::{self, Request, Survey},
    diff::{self, Diff, Looking, Part},
    run::Run,
    state::{self, Directory},
};
use hatchery_spec::Cluster;
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    cluster_file::{self, Given},
    interrupt::{self, Interrupts},
    output::Output,
    progress::Progress,
    recall, refusal,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// End with 4 instead of 0 when there is something to do
    #[arg(long)]
    exit_code: bool,
    /// How many machines are looked at at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
}

/// The exit code for a plan with changes, where the user asks for it.
const SOMETHING_TO_DO: u8 = 4;

/// The API of a cluster that exists has so long to answer.
const API: Duration = Duration::from_secs(10);

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
    runtime.block_on(async {
        let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
        let planning = plan(&file.cluster, arguments, home, output);
        let done = interrupts.unless(planning).await;
        done.unwrap_or_else(|| Ok(interrupt::untouched()))
    })
}

async fn plan(
    cluster: &Cluster,
    arguments: &Arguments,
    home: PathBuf,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let progress = Progress::new(output, None, Instant::now());
    let store = Directory::new(&home, &cluster.id);
    let record = recall::record(&home, &cluster.id).await?;
    let cluster = &recall::with_leaving(cluster, &store, record.as_ref()).await?;
    let identity = match &record {
        Some(record) => record.identity(),
        None => state::nobody(&cluster.id),
    };
    let environment = cluster_file::environment(home);
    let request = Request {
        cluster,
        identity: &identity,
        remembered: record.as_ref(),
        environment: &environment,
        base: std::env::current_dir().context("cannot tell where this runs")?,
        parallel: arguments.parallel,
    };
    let survey = match deployment::survey(&request, |_, _| ()).await {
        Ok(survey) => survey,
        Err(refusal) => {
            progress.end();
            return Ok(refusal::show(cluster, &refusal, output));
        }
    };
    let external_ca = environment.external_ca(&cluster.certificates)?;
    let now = OffsetDateTime::now_utc();
    let formed = survey.formed || record.is_some_and(|record| record.formed);
    let foreseen = Authorities::load_or_imagine(&store, formed, external_ca.as_deref(), now).await;
    let (authorities, is_new) = match foreseen.map_err(|error| refusal::authorities(&error))? {
        Foreseen::Kept(authorities) => (authorities, false),
        Foreseen::Imagined(authorities) => (authorities, true),
    };
    let emit = |_| ();
    let run = Run::new(
        cluster,
        &survey.machines,
        &survey.managed,
        &authorities,
        arguments.parallel,
        &emit,
    )
    .without(&survey.missing);
    let api = match is_new {
        true => None,
        false => match tokio::time::timeout(API, run.api(&|_| ())).await {
            Ok(Ok(api)) => Some(api),
            Ok(Err(_)) | Err(_) => None,
        },
    };
    let diff = diff::look(Looking {
        cluster,
        survey: &survey,
        authorities: &authorities,
        api,
        parallel: arguments.parallel,
    })
    .await;
    progress.end();
    for machine in &survey.machines {
        machine.disconnect().await;
    }
    let diff = diff?;
    refusal::findings(&survey.findings, output);
    if output.json() {
        output.print_json(&document(cluster, &survey, &diff));
    } else {
        output.print(&render(&diff, &survey.plan.notes));
    }
    Ok(match arguments.exit_code && !diff.is_empty() {
        true => ExitCode::from(SOMETHING_TO_DO),
        false => ExitCode::SUCCESS,
    })
}

fn document(cluster: &Cluster, survey: &Survey, diff: &Diff) -> serde_json::Value {
    let missing = survey.missing.iter();
    let missing: Vec<_> = missing
        .map(|place| cluster.machine(*place).name.as_str())
        .collect();
    json!({
        "cluster": cluster.id,
        "kubernetes": survey.versions.kubernetes.to_string(),
        "changes": diff.changes(),
        "machines": diff.machines(),
        "nothingToDo": diff.is_empty(),
        "parts": diff.parts,
        "notes": survey.plan.notes,
        "missing": missing,
    })
}

/// For people: by machine, then by part, the whole in the last line.
fn render(diff: &Diff, notes: &[String]) -> String {
    let mut text = String::new();
    for note in notes {
        text += &format!("note: {note}\n");
    }
    let mut subjects: Vec<Option<&str>> = Vec::new();
    for part in &diff.parts {
        let subject = part.machine.as_deref();
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    for subject in subjects {
        let parts = diff.parts.iter();
        let parts = parts.filter(|part| part.machine.as_deref() == subject);
        let lines: String = parts.map(render_part).collect();
        if !lines.is_empty() {
            text += &format!("{}\n{lines}\n", subject.unwrap_or("API"));
        }
    }
    if diff.is_empty() {
        return text + "nothing to do\n";
    }
    let api = diff.api_changes();
    let changes = number(diff.changes() - api, "change");
    let machines = number(diff.machines(), "machine");
    let api = match api {
        0 => String::new(),
        count => format!(", {count} through the API"),
    };
    let later = match diff.parts.iter().any(|part| part.later.is_some()) {
        true => ", and what comes after the masters are up",
        false => "",
    };
    text + &format!("Plan: {changes} on {machines}{api}{later}\n")
}

fn render_part(part: &Part) -> String {
    let mut text = String::new();
    if !part.changes.is_empty() || part.later.is_some() {
        text += &format!("  {}\n", part.title);
    }
    for change in &part.changes {
        text += &format!(
            "    {} {}: {}\n",
            change.kind.mark(),
            change.what,
            change.why
        );
    }
    if let Some(later) = &part.later {
        text += &format!("    … {later}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use hatchery_engine::diff::{Change, Kind};

    use super::*;

    fn part(machine: Option<&str>, title: &str, changes: &[(Kind, &str, &str)]) -> Part {
        let change = |(kind, what, why): &(Kind, &str, &str)| Change {
            kind: *kind,
            what: (*what).into(),
            why: (*why).into(),
        };
        Part {
            machine: machine.map(Into::into),
            title: title.into(),
            changes: changes.iter().map(change).collect(),
            later: None,
        }
    }

    #[test]
    fn a_plan_is_told_by_machine() {
        let mut dns = part(None, "cluster DNS", &[]);
        dns.later = Some("9 objects are applied after the masters are up".into());
        let diff = Diff {
            parts: vec![
                part(Some("m-1"), "prepare", &[(Kind::New, "file /a", "new")]),
                part(Some("m-2"), "prepare", &[]),
                part(
                    Some("m-1"),
                    "etcd",
                    &[(Kind::Changed, "unit etcd.service", "enabled, started")],
                ),
                dns,
            ],
        };
        let expected = "\
note: look here
m-1
  prepare
    + file /a: new
  etcd
    ~ unit etcd.service: enabled, started

API
  cluster DNS
    … 9 objects are applied after the masters are up

Plan: 2 changes on 1 machine, and what comes after the masters are up
";
        assert_eq!(render(&diff, &["look here".into()]), expected);
    }

    #[test]
    fn changes_through_the_api_are_counted_apart() {
        let diff = Diff {
            parts: vec![
                part(Some("m-1"), "prepare", &[(Kind::New, "file /a", "new")]),
                part(
                    None,
                    "nodes ready",
                    &[(Kind::Changed, "node m-1", "labels")],
                ),
            ],
        };
        let text = render(&diff, &[]);
        assert!(
            text.ends_with("\nPlan: 1 change on 1 machine, 1 through the API\n"),
            "{text}"
        );
    }

    #[test]
    fn nothing_to_do_is_said() {
        let diff = Diff {
            parts: vec![part(Some("m-1"), "prepare", &[]), part(None, "pods", &[])],
        };
        assert_eq!(render(&diff, &[]), "nothing to do\n");
    }
}
