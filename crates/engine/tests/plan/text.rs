//! A plan as text: short for snapshots, or with all contents to see whether two plans differ.

use std::fmt::Write as _;

use hatchery_engine::{
    plan::{ApiWork, Concurrency, Manifest, Plan, Task, TaskId, Work},
    resource::{Leaf, Resource},
};
use hatchery_host::{content::Content, operation::Operation, path::Word};
use hatchery_pki::Usage;

/// A rendered file of a machine, or a manifest of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// Whose, with its path; or a manifest's name.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Tasks with what they need and what they resource, no contents.
pub(crate) fn short(plan: &Plan) -> String {
    let mut text = String::new();
    for (number, task) in plan.tasks.iter().enumerate() {
        let _ = write!(text, "#{number} {task}");
        list(&mut text, "  needs", &task.needs);
        list(&mut text, "  after", &task.after);
        match task.concurrency {
            Concurrency::Free => {}
            Concurrency::Together => text.push_str("  together"),
            Concurrency::OneByOne(lane) => {
                let _ = write!(text, "  one by one ({lane:?})");
            }
        }
        text.push('\n');
        match &task.work {
            Work::Machine { resources, .. } => {
                for resource in resources {
                    let _ = writeln!(text, "  {}", wish_line(resource));
                }
            }
            Work::Release { released, .. } => {
                for one in released {
                    let _ = writeln!(text, "  {} of {}", one.what, one.release.owner);
                }
            }
            Work::BeforeUndo { .. } | Work::Undo { .. } => {}
            Work::Api(work) => api_lines(&mut text, work),
        }
    }
    for note in &plan.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// What one task resources, a line each.
pub(crate) fn one(task: &Task) -> String {
    match &task.work {
        Work::Machine { resources, .. } => resources
            .iter()
            .map(|resource| wish_line(resource) + "\n")
            .collect(),
        _ => String::new(),
    }
}

/// The short form, and after it every file, manifest and script.
pub(crate) fn full(plan: &Plan) -> String {
    let mut text = short(plan);
    for task in &plan.tasks {
        if let Work::Machine { resources, .. } = &task.work {
            for resource in resources {
                if let Resource::Operation(Operation::Script(script)) = resource {
                    let _ = writeln!(text, "=== {task}: {script:#?}");
                }
            }
        }
    }
    for one in rendered(plan) {
        let _ = writeln!(text, "=== {}\n{}", one.name, one.text);
    }
    text
}

/// Every file whose text is ours, and every manifest, in the plan's order.
pub(crate) fn rendered(plan: &Plan) -> Vec<Rendered> {
    let mut all = Vec::new();
    for task in &plan.tasks {
        match &task.work {
            Work::Machine {
                machine, resources, ..
            } => {
                for resource in resources {
                    if let Resource::Operation(Operation::File(file)) = resource {
                        all.push(Rendered {
                            name: format!("{machine}:{}", file.path),
                            text: content(&file.content),
                        });
                    }
                }
            }
            Work::Api(ApiWork::Apply(manifests)) => all.extend(manifests.iter().map(manifest)),
            _ => {}
        }
    }
    all
}

fn content(content: &Content) -> String {
    let bytes = content.in_memory().unwrap_or(b"(from an archive)");
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn manifest(manifest: &Manifest) -> Rendered {
    let documents: Vec<_> = manifest
        .objects
        .iter()
        .map(|object| {
            let value = serde_json::to_value(object).unwrap();
            serde_saphyr::to_string(&value).unwrap()
        })
        .collect();
    Rendered {
        name: format!("manifest {}", manifest.name),
        text: documents.join("---\n"),
    }
}

fn list(text: &mut String, word: &str, tasks: &[TaskId]) {
    if !tasks.is_empty() {
        let numbers: Vec<_> = tasks.iter().map(|task| format!("#{}", task.0)).collect();
        let _ = write!(text, "{word} {}", numbers.join(" "));
    }
}

fn wish_line(resource: &Resource) -> String {
    match resource {
        Resource::Leaf(leaf) => leaf_line(leaf),
        Resource::Secret(file) => format!("secret {} {:?}", file.path, file.what),
        Resource::Operation(operation) => operation_line(operation),
    }
}

fn operation_line(operation: &Operation) -> String {
    let title = operation.title();
    match operation {
        Operation::File(file) => format!("{title} {}", file.access.mode),
        Operation::Directory(directory) => {
            let access = &directory.access;
            match access.owner.as_str() {
                "root" => format!("{title} {}", access.mode),
                owner => format!("{title} {} {owner}:{}", access.mode, access.group),
            }
        }
        Operation::HostsEntry(entry) => {
            let names: Vec<_> = entry.names.iter().map(Word::as_str).collect();
            format!("{title} {}", names.join(" "))
        }
        Operation::Sysctl(sysctl) => format!("{title} = {}", sysctl.value()),
        Operation::Unit(unit) => {
            let files: Vec<_> = unit
                .restart_on
                .iter()
                .filter_map(|path| path.as_str().rsplit('/').next())
                .collect();
            let flags = [("enabled", unit.enabled), ("running", unit.running)];
            let flags: Vec<_> = flags
                .iter()
                .filter(|(_, set)| *set == Some(true))
                .map(|(name, _)| *name)
                .collect();
            format!(
                "{title} {}, restarted with {}",
                flags.join(" "),
                files.join(" ")
            )
        }
        _ => title,
    }
}

fn leaf_line(leaf: &Leaf) -> String {
    let request = &leaf.request;
    let usage = match request.usage {
        Usage::Client => "client",
        Usage::Server => "server",
        Usage::Both => "server and client",
    };
    let mut line = format!(
        "certificate {} by {:?}, {usage}, CN={}",
        leaf.certificate, leaf.issuer, request.common_name
    );
    if let Some(group) = &request.organization {
        let _ = write!(line, ", O={group}");
    }
    for name in &request.dns_names {
        let _ = write!(line, " {name}");
    }
    for ip in &request.ips {
        let _ = write!(line, " {ip}");
    }
    if let Some(config) = &leaf.kubeconfig {
        let _ = write!(
            line,
            "; kubeconfig {} of {} at {}",
            config.path, config.user, config.server
        );
    }
    line
}

fn api_lines(text: &mut String, work: &ApiWork) {
    match work {
        ApiWork::Apply(manifests) => {
            for object in manifests.iter().flat_map(|manifest| &manifest.objects) {
                let kind = object.types.as_ref().map_or("?", |types| &types.kind);
                let name = object.metadata.name.as_deref().unwrap_or("?");
                let _ = writeln!(text, "  {kind} {name}");
            }
        }
        ApiWork::Ready | ApiWork::ListAddons(_) | ApiWork::PruneAddons(_) => {}
        ApiWork::Drain(node) | ApiWork::DeleteNode(node) => {
            let _ = writeln!(text, "  node {node}");
        }
        ApiWork::Node(node) => {
            let _ = write!(text, "  node {}", node.name);
            for label in &node.labels {
                let _ = write!(text, " {}={}", label.key, label.value);
            }
            for taint in &node.taints {
                let _ = write!(text, " taint {taint}");
            }
            text.push('\n');
        }
        ApiWork::RolledOut { workloads, .. } => {
            for one in workloads {
                let _ = writeln!(text, "  {:?} {}/{}", one.kind, one.namespace, one.name);
            }
        }
    }
}
