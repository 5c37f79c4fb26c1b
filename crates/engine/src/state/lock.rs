//! One run at a time: a lock that the kernel frees, and the word of who holds it.

use std::{
    fmt,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use snafu::ResultExt as _;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::error::{Error, IoSnafu, LockedSnafu};

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The id of its process.
    pub pid: u32,
    /// On which machine.
    pub host: String,
    /// What it does.
    pub command: String,
    /// When it took the lock.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
}

impl Holder {
    /// This process, doing this.
    pub fn this_process(command: impl Into<String>, now: OffsetDateTime) -> Self {
        let host = rustix::system::uname();
        Self {
            pid: std::process::id(),
            host: host.nodename().to_string_lossy().into_owned(),
            command: command.into(),
            since: now.truncate_to_second(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.format(&Rfc3339).unwrap_or_default();
        write!(
            f,
            "{}, process {} on {}, since {since}",
            self.command, self.pid, self.host
        )
    }
}

/// The right to change a cluster, for as long as it lives.
pub struct Lock(#[expect(dead_code, reason = "it is held, not used")] Box<dyn Send + Sync>);

impl Lock {
    /// A lock that is free again when `held` is dropped.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

/// A file that names the holder while the lock is held.
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // The name of somebody who has it no more would only confuse.
        let _ = self.0.set_len(0);
        // Closing it would free it too, but not while a child that is just being made still has it.
        let _ = self.0.unlock();
    }
}

/// The time that a process may need to write its name after it has taken the lock.
const INTRODUCTION: [Duration; 3] = [Duration::from_millis(10); 3];

/// Takes the lock file, or returns who holds it.
pub(super) fn take(path: &Path, holder: &Holder) -> Result<Lock, Error> {
    let context = |action| IoSnafu { action, path };
    let introduction = serde_json::to_vec(holder)
        .map_err(io::Error::from)
        .context(context("describe the holder of"))?;
    loop {
        let file = open(path).context(context("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return LockedSnafu { holder: who(&file) }.fail(),
            Err(TryLockError::Error(error)) => return Err(error).context(context("lock")),
        }
        // Somebody may have removed the cluster between opening and locking; then this is the lock of nothing.
        if is_still(path, &file).context(context("look at"))? {
            let mut held = Held(file);
            write(&mut held.0, &introduction).context(context("write"))?;
            return Ok(Lock::new(held));
        }
    }
}

/// Waits for a file's lock, which everybody holds for moments only.
pub(super) fn wait(path: &Path) -> io::Result<File> {
    loop {
        let file = open(path)?;
        file.lock()?;
        if is_still(path, &file)? {
            return Ok(file);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    let file = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write(file: &mut File, introduction: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(introduction)
}

fn who(mut file: &File) -> Option<Holder> {
    let mut ask = move || {
        let mut text = Vec::new();
        file.rewind().ok()?;
        file.take(64 * 1024).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    };
    ask().or_else(|| {
        INTRODUCTION.into_iter().find_map(|pause| {
            thread::sleep(pause);
            ask()
        })
    })
}
