//! The log of a run, for later inspection: `runs/<time>/events.jsonl` and one log per machine.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use hatchery_spec::value::Name;
use serde::Serialize;
use snafu::ResultExt as _;
use time::{OffsetDateTime, UtcOffset};

use super::{Directory, Error, atomic, error::IoSnafu};

/// The number of runs whose logs are kept.
const KEPT: usize = 20;

/// The log of one run.
///
/// A file is open only while a line is added: there can be more machines than a process may have files.
#[derive(Clone, Debug)]
pub struct RunLog {
    path: PathBuf,
}

impl RunLog {
    /// Begins a log, and removes those of runs long ago.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(super) fn begin(directory: &Directory, now: OffsetDateTime) -> Result<Self, Error> {
        directory.make()?;
        let runs = directory.path().join("runs");
        let path = atomic::make_private_dir(&runs)
            .and_then(|()| make_unique(&runs, now))
            .context(IoSnafu {
                action: "make a directory in",
                path: &runs,
            })?;
        forget(&runs, &path).context(IoSnafu {
            action: "remove old logs in",
            path: &runs,
        })?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an event of the run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn event(&self, event: &impl Serialize) -> Result<(), Error> {
        let path = self.path.join("events.jsonl");
        serde_json::to_vec(event)
            .map_err(io::Error::from)
            .and_then(|line| append(&path, line))
            .context(IoSnafu {
                action: "write",
                path,
            })
    }

    /// Adds what a machine said, or what was done there, line by line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn machine(&self, name: &Name, text: &str) -> Result<(), Error> {
        let path = self.path.join(format!("{name}.log"));
        append(&path, harmless(text).into_bytes()).context(IoSnafu {
            action: "write",
            path,
        })
    }
}

/// A directory named by the time, so that names are in the order of runs.
fn make_unique(runs: &Path, now: OffsetDateTime) -> io::Result<PathBuf> {
    let now = now.to_offset(UtcOffset::UTC);
    let time = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.millisecond()
    );
    for number in 0..1000 {
        let path = match number {
            0 => runs.join(&time),
            _ => runs.join(format!("{time}-{number:03}")),
        };
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes all but the last runs, and never this one, whatever the clock says.
fn forget(runs: &Path, this: &Path) -> io::Result<()> {
    let mut others = Vec::new();
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.path() != this {
            others.push(entry.path());
        }
    }
    others.sort();
    let surplus = others.len().saturating_sub(KEPT - 1);
    for path in &others[..surplus] {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // Another run may remove it too.
            _ => {}
        }
    }
    Ok(())
}

/// One write per call, so that lines of several writers do not mix.
fn append(path: &Path, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?
        .write_all(&line)
}

/// Without what a terminal would obey when the log is shown on one.
fn harmless(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}
