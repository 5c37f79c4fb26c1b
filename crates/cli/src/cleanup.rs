//! `cleanup`: takes a cluster away and puts its machines back as they were.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::Context as _;
use hatchery_engine::{
    cleanup::{self, Cleaned},
    reach::{self, Surroundings},
    state::{Directory, Holder, Record, Store as _},
};
use hatchery_host::transport::ssh::Patience;
use time::OffsetDateTime;

use crate::{
    cluster_file::{self, Given},
    output::{Output, Refused},
    refusal,
    template::number,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
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
    let Some(file) = arguments.given.read(home, output)? else {
        return Ok(ExitCode::from(2));
    };
    let cluster = &file.cluster;
    let home = cluster_file::home(home)?;
    let machines = number(cluster.machines().len(), "machine");
    if !arguments.yes {
        if !io::stdin().is_terminal() {
            let refused = Refused::new(format!(
                "cleanup removes cluster {} from {machines}",
                cluster.id
            ));
            return Err(refused.remedy("say --yes where nobody can be asked").into());
        }
        eprint!(
            "remove cluster {} and put {machines} back as they were? [y/N] ",
            cluster.id
        );
        io::stderr().flush().ok();
        let mut answer = String::new();
        io::stdin()
            .read_line(&mut answer)
            .context("cannot read the answer")?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            eprintln!("nothing was changed");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot begin")?;
    runtime.block_on(async {
        let begin = Instant::now();
        let now = OffsetDateTime::now_utc();
        let store = Directory::new(&home, &cluster.id);
        let lock = store.lock(Holder::this_process("cleanup", now)).await.map_err(|error| refusal::state(&error))?;
        let record = Record::find(&store, &cluster.id).await.map_err(|error| refusal::state(&error))?;
        let Some(record) = record else {
            let refused = Refused::new(format!("nothing is known of a cluster {}", cluster.id));
            return Err(refused.remedy("use the --home that it was made with").into());
        };
        let surroundings = Surroundings::of_process(home.clone());
        let machines = reach::machines(cluster, &record.identity(), &surroundings, &Patience::default());
        let machines = machines.map_err(|errors| refusal::reach(&errors))?;
        let machines: Vec<_> = machines.into_iter().map(Arc::new).collect();
        let nodes = cluster.machines();
        let results = cleanup::clean(&machines, arguments.parallel, |place, cleaned| {
            let at = begin.elapsed().as_secs_f64();
            output.print(&format!("{at:6.1} s  {}: {}\n", nodes[place].name, describe(cleaned)));
        })
        .await;
        let clean = |cleaned: &Cleaned| cleaned.as_ref().is_ok_and(|undone| undone.left.is_empty());
        let bad: Vec<_> = nodes.iter().zip(&results).filter(|(_, cleaned)| !clean(cleaned)).map(|(node, _)| node.name.to_string()).collect();
        let seconds = begin.elapsed().as_secs_f64();
        if bad.is_empty() {
            store.remove(lock).await.map_err(|error| refusal::state(&error))?;
            output.print(&format!("\ncluster {} is gone, {seconds:.1} s\n", cluster.id));
            return Ok(ExitCode::SUCCESS);
        }
        output.print(&format!("\ncluster {} is gone in part, {seconds:.1} s\n  not clean: {}\n  next: run the same command again\n", cluster.id, bad.join(", ")));
        Ok(ExitCode::from(3))
    })
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
