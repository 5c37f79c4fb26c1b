//! From the machines of a deploy file to machines that can be talked to.
//!
//! Secrets are read here and not before: a file can be checked by somebody who does not have them. All that is
//! missing is told at once, each thing with the machines that need it.

mod credentials;
mod error;
mod surroundings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hatchery_host::{
    machine::Machine,
    privilege::Privilege,
    script::Identity,
    transport::ssh::{Bastions, Hop, HostKey, Patience, Ssh, Target, host_keys::InvalidPin},
};
use hatchery_spec::{Cluster, cluster::Machine as Node};

use self::credentials::Credentials;
pub use self::{
    error::{Error, Problem},
    surroundings::Surroundings,
};
use crate::state::Directory;

/// All machines of a cluster, in the cluster's order, held for `identity`. Nothing is connected yet.
///
/// # Errors
/// Everything that is missing on the control machine.
pub fn machines(
    cluster: &Cluster,
    identity: &Identity,
    surroundings: &Surroundings,
    patience: &Patience,
) -> Result<Vec<Machine>, Vec<Error>> {
    let mut errors = Errors::default();
    let targets = targets(cluster, surroundings, &mut errors);
    if !errors.0.is_empty() {
        return Err(errors.0);
    }
    let bastions = Bastions::new();
    let machine = |(target, privilege)| {
        let ssh = Ssh::new(target, patience.clone(), bastions.clone());
        Machine::new(Arc::new(ssh), privilege, identity.clone())
    };
    Ok(targets.into_iter().map(machine).collect())
}

fn targets(
    cluster: &Cluster,
    surroundings: &Surroundings,
    errors: &mut Errors,
) -> Vec<(Target, Privilege)> {
    let directory = Directory::new(&surroundings.home, &cluster.id);
    let files = HostKey::Known {
        files: surroundings.known_hosts(),
        record: Some(directory.path().join("known_hosts")),
    };
    let made = directory.make().map_err(|error| Problem::Directory {
        path: directory.path().display().to_string(),
        reason: error.to_string(),
    });
    let mut credentials = Credentials::new(surroundings);
    let mut targets = Vec::new();
    for node in cluster.machines() {
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
    files: &HostKey,
    credentials: &mut Credentials<'_>,
    problems: &mut Vec<Problem>,
) -> (Target, Privilege) {
    let access = &node.access;
    let auth = credentials.ways(access, problems);
    let host_key = access.host_key.as_ref().map_or_else(
        || files.clone(),
        |key| {
            let pin = key
                .to_string()
                .parse()
                .map_err(|error: InvalidPin| Problem::HostKey {
                    reason: error.to_string(),
                });
            HostKey::Pinned(take(pin, problems).into_iter().collect())
        },
    );
    // A bastion lets the same people in as the machines behind it; a pinned key is the machine's own.
    let jumps = access.bastions.iter().map(|bastion| Hop {
        host: bastion.host.to_string(),
        port: bastion.port.number(),
        user: bastion.user.clone().unwrap_or_else(|| access.user.clone()),
        auth: auth.clone(),
        host_key: files.clone(),
    });
    let target = Target {
        name: node.name.to_string(),
        host: access.host.to_string(),
        port: access.port.number(),
        user: access.user.clone(),
        jumps: jumps.collect(),
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
