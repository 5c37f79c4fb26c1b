//! What was found out about an archive, on disk, so that the next run need not find it out again.
//!
//! One file per archive. Whatever is wrong with it, it is as if it were not there: the archive is read again.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use hatchery_host::{archive::Scan, content::Hash};
use serde::{Deserialize, Serialize};

/// Written first; another number is another format.
const MARK: &str = "hatchery archive scan 1";
/// No scan is larger: the names in an archive are limited.
const MOST: u64 = 512 << 20;

/// What is known of an archive's contents beyond the scan, by digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// The references in image archives, or what is wrong with these.
    pub(super) images: BTreeMap<String, Result<Vec<String>, String>>,
    /// The processors that programs are for, where they say so.
    pub(super) processors: BTreeMap<String, Option<String>>,
    /// Manifests, or what is wrong with these.
    pub(super) manifests: BTreeMap<String, Result<String, String>>,
    /// What programs say when they are asked for their version.
    pub(super) answers: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    archive: PathBuf,
    scan: Scan,
    known: Known,
}

/// Where the record of an archive is.
fn place(cache: &Path, archive: &Path) -> PathBuf {
    let hash = Hash::digest(archive.as_os_str().as_encoded_bytes());
    cache.join(format!("{}.scan", &hash.as_str()[..32]))
}

/// What is on record.
pub(super) fn load(cache: &Path, archive: &Path) -> Option<(Scan, Known)> {
    let file = File::open(place(cache, archive)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    let text = str::from_utf8(&bytes).ok()?;
    let (head, body) = text.split_once('\n')?;
    if head != heading(body) {
        return None;
    }
    let record: Record = serde_json::from_str(body).ok()?;
    (record.archive == archive).then_some((record.scan, record.known))
}

/// Puts it on record.
pub(super) fn store(cache: &Path, archive: &Path, scan: &Scan, known: &Known) -> io::Result<()> {
    let record = Record {
        archive: archive.to_owned(),
        scan: scan.clone(),
        known: known.clone(),
    };
    let body = serde_json::to_string(&record)?;
    make(cache)?;
    // Readable for its owner alone, and in place only when it is whole.
    let mut file = tempfile::NamedTempFile::new_in(cache)?;
    write!(file, "{}\n{body}", heading(&body))?;
    file.persist(place(cache, archive))?;
    Ok(())
}

/// The directory itself.
pub(super) fn make(cache: &Path) -> io::Result<()> {
    if fs::metadata(cache).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(cache)
}

fn heading(body: &str) -> String {
    format!("{MARK} {}", Hash::digest(body.as_bytes()).as_str())
}
