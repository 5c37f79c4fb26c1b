//! Files on the control machine: the cache, files written atomically and with the right mode,
//! and locks between processes.

use std::{
    env,
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use snafu::{OptionExt as _, ResultExt as _, Snafu};

use crate::progress::Progress;

/// What can go wrong with files.
#[derive(Debug, Snafu)]
#[snafu(display("cannot {what} {}: {source}", path.display()))]
pub struct Error {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Error {
    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        let dir = self.path.parent().unwrap_or(&self.path).display();
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(format!(
                "free some space on the disk of {dir}, then run this again"
            )),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(format!(
                "make {dir} writable for this user, or choose another directory with --home or HATCHERY_CACHE"
            )),
            _ => None,
        }
    }
}

/// Neither `HATCHERY_CACHE` nor `HOME` is set.
#[derive(Debug, Snafu)]
#[snafu(display("neither HATCHERY_CACHE nor HOME is set, so there is no directory for the cache"))]
pub struct NoCache;

/// `$HATCHERY_CACHE`, by default `~/.cache/hatchery`: what can be made again.
pub(crate) fn cache_dir() -> Result<PathBuf, NoCache> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    let path = match variable("HATCHERY_CACHE") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(variable("HOME").context(NoCacheSnafu)?).join(".cache/hatchery"),
    };
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// Makes a directory, and those above it, that only its owner can enter.
pub(crate) fn make_private_dir(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .context(Snafu {
            what: "create the directory",
            path,
        })
}

/// Writes a file so that a reader, or the next run after a crash, sees the old or the new
/// content and never half of one. `mode` is the file's, for example `0o600`.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        // Created with mode 0600, so a secret is never open to others, not even for a moment.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(bytes)?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().context(Snafu {
        what: "write",
        path,
    })
}

/// The content of a file, or `None` when there is none.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(source).context(Snafu { what: "read", path }),
    }
}

/// Removes a directory with all it holds; fine when there is none.
pub(crate) fn remove_dir(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(Snafu {
            what: "remove",
            path,
        }),
        _ => Ok(()),
    }
}

/// A lock between processes, released when dropped or when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for the lock, with a message to the user when another process holds it.
    pub(crate) async fn exclusive(
        path: &Path,
        held_by: &str,
        progress: &Progress,
    ) -> Result<Self, Error> {
        loop {
            let file = open_lock(path)?;
            if matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) {
                progress.note(format!("waiting for {held_by}"));
            }
            let file = wait(path, file, File::lock).await?;
            // The last holder may have removed the file while we waited for it.
            let still_there = fs::metadata(path).ok().map(|now| (now.dev(), now.ino()));
            let ours = file.metadata().ok().map(|own| (own.dev(), own.ino()));
            if still_there == ours {
                let path = path.to_owned();
                return Ok(Self { file, path });
            }
        }
    }

    /// Waits for a lock that several may hold at once.
    pub(crate) async fn shared(path: &Path) -> Result<Self, Error> {
        let file = wait(path, open_lock(path)?, File::lock_shared).await?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    /// The lock, or `None` when another process holds it.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>, Error> {
        let file = open_lock(path)?;
        let path = path.to_owned();
        Ok(file.try_lock().is_ok().then_some(Self { file, path }))
    }

    /// Releases an exclusive lock and leaves no file behind.
    pub(crate) fn release_and_remove(self) {
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

fn open_lock(path: &Path) -> Result<File, Error> {
    if let Some(dir) = path.parent() {
        make_private_dir(dir)?;
    }
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .context(Snafu {
            what: "open the lock",
            path,
        })
}

async fn wait(path: &Path, file: File, lock: fn(&File) -> io::Result<()>) -> Result<File, Error> {
    tokio::task::spawn_blocking(move || lock(&file).map(|()| file))
        .await
        .map_err(io::Error::other)
        .and_then(|result| result)
        .context(Snafu { what: "lock", path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_private_and_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write_atomically(&path, b"one", 0o600).unwrap();
        write_atomically(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_has_a_remedy() {
        let error = |kind: io::ErrorKind| Error {
            what: "write",
            path: PathBuf::from("/home/me/.hatchery/file"),
            source: kind.into(),
        };
        let full = error(io::ErrorKind::StorageFull);
        assert!(
            full.remedy()
                .unwrap()
                .contains("the disk of /home/me/.hatchery,")
        );
        assert_eq!(error(io::ErrorKind::InvalidData).remedy(), None);
    }

    #[tokio::test]
    async fn a_lock_removed_by_its_holder_is_taken_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = Lock::exclusive(&path, "nobody", &Progress::silent())
            .await
            .unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { Lock::exclusive(&path, "first", &Progress::silent()).await }
        });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        first.release_and_remove();
        let second = waiting.await.unwrap().unwrap();
        assert!(
            Lock::try_exclusive(&path).unwrap().is_none(),
            "the second holder must hold the file that is now there"
        );
        drop(second);
        // What another test just started may have it too, until it becomes another program.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while Lock::try_exclusive(&path).unwrap().is_none() {
            assert!(std::time::Instant::now() < end, "nobody holds it");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}
