//! `delete`: takes machines out of a cluster that stays.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use hatchery_engine::{api::Drain, command_hook::Operator, name_list::NameList};
use hatchery_spec::{
    Cluster,
    cluster::Role,
    edit,
    value::{GoDuration, Name},
};

use crate::{
    cluster_file::{self, Remembered},
    deploy::{self, Change, Settings},
    hooks, join,
    output::{Output, Refused},
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The cluster's id
    #[arg(long, value_parser = cluster_file::name)]
    id: Name,
    /// Names or addresses of the machines
    #[arg(value_name = "NAME|IP", required = true)]
    machines: Vec<String>,
    /// How long pods may take to leave the nodes
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = deploy::duration)]
    drain_timeout: GoDuration,
    /// Delete pods that have not left by then, whatever a PodDisruptionBudget says
    #[arg(long)]
    force: bool,
    /// Do not wait for pods to move to other nodes
    #[arg(long, conflicts_with = "force")]
    skip_drain: bool,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    hooks: hooks::Flags,
}

pub(crate) async fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let hooks = arguments.hooks.load(Operator::Delete, output)?;
    let remembered = Remembered::read(home, &arguments.id).await?;
    let names = names(&remembered.cluster, &arguments.machines)?;
    let text = edit::remove(&remembered.text, &names).map_err(|error| join::refused(&error))?;
    let Some(file) = remembered.changed(&text, home, output).await else {
        return Ok(ExitCode::from(2));
    };
    let names: Vec<_> = names.into_iter().collect();
    let settings = &arguments.settings;
    let change = Change {
        drain: Some(Drain {
            deadline: arguments.drain_timeout.get(),
            force: arguments.force,
            skip: arguments.skip_drain,
            is_silent: false,
        }),
        ..Change::from_edit("delete", &remembered, &file, &names, settings, &hooks)
    };
    change.apply(home, output).await
}

/// The machines that are meant by names and addresses.
fn names(cluster: &Cluster, said: &[String]) -> Result<BTreeSet<Name>, Refused> {
    let mut names = BTreeSet::new();
    let mut unknown = Vec::new();
    for said in said {
        let mut machines = cluster.all_machines();
        let machine =
            machines.find(|one| one.name.as_str() == said || said.parse() == Ok(one.address));
        match machine {
            None => unknown.push(said.clone()),
            Some(machine) if machine.is(Role::Master) || machine.is(Role::Etcd) => {
                let refused = Refused::new(format!(
                    "{} is a master or etcd member of {}: these cannot leave a cluster yet",
                    machine.name, cluster.id
                ));
                return Err(refused.remedy("name workers or the load balancer"));
            }
            Some(machine) => {
                names.insert(machine.name.clone());
            }
        }
    }
    if unknown.is_empty() {
        return Ok(names);
    }
    let known = cluster.all_machines().map(|one| one.name.to_string());
    let known: Vec<_> = known.collect();
    let refused = Refused::new(format!(
        "{} has no machine {}",
        cluster.id,
        NameList(&unknown)
    ));
    Err(refused.remedy(format!("its machines are {}", NameList(&known))))
}
