//! The one pass over an archive that makes its index and refuses what is not sound.

use std::{
    collections::HashMap,
    io::{BufRead, Cursor, Read},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use super::{
    compression::{self, Compression},
    entry::{Digest, Entry, Kind},
    flaw::{Fault, Flaw},
    header::BLOCK,
    index::Index,
    limits::Limits,
    links,
    member::{self, Member, Shape},
    name,
    stream::Stream,
};

/// Contents pass through a buffer of this size.
pub(super) const BUFFER: usize = 128 << 10;

/// Reads a whole archive, of `packed_size` bytes, and returns what it holds. Memory use is bounded
/// by the limits, whatever the bytes.
pub fn scan(
    packed: impl BufRead,
    packed_size: u64,
    limits: &Limits,
) -> Result<(Compression, Index), Flaw> {
    let (compression, mut stream) = begin(packed, packed_size, limits)?;
    let mut register = Register::new(limits);
    let mut buffer = vec![0; BUFFER];
    while let Some(member) = member::next(&mut stream, limits)? {
        let offset = stream.position();
        let sha256 = match member.shape {
            Shape::File { size } => digest(&mut stream, size, &mut buffer)?,
            _ => Digest([0; 32]),
        };
        let shown = name::display(&member.name);
        register.enter(&member, &shown, offset, sha256)?;
        stream.passed(shown);
    }
    let index = register.index;
    if index.entries.is_empty() {
        return Err(Flaw::Empty);
    }
    links::check(&index, limits.link_steps)?;
    Ok((compression, index))
}

/// Recognises how an archive is packed, and begins to unpack it.
pub(super) fn begin<'a>(
    mut packed: impl BufRead + 'a,
    packed_size: u64,
    limits: &Limits,
) -> Result<(Compression, Stream<Box<dyn Read + 'a>>), Flaw> {
    let mut head = Vec::new();
    let start = packed.by_ref().take(BLOCK as u64).read_to_end(&mut head);
    start.map_err(|source| Flaw::Unreadable { source })?;
    let compression = compression::recognise(&head)?;

    let packed = Cursor::new(head).chain(packed);
    let unpacked = compression::unpack(compression, packed, limits.zstd_window_log);
    let stream = Stream::new(unpacked, packed_size, limits.budget(packed_size));
    Ok((compression, stream))
}

/// The index of entries that a scan once found; nothing if no scan could have found them.
pub(super) fn reassemble(entries: Vec<Entry>, limits: &Limits) -> Option<Index> {
    let mut register = Register::new(limits);
    for entry in entries {
        let normal = name::normalise(entry.path.as_bytes(), limits).ok()?;
        if normal.is_empty() || normal != *entry.path || entry.mode > 0o777 {
            return None;
        }
        if let Kind::Symlink { target } = &entry.kind {
            name::target(target.as_bytes(), limits).ok()?;
        }
        register.place(&entry).ok()?;
        register.keep(entry).ok()?;
    }
    let index = register.index;
    links::check(&index, limits.link_steps).ok()?;
    Some(index)
}

fn digest<R: Read>(stream: &mut Stream<R>, size: u64, buffer: &mut [u8]) -> Result<Digest, Flaw> {
    let mut hash = Sha256::new();
    stream.each_piece(size, buffer, |piece| hash.update(piece))?;
    stream.skip_padding()?;
    Ok(Digest(hash.finalize().into()))
}

/// The index under construction.
struct Register<'a> {
    limits: &'a Limits,
    index: Index,
    /// Bytes of names so far.
    names: usize,
    /// Names of each file that has several, by its offset.
    links: HashMap<u64, usize>,
}

impl<'a> Register<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            index: Index::default(),
            names: 0,
            links: HashMap::new(),
        }
    }

    fn enter(
        &mut self,
        member: &Member,
        shown: &str,
        offset: u64,
        sha256: Digest,
    ) -> Result<(), Flaw> {
        let entry = self
            .entry_of(member, offset, sha256)
            .map_err(|fault| Flaw::Entry {
                entry: shown.to_owned(),
                fault,
            })?;
        entry.map_or(Ok(()), |entry| self.keep(entry))
    }

    /// Takes in an entry that was checked, as far as there is room.
    fn keep(&mut self, entry: Entry) -> Result<(), Flaw> {
        if self.index.entries.len() >= self.limits.entries {
            return Err(Flaw::Entries {
                most: self.limits.entries,
            });
        }
        let target = match &entry.kind {
            Kind::Symlink { target } => target.len(),
            Kind::File { .. } | Kind::Directory => 0,
        };
        self.names += entry.path.len() + target;
        if self.names > self.limits.names {
            return Err(Flaw::Names {
                most: self.limits.names,
            });
        }
        let position = self.index.entries.len();
        self.index.by_path.insert(entry.path.clone(), position);
        self.index.entries.push(entry);
        Ok(())
    }

    /// `None` for the root directory, which is not an entry.
    fn entry_of(
        &mut self,
        member: &Member,
        offset: u64,
        sha256: Digest,
    ) -> Result<Option<Entry>, Fault> {
        let path: Arc<str> = name::normalise(&member.name, self.limits)?.into();
        if path.is_empty() {
            return match member.shape {
                Shape::Directory => Ok(None),
                _ => Err(Fault::NoName),
            };
        }
        let mut entry = Entry {
            path,
            kind: Kind::Directory,
            mode: member.mode,
            mtime: member.mtime,
            offset,
        };
        match &member.shape {
            Shape::File { size } => {
                let size = *size;
                entry.kind = Kind::File { size, sha256 };
            }
            Shape::Directory => {}
            Shape::Symlink { target } => {
                let target = name::target(target, self.limits)?.into();
                entry.kind = Kind::Symlink { target };
            }
            Shape::HardLink { target } => {
                let path = entry.path;
                entry = self.linked(target)?.clone();
                entry.path = path;
            }
        }
        self.place(&entry)?;
        Ok(Some(entry))
    }

    /// What a hard link is another name of.
    fn linked(&mut self, target: &[u8]) -> Result<&Entry, Fault> {
        let shown = || name::display(target);
        let path = name::normalise(target, self.limits).map_err(|fault| match fault {
            Fault::Absolute | Fault::Parent => Fault::LeadsOut { target: shown() },
            Fault::NoName => Fault::NoTarget,
            why => Fault::BadTarget {
                target: shown(),
                why: Box::new(why),
            },
        })?;
        let missing = || Fault::NoSuchFile { target: shown() };
        let original = self.index.exact(&path).ok_or_else(missing)?;
        if original.kind == Kind::Directory {
            return Err(missing());
        }
        let names = self.links.entry(original.offset).or_insert(1);
        *names += 1;
        if *names > self.limits.links {
            return Err(Fault::Links {
                most: self.limits.links,
            });
        }
        Ok(original)
    }

    /// One thing per path, and only directories have something below them.
    fn place(&self, entry: &Entry) -> Result<(), Fault> {
        let path = &*entry.path;
        if self.index.exact(path).is_some() {
            return Err(Fault::Duplicate);
        }
        let kind = entry.kind.name();
        if entry.kind != Kind::Directory && self.index.has_below(path) {
            return Err(Fault::Covers { kind });
        }
        let mut ancestor = path;
        while let Some((parent, _)) = ancestor.rsplit_once('/') {
            match self.index.exact(parent).map(|entry| &entry.kind) {
                None => ancestor = parent,
                // What lies above a listed directory was checked with it.
                Some(Kind::Directory) => break,
                Some(leaf) => {
                    return Err(Fault::BelowLeaf {
                        ancestor: name::display(parent.as_bytes()),
                        kind: leaf.name(),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
