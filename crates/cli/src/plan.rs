//! `plan`: shows what `deploy` would change, and changes nothing.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    authorities::Foreseen,
    diff::{Diff, Part},
    session::{Planned, Session},
};
use serde_json::json;

use crate::{
    cluster_file::{self, Given, GoodFile},
    interrupt::{self, Interrupts},
    output::Output,
    progress::Progress,
    refusal,
    saved_plan::SavedPlan,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// Write the plan to a file, for 'deploy --plan FILE'
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// End with 4 instead of 0 when there is something to do
    #[arg(long)]
    exit_code: bool,
    /// Maximum number of machines asked concurrently
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
}

/// The exit code for a plan with changes, where the user asks for it.
const SOMETHING_TO_DO: u8 = 4;

pub(crate) async fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let Some(file) = arguments.given.read(home, output).await? else {
        return Ok(ExitCode::from(2));
    };
    let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
    let planning = plan(&file, arguments, home, output);
    let done = interrupts.unless(planning).await;
    done.unwrap_or_else(|| Ok(interrupt::untouched()))
}

async fn plan(
    file: &GoodFile,
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let progress = Progress::new(output, None, Instant::now());
    let mut session = cluster_file::open(home, &file.cluster.id).await?;
    session.settings.parallel = arguments.parallel;
    let cluster = session.with_leaving(&file.cluster).await;
    let cluster = cluster.map_err(|error| refusal::state(&error))?;
    let planned = match session.plan(&cluster).await {
        Ok(planned) => planned,
        Err(refusal) => {
            progress.end();
            return Ok(refusal::show(&cluster.id, &refusal, output));
        }
    };
    let looked = look(&session, &planned).await;
    progress.end();
    planned.disconnect().await;
    let (diff, _) = looked?;
    refusal::findings(&planned.findings, output);
    if output.json() {
        output.print_json(&document(&planned, &diff));
    } else {
        output.print(&render(&diff, &planned.plan.notes));
    }
    if let Some(path) = &arguments.save
        && let Some(saved) = SavedPlan::new(&session, file, &planned, &diff.parts)
    {
        saved.write(path)?;
        if !output.json() {
            output.print(&format!(
                "  next: {} deploy --plan {} does exactly this\n",
                output.program(),
                path.display()
            ));
        }
    }
    Ok(match arguments.exit_code && !diff.is_empty() {
        true => ExitCode::from(SOMETHING_TO_DO),
        false => ExitCode::SUCCESS,
    })
}

/// What running a plan would change, and whether the cluster is new.
pub(crate) async fn look(session: &Session, planned: &Planned) -> anyhow::Result<(Diff, bool)> {
    let foreseen = session.foreseen_authorities(planned).await;
    let (authorities, is_new) = match foreseen.map_err(|error| refusal::authorities(&error))? {
        Foreseen::Kept(authorities) => (authorities, false),
        Foreseen::Imagined(authorities) => (authorities, true),
    };
    let diff = session.diff(planned, &authorities, is_new).await?;
    Ok((diff, is_new))
}

fn document(planned: &Planned, diff: &Diff) -> serde_json::Value {
    json!({
        "cluster": planned.wanted.cluster.id,
        "kubernetes": planned.wanted.versions.kubernetes.to_string(),
        "changes": diff.changes(),
        "machines": diff.machines(),
        "nothingToDo": diff.is_empty(),
        "parts": diff.parts,
        "notes": planned.plan.notes,
        "missing": planned.silent(),
        "leaving": planned.wanted.cluster.leaving().iter().map(|node| &node.name).collect::<Vec<_>>(),
    })
}

/// For people: by machine, then by part, with a summary in the last line.
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
    if part.is_empty() {
        return String::new();
    }
    let mut text = format!("  {}\n", part.title);
    for change in &part.changes {
        text += &format!(
            "    {} {}: {}\n",
            change.kind.mark(),
            change.what,
            change.why
        );
        for line in &change.lines {
            text += &format!("        {line}\n");
        }
    }
    if let Some(later) = &part.later {
        text += &format!("    … {later}\n");
    }
    text
}

/// What changes in a part, a line each.
pub(crate) fn lines(part: &Part) -> Vec<String> {
    let changes = part.changes.iter();
    let changes = changes.map(|one| format!("{} {}: {}", one.kind.mark(), one.what, one.why));
    changes.chain(part.later.clone()).collect()
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
            lines: Vec::new(),
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
