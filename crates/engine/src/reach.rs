//! From the machines of a deploy file to machines that can be talked to.
//!
//! Secrets are read here and not before: a file can be checked by somebody who does not have them. All that is
//! missing is told at once, each thing with the machines that need it.

mod credentials;
mod environment;
mod error;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use hatchery_host::{
    machine::Machine,
    privilege::Privilege,
    script::Identity,
    transport::ssh::{Bastions, Hop, HostKey, Ssh, Target, Timeouts, host_keys::InvalidPin},
};
use hatchery_spec::{
    Cluster,
    cluster::{Access, Machine as Node},
    value::{HostKey as Pinned, Name},
};

use self::credentials::Credentials;
pub use self::{
    environment::{Environment, NoHome, home_directory},
    error::{Error, Problem},
};
use crate::state::Directory;

/// All machines of a cluster, in the cluster's order, held for `identity`. Nothing is connected yet.
///
/// # Errors
/// Everything that is missing on the control machine.
pub fn machines(
    cluster: &Cluster,
    identity: &Identity,
    environment: &Environment,
    timeouts: &Timeouts,
) -> Result<Vec<Machine>, Vec<Error>> {
    Ok(held(routes(cluster, environment)?, identity, timeouts))
}

/// The same for some machines, be they of one deploy file of the cluster or of several.
///
/// # Errors
/// Everything that is missing on the control machine.
pub fn selected(
    cluster: &Name,
    nodes: &[&Node],
    identity: &Identity,
    environment: &Environment,
    timeouts: &Timeouts,
) -> Result<Vec<Machine>, Vec<Error>> {
    let mut errors = Errors::default();
    let targets = targets_of(cluster, nodes, environment, &mut errors);
    match errors.0.is_empty() {
        true => Ok(held(targets, identity, timeouts)),
        false => Err(errors.0),
    }
}

fn held(
    targets: Vec<(Target, Privilege)>,
    identity: &Identity,
    timeouts: &Timeouts,
) -> Vec<Machine> {
    let bastions = Bastions::new();
    let machine = |(target, privilege)| {
        let ssh = Ssh::new(target, timeouts.clone(), bastions.clone());
        Machine::new(Arc::new(ssh), privilege, identity.clone())
    };
    targets.into_iter().map(machine).collect()
}

/// How each machine is reached and how root's rights are had there, in the cluster's order.
///
/// # Errors
/// Everything that is missing on the control machine.
pub fn routes(
    cluster: &Cluster,
    environment: &Environment,
) -> Result<Vec<(Target, Privilege)>, Vec<Error>> {
    let mut errors = Errors::default();
    let targets = targets(cluster, environment, &mut errors);
    if errors.0.is_empty() {
        Ok(targets)
    } else {
        Err(errors.0)
    }
}

/// Where host keys are known from.
struct Files {
    /// The user's own, read only.
    known: Vec<PathBuf>,
    /// The cluster's, which keys are added to at first use.
    record: PathBuf,
}

fn targets(
    cluster: &Cluster,
    environment: &Environment,
    errors: &mut Errors,
) -> Vec<(Target, Privilege)> {
    let nodes: Vec<_> = cluster.all_machines().collect();
    targets_of(&cluster.id, &nodes, environment, errors)
}

fn targets_of(
    cluster: &Name,
    nodes: &[&Node],
    environment: &Environment,
    errors: &mut Errors,
) -> Vec<(Target, Privilege)> {
    let directory = Directory::new(&environment.home, cluster);
    let files = Files {
        known: environment.known_hosts(),
        record: directory.path().join("known_hosts"),
    };
    let made = directory.make().map_err(|error| Problem::Directory {
        path: directory.path().display().to_string(),
        reason: error.to_string(),
    });
    let mut credentials = Credentials::new(environment);
    let mut targets = Vec::new();
    for &node in nodes {
        if let Err(problem) = &made {
            errors.add(problem.clone(), node);
        }
        let mut problems = Vec::new();
        targets.push(target(node, &files, &mut credentials, &mut problems));
        for problem in problems {
            errors.add(problem, node);
        }
    }
    targets
}

fn target(
    node: &Node,
    files: &Files,
    credentials: &mut Credentials<'_>,
    problems: &mut Vec<Problem>,
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
fn trusted(pin: Option<&Pinned>, known: &HostKey, problems: &mut Vec<Problem>) -> HostKey {
    let Some(key) = pin else {
        return known.clone();
    };
    let pin = key.to_string().parse();
    let pin = pin.map_err(|error: InvalidPin| Problem::HostKey {
        reason: error.to_string(),
    });
    HostKey::Pinned(take(pin, problems).into_iter().collect())
}

fn take<T>(result: Result<T, Problem>, problems: &mut Vec<Problem>) -> Option<T> {
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

/// Problems, each with all machines that have it.
#[derive(Debug, Default)]
struct Errors(Vec<Error>);

impl Errors {
    fn add(&mut self, problem: Problem, node: &Node) {
        let name = node.name.to_string();
        match self.0.iter_mut().find(|error| error.problem == problem) {
            Some(error) => error.machines.push(name),
            None => self.0.push(Error {
                problem,
                machines: vec![name],
            }),
        }
    }
}
