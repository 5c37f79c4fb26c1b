//! From the machines of a deploy file to machines that can be talked to.
//!
//! Secrets are read here and not before: a file can be checked by somebody who does not have them. All that is
//! missing is told at once, each thing with the machines that need it.

mod credentials;
mod environment;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use hatchery_host::{
    machine::Machine,
    privilege::Privilege,
    script::Identity,
    transport::ssh::{Bastions, Hop, HostKey, Ssh, Target, Timeouts, host_keys::InvalidPin},
};
use hatchery_spec::{
    cluster::{Access, Machine as Node},
    value::HostKey as Pinned,
};

use self::credentials::Credentials;
pub use self::environment::{Environment, NoHome, home_directory};
use crate::{
    api_access::Machines,
    finding::{Finding, Findings},
    state::Store,
    traces,
};

/// The code of all findings about logging in to machines.
const ACCESS: &str = "access";

/// Machines by name, held for `identity`, be they of one deploy file of a cluster or of several. Nothing is connected yet;
/// host keys that are seen for the first time are recorded in the cluster's store.
///
/// # Errors
/// Everything that is missing on the control machine.
pub fn machines<'a>(
    nodes: impl IntoIterator<Item = &'a Node>,
    store: &dyn Store,
    identity: &Identity,
    environment: &Environment,
    timeouts: &Timeouts,
) -> Result<Machines, Vec<Finding>> {
    let nodes: Vec<_> = nodes.into_iter().collect();
    let routes = routes(&nodes, store, environment)?;
    let bastions = Bastions::new();
    let machines = nodes.iter().zip(routes).map(|(node, (target, privilege))| {
        let ssh = Ssh::new(target, timeouts.clone(), bastions.clone());
        let mut machine = Machine::new(Arc::new(ssh), privilege, identity.clone());
        machine.questions = traces::questions();
        (node.name.clone(), Arc::new(machine))
    });
    Ok(BTreeMap::from_iter(machines))
}

/// How each machine is reached and how root's rights are had there, in the same order.
///
/// # Errors
/// Everything that is missing on the control machine.
pub fn routes(
    nodes: &[&Node],
    store: &dyn Store,
    environment: &Environment,
) -> Result<Vec<(Target, Privilege)>, Vec<Finding>> {
    let mut findings = Findings::default();
    let record = store.host_keys().map_err(|error| {
        Finding::error(
            ACCESS,
            format!("cannot record host keys: {error}"),
            "make it writable for this user, or choose another place with --home",
        )
    });
    let files = Files {
        known: environment.known_hosts(),
        record: record.as_ref().cloned().unwrap_or_default(),
    };
    let mut credentials = Credentials::new(environment);
    let mut targets = Vec::new();
    for &node in nodes {
        let mut problems: Vec<_> = record.as_ref().err().cloned().into_iter().collect();
        targets.push(target(node, &files, &mut credentials, &mut problems));
        for problem in problems {
            findings.add(Finding {
                machines: vec![node.name.to_string()],
                ..problem
            });
        }
    }
    let findings = findings.sorted();
    match findings.is_empty() {
        true => Ok(targets),
        false => Err(findings),
    }
}

/// Where host keys are known from.
struct Files {
    /// The user's own, read only.
    known: Vec<PathBuf>,
    /// The cluster's, which keys are added to at first use.
    record: PathBuf,
}

fn target(
    node: &Node,
    files: &Files,
    credentials: &mut Credentials<'_>,
    problems: &mut Vec<Finding>,
) -> (Target, Privilege) {
    let access = &node.access;
    let (key, password) = (access.private_key.as_ref(), access.password.as_ref());
    let auth = credentials.ways(key, password, problems);
    let known = known(access, files);
    let host_key = trusted(access.host_key.as_ref(), &known, problems);
    let mut jumps = Vec::new();
    for jump in &access.bastions {
        // A signature tells a bastion nothing that it could use elsewhere. A password does: it gets its own or none.
        let key = jump.private_key.as_ref().or(key);
        let bastion = &jump.bastion;
        jumps.push(Hop {
            host: bastion.host.to_string(),
            port: bastion.port.number(),
            user: bastion.user.clone().unwrap_or_else(|| access.user.clone()),
            auth: credentials.ways(key, jump.password.as_ref(), problems),
            host_key: trusted(jump.host_key.as_ref(), &known, problems),
        });
    }
    let target = Target {
        name: node.name.to_string(),
        host: access.host.to_string(),
        port: access.port.number(),
        user: access.user.clone(),
        jumps,
        host_key,
        auth,
    };
    let privilege = if access.user == "root" {
        Privilege::Root
    } else {
        Privilege::Sudo {
            password: take(credentials.sudo(access), problems).flatten(),
        }
    };
    (target, privilege)
}

/// The host keys that are known for a machine that has no pinned one.
fn known(access: &Access, files: &Files) -> HostKey {
    let Files { known, record } = files;
    if !access.strict_host_keys {
        return HostKey::Known {
            files: known.clone(),
            record: Some(record.clone()),
        };
    }
    // What was recorded before is known; nothing is added.
    HostKey::Known {
        files: known.iter().chain([record]).cloned().collect(),
        record: None,
    }
}

/// The pinned key, or else the known ones.
fn trusted(pin: Option<&Pinned>, known: &HostKey, problems: &mut Vec<Finding>) -> HostKey {
    let Some(key) = pin else {
        return known.clone();
    };
    let pin = key.to_string().parse();
    let pin = pin.map_err(|error: InvalidPin| {
        Finding::error(
            ACCESS,
            format!("the host-key cannot be used: {error}"),
            "write the line of /etc/ssh/ssh_host_ed25519_key.pub, or the SHA256:… that 'ssh-keygen -lf' prints for it",
        )
    });
    HostKey::Pinned(take(pin, problems).into_iter().collect())
}

fn take<T>(result: Result<T, Finding>, problems: &mut Vec<Finding>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        // The login's password is often sudo's too.
        Err(problem) => {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            None
        }
    }
}
