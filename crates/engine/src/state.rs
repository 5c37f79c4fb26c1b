//! What Hatchery remembers of one cluster.
//!
//! A [`Store`] keeps values under [`Key`]s, exchanges them only against the revision that was read, and has one lock for
//! whoever changes the cluster. [`Directory`] is the store on the control machine; [`Record`] tells which cluster it is.
//! Kept are the authorities, the keys, the file as given and which machines were touched: what machines can be asked for
//! is not remembered.

mod atomic;
mod claim;
mod directory;
mod error;
mod key;
mod lock;
mod record;
mod run_log;
#[cfg(test)]
mod tests;

use std::fmt;

use futures::future::BoxFuture;
use secrecy::SecretSlice;

pub use self::{
    claim::Claim,
    directory::{Directory, Listed, list},
    error::Error,
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
    /// Nothing.
    Nothing,
    /// This, unchanged.
    Unchanged(Revision),
    /// Whatever it is.
    Anything,
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
}
