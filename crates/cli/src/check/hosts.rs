//! `check --hosts`: the machines too. They are asked, and nothing on them is changed.

use std::{path::Path, process::ExitCode, time::Duration};

use anyhow::Context as _;
use hatchery_engine::{
    preflight::{self, AskOptions, Finding, Reply, Severity},
    reach::{self, Environment},
    state::{self, Directory, Record},
};
use hatchery_host::{facts::Facts, script::Identity, transport::ssh::Timeouts};
use hatchery_spec::{Cluster, cluster::Machine};
use serde_json::json;

use crate::{
    cluster_file,
    output::{Output, Refused},
    refusal,
    template::number,
};

/// What was found out about the machines.
pub(super) struct Outcome {
    replies: Vec<Reply>,
    findings: Vec<Finding>,
}

/// Asks every machine of a cluster. Lines for people come as the machines answer.
pub(super) fn ask(
    cluster: &Cluster,
    home: Option<&Path>,
    parallel: usize,
    output: &Output,
) -> anyhow::Result<Outcome> {
    let home = cluster_file::home(home)?;
    // Each step must leave time for those behind it.
    let timeouts = Timeouts {
        connect: Duration::from_secs(8),
        handshake: Duration::from_secs(10),
        authentication: Duration::from_secs(15),
        busy: Duration::from_secs(15),
        ..Timeouts::default()
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot begin to ask the machines")?;
    let identity = runtime.block_on(identity(cluster, &home))?;
    let environment = Environment::of_process(home);
    let machines = reach::machines(cluster, &identity, &environment, &timeouts)
        .map_err(|errors| refusal::reach(&errors))?;
    let options = AskOptions {
        parallel,
        ..AskOptions::default()
    };
    let nodes = cluster.machines();
    let columns = Columns::of(nodes);
    let replies = runtime.block_on(preflight::ask(&machines, options, |place, reply| {
        if let (Some(node), false) = (nodes.get(place), output.json()) {
            // What machines have in common is judged when all have answered.
            let alone = preflight::check_machines(cluster, &identity, &[(node, reply)]);
            output.print(&columns.line(node, reply, &alone));
        }
    }));
    let answers: Vec<_> = nodes.iter().zip(&replies).collect();
    let findings = preflight::check_machines(cluster, &identity, &answers);
    Ok(Outcome { replies, findings })
}

/// For whom the machines are asked: the cluster if it was made from here, or else nobody.
async fn identity(cluster: &Cluster, home: &Path) -> Result<Identity, Refused> {
    let directory = Directory::new(home, &cluster.id);
    match Record::find(&directory, &cluster.id).await {
        Ok(Some(record)) => Ok(record.identity()),
        Ok(None) => Ok(state::nobody(&cluster.id)),
        Err(error) => Err(refusal::state(&error)),
    }
}

impl Outcome {
    /// Whether every machine is good enough.
    pub(super) fn is_good(&self) -> bool {
        !self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        if self.is_good() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// The findings, and the whole in the last lines.
    pub(super) fn print(&self, cluster: &Cluster, output: &Output) {
        if !self.findings.is_empty() {
            eprintln!();
        }
        refusal::findings(&self.findings, output);
        if !self.findings.is_empty() {
            eprintln!();
        }
        output.print(&self.summary(cluster));
    }

    fn summary(&self, cluster: &Cluster) -> String {
        let nodes = cluster.machines();
        let is_bad = |node: &&Machine| {
            let name = node.name.as_str();
            self.findings.iter().any(|finding| {
                finding.severity == Severity::Error
                    && finding.machines.iter().any(|one| one == name)
            })
        };
        let mut silent = Vec::new();
        let mut bad = Vec::new();
        for (node, reply) in nodes.iter().zip(&self.replies) {
            if reply.is_err() {
                silent.push(node.name.to_string());
            } else if is_bad(&node) {
                bad.push(node.name.to_string());
            }
        }
        let good = nodes.len() - silent.len() - bad.len();
        let all = number(nodes.len(), "machine");
        if good == nodes.len() {
            let warnings = self
                .findings
                .iter()
                .filter(|finding| finding.severity == Severity::Warning);
            let warnings = match warnings.count() {
                0 => String::new(),
                count => format!(", {}", number(count, "warning")),
            };
            return format!("{all} can be used{warnings}; nothing was changed\n");
        }
        let mut text = format!("{good} of {all} can be used; nothing was changed\n");
        for (what, names) in [("no answer", silent), ("not as needed", bad)] {
            if !names.is_empty() {
                text += &format!("  {what}: {}\n", names.join(", "));
            }
        }
        text
    }

    /// The same for programs.
    pub(super) fn document(&self, cluster: &Cluster) -> serde_json::Value {
        let machine = |(node, reply): (&Machine, &Reply)| {
            let name = node.name.as_str();
            let own = self
                .findings
                .iter()
                .filter(|finding| finding.machines.iter().any(|one| one == name));
            let ok = !own
                .clone()
                .any(|finding| finding.severity == Severity::Error);
            let facts = reply.as_ref().ok().map(|(facts, _)| facts);
            json!({
                "name": name,
                "address": node.address,
                "ok": ok,
                "answered": facts.is_some(),
                "os": facts.and_then(|facts| facts.os.pretty_name.as_ref()),
                "arch": facts.and_then(|facts| facts.arch.as_ref()).map(hatchery_host::facts::Arch::name),
                "kernel": facts.and_then(|facts| facts.kernel.as_ref()),
                "cpus": facts.and_then(|facts| facts.cpus),
                "memoryBytes": facts.and_then(|facts| facts.memory.as_ref()).map(|memory| memory.total),
            })
        };
        let machines: Vec<_> = cluster
            .machines()
            .iter()
            .zip(&self.replies)
            .map(machine)
            .collect();
        json!({
            "ok": self.is_good(),
            "machines": machines,
            "findings": self.findings,
        })
    }
}

/// How wide the first columns are.
struct Columns {
    name: usize,
    address: usize,
}

impl Columns {
    fn of(nodes: &[Machine]) -> Self {
        let widest =
            |width: &dyn Fn(&Machine) -> usize| nodes.iter().map(width).max().unwrap_or_default();
        Self {
            name: widest(&|node| node.name.as_str().len()),
            address: widest(&|node| node.address.to_string().len()),
        }
    }

    /// A machine in one line.
    fn line(&self, node: &Machine, reply: &Reply, findings: &[Finding]) -> String {
        let Self {
            name: width,
            address: wide,
        } = *self;
        let (name, address) = (node.name.as_str(), node.address.to_string());
        let of = |severity| {
            findings
                .iter()
                .filter(move |finding| finding.severity == severity)
        };
        let (errors, warnings) = (of(Severity::Error).count(), of(Severity::Warning).count());
        let about = match reply {
            Ok((facts, _)) => {
                let mut about = describe(facts);
                // The codes alone: the findings below say the rest.
                let mut codes: Vec<_> = of(Severity::Error).map(|finding| finding.code).collect();
                codes.dedup();
                let warnings = (warnings > 0).then(|| number(warnings, "warning"));
                for word in codes.into_iter().chain(warnings.as_deref()) {
                    about += &format!("; {word}");
                }
                about
            }
            Err(_) => findings
                .first()
                .map_or_else(String::new, |finding| finding.message.clone()),
        };
        let word = if errors == 0 { "ok" } else { "error" };
        format!("{word:<5}  {name:<width$}  {address:<wide$}  {about}\n")
    }
}

/// What a machine is, as far as it told.
fn describe(facts: &Facts) -> String {
    let cpus = facts.cpus.map(|cpus| number(cpus as usize, "CPU"));
    let memory = facts.memory.as_ref().map(|memory| {
        let tenths = memory.total.saturating_mul(10) >> 30;
        format!("{}.{} GiB", tenths / 10, tenths % 10)
    });
    let parts = [
        facts.os.pretty_name.clone(),
        facts.arch.as_ref().map(|arch| arch.name().to_owned()),
        facts.kernel.clone(),
        cpus,
        memory,
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.join(", ")
}
