//! What Hatchery remembers of one cluster.
//!
//! [`Stores`] are all clusters that are remembered in one place, which is [`Home`] on the control machine. The [`Store`] of a
//! cluster keeps values under [`Key`]s, exchanges them only against the revision that was read, and has one lock for whoever
//! changes the cluster; [`Record`] tells which cluster it is. Kept are the authorities, the keys, the file as given and which
//! machines were touched: what machines can be asked for is not remembered. What happened in a run is no state and goes into
//! a [`RunLog`]. Nothing outside this room knows where any of it lies.

mod atomic;
mod claim;
pub mod deploy_file;
mod directory;
mod error;
mod home;
mod key;
mod lock;
mod record;
mod run_log;
#[cfg(test)]
mod tests;

use std::{fmt, path::PathBuf, sync::Arc};

use futures::future::BoxFuture;
use hatchery_spec::value::Name;
use secrecy::SecretSlice;
use time::OffsetDateTime;

pub use self::{
    claim::Claim,
    deploy_file::DeployFile,
    directory::Directory,
    error::Error,
    home::Home,
    key::Key,
    lock::{Holder, Lock},
    record::{Brought, Record, nobody},
    run_log::RunLog,
};

/// A version of a value: another content has another revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision(String);

/// A value as it was read.
#[derive(Clone, Debug)]
pub struct Value {
    /// The content; most of what is kept is secret.
    pub bytes: SecretSlice<u8>,
    /// What to name when it is exchanged.
    pub revision: Revision,
}

/// What has to be there for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The key has no value yet.
    Nothing,
    /// The value still has this revision.
    Unchanged(Revision),
    /// Whatever it is.
    Anything,
}

/// All clusters that are remembered in one place.
pub trait Stores: fmt::Debug + Send + Sync {
    /// The names under which clusters are remembered, in order. There may be less behind one than a cluster.
    fn names(&self) -> BoxFuture<'_, Result<Vec<Name>, Error>>;

    /// What is remembered of a cluster. Nothing is read or made by this.
    fn store(&self, name: &Name) -> Arc<dyn Store>;

    /// Begins the log of a run on a cluster, and removes those of runs long ago.
    ///
    /// # Errors
    /// When the store cannot be used.
    fn begin_log(&self, name: &Name, now: OffsetDateTime) -> Result<RunLog, Error>;
}

/// A cluster that is remembered.
#[derive(Debug)]
pub struct Listed {
    /// The cluster's id.
    pub name: Name,
    /// What is known of it, or why that cannot be read.
    pub record: Result<Record, Error>,
}

/// The clusters that are remembered, by name. One of which only host keys were recorded is none.
///
/// # Errors
/// When their names cannot be read.
pub async fn list(stores: &dyn Stores) -> Result<Vec<Listed>, Error> {
    let mut listed = Vec::new();
    for name in stores.names().await? {
        let record = Record::find(stores.store(&name).as_ref(), &name).await;
        if let Some(record) = record.transpose() {
            listed.push(Listed { name, record });
        }
    }
    Ok(listed)
}

/// Where a cluster's values are kept.
pub trait Store: fmt::Debug + Send + Sync {
    /// The value under a key, if there is one.
    fn read(&self, key: Key) -> BoxFuture<'_, Result<Option<Value>, Error>>;

    /// Sets a value, wholly or not at all, if what is there is what is expected. When it returns, the value outlives a
    /// power cut.
    fn write(
        &self,
        key: Key,
        bytes: SecretSlice<u8>,
        expected: Expected,
    ) -> BoxFuture<'_, Result<Revision, Error>>;

    /// Takes the lock of the cluster, without waiting. It is free again when the [`Lock`] is dropped, or when its
    /// process is gone for whatever reason.
    fn lock(&self, holder: Holder) -> BoxFuture<'_, Result<Lock, Error>>;

    /// Forgets the cluster: everything, and in such a way that no half of it is ever taken for a cluster. The lock goes
    /// with it.
    fn remove(&self, lock: Lock) -> BoxFuture<'_, Result<(), Error>>;

    /// Where a value is, for messages to people.
    fn place(&self, key: Key) -> String;

    /// Whether anything at all is kept of the cluster.
    fn exists(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// The file of host keys to which those are added that machines show for the first time; it need not be there yet. A
    /// store that is not a directory keeps a copy of its own for whoever connects.
    ///
    /// # Errors
    /// When the store cannot be used.
    fn host_keys(&self) -> Result<PathBuf, Error>;
}
