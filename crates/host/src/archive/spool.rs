//! What was unpacked of a compressed archive once, for all who want it.
//!
//! Unpacking costs far more than sending, and many machines want the same files. One thread unpacks, up to the last file
//! that anybody wants, into a file without a name; everybody reads from there, at a pace of his own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use super::{Compression, Place, compression::unpack, scan};

/// A file of the archive: where its contents begin in the unpacked stream, and how long they are.
pub(super) type Extent = (u64, u64);

/// For big files that do not outlive us; unlike `/tmp` it is seldom in memory.
const DIRECTORY: &str = "/var/tmp";

#[derive(Debug, Default)]
pub(super) struct Spool {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<File>>,
    wanted: BTreeSet<Extent>,
    /// Where in the file they are.
    kept: BTreeMap<Extent, u64>,
    end: u64,
    unpacking: bool,
    /// There is no room, or the archive cannot be unpacked any more: each reader unpacks for itself, and learns why.
    given_up: bool,
}

/// What has to be known of an archive to unpack it.
pub(super) struct Packed {
    pub(super) file: File,
    pub(super) compression: Compression,
    pub(super) window: u32,
}

impl Spool {
    /// Has these unpacked, if they are not.
    pub(super) fn want(
        self: &Arc<Self>,
        extents: impl Iterator<Item = Extent>,
        packed: impl FnOnce() -> io::Result<Packed>,
    ) {
        let mut state = self.lock();
        let new: Vec<_> = extents
            .filter(|extent| !state.kept.contains_key(extent))
            .collect();
        state.wanted.extend(new);
        if state.unpacking || state.given_up || state.wanted.is_empty() {
            return;
        }
        let begun = packed().and_then(|packed| {
            if state.file.is_none() {
                state.file = Some(Arc::new(unnamed()?));
            }
            let spool = Arc::clone(self);
            thread::Builder::new()
                .name("unpacking".into())
                .spawn(move || spool.unpack(&packed))
        });
        state.unpacking = begun.is_ok();
        state.given_up = begun.is_err();
    }

    /// Waits until a wanted file is there. `None` when it will not be.
    pub(super) fn get(&self, extent: Extent) -> Option<(Arc<File>, u64)> {
        let mut state = self.lock();
        loop {
            if let Some(at) = state.kept.get(&extent) {
                return state.file.clone().zip(Some(*at));
            }
            if state.given_up || !state.wanted.contains(&extent) {
                return None;
            }
            state = self
                .news
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn unpack(&self, packed: &Packed) {
        if self.passes(packed).is_err() {
            let mut state = self.lock();
            state.unpacking = false;
            state.given_up = true;
            // Whoever reads has it still; the room is free when the last one is done.
            state.file = None;
            state.kept.clear();
        }
        self.news.notify_all();
    }

    /// Passes over the archive until nothing is wanted. A reader that comes during a pass joins it where it is.
    fn passes(&self, packed: &Packed) -> io::Result<()> {
        loop {
            let mut stream = unpack(
                packed.compression,
                BufReader::with_capacity(scan::BUFFER, Place::new(&packed.file, 0)),
                packed.window,
            );
            let mut position = 0;
            while let Some((extent, file, at)) = self.next(position)? {
                skip(&mut stream, extent.0 - position)?;
                let mut writer = At { file: &file, at };
                let count = io::copy(&mut (&mut stream).take(extent.1), &mut writer)?;
                if count < extent.1 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                position = extent.0 + extent.1;
                let mut state = self.lock();
                state.kept.insert(extent, at);
                state.wanted.remove(&extent);
                state.end = at + extent.1;
                drop(state);
                self.news.notify_all();
            }
            let mut state = self.lock();
            if state.wanted.is_empty() {
                // Under the same lock: whoever wants something from now on begins anew.
                state.unpacking = false;
                return Ok(());
            }
        }
    }

    /// The next wanted file from a position on, and where it is to be put.
    fn next(&self, position: u64) -> io::Result<Option<(Extent, Arc<File>, u64)>> {
        let state = self.lock();
        let Some(extent) = state.wanted.range((position, 0)..).next() else {
            return Ok(None);
        };
        let file = state.file.clone().ok_or(io::ErrorKind::NotFound)?;
        Ok(Some((*extent, file, state.end)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unnamed() -> io::Result<File> {
    if Path::new(DIRECTORY).is_dir() {
        tempfile::tempfile_in(DIRECTORY)
    } else {
        tempfile::tempfile()
    }
}

fn skip(stream: &mut impl Read, count: u64) -> io::Result<()> {
    let skipped = io::copy(&mut stream.take(count), &mut io::sink())?;
    match skipped == count {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes from a place in a file on.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl io::Write for At<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(file: &File) -> io::Result<Packed> {
        Ok(Packed {
            file: file.try_clone()?,
            compression: Compression::Gzip,
            window: 27,
        })
    }

    /// A stream of numbered bytes, compressed.
    fn archive(length: usize) -> (Vec<u8>, File) {
        let bytes: Vec<u8> = (0..length).map(|n| (n * 31 % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        let mut encoder = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
        io::Write::write_all(&mut encoder, &bytes).unwrap();
        encoder.finish().unwrap();
        (bytes, file)
    }

    #[test]
    fn many_at_once_get_the_right_bytes() {
        let (bytes, file) = archive(3_000_000);
        let spool = Arc::new(Spool::default());
        thread::scope(|scope| {
            for reader in 0..16_u64 {
                let (spool, bytes, file) = (&spool, &bytes, &file);
                scope.spawn(move || {
                    // Each wants others, some of them the same, some before what another wants.
                    for round in 0..8 {
                        let extents: Vec<Extent> = (0..4)
                            .map(|n| (reader * 7 + round * 13 + n * 31) % 90)
                            .map(|n| (n * 30_000, 1 + n * 300))
                            .collect();
                        spool.want(extents.iter().copied(), || packed(file));
                        for extent in extents {
                            let (kept, at) = spool.get(extent).unwrap();
                            let mut found = vec![0; usize::try_from(extent.1).unwrap()];
                            kept.read_exact_at(&mut found, at).unwrap();
                            let begin = usize::try_from(extent.0).unwrap();
                            assert_eq!(found, bytes[begin..begin + found.len()]);
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn what_cannot_be_unpacked_is_given_up() {
        let (_, file) = archive(1_000_000);
        let spool = Arc::new(Spool::default());
        let extents = [(0, 1000), (999_000, 2000)];
        spool.want(extents.into_iter(), || packed(&file));
        assert!(spool.get(extents[1]).is_none());
        let never = || Err(io::ErrorKind::NotFound.into());
        spool.want([(5, 5)].into_iter(), never);
        assert!(spool.get((5, 5)).is_none());
        assert!(spool.get((7, 7)).is_none(), "nobody wants it");
    }
}
