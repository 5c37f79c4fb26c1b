//! Reads chosen files of an archive again, and sees to it that they are what they were.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufReader, Read},
};

use sha2::{Digest as _, Sha256};
use snafu::{OptionExt as _, ResultExt as _};

use super::{
    Archive, Compression, Digest, Entry, Error, Kind, Place,
    compression::unpack,
    error::{ChangedEntrySnafu, MissingSnafu, NoContentsSnafu, PassOnSnafu, ReadSnafu},
    name, scan,
    spool::{Extent, Packed},
};

/// A file to hand over.
pub(super) struct Item<'a> {
    entry: &'a Entry,
    size: u64,
    sha256: Digest,
}

/// The wanted files in archive order. Names of the same file come in passes of their own, since
/// a stream gives its bytes only once.
pub(super) fn passes<'a>(
    archive: &'a Archive,
    wanted: &BTreeSet<String>,
) -> Result<Vec<Vec<Item<'a>>>, Error> {
    let mut by_offset: BTreeMap<u64, Vec<Item<'a>>> = BTreeMap::new();
    for path in wanted {
        let shown = || name::display(path.as_bytes());
        let found = archive.index().get(path);
        let entry = found.with_context(|| MissingSnafu {
            archive: archive.path(),
            entry: shown(),
        })?;
        let Kind::File { size, sha256 } = entry.kind else {
            let kind = entry.kind.name();
            let archive = archive.path();
            let entry = shown();
            return NoContentsSnafu {
                archive,
                entry,
                kind,
            }
            .fail();
        };
        let item = Item {
            entry,
            size,
            sha256,
        };
        let names = by_offset.entry(entry.offset).or_default();
        // Two spellings of one path are handed over once.
        if names.iter().all(|other| other.entry.path != entry.path) {
            names.push(item);
        }
    }
    let mut passes: Vec<Vec<Item<'a>>> = Vec::new();
    for names in by_offset.into_values() {
        for (number, item) in names.into_iter().enumerate() {
            match passes.get_mut(number) {
                Some(pass) => pass.push(item),
                None => passes.push(vec![item]),
            }
        }
    }
    Ok(passes)
}

/// Hands over the files of one pass: those that others want too are unpacked once.
pub(super) fn read(
    archive: &Archive,
    pass: &[Item<'_>],
    each: &mut impl FnMut(&Entry, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let mut rest = pass;
    if archive.compression != Compression::None {
        archive.spool.want(pass.iter().map(Item::extent), || {
            Ok(Packed {
                file: archive.file.try_clone()?,
                compression: archive.compression,
                window: archive.limits.zstd_window_log,
            })
        });
        while let [item, others @ ..] = rest
            && let Some((kept, at)) = archive.spool.get(item.extent())
        {
            let mut stream = BufReader::with_capacity(scan::BUFFER, Place::new(&kept, at));
            hand_over(archive, item, &mut stream, each)?;
            rest = others;
        }
    }
    unpacked(archive, rest, each)
}

/// Hands over what no other reader has unpacked.
fn unpacked(
    archive: &Archive,
    pass: &[Item<'_>],
    each: &mut impl FnMut(&Entry, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let window = archive.limits.zstd_window_log;
    let from = |at| {
        let packed = BufReader::with_capacity(scan::BUFFER, Place::new(&archive.file, at));
        unpack(archive.compression, packed, window)
    };
    let mut stream = from(0);
    let mut position = 0;
    for item in pass {
        let offset = item.entry.offset;
        if archive.compression == Compression::None {
            stream = from(offset);
        } else {
            pass_over(archive, item, &mut stream, offset - position)?;
        }
        hand_over(archive, item, &mut stream, each)?;
        position = offset + item.size;
    }
    Ok(())
}

impl Item<'_> {
    fn extent(&self) -> Extent {
        (self.entry.offset, self.size)
    }
}

fn hand_over(
    archive: &Archive,
    item: &Item<'_>,
    stream: &mut dyn Read,
    each: &mut impl FnMut(&Entry, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let mut contents = Contents::new(stream, item);
    let taken = each(item.entry, &mut contents);
    let rest = match taken {
        Ok(()) => skip(&mut contents, u64::MAX).map(drop),
        Err(_) => Ok(()),
    };
    if contents.differs {
        return Err(changed(archive, item));
    }
    let context = || (archive.path(), shown(item));
    if let Some(source) = contents.failure {
        let (archive, entry) = context();
        return Err(source).context(ReadSnafu { archive, entry });
    }
    taken.and(rest).with_context(|_| {
        let (archive, entry) = context();
        PassOnSnafu { archive, entry }
    })
}

/// Unpacks what lies before a wanted file. What was whole at first and is not now has changed.
fn pass_over(
    archive: &Archive,
    item: &Item<'_>,
    stream: &mut dyn Read,
    gap: u64,
) -> Result<(), Error> {
    match skip(stream, gap) {
        Ok(passed) if passed == gap => Ok(()),
        Err(source) if source.raw_os_error().is_some() => Err(source).context(ReadSnafu {
            archive: archive.path(),
            entry: shown(item),
        }),
        Ok(_) | Err(_) => Err(changed(archive, item)),
    }
}

/// Skips up to this number of bytes.
fn skip(stream: &mut dyn Read, count: u64) -> io::Result<u64> {
    io::copy(&mut stream.take(count), &mut io::sink())
}

fn changed(archive: &Archive, item: &Item<'_>) -> Error {
    let (archive, entry) = (archive.path(), shown(item));
    ChangedEntrySnafu { archive, entry }.build()
}

fn shown(item: &Item<'_>) -> String {
    name::display(item.entry.path.as_bytes())
}

/// The bytes of one file, held against its digest: the last of them come out only when it fits.
struct Contents<'a> {
    stream: &'a mut dyn Read,
    left: u64,
    hash: Sha256,
    sha256: Digest,
    /// The bytes are not those of the index.
    differs: bool,
    /// The archive could not be read; the consumer got a copy.
    failure: Option<io::Error>,
}

impl<'a> Contents<'a> {
    fn new(stream: &'a mut dyn Read, item: &Item<'_>) -> Self {
        Self {
            stream,
            left: item.size,
            hash: Sha256::new(),
            sha256: item.sha256,
            differs: false,
            failure: None,
        }
    }

    fn refuse(&mut self) -> io::Error {
        self.differs = true;
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the archive has changed while it was in use",
        )
    }
}

impl Read for Contents<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.differs {
            return Err(self.refuse());
        }
        let most = usize::try_from(self.left).map_or(buf.len(), |left| left.min(buf.len()));
        if most == 0 {
            return Ok(0);
        }
        let count = match self.stream.read(&mut buf[..most]) {
            Ok(0) => return Err(self.refuse()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            // What was whole at first and cannot be unpacked now has changed.
            Err(error) if error.raw_os_error().is_none() => return Err(self.refuse()),
            Err(error) => {
                let copy = io::Error::new(error.kind(), error.to_string());
                self.failure = Some(error);
                return Err(copy);
            }
        };
        self.hash.update(&buf[..count]);
        self.left -= count as u64;
        if self.left == 0 && self.hash.finalize_reset().as_slice() != self.sha256.0 {
            return Err(self.refuse());
        }
        Ok(count)
    }
}
