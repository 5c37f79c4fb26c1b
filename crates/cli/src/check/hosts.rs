//! `check --hosts`: the machines too. They are asked, and nothing on them is changed.

use std::{path::Path, process::ExitCode, time::Duration};

use hatchery_engine::{
    finding::{Finding, Severity},
    observed::Observed,
    preflight::{self, AskOptions, Reply},
    session::Refusal,
};
use hatchery_host::{facts::Facts, transport::ssh::Timeouts};
use hatchery_spec::{Cluster, cluster::Machine};
use serde_json::json;

use crate::{cluster_file, output::Output, refusal, template::number};

/// What was found out about the machines.
pub(super) struct Outcome {
    observed: Observed,
    findings: Vec<Finding>,
}

/// Asks every machine of a cluster. Lines for people come as the machines answer. Refuses when something that is
/// needed to log in is missing here.
pub(super) async fn ask(
    cluster: &Cluster,
    home: Option<&Path>,
    parallel: usize,
    output: &Output,
) -> anyhow::Result<Result<Outcome, Refusal>> {
    // Each step must leave time for those behind it.
    let timeouts = Timeouts {
        connect: Duration::from_secs(8),
        handshake: Duration::from_secs(10),
        authentication: Duration::from_secs(15),
        busy: Duration::from_secs(15),
        ..Timeouts::default()
    };
    let session = cluster_file::open(home, &cluster.id).await?;
    let identity = session.identity();
    let machines = match session.machines(cluster.machines(), &timeouts) {
        Ok(machines) => machines,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let options = AskOptions {
        parallel,
        ..AskOptions::default()
    };
    let nodes = cluster.machines();
    let columns = Columns::for_machines(nodes);
    let observed = preflight::ask(&machines, options, |name, reply| {
        let node = nodes.iter().find(|node| node.name == *name);
        if let (Some(node), false) = (node, output.json()) {
            // What machines have in common is judged when all have answered.
            let alone = preflight::check_machines(cluster, identity, &[(node, reply)]);
            output.print(&columns.line(node, reply, &alone));
        }
    })
    .await;
    let answers = nodes.iter();
    let answers = answers.filter_map(|node| Some((node, observed.reply(&node.name)?)));
    let answers: Vec<_> = answers.collect();
    let findings = preflight::check_machines(cluster, identity, &answers);
    Ok(Ok(Outcome { observed, findings }))
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

    /// Prints the findings, and a summary in the last lines.
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
        let is_bad = |node: &Machine| {
            let name = node.name.as_str();
            self.findings.iter().any(|finding| {
                finding.severity == Severity::Error
                    && finding.machines.iter().any(|one| one == name)
            })
        };
        let mut silent = Vec::new();
        let mut bad = Vec::new();
        for node in nodes {
            if self.observed.is_silent(&node.name) {
                silent.push(node.name.to_string());
            } else if is_bad(node) {
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
        let machine = |node: &Machine| {
            let name = node.name.as_str();
            let own = self
                .findings
                .iter()
                .filter(|finding| finding.machines.iter().any(|one| one == name));
            let ok = !own
                .clone()
                .any(|finding| finding.severity == Severity::Error);
            let facts = self.observed.facts(&node.name);
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
        let machines: Vec<_> = cluster.machines().iter().map(machine).collect();
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
    fn for_machines(nodes: &[Machine]) -> Self {
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
        let with = |severity| {
            findings
                .iter()
                .filter(move |finding| finding.severity == severity)
        };
        let (errors, warnings) = (
            with(Severity::Error).count(),
            with(Severity::Warning).count(),
        );
        let about = match reply {
            Ok((facts, _)) => {
                let mut about = describe(facts);
                // The codes alone: the findings below say the rest.
                let mut codes: Vec<_> = with(Severity::Error).map(|finding| finding.code).collect();
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
