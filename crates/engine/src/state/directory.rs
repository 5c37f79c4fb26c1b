//! What is remembered in files on the control machine: `<home>/clusters/<id>/`.
//!
//! Beside the values there are `lock`, the host keys that were recorded (`known_hosts`) and the logs of runs.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::digest;
use futures::{FutureExt as _, future::BoxFuture};
use hatchery_spec::value::Name;
use secrecy::{ExposeSecret as _, SecretSlice};
use snafu::{ResultExt as _, ensure};

use super::{
    Error, Expected, Holder, Key, Lock, Revision, Store, Value, atomic,
    error::{ConflictSnafu, IoSnafu, UnsafeSnafu},
    lock,
};

/// Held for moments, while a value is compared and exchanged.
const EXCHANGE: &str = ".exchange";

/// How the names begin of directories that were clusters.
const REMOVED: &str = ".removed-";

/// A cluster's directory. There need not be one yet: writing and locking make it.
#[derive(Clone, Debug)]
pub struct Directory {
    clusters: PathBuf,
    path: PathBuf,
}

impl Directory {
    /// The directory of a cluster below Hatchery's home. Nothing is touched.
    pub fn new(home: &Path, name: &Name) -> Self {
        let clusters = home.join("clusters");
        Self {
            path: clusters.join(name.as_str()),
            clusters,
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it if need be, for this user alone.
    ///
    /// # Errors
    /// When it cannot be made, or others could read or change what is in it.
    pub(super) fn make(&self) -> Result<(), Error> {
        atomic::make_private_dir(&self.path).context(IoSnafu {
            action: "make the directory",
            path: &self.path,
        })?;
        self.check()
    }

    /// Whoever can write in a directory above can put another in its place. Home itself may be a link to where there
    /// is room, and its mode is the user's affair.
    fn check(&self) -> Result<(), Error> {
        let home = self.clusters.parent().unwrap_or(&self.clusters);
        let there = inspect(home, fs::metadata(home))?;
        ensure!(
            there & 0o1002 != 0o0002,
            UnsafeSnafu {
                path: home,
                problem: "is writable for every user"
            }
        );
        for path in [&self.clusters, &self.path] {
            if inspect(path, fs::symlink_metadata(path))? & 0o077 != 0 {
                fs::set_permissions(path, fs::Permissions::from_mode(0o700)).context(IoSnafu {
                    action: "close to others",
                    path,
                })?;
            }
        }
        Ok(())
    }

    fn file(&self, key: Key) -> PathBuf {
        self.path.join(key.as_str())
    }

    fn read_now(&self, key: Key) -> Result<Option<Value>, Error> {
        let path = self.file(key);
        match fs::read(&path) {
            Ok(bytes) => {
                self.check()?;
                Ok(Some(Value {
                    revision: revision(&bytes),
                    bytes: bytes.into(),
                }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io {
                action: "read",
                path,
                source,
            }),
        }
    }

    fn write_now(&self, key: Key, bytes: &[u8], expected: &Expected) -> Result<Revision, Error> {
        self.make()?;
        let exchange = self.path.join(EXCHANGE);
        let _exchange = lock::wait(&exchange).context(IoSnafu {
            action: "lock",
            path: &exchange,
        })?;
        let found = self.read_now(key)?.map(|value| value.revision);
        let fits = match expected {
            Expected::Nothing => found.is_none(),
            Expected::Unchanged(revision) => found.as_ref() == Some(revision),
            Expected::Anything => true,
        };
        let path = self.file(key);
        ensure!(
            fits,
            ConflictSnafu {
                key,
                place: self.place(key)
            }
        );
        let directory = path.parent().unwrap_or(&self.path);
        atomic::make_private_dir(directory)
            .and_then(|()| atomic::remove_unfinished(directory))
            .and_then(|()| atomic::write(&path, bytes))
            .context(IoSnafu {
                action: "write",
                path: &path,
            })?;
        Ok(revision(bytes))
    }

    fn lock_now(&self, holder: &Holder) -> Result<Lock, Error> {
        self.make()?;
        let lock = lock::take(&self.path.join("lock"), holder)?;
        self.sweep();
        Ok(lock)
    }

    /// The directory is renamed first: what is left when this is cut off is no cluster, and the next run removes it.
    fn remove_now(&self, lock: Lock) -> Result<(), Error> {
        // A new name, so that nothing that was left before stands in the way.
        let gone = tempfile::Builder::new()
            .prefix(REMOVED)
            .tempdir_in(&self.clusters)
            .map(tempfile::TempDir::keep)
            .and_then(|gone| fs::rename(&self.path, &gone).map(|()| gone))
            .and_then(|gone| atomic::sync_directory(&self.clusters).map(|()| gone))
            .context(IoSnafu {
                action: "move away",
                path: &self.path,
            })?;
        drop(lock);
        match fs::remove_dir_all(&gone) {
            // Whoever removes another cluster at the same time sweeps this one away too.
            Err(_) if !gone.exists() => {}
            removed => removed.context(IoSnafu {
                action: "remove",
                path: &gone,
            })?,
        }
        self.sweep();
        Ok(())
    }

    /// Removes what is left of clusters whose removal was cut off. It holds keys, but need not be gone at once.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.clusters).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with(REMOVED) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Files make one wait; others shall not wait with us.
    fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let own = self.clone();
        async move {
            tokio::task::spawn_blocking(move || work(&own))
                .await
                .unwrap_or(Err(Error::CutOff))
        }
        .boxed()
    }
}

impl Store for Directory {
    fn read(&self, key: Key) -> BoxFuture<'_, Result<Option<Value>, Error>> {
        self.aside(move |own| own.read_now(key))
    }

    fn write(
        &self,
        key: Key,
        bytes: SecretSlice<u8>,
        expected: Expected,
    ) -> BoxFuture<'_, Result<Revision, Error>> {
        self.aside(move |own| own.write_now(key, bytes.expose_secret(), &expected))
    }

    fn lock(&self, holder: Holder) -> BoxFuture<'_, Result<Lock, Error>> {
        self.aside(move |own| own.lock_now(&holder))
    }

    fn remove(&self, lock: Lock) -> BoxFuture<'_, Result<(), Error>> {
        self.aside(move |own| own.remove_now(lock))
    }

    fn place(&self, key: Key) -> String {
        self.file(key).display().to_string()
    }

    fn exists(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.aside(|own| Ok(own.path.exists()))
    }

    fn host_keys(&self) -> Result<PathBuf, Error> {
        self.make()?;
        Ok(self.path.join("known_hosts"))
    }
}

/// The mode of a directory, if it is one and this user's.
fn inspect(path: &Path, found: io::Result<fs::Metadata>) -> Result<u32, Error> {
    let there = found.context(IoSnafu {
        action: "look at",
        path,
    })?;
    ensure!(
        there.is_dir(),
        UnsafeSnafu {
            path,
            problem: "is not a directory"
        }
    );
    ensure!(
        there.uid() == rustix::process::geteuid().as_raw(),
        UnsafeSnafu {
            path,
            problem: format!("belongs to another user, {}", there.uid())
        }
    );
    Ok(there.mode())
}

fn revision(bytes: &[u8]) -> Revision {
    Revision(hex::encode(digest::digest(&digest::SHA256, bytes)))
}
