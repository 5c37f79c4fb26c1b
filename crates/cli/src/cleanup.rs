//! `cleanup`: takes a cluster away and puts its machines back as they were.

use std::{
    io::{self, IsTerminal as _, Write as _},
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    cleanup::{self, Cleaned},
    command_hook::Operator,
    name_list::NameList,
    preflight::{self, AskOptions},
    reach::{self, Environment},
    state::{self, Claim, Directory, Holder, Key, Lock, Record, Store as _},
};
use hatchery_host::{
    machine::{self, Machine},
    script::Identity,
    transport::ssh::Timeouts,
};
use hatchery_spec::{Cluster, cluster::Machine as Node, value::Name};
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    cluster_file::{self, Named},
    hooks::{self, Ground},
    interrupt::{INTERRUPTED, Interrupts},
    output::{Output, Refused},
    recall, refusal,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// Do not ask; as eggo it does not where -f or --id is given
    #[arg(short, long)]
    yes: bool,
    /// How many machines are worked on at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
    /// Forget machines that do not answer: they are gone for good
    #[arg(long)]
    forget_missing: bool,
    #[command(flatten)]
    hooks: hooks::Flags,
}

/// A machine that is not clean.
pub(crate) struct Left {
    name: String,
    address: IpAddr,
    /// Whether nothing answers where it was.
    missing: bool,
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
    let hooks = arguments.hooks.load(Operator::Cleanup, output)?;
    let cluster = &file.cluster;
    let store = Directory::new(&home, &cluster.id);
    let record = recall::record(&home, &cluster.id).await?;
    let claims = record.as_ref().map(Record::claims).unwrap_or_default();
    let remembered;
    let nodes = match cleanup::machines(cluster, &[], claims) {
        Ok(nodes) => nodes,
        Err(_) => {
            remembered = recall::clusters(&store).await?;
            cleanup::machines(cluster, &remembered, claims)
                .map_err(|lost| unknown_way(&lost, &store))?
        }
    };
    let count = number(nodes.len(), "machine");
    let environment = Environment::of_process(home);
    let state = |error| refusal::state(&error);
    let (identity, question) = match &record {
        Some(record) => (
            record.identity(),
            format!(
                "cluster {} is removed from {count}{}",
                cluster.id,
                beside(&nodes[cluster.machines().len()..])
            ),
        ),
        None => {
            let Some(identity) = holder(cluster, &environment, arguments.parallel).await? else {
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
    // Scripts around eggo run where nobody can answer; but eggo knew no default file for this.
    let asks = !(arguments.yes || output.is_eggo() && arguments.named.is_given());
    if asks && !agreed(&question)? {
        eprintln!("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    let mut interrupts = Interrupts::listen().context("cannot listen to Ctrl-C")?;
    let holder = Holder::this_process("cleanup", OffsetDateTime::now_utc());
    let lock = store.lock(holder).await.map_err(state)?;
    let timeouts = Timeouts::default();
    let machines = reach::selected(&cluster.id, &nodes, &identity, &environment, &timeouts);
    let machines = machines.map_err(|errors| refusal::reach(&errors))?;
    let machines: Vec<_> = machines.into_iter().map(Arc::new).collect();
    let ground = Ground {
        cluster,
        // Those of the file are the first.
        machines: &machines[..cluster.machines().len()],
        without: &[],
        parallel: arguments.parallel,
    };
    match interrupts.unless(hooks.before(&ground, output)).await {
        None => return Ok(hooks::interrupted()),
        Some(Some(failed)) => return Ok(failed),
        Some(None) => {}
    }
    let found = Record::find(&store, &cluster.id).await.map_err(state)?;
    let Ok(found) = begin_removal(found, record.as_ref()) else {
        let refused = Refused::new(format!("another run has changed cluster {}", cluster.id));
        return Err(refused.remedy("run the command again").into());
    };
    if let Some(record) = found {
        record.save(&store, &lock).await.map_err(state)?;
    }
    let cleaning = clean(&nodes, &machines, arguments.parallel, output);
    let Some(left) = interrupts.unless(cleaning).await else {
        eprintln!("\nstopped; run the same command again to go on");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    // While it is still remembered whom the machines are known by.
    let Some(scripts) = interrupts.unless(hooks.after(&ground, output)).await else {
        return Ok(hooks::interrupted_afterwards());
    };
    let forget = arguments.forget_missing;
    let ended = finish(&cluster.id, &left, forget, &store, lock, output).await?;
    for machine in &machines {
        machine.disconnect().await;
    }
    Ok(scripts.unwrap_or(ended))
}

/// Another run was there between the question and the lock.
#[derive(Debug, PartialEq, Eq)]
struct Changed;

/// The record to be kept while machines are cleaned: what was found under the lock, as long as it is about the cluster and the
/// machines that were known before.
fn begin_removal(found: Option<Record>, known: Option<&Record>) -> Result<Option<Record>, Changed> {
    let (mut found, known) = match (found, known) {
        (None, None) => return Ok(None),
        (Some(found), Some(known)) if found.uid() == known.uid() => (found, known),
        _ => return Err(Changed),
    };
    // Only where an earlier release wrote it.
    found.complete(known.claims().to_vec(), known.formed);
    if found.claims() != known.claims() {
        return Err(Changed);
    }
    found.begin_removal();
    Ok(Some(found))
}

/// Machines that a file leaves out are told before they are touched.
fn beside(nodes: &[&Node]) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let names: Vec<_> = nodes.iter().map(|node| node.name.to_string()).collect();
    format!(
        ", also from those that it has and the file does not name ({})",
        NameList(&names)
    )
}

fn unknown_way(lost: &[&Claim], store: &Directory) -> Refused {
    let machines: Vec<_> = lost.iter().map(ToString::to_string).collect();
    let refused = Refused::new(format!(
        "machines belong to the cluster, and no file says how to log in to them: {}",
        NameList(&machines)
    ));
    refused.remedy(format!(
        "name them in the file; the one that is remembered is {}",
        store.place(Key::DEPLOY_FILE)
    ))
}

/// For whom the machines say they are held, where nothing is remembered.
async fn holder(
    cluster: &Cluster,
    environment: &Environment,
    parallel: usize,
) -> Result<Option<Identity>, Refused> {
    let nobody = state::nobody(&cluster.id);
    let machines = reach::machines(cluster, &nobody, environment, &Timeouts::default());
    let machines = machines.map_err(|errors| refusal::reach(&errors))?;
    let options = AskOptions {
        parallel,
        ..AskOptions::default()
    };
    let replies = preflight::ask(&machines, options, |_, _| ()).await;
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
    nodes: &[&Node],
    machines: &[Arc<Machine>],
    parallel: usize,
    output: &Output,
) -> Vec<Left> {
    let begin = Instant::now();
    let results = cleanup::clean(machines, parallel, |place, cleaned| {
        let (at, name) = (begin.elapsed().as_secs_f64(), &nodes[place].name);
        match output.json() {
            true => output.print_json(&document(name.as_str(), cleaned, at)),
            false => output.print(&format!("{at:6.1} s  {name}: {}\n", describe(cleaned))),
        }
    })
    .await;
    let left = nodes.iter().zip(&results);
    left.filter(|(_, cleaned)| !cleanup::is_clean(cleaned))
        .map(|(node, cleaned)| Left {
            name: node.name.to_string(),
            address: node.address,
            missing: cleanup::is_missing(cleaned),
        })
        .collect()
}

/// Forgets a cluster of which nothing is left, or what is clean of it, and says how it ended.
pub(crate) async fn finish(
    id: &Name,
    left: &[Left],
    forget_missing: bool,
    store: &Directory,
    lock: Lock,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let state = |error| refusal::state(&error);
    let is_gone = left.iter().all(|one| forget_missing && one.missing);
    if is_gone {
        store.remove(lock).await.map_err(state)?;
    } else if let Some(mut record) = Record::find(store, id).await.map_err(state)? {
        record.release(|claim| left.iter().any(|one| one.address == claim.address));
        record.save(store, &lock).await.map_err(state)?;
    }
    let names: Vec<_> = left.iter().map(|one| one.name.as_str()).collect();
    if output.json() {
        let (forgotten, not_clean) = match is_gone {
            true => (names, Vec::new()),
            false => (Vec::new(), names),
        };
        output.print_json(&json!({
            "event": "ended",
            "cluster": id,
            "state": if is_gone { "gone" } else { "partial" },
            "notClean": not_clean,
            "forgotten": forgotten,
        }));
    } else {
        output.print(&last_lines(id, left, is_gone));
    }
    Ok(match is_gone {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    })
}

fn last_lines(id: &Name, left: &[Left], is_gone: bool) -> String {
    let names = |missing: Option<bool>| {
        let names = left
            .iter()
            .filter(|one| missing.is_none_or(|missing| one.missing == missing));
        let names: Vec<_> = names.map(|one| one.name.as_str()).collect();
        names.join(", ")
    };
    match (is_gone, left) {
        (true, []) => format!("\ncluster {id} is gone\n"),
        (true, _) => format!(
            "\ncluster {id} is gone\n  forgotten without being cleaned: {}\n",
            names(None)
        ),
        (false, left) => {
            let mut text = format!(
                "\ncluster {id} is partly removed\n  not clean: {}\n  next: run the same command again\n",
                names(None)
            );
            if left.iter().any(|one| one.missing) {
                text += &format!(
                    "        with --forget-missing where machines are gone for good: {}\n",
                    names(Some(true))
                );
            }
            text
        }
    }
}

fn describe(cleaned: &Cleaned) -> String {
    match cleaned {
        Err(machine::Error::Held { cluster, name, .. }) => {
            format!("serves another cluster, {name} ({cluster}); nothing of this one is there")
        }
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
        "ok": cleanup::is_clean(cleaned),
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
        Err(machine::Error::Held { cluster, name, .. }) => {
            document["servesAnother"] = json!({"id": cluster, "name": name});
        }
        Err(error) => {
            document["reason"] = error.to_string().into();
            document["remedy"] = json!(error.remedy());
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    fn lab(machines: &str) -> Record {
        let text = format!("cluster-id: lab\nmasters: [{machines}]\n");
        let cluster = read(Input::private("x", text.as_bytes())).cluster.unwrap();
        let mut record = Record::new(&cluster.id, OffsetDateTime::UNIX_EPOCH).unwrap();
        record.claim(cluster.machines());
        record
    }

    #[test]
    fn removal_begins_with_what_is_found_under_the_lock() {
        let known = lab("{name: m0, ip: 10.0.0.1}");
        assert_eq!(begin_removal(None, None), Ok(None));
        // A deployment ended while the user was asked.
        let mut found = known.clone();
        found.formed = true;
        let begun = begin_removal(Some(found), Some(&known)).unwrap().unwrap();
        assert!(begun.formed && begun.removing);
        // One that never was up is being removed too.
        let begun = begin_removal(Some(known.clone()), Some(&known));
        assert!(begun.unwrap().unwrap().removing);
        // A record of the previous release is completed by what was found out before.
        let mut first = known.clone();
        first.machines = None;
        let begun = begin_removal(Some(first), Some(&known)).unwrap().unwrap();
        assert!(begun.removing && begun.claims() == known.claims());
        // Another cluster, or other machines.
        let more = {
            let mut more = known.clone();
            let two = lab("{name: m0, ip: 10.0.0.1}, {name: m1, ip: 10.0.0.2}");
            more.machines = two.machines;
            more
        };
        let other = lab("{name: m0, ip: 10.0.0.1}");
        for found in [None, Some(more), Some(other)] {
            assert_eq!(begin_removal(found, Some(&known)), Err(Changed));
        }
        assert_eq!(begin_removal(Some(known), None), Err(Changed));
    }

    #[test]
    fn a_machine_of_another_cluster_is_told_to_be_clean() {
        let held = Err(machine::Error::Held {
            host: "m0".into(),
            cluster: "a1".into(),
            name: "prod".into(),
        });
        assert_eq!(
            describe(&held),
            "serves another cluster, prod (a1); nothing of this one is there"
        );
        assert_eq!(
            document("m0", &held, 1.5),
            json!({
                "event": "cleaned",
                "machine": "m0",
                "ok": true,
                "seconds": 1.5,
                "servesAnother": {"id": "a1", "name": "prod"},
            })
        );
    }
}
