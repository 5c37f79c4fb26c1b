//! The user's own scripts, run on machines before and after they join, and before and after they are cleaned.
//!
//! A script that has run to its end is not run again while it stays the same. Those of the way back are put on the machine
//! with everything that they need, since nothing but the machine may be left when their time comes.

use std::{fmt::Write as _, time::Duration};

use hatchery_host::{
    content::Hash,
    operation::{Access, File, Operation, Script},
    path::{MachinePath, Word},
    quote::quote,
};
use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role, Schedule},
};

use super::NodeContext;
use crate::{
    package::Hook,
    resource::{Error, Resources, word},
};

const DIRECTORY: &str = "/var/lib/hatchery/hooks";

pub(crate) fn prejoin(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    run(node_context, resources, Schedule::Prejoin)
}

pub(crate) fn postjoin(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    run(node_context, resources, Schedule::Postjoin)
}

pub(crate) fn precleanup(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    keep(node_context, resources, Schedule::Precleanup)
}

pub(crate) fn postcleanup(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    keep(node_context, resources, Schedule::Postcleanup)
}

/// Whether a step only keeps scripts for later.
pub(crate) fn is_kept(step: &Word) -> bool {
    let kept = [Schedule::Precleanup, Schedule::Postcleanup];
    kept.iter().any(|schedule| text(*schedule) == step.as_str())
}

fn run(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
    schedule: Schedule,
) -> Result<(), Error> {
    for hook in hooks_at(node_context, schedule) {
        let directory = join_directory(node_context, schedule);
        put(resources, hook, &directory)?;
        let name = step(hook)?;
        let mark = format!("/var/lib/hatchery/ran-{name}");
        let hash = hook.content.hash().as_str();
        resources.script(Script {
            check: format!("[ \"$(cat {mark} 2>/dev/null)\" = {hash} ]"),
            apply: format!(
                "{}{} && echo {hash} >{mark}",
                environment(node_context, schedule, &directory),
                quote(&format!("./{}", hook.name))
            ),
            // What it did is the user's.
            undo: format!("rm -f {mark}"),
            deadline: hook.timeout,
            name,
        });
    }
    Ok(())
}

/// One step for all of them, so that they run in their order. They run as copies, which stay until they have run well:
/// files of the record go with the first try.
fn keep(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
    schedule: Schedule,
) -> Result<(), Error> {
    let when = text(schedule);
    let place = format!("/var/lib/hatchery/{when}");
    let mut all = environment(node_context, schedule, &format!("{place}/scripts"));
    // One that somebody removed from the machine is no longer wanted.
    all += "run() {\n  [ -e \"$2\" ] || return 0\n  timeout -k 5 \"$1\" sh -c '\"$0\"' \"$2\" && return\n  \
            echo \"$2 ended with $?; 124 and 137 are of one that took longer than $1 s\"\n  exit 1\n}\n";
    let mut sums = String::new();
    for hook in hooks_at(node_context, schedule) {
        put(resources, hook, &directory(schedule))?;
        let script = quote(&format!("./{}", hook.name));
        let _ = writeln!(all, "run {} {script}", hook.timeout.as_secs().max(1));
        sums += hook.content.hash().as_str();
    }
    let sum = Hash::digest((sums + &all).as_bytes());
    let sum = sum.as_str();
    resources.file(&format!("{DIRECTORY}/{when}.all"), 0o600, all)?;
    resources.script(Script {
        name: word(when)?,
        check: format!("[ \"$(cat {place}/sum 2>/dev/null)\" = {sum} ]"),
        apply: format!(
            "set -e\nrm -rf {place}.new\nmkdir {place}.new\nif [ -d {DIRECTORY}/{when} ]; then cp -a {DIRECTORY}/{when} {place}.new/scripts; else mkdir {place}.new/scripts; fi\n\
             cp {DIRECTORY}/{when}.all {place}.new/all\necho {sum} >{place}.new/sum\nrm -rf {place}\nmv {place}.new {place}"
        ),
        undo: format!("[ ! -e {place}/all ] || sh {place}/all && rm -rf {place} {place}.new"),
        // Each has a limit of its own.
        deadline: Duration::from_secs(3600),
    });
    Ok(())
}

fn hooks_at<'a>(
    node_context: &NodeContext<'a>,
    schedule: Schedule,
) -> impl Iterator<Item = &'a Hook> {
    let hooks = node_context.installation.hooks.iter();
    hooks.filter(move |hook| hook.schedule == schedule)
}

fn put(resources: &mut Resources, hook: &Hook, directory: &str) -> Result<(), Error> {
    resources.operation(Operation::File(File {
        path: MachinePath::new(format!("{directory}/{}", hook.name))?,
        content: hook.content.clone(),
        access: Access::root(0o700)?,
    }));
    Ok(())
}

/// Where scripts lie that run when a machine joins: where the file says that an archive is, or else apart from each other.
fn join_directory(node_context: &NodeContext<'_>, schedule: Schedule) -> String {
    match &node_context.cluster.packages.directory {
        Some(archive) => format!("{archive}/file"),
        None => directory(schedule),
    }
}

fn directory(schedule: Schedule) -> String {
    format!("{DIRECTORY}/{}", text(schedule))
}

/// A name for the step of a script, another for each script.
fn step(hook: &Hook) -> Result<Word, Error> {
    let plain = format!("{}-{}", text(hook.schedule), hook.name);
    match Word::new(plain.as_str()) {
        Ok(name) => Ok(name),
        Err(_) => {
            let hash = Hash::digest(hook.name.as_bytes());
            word(&format!("{}-{:.24}", text(hook.schedule), hash.as_str()))
        }
    }
}

/// The environment and the directory of a script.
fn environment(node_context: &NodeContext<'_>, schedule: Schedule, directory: &str) -> String {
    let (kind, operator) = match schedule {
        Schedule::Prejoin => ("prehook", "join"),
        Schedule::Postjoin => ("posthook", "join"),
        Schedule::Precleanup => ("prehook", "cleanup"),
        Schedule::Postcleanup => ("posthook", "cleanup"),
    };
    let mut lines = String::new();
    for (name, value) in variables(node_context.cluster, node_context.node, kind, operator) {
        let value = quote(&value);
        let _ = writeln!(lines, "export EGGO_{name}={value} HATCHERY_{name}={value}");
    }
    let _ = writeln!(lines, "cd {} || exit", quote(directory));
    lines
}

/// The environment of every script of the user's; names come behind `EGGO_` and `HATCHERY_`.
pub(crate) fn variables(
    cluster: &Cluster,
    node: &Machine,
    kind: &str,
    operator: &str,
) -> [(&'static str, String); 9] {
    let roles: Vec<_> = node.roles.iter().map(|role| role_name(*role)).collect();
    [
        ("CLUSTER_ID", cluster.id.to_string()),
        ("CLUSTER_API_ENDPOINT", cluster.endpoint.to_string()),
        ("CLUSTER_CONFIG_DIR", "/etc/kubernetes".into()),
        ("NODE_IP", node.address.to_string()),
        ("NODE_NAME", node.name.to_string()),
        ("NODE_ARCH", node.arch.to_string()),
        ("NODE_ROLE", roles.join(",")),
        ("HOOK_TYPE", kind.to_owned()),
        ("OPERATOR", operator.to_owned()),
    ]
}

fn text(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Prejoin => "prejoin",
        Schedule::Postjoin => "postjoin",
        Schedule::Precleanup => "precleanup",
        Schedule::Postcleanup => "postcleanup",
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Master => "master",
        Role::Worker => "worker",
        Role::Etcd => "etcd",
        Role::LoadBalancer => "loadbalance",
    }
}
