//! Where symbolic links lead, without leaving the index.

use super::{
    entry::Kind,
    flaw::{Fault, Flaw},
    index::Index,
    name,
};

/// As many links as Linux follows for one path.
const MOST_HOPS: usize = 40;

/// Why a path leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Astray {
    Out,
    Loop,
    Tangled,
}

/// Follows paths through an index, with a bound on the work for all of them together.
pub(super) struct Walk<'a> {
    index: &'a Index,
    steps: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(index: &'a Index, steps: u64) -> Self {
        Self { index, steps }
    }

    /// The path, free of links, where a path ends. Components that are not in the archive are
    /// taken for directories.
    pub(super) fn follow(&mut self, path: &str) -> Result<String, Astray> {
        if path.starts_with('/') {
            return Err(Astray::Out);
        }
        let mut at = String::new();
        // Components still to go, the next one last.
        let mut ahead: Vec<&str> = name::components(path).rev().collect();
        let mut hops = 0;
        while let Some(component) = ahead.pop() {
            self.steps = self.steps.checked_sub(1).ok_or(Astray::Tangled)?;
            if component == ".." {
                if at.is_empty() {
                    return Err(Astray::Out);
                }
                at.truncate(at.rfind('/').unwrap_or(0));
                continue;
            }
            let parent = at.len();
            if !at.is_empty() {
                at.push('/');
            }
            at.push_str(component);
            let entry = self.index.exact(&at);
            if let Some(Kind::Symlink { target }) = entry.map(|entry| &entry.kind) {
                hops += 1;
                if hops > MOST_HOPS {
                    return Err(Astray::Loop);
                }
                at.truncate(parent);
                ahead.extend(name::components(target).rev());
            }
        }
        Ok(at)
    }
}

/// Checks that every symbolic link stays in the tree.
pub(super) fn check(index: &Index, steps: u64) -> Result<(), Flaw> {
    let mut walk = Walk::new(index, steps);
    for entry in index.entries() {
        let Kind::Symlink { target } = &entry.kind else {
            continue;
        };
        let Err(astray) = walk.follow(&entry.path) else {
            continue;
        };
        let target = name::display(target.as_bytes());
        let fault = match astray {
            Astray::Out => Fault::LeadsOut { target },
            Astray::Loop => Fault::Loop { target },
            Astray::Tangled => return Err(Flaw::Tangled),
        };
        let entry = name::display(entry.path.as_bytes());
        return Err(Flaw::Entry { entry, fault });
    }
    Ok(())
}
