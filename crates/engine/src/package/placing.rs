//! What goes where on a machine: each place once.

use std::collections::BTreeMap;

use hatchery_host::{
    content::Content,
    operation::{Access, Directory, File, Link, Operation},
    path::MachinePath,
};
use hatchery_spec::value::AbsolutePath;

use super::{layout, problem::tell};
use crate::finding::Finding;

/// Files, directories and links, in the order of first mention.
#[derive(Debug, Default)]
pub(super) struct Placing {
    operations: Vec<Operation>,
    /// Which of them it is, and what it was made from.
    places: BTreeMap<MachinePath, (usize, String)>,
    pub(super) problems: Vec<Finding>,
}

/// The place of a thing in a directory of a machine.
pub(super) fn place(directory: &AbsolutePath, name: &str) -> Result<MachinePath, Finding> {
    let directory = directory.as_str().trim_end_matches('/');
    machine_path(format!("{directory}/{}", layout::last(name)))
}

pub(super) fn machine_path(path: String) -> Result<MachinePath, Finding> {
    MachinePath::new(path).map_err(|error| {
        Finding::package(
            error.to_string(),
            "rename the file and pack the archive again",
        )
    })
}

/// Only root changes what root runs.
pub(super) fn mode_of_file(mode: u32) -> u16 {
    0o400 | bits(mode)
}

/// A directory that its owner cannot use would be none.
pub(super) fn mode_of_directory(mode: u32) -> u16 {
    0o700 | bits(mode)
}

fn bits(mode: u32) -> u16 {
    // At most 0o755, so that nothing is cut off.
    u16::try_from(mode & 0o755).unwrap_or(0)
}

impl Placing {
    pub(super) fn file(&mut self, path: MachinePath, content: Content, mode: u16, source: &str) {
        if let Some(access) = self.access(mode) {
            let file = File {
                path: path.clone(),
                content,
                access,
            };
            self.put(path, Operation::File(file), source);
        }
    }

    pub(super) fn directory(&mut self, path: MachinePath, mode: u16, source: &str) {
        if let Some(access) = self.access(mode) {
            let directory = Directory {
                path: path.clone(),
                access,
                contents_are_ours: false,
            };
            self.put(path, Operation::Directory(directory), source);
        }
    }

    pub(super) fn link(&mut self, path: MachinePath, target: String, source: &str) {
        let link = Link {
            path: path.clone(),
            target,
        };
        self.put(path, Operation::Link(link), source);
    }

    fn access(&mut self, mode: u16) -> Option<Access> {
        match Access::root(mode) {
            Ok(access) => Some(access),
            Err(error) => {
                let problem =
                    Finding::package(error.to_string(), "correct its mode and pack it again");
                tell(&mut self.problems, problem);
                None
            }
        }
    }

    fn put(&mut self, path: MachinePath, operation: Operation, source: &str) {
        let known = self.places.get(&path);
        let earlier = known.and_then(|(at, from)| Some((self.operations.get_mut(*at)?, from)));
        match earlier {
            None => {
                let at = self.operations.len();
                self.operations.push(operation);
                self.places.insert(path, (at, source.to_owned()));
            }
            Some((earlier, from)) => {
                if !merge(earlier, operation) {
                    let problem = Finding::package(
                        format!("{path} would come from both {from} and {source}, which differ"),
                        "list only one of them for the roles of one machine",
                    );
                    tell(&mut self.problems, problem);
                }
            }
        }
    }

    /// All operations, unless something lies below what is not a directory.
    pub(super) fn finish(mut self) -> (Vec<Operation>, Vec<Finding>) {
        for (path, (_, source)) in &self.places {
            let mut above = path.parent();
            while let Some(parent) = above {
                let found = self.places.get(&parent);
                let operation = found.and_then(|(at, _)| self.operations.get(*at));
                if matches!(operation, Some(Operation::File(_) | Operation::Link(_))) {
                    let problem = Finding::package(
                        format!("{source} would come to {path}, but {parent} is not a directory"),
                        "correct the destination of one of them",
                    );
                    tell(&mut self.problems, problem);
                }
                above = parent.parent();
            }
        }
        (self.operations, self.problems)
    }
}

/// Whether the two are the same; then the first has the rights of both.
fn merge(first: &mut Operation, second: Operation) -> bool {
    match (first, second) {
        (Operation::File(first), Operation::File(second)) => {
            let bits = first.access.mode.bits() | second.access.mode.bits();
            if let Ok(access) = Access::root(bits) {
                first.access = access;
            }
            first.content.hash() == second.content.hash()
        }
        (Operation::Directory(_), Operation::Directory(_)) => true,
        (Operation::Link(first), Operation::Link(second)) => first.target == second.target,
        _ => false,
    }
}
