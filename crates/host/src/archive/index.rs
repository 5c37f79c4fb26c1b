//! What an archive holds: its entries by path, and by directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use super::{
    entry::{Digest, Entry, Kind},
    links, name,
};

/// The entries of an archive, all of them sound. Contents are not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// In archive order.
    pub(super) entries: Vec<Entry>,
    pub(super) by_path: BTreeMap<Arc<str>, usize>,
}

impl Index {
    /// All entries in archive order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry at a path, itself and not what it links to.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.exact(path).or_else(|| self.exact(&plain(path)?))
    }

    /// The entry at a path after all symbolic links, those of directories above it too.
    pub fn resolve(&self, path: &str) -> Option<&Entry> {
        let end = links::Walk::new(self, u64::MAX).follow(path).ok()?;
        self.exact(&end)
    }

    /// Whether a path is a directory, listed or only implied by what lies below it.
    pub fn is_directory(&self, path: &str) -> bool {
        let listed = self.get(path).map(|entry| &entry.kind);
        match listed {
            Some(kind) => *kind == Kind::Directory,
            None => self.below(path).next().is_some(),
        }
    }

    /// Everything below a directory at any depth, in the order of paths; `""` is the root.
    pub fn below(&self, directory: &str) -> impl Iterator<Item = &Entry> {
        // No path has `..` in it, so nothing lies below one that has.
        let prefix = plain(directory).map_or_else(|| "../".into(), prefix);
        self.with_prefix(prefix)
    }

    /// The names directly in a directory, those of implied directories too.
    pub fn children(&self, directory: &str) -> BTreeSet<&str> {
        let depth = name::components(directory).count();
        self.below(directory)
            .filter_map(|entry| entry.path.split('/').nth(depth))
            .collect()
    }

    /// A digest of what the archive holds: paths, kinds, permissions, link targets and bytes.
    /// Compression, order and times make no difference to it.
    pub fn fingerprint(&self) -> Digest {
        let mut hash = Sha256::new();
        for (path, position) in &self.by_path {
            let Some(entry) = self.entries.get(*position) else {
                continue;
            };
            let content = match &entry.kind {
                Kind::File { size, sha256 } => format!("file {size} {sha256}"),
                Kind::Directory => "directory".into(),
                Kind::Symlink { target } => format!("link {target}"),
            };
            // Neither paths nor targets hold a new line.
            hash.update(format!("{path}\n{:o} {content}\n", entry.mode));
        }
        Digest(hash.finalize().into())
    }

    /// The entry at an already normal path.
    pub(super) fn exact(&self, path: &str) -> Option<&Entry> {
        self.entries.get(*self.by_path.get(path)?)
    }

    pub(super) fn has_below(&self, path: &str) -> bool {
        self.with_prefix(prefix(path.to_owned())).next().is_some()
    }

    fn with_prefix(&self, prefix: String) -> impl Iterator<Item = &Entry> {
        let start = Bound::Included(prefix.as_str());
        self.by_path
            .range::<str, _>((start, Bound::Unbounded))
            .map_while(move |(path, position)| {
                let within = path.starts_with(&prefix);
                within.then(|| self.entries.get(*position)).flatten()
            })
    }
}

/// The usual spelling of a path that a caller wrote, if it can be one of an archive.
fn plain(path: &str) -> Option<String> {
    let components: Vec<_> = name::components(path).collect();
    (!path.starts_with('/') && !components.contains(&"..")).then(|| components.join("/"))
}

fn prefix(mut directory: String) -> String {
    if !directory.is_empty() {
        directory.push('/');
    }
    directory
}
