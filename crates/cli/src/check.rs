//! `check`: all that is wrong with a deploy file, and with the machines, before anything is touched.

mod hosts;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use hatchery_spec::{
    Cluster, Reading,
    cluster::{Machine, Role},
};
use serde_json::json;

use crate::{deploy_file, output::Output, refusal, template::number};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The deploy file [default: ~/.hatchery/deploy.yaml, then ~/.eggo/deploy.yaml; as eggo the other way round]
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// The variables that go with an inventory, such as group_vars.yml
    #[arg(long, value_name = "FILE", requires = "file")]
    vars: Option<PathBuf>,
    /// Ask the machines too; nothing on them is changed
    #[arg(long)]
    hosts: bool,
    /// Maximum number of machines asked concurrently
    #[arg(long, value_name = "N", default_value_t = 32, requires = "hosts", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    parallel: usize,
}

pub(crate) async fn run(
    arguments: &Arguments,
    home: Option<&Path>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let file = deploy_file::find(arguments.file.as_deref(), home, output)?;
    let reading = deploy_file::look(&file, arguments.vars.as_deref(), home).await?;
    if !output.json() {
        eprint!("{}", reading.diagnostics.render(output.colours()));
        if let Some(cluster) = &reading.cluster {
            output.print(&format!(
                "{} is valid: {}\n",
                file.display(),
                summary(cluster)
            ));
        }
    }
    let outcome = match &reading.cluster {
        Some(cluster) if arguments.hosts => {
            match hosts::ask(cluster, home, arguments.parallel, output).await? {
                Ok(outcome) => Some((cluster, outcome)),
                Err(refusal) => return Ok(refusal::show(&cluster.id, &refusal, output)),
            }
        }
        _ => None,
    };
    if output.json() {
        let mut document = document(&file, &reading);
        if let Some((cluster, outcome)) = &outcome {
            document["ok"] = outcome.is_good().into();
            document["hosts"] = outcome.document(cluster);
        }
        output.print_json(&document);
    } else if let Some((cluster, outcome)) = &outcome {
        outcome.print(cluster, output);
    }
    Ok(match (&reading.cluster, &outcome) {
        (None, _) => ExitCode::from(2),
        (Some(_), None) => ExitCode::SUCCESS,
        (Some(_), Some((_, outcome))) => outcome.exit_code(),
    })
}

/// The cluster in one line.
fn summary(cluster: &Cluster) -> String {
    let version = match cluster.kubernetes_version {
        Some(version) => format!("Kubernetes {version}"),
        None => "the packages' Kubernetes".to_owned(),
    };
    format!(
        "{}, {version} with {}, {} ({}), Services {}, pods {}",
        cluster.id,
        cluster.runtime.kind.as_str(),
        number(cluster.machines().len(), "machine"),
        roles(cluster),
        cluster.services.cidrs,
        cluster.pods.cidrs,
    )
}

/// How many machines there are of each role.
pub(crate) fn roles(cluster: &Cluster) -> String {
    let roles: Vec<String> = Role::ALL
        .into_iter()
        .map(|role| (role, cluster.with_role(role).len()))
        .filter(|(_, count)| *count > 0)
        .map(|(role, count)| match role {
            Role::Etcd => number(count, "etcd member"),
            _ => number(count, role.as_str()),
        })
        .collect();
    roles.join(", ")
}

/// The same for programs.
fn document(file: &Path, reading: &Reading) -> serde_json::Value {
    let mut document = json!({
        "file": file,
        "ok": reading.cluster.is_some(),
        "errors": reading.diagnostics.errors(),
        "warnings": reading.diagnostics.warnings(),
        "diagnostics": reading.diagnostics,
    });
    if let Some(cluster) = &reading.cluster {
        let names = |role| {
            let machines = cluster.with_role(role);
            machines
                .iter()
                .map(|machine| name(machine))
                .collect::<Vec<_>>()
        };
        document["cluster"] = json!({
            "id": cluster.id,
            "dialect": cluster.dialect,
            "kubernetesVersion": cluster.kubernetes_version,
            "runtime": cluster.runtime.kind,
            "machines": cluster.machines().len(),
            "masters": names(Role::Master),
            "workers": names(Role::Worker),
            "etcds": names(Role::Etcd),
            "loadBalancer": names(Role::LoadBalancer).first(),
            "endpoint": cluster.endpoint,
            "services": cluster.services.cidrs,
            "pods": cluster.pods.cidrs,
        });
    }
    document
}

fn name(machine: &Machine) -> &str {
    machine.name.as_str()
}
