//! `cleanup`: takes a cluster away and puts its machines back as they were.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    cleanup::{self, Cleaned},
    preflight::{self, Manners},
    reach::{self, Surroundings},
    state::{self, Directory, Holder, Lock, Record, Store as _},
};
use hatchery_host::{machine::Machine, script::Identity, transport::ssh::Patience};
use hatchery_spec::Cluster;
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    cluster_file::{self, Named},
    interrupt::{INTERRUPTED, Interrupts},
    output::{Output, Refused},
    refusal,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// How many machines are worked on at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
}

pub(crate) fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let home = cluster_file::home(home)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot begin")?;
    runtime.block_on(remove(arguments, home, output))
}

async fn remove(arguments: &Arguments, home: PathBuf, output: &Output) -> anyhow::Result<ExitCode> {
    let Some(file) = arguments.named.read(&home, output).await? else {
        return Ok(ExitCode::from(2));
    };
    let cluster = &file.cluster;
    let count = number(cluster.machines().len(), "machine");
    let store = Directory::new(&home, &cluster.id);
    let surroundings = Surroundings::of_process(home);
    let state = |error| refusal::state(&error);
    let record = Record::find(&store, &cluster.id).await.map_err(state)?;
    let (identity, question) = match record {
        Some(record) => (
            record.identity(),
            format!("cluster {} is removed from {count}", cluster.id),
        ),
        None => {
            let Some(identity) = holder(cluster, &surroundings, arguments.parallel).await? else {
                let refused = Refused::new(format!(
                    "nothing is known of a cluster {}, neither here nor on its machines",
                    cluster.id
                ));
                return Err(refused
                    .remedy("use the --home that it was made with")
                    .into());
            };
            let question = format!(
                "nothing is known here of a cluster {}, but its machines say that they are held by one of this name \
                 ({}): it is removed from {count}",
                cluster.id, identity.cluster
            );
            (identity, question)
        }
    };
    if !arguments.yes && !agreed(&question)? {
        eprintln!("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
    let holder = Holder::this_process("cleanup", OffsetDateTime::now_utc());
    let lock = store.lock(holder).await.map_err(state)?;
    let machines = machines(cluster, &identity, &surroundings)?;
    let cleaning = clean(cluster, &machines, arguments.parallel, output);
    let Some(bad) = interrupts.unless(cleaning).await else {
        eprintln!("\nstopped; run the same command again to go on");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    finish(cluster, &bad, &store, lock, output).await
}

fn machines(
    cluster: &Cluster,
    identity: &Identity,
    surroundings: &Surroundings,
) -> Result<Vec<Arc<Machine>>, Refused> {
    let machines = reach::machines(cluster, identity, surroundings, &Patience::default());
    let machines = machines.map_err(|errors| refusal::reach(&errors))?;
    Ok(machines.into_iter().map(Arc::new).collect())
}

/// For whom the machines say they are held, where nothing is remembered.
async fn holder(
    cluster: &Cluster,
    surroundings: &Surroundings,
    parallel: usize,
) -> Result<Option<Identity>, Refused> {
    let nobody = state::nobody(&cluster.id);
    let machines = reach::machines(cluster, &nobody, surroundings, &Patience::default());
    let machines = machines.map_err(|errors| refusal::reach(&errors))?;
    let manners = Manners {
        parallel,
        ..Manners::default()
    };
    let replies = preflight::ask(&machines, manners, |_, _| ()).await;
    let managed = replies.iter().flatten().map(|(_, managed)| managed);
    cleanup::holder(&cluster.id, managed).map_err(|ids| {
        Refused::new(format!(
            "the machines are held by several clusters that are called {}: {}",
            cluster.id,
            ids.join(", ")
        ))
        .remedy("take the machines of all but one out of the file")
    })
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

/// Puts machines back, and tells which could not be.
pub(crate) async fn clean(
    cluster: &Cluster,
    machines: &[Arc<Machine>],
    parallel: usize,
    output: &Output,
) -> Vec<String> {
    let begin = Instant::now();
    let nodes = cluster.machines();
    let results = cleanup::clean(machines, parallel, |place, cleaned| {
        let (at, name) = (begin.elapsed().as_secs_f64(), &nodes[place].name);
        match output.json() {
            true => output.print_json(&document(name.as_str(), cleaned, at)),
            false => output.print(&format!("{at:6.1} s  {name}: {}\n", describe(cleaned))),
        }
    })
    .await;
    let bad = nodes.iter().zip(&results).filter(|(_, one)| !is_clean(one));
    bad.map(|(node, _)| node.name.to_string()).collect()
}

/// Forgets a cluster of which nothing is left, and says how it ended.
pub(crate) async fn finish(
    cluster: &Cluster,
    bad: &[String],
    store: &Directory,
    lock: Lock,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let id = &cluster.id;
    if bad.is_empty() {
        let removed = store.remove(lock).await;
        removed.map_err(|error| refusal::state(&error))?;
    }
    match (output.json(), bad) {
        (true, bad) => output.print_json(&json!({
            "event": "ended",
            "cluster": id,
            "state": if bad.is_empty() { "gone" } else { "partial" },
            "notClean": bad,
        })),
        (false, []) => output.print(&format!("\ncluster {id} is gone\n")),
        (false, bad) => output.print(&format!(
            "\ncluster {id} is gone in part\n  not clean: {}\n  next: run the same command again\n",
            bad.join(", ")
        )),
    }
    Ok(if bad.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}

fn is_clean(cleaned: &Cleaned) -> bool {
    cleaned.as_ref().is_ok_and(|undone| undone.left.is_empty())
}

fn describe(cleaned: &Cleaned) -> String {
    match cleaned {
        Err(error) => match error.remedy() {
            Some(remedy) => format!("{error}\n          {remedy}"),
            None => error.to_string(),
        },
        Ok(undone) if undone.left.is_empty() => match undone.restored.len() {
            0 => "there was nothing of ours".to_owned(),
            count => format!("as it was, {}", number(count, "change")),
        },
        Ok(undone) => {
            let left = undone.left.iter();
            let lines: Vec<_> = left
                .map(|left| format!("{}: {}", left.resource, left.reason))
                .collect();
            format!("not as it was:\n          {}", lines.join("\n          "))
        }
    }
}

fn document(name: &str, cleaned: &Cleaned, at: f64) -> serde_json::Value {
    let mut document = json!({
        "event": "cleaned",
        "machine": name,
        "ok": is_clean(cleaned),
        "seconds": at,
    });
    match cleaned {
        Ok(undone) => {
            document["restored"] = undone.restored.len().into();
            document["kept"] = json!(undone.kept);
            let left = undone.left.iter();
            let left = left.map(|left| json!({"what": left.resource, "why": left.reason}));
            document["left"] = left.collect();
        }
        Err(error) => {
            document["reason"] = error.to_string().into();
            document["remedy"] = json!(error.remedy());
        }
    }
    document
}
