//! Operations that travel together: one stream to a machine, one answer.

use std::{collections::HashSet, time::Duration};

use snafu::{Snafu, ensure};

use crate::{
    operation::{Operation, PackageSource},
    path::Word,
};

/// Operations for one machine, done in their order, with who needs them.
#[derive(Clone, Debug)]
pub struct Task {
    owner: Word,
    operations: Vec<Operation>,
    /// How long one step may take that waits for others: a unit to start, a package manager.
    pub step_deadline: Duration,
    /// How long the whole task may take, its bytes included.
    pub deadline: Duration,
}

/// A task that contradicts itself.
#[derive(Debug, PartialEq, Eq, Snafu)]
pub enum Error {
    /// Two operations want different things of one resource, or the same thing twice.
    #[snafu(display("a task has two operations on {resource}"))]
    Twice {
        /// Which.
        resource: String,
    },
}

impl Task {
    /// A task for an owner: the role or component on whose behalf resources are held.
    pub fn new(owner: Word, operations: Vec<Operation>) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        for resource in operations.iter().flat_map(resources) {
            ensure!(seen.insert(resource.clone()), TwiceSnafu { resource });
        }
        let scripts = operations.iter().map(|operation| match operation {
            Operation::Script(script) => script.deadline,
            _ => Duration::ZERO,
        });
        Ok(Self {
            owner,
            step_deadline: Duration::from_secs(300),
            deadline: Duration::from_secs(1800).saturating_add(scripts.sum()),
            operations,
        })
    }

    /// On whose behalf.
    pub fn owner(&self) -> &Word {
        &self.owner
    }

    /// What, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

/// The names of what an operation is about; paths share one name space whatever lies there.
fn resources(operation: &Operation) -> Vec<String> {
    match operation {
        Operation::File(file) => vec![file.path.to_string()],
        Operation::Directory(directory) => vec![directory.path.to_string()],
        Operation::Link(link) => vec![link.path.to_string()],
        Operation::Absent(path) => vec![path.to_string()],
        Operation::Packages(packages) => match &packages.source {
            PackageSource::Repository(names) => {
                names.iter().map(|name| format!("package {name}")).collect()
            }
            PackageSource::Files(files) => files
                .iter()
                .map(|file| format!("package {}", file.name))
                .collect(),
        },
        Operation::Hostname(_) => vec!["the hostname".into()],
        other => vec![other.title()],
    }
}
