//! What a scan found, to be kept, so that an archive need not be read whole a second time.

use std::{path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Archive, Compression, Digest, Entry, Error, Identity, Index, Kind, Limits, file_at, scan,
};

/// The result of reading an archive, with values that show whether the archive is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    identity: Identity,
    compression: Compression,
    entries: Vec<Row>,
}

/// Path, permissions, time, offset and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Row(String, u32, i64, u64, RowKind);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum RowKind {
    #[serde(rename = "f")]
    File(u64, String),
    #[serde(rename = "d")]
    Directory,
    #[serde(rename = "l")]
    Symlink(String),
}

impl Archive {
    /// What was found when it was opened.
    pub fn scan(&self) -> Scan {
        let row = |entry: &Entry| {
            let kind = match &entry.kind {
                Kind::File { size, sha256 } => RowKind::File(*size, sha256.to_string()),
                Kind::Directory => RowKind::Directory,
                Kind::Symlink { target } => RowKind::Symlink(target.to_string()),
            };
            Row(
                entry.path.to_string(),
                entry.mode,
                entry.mtime,
                entry.offset,
                kind,
            )
        };
        Scan {
            identity: self.identity,
            compression: self.compression,
            entries: self.index.entries.iter().map(row).collect(),
        }
    }

    /// Opens an archive that was scanned before, without reading it. Nothing if the file is not
    /// the same any more (device, inode, size or time of change), or the scan is not valid.
    ///
    /// Contents are held against the scan's digests when they are read, as ever.
    pub fn recall(path: &Path, scan: &Scan) -> Result<Option<Self>, Error> {
        let (file, identity) = file_at(path)?;
        let limits = Limits::default();
        if identity != scan.identity {
            return Ok(None);
        }
        Ok(scan.index(&limits).map(|index| Self {
            path: path.to_owned(),
            file,
            identity,
            compression: scan.compression,
            index,
            limits,
            spool: Arc::default(),
        }))
    }
}

impl Scan {
    fn index(&self, limits: &Limits) -> Option<Index> {
        let entries: Option<Vec<Entry>> = self.entries.iter().map(entry).collect();
        let index = scan::reassemble(entries?, limits)?;
        contents_lie_apart(&index, limits.budget(self.identity.size)).then_some(index)
    }
}

fn entry(Row(path, mode, mtime, offset, kind): &Row) -> Option<Entry> {
    Some(Entry {
        path: path.as_str().into(),
        mode: *mode,
        mtime: *mtime,
        offset: *offset,
        kind: match kind {
            RowKind::File(size, digest) => Kind::File {
                size: *size,
                sha256: Digest::parse(digest)?,
            },
            RowKind::Directory => Kind::Directory,
            RowKind::Symlink(target) => Kind::Symlink {
                target: target.as_str().into(),
            },
        },
    })
}

/// Whether the files' bytes follow one another in the stream, as reading them takes for granted.
/// Names of one file share them.
fn contents_lie_apart(index: &Index, budget: u64) -> bool {
    let mut files: Vec<(u64, u64, Digest)> = index
        .entries()
        .iter()
        .filter_map(|entry| match entry.kind {
            Kind::File { size, sha256 } => Some((entry.offset, size, sha256)),
            Kind::Directory | Kind::Symlink { .. } => None,
        })
        .collect();
    files.sort_unstable();
    files.dedup();
    let mut free = 0;
    files.iter().all(|(offset, size, _)| {
        let fits = *offset >= free && offset.checked_add(*size).is_some_and(|end| end <= budget);
        // Each begins behind a header of its own.
        free = offset.saturating_add(*size).saturating_add(1);
        fits
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, io::Write as _};

    use proptest::prelude::*;

    use super::{
        super::forge::{Forge, gzip},
        *,
    };

    fn sample() -> Vec<u8> {
        Forge::default()
            .directory("bin")
            .file("bin/one", b"first")
            .hard_link("bin/two", "bin/one")
            .file("empty", b"")
            .symlink("link", "bin/one")
            .file("last", &[7; 3000])
            .end()
    }

    fn contents(archive: &Archive, name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let wanted = BTreeSet::from([name.to_owned()]);
        archive
            .read_selected(&wanted, |_, contents| {
                contents.read_to_end(&mut bytes).map(drop)
            })
            .unwrap();
        bytes
    }

    #[test]
    fn an_archive_is_opened_as_it_was() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for bytes in [sample(), gzip(&sample())] {
            fs::write(&file, bytes).unwrap();
            let first = Archive::open(file.path()).unwrap();
            let text = serde_json::to_string(&first.scan()).unwrap();
            let scan: Scan = serde_json::from_str(&text).unwrap();
            let again = Archive::recall(file.path(), &scan).unwrap().unwrap();
            assert_eq!(again.index(), first.index());
            assert_eq!(again.compression(), first.compression());
            assert_eq!(contents(&again, "bin/two"), b"first");
            assert_eq!(contents(&again, "last"), [7; 3000]);
        }
    }

    #[test]
    fn another_file_is_not_taken_for_it() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, sample()).unwrap();
        let scan = Archive::open(file.path()).unwrap().scan();
        file.as_file_mut().write_all(b"x").unwrap();
        assert!(Archive::recall(file.path(), &scan).unwrap().is_none());
        let path = file.path().to_owned();
        drop(file);
        assert!(Archive::recall(&path, &scan).is_err());
    }

    #[test]
    fn a_scan_that_none_could_have_made_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, sample()).unwrap();
        let good = Archive::open(file.path()).unwrap().scan();
        let changes: [fn(&mut Vec<Row>); 8] = [
            |rows| rows[1].0 = "../up".into(),
            |rows| rows[1].0 = "/bin/one".into(),
            |rows| rows[1].0 = "bin".into(),
            |rows| rows[1].1 = 0o4755,
            |rows| rows[1].3 += 1,
            |rows| rows[5].3 = u64::MAX,
            |rows| rows[4].4 = RowKind::Symlink("../../etc".into()),
            |rows| rows[5].4 = RowKind::File(3000, "zz".into()),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut bad = good.clone();
            change(&mut bad.entries);
            let recalled = Archive::recall(file.path(), &bad).unwrap();
            assert!(recalled.is_none(), "change {number}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_scan_says_reading_does_not_panic(
            at in 0usize..6, offset: u64, size: u64, small: bool,
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(&file, gzip(&sample())).unwrap();
            let mut scan = Archive::open(file.path()).unwrap().scan();
            let bound = if small { 6000 } else { u64::MAX };
            scan.entries[at].3 = offset % bound;
            if let RowKind::File(length, _) = &mut scan.entries[at].4 {
                *length = size % bound;
            }
            if let Some(archive) = Archive::recall(file.path(), &scan).unwrap() {
                let wanted = ["bin/one", "bin/two", "empty", "last"];
                let wanted = wanted.map(String::from).into();
                let _ = archive.read_selected(&wanted, |_, _| Ok(()));
            }
        }
    }
}
