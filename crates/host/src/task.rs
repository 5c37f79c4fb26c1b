//! Operations that travel together: one stream to a machine, one answer.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use snafu::{Snafu, ensure};

use crate::{
    operation::{Operation, PackageSource},
    path::Word,
    script::{List, RecordKey},
};

/// Operations for one machine, done in their order, with who needs them.
#[derive(Clone, Debug)]
pub struct Task {
    owner: Word,
    operations: Vec<Operation>,
    /// How long one step may wait for others. A unit has to be up by then. A package manager and the import of images
    /// take as long as they read or write something, and are ended when they do neither for this time.
    pub step_deadline: Duration,
    /// The timeout of the whole task, including the transfer. Follows from its operations.
    pub deadline: Duration,
}

/// A task that contradicts itself.
#[derive(Debug, PartialEq, Eq, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// Two operations want different things of one resource, or the same thing twice.
    #[snafu(display("a task has two operations on {resource}"))]
    Twice { resource: String },
}

impl Task {
    /// A task for an owner: the role or component on whose behalf resources are held.
    pub fn new(owner: Word, operations: Vec<Operation>) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        for resource in operations.iter().flat_map(resources) {
            ensure!(seen.insert(resource.clone()), TwiceSnafu { resource });
        }
        let longest = operations.iter().map(longest);
        let deadline = longest.fold(Duration::from_secs(1800), Duration::saturating_add);
        Ok(Self {
            owner,
            step_deadline: Duration::from_secs(300),
            deadline,
            operations,
        })
    }

    /// On whose behalf.
    pub fn owner(&self) -> &Word {
        &self.owner
    }

    /// The records on the machine that belong to the owner when this task is all that it needs, also those of directories
    /// above its files.
    pub fn record_keys(&self) -> BTreeSet<RecordKey> {
        List::for_task(self).into_keys()
    }

    /// What, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

/// The slowest connection or disk that is still waited for, in bytes per second.
const SLOWEST: u64 = 64 * 1024;

/// A package of a repository is downloaded by the machine itself: its size is not known here.
const PACKAGE: Duration = Duration::from_secs(300);

/// How long an operation takes at most where everything is as slow as can be borne.
fn longest(operation: &Operation) -> Duration {
    let bytes = |size: u64| Duration::from_secs(size / SLOWEST);
    match operation {
        Operation::Script(script) => script.deadline,
        Operation::File(file) => bytes(file.content.size()),
        // They are sent, and then read by the runtime.
        Operation::Images(images) => bytes(images.archive.size()).saturating_mul(2),
        Operation::Packages(packages) => match &packages.source {
            PackageSource::Repository(names) => {
                PACKAGE.saturating_mul(u32::try_from(names.len()).unwrap_or(u32::MAX))
            }
            PackageSource::Files(files) => files
                .iter()
                .map(|file| bytes(file.content.size()).saturating_mul(2))
                .fold(Duration::ZERO, Duration::saturating_add),
        },
        _ => Duration::ZERO,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        content::{Content, Hash},
        operation::{Access, File, PackageName, Packages},
        path::MachinePath,
    };

    fn deadline(operations: Vec<Operation>) -> Duration {
        let owner = Word::new("role").unwrap();
        Task::new(owner, operations).unwrap().deadline
    }

    #[test]
    fn a_deadline_follows_what_there_is_to_do() {
        let none = deadline(Vec::new());
        let size = 2 << 30;
        let file = Operation::File(File {
            path: MachinePath::new("/opt/large").unwrap(),
            content: Content::known(Hash::digest(b""), size),
            access: Access::root(0o644).unwrap(),
        });
        // Two gibibytes over a line of a megabit or so.
        assert!(deadline(vec![file]) >= none + Duration::from_secs(size / (128 * 1024)));
        let names = ["a1", "b2", "c3"].map(|name| PackageName::new(name).unwrap());
        let packages = Operation::Packages(Packages {
            source: PackageSource::Repository(names.into()),
        });
        assert_eq!(deadline(vec![packages]), none + 3 * PACKAGE);
    }
}
