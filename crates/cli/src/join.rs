//! `join`: adds machines to a cluster that is there.

use std::{
    collections::BTreeSet,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use hatchery_engine::command_hook::Operator;
use hatchery_spec::{
    Cluster,
    edit::{self, Entry},
    value::{Name, Port},
};

use crate::{
    cluster_file::{self, Remembered},
    deploy::{Change, Settings},
    hooks,
    output::{Output, Refused},
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The cluster's id
    #[arg(long, value_parser = cluster_file::name)]
    id: Name,
    /// What the machines become: worker or loadbalance [default: worker]
    #[arg(
        short = 't',
        long = "type",
        value_name = "ROLE",
        conflicts_with = "file"
    )]
    role: Option<String>,
    /// Their processor: amd64 or arm64
    #[arg(short, long, conflicts_with = "file")]
    arch: Option<String>,
    /// Their SSH port
    #[arg(short, long, conflicts_with = "file")]
    port: Option<u16>,
    /// The machine's name, where it is one [default: ID-worker-N]
    #[arg(short, long, conflicts_with = "file")]
    name: Option<String>,
    /// The login user, where it is not that of the deploy file
    #[arg(long, conflicts_with = "file")]
    user: Option<String>,
    /// A file with a list `workers` and perhaps a section `loadbalance`, as in a deploy file
    #[arg(short, long, conflicts_with = "addresses")]
    file: Option<PathBuf>,
    /// Addresses of the machines
    #[arg(value_name = "IP", required_unless_present = "file")]
    addresses: Vec<IpAddr>,
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
    let hooks = arguments.hooks.load(Operator::Join, output)?;
    let remembered = Remembered::read(home, &arguments.id).await?;
    let (text, addresses) = arguments.edited(&remembered)?;
    let Some(file) = remembered.changed(&text, home, output).await else {
        return Ok(ExitCode::from(2));
    };
    let machines = file.cluster.machines().iter();
    let new = machines.filter(|machine| addresses.contains(&machine.address));
    let new: Vec<_> = new.map(|machine| machine.name.clone()).collect();
    let settings = &arguments.settings;
    let change = Change::from_edit("join", &remembered, &file, &new, settings, &hooks);
    change.apply(home, output).await
}

impl Arguments {
    /// The remembered file with the machines that are to join, and their addresses.
    fn edited(&self, remembered: &Remembered) -> Result<(String, Vec<IpAddr>), Refused> {
        if let Some(path) = &self.file {
            return from_file(path, &remembered.text);
        }
        let roles: Vec<_> = self
            .role
            .as_deref()
            .unwrap_or("worker")
            .split(',')
            .collect();
        let entries = self.entries(&remembered.cluster, roles[0].trim())?;
        let mut text = remembered.text.clone();
        for role in roles {
            text = match role.trim() {
                "worker" => edit::add_workers(&text, &entries),
                "loadbalance" => {
                    let [entry] = entries.as_slice() else {
                        let refused = Refused::new("a cluster has one load balancer");
                        return Err(refused.remedy("name one machine"));
                    };
                    edit::add_load_balancer(&text, entry)
                }
                "master" | "etcd" => return Err(no_masters()),
                other => {
                    let refused = Refused::new(format!("there is no role {other}"));
                    return Err(refused.remedy("say worker or loadbalance"));
                }
            }
            .map_err(|error| refused(&error))?;
        }
        Ok((text, self.addresses.clone()))
    }

    /// A machine that the cluster has already keeps its name, also when it has not quite left.
    fn entries(&self, all: &Cluster, role: &str) -> Result<Vec<Entry>, Refused> {
        if self.name.is_some() && self.addresses.len() > 1 {
            let refused = Refused::new("several machines cannot have one name");
            return Err(refused.remedy("leave out --name, or join them one by one"));
        }
        if let Some(port) = self.port {
            Port::parse(&port.to_string()).map_err(|wrong| {
                let problem = format!("--port {port}: {}", wrong.problem);
                Refused::new(problem).remedy(wrong.remedy)
            })?;
        }
        let mut taken: BTreeSet<_> = all.all_machines().map(|one| one.name.to_string()).collect();
        let mut entries = Vec::new();
        for address in &self.addresses {
            let mut machines = all.all_machines();
            let known = machines.find(|machine| machine.address == *address);
            let known = known.map(|machine| machine.name.to_string());
            let mut usual = (0..).map(|number| format!("{}-{role}-{number}", all.id));
            let usual = usual.find(|name| !taken.contains(name));
            let name = self.name.clone().or(known).or(usual);
            taken.extend(name.clone());
            entries.push(Entry::new(&[
                ("name", name),
                ("ip", Some(address.to_string())),
                ("port", self.port.map(|port| port.to_string())),
                ("arch", self.arch.clone()),
                ("user", self.user.clone()),
            ]));
        }
        Ok(entries)
    }
}

fn from_file(path: &Path, text: &str) -> Result<(String, Vec<IpAddr>), Refused> {
    let shown = path.display();
    let joining = fs::read_to_string(path).map_err(|error| {
        Refused::new(format!("cannot read {shown}: {error}")).remedy("name a file that is there")
    })?;
    let masters = ["masters", "etcds"].map(|list| Entry::from_list(&joining, list));
    if masters.iter().any(|list| !list.is_empty()) {
        return Err(no_masters());
    }
    let workers = ["workers", "nodes"].map(|list| Entry::from_list(&joining, list));
    let (workers, balancer) = (
        workers.concat(),
        Entry::from_section(&joining, "loadbalance"),
    );
    if workers.is_empty() && balancer.is_none() {
        let refused = Refused::new(format!("{shown} names no machine"));
        return Err(refused.remedy("give it a list `workers`, as in a deploy file"));
    }
    let addresses = workers.iter().chain(&balancer).filter_map(Entry::address);
    let addresses = addresses.collect();
    let mut text = edit::add_workers(text, &workers).map_err(|error| refused(&error))?;
    if let Some(entry) = balancer {
        text = edit::add_load_balancer(&text, &entry).map_err(|error| refused(&error))?;
    }
    Ok((text, addresses))
}

pub(crate) fn refused(error: &edit::Error) -> Refused {
    let remedy = error.remedy();
    Refused::new(error.to_string()).remedy(remedy)
}

fn no_masters() -> Refused {
    Refused::new("masters and etcd members cannot join a cluster yet")
        .remedy("join workers or a load balancer")
}
