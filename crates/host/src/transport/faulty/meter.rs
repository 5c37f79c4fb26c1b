//! How far a connection has come, and what its fault means there.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::Fault;
use crate::transport::{Connection, Error, ending::Ending};

/// Counts the bytes of one connection.
pub(super) struct Meter {
    pub(super) fault: Fault,
    pub(super) ending: Ending,
    inner: Arc<dyn Connection>,
    written: AtomicU64,
    read: AtomicU64,
}

/// What may pass now.
pub(super) enum Pass {
    /// At most this number of bytes.
    Some(usize),
    /// Nothing passes any more.
    Nothing,
}

impl Meter {
    pub(super) fn new(fault: Fault, inner: Arc<dyn Connection>) -> Self {
        Self {
            fault,
            ending: Ending::new(),
            inner,
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }
    }

    fn hangs(&self) -> bool {
        match self.fault {
            Fault::HangAfterWritten(limit) => self.written.load(Ordering::SeqCst) >= limit,
            Fault::HangAfterRead(limit) => self.read.load(Ordering::SeqCst) >= limit,
            _ => false,
        }
    }

    /// Waits for ever once nothing moves.
    pub(super) async fn until_it_moves(&self) {
        if self.hangs() {
            future::pending::<()>().await;
        }
    }

    /// Waits for the drop.
    pub(super) async fn lost(&self) -> Error {
        let reason = self.ending.comes().await;
        Error::Lost {
            host: self.inner.name().into(),
            reason: reason.to_string(),
        }
    }

    pub(super) fn may_write(&self, wanted: usize) -> Pass {
        let (Fault::DropAfterWritten(limit) | Fault::HangAfterWritten(limit)) = self.fault else {
            return self.unless_it_hangs(wanted);
        };
        self.up_to(limit, &self.written, wanted)
    }

    pub(super) fn may_read(&self, wanted: usize) -> Pass {
        let (Fault::DropAfterRead(limit) | Fault::HangAfterRead(limit)) = self.fault else {
            return self.unless_it_hangs(wanted);
        };
        self.up_to(limit, &self.read, wanted)
    }

    fn unless_it_hangs(&self, wanted: usize) -> Pass {
        match self.hangs() {
            true => Pass::Nothing,
            false => Pass::Some(wanted),
        }
    }

    fn up_to(&self, limit: u64, done: &AtomicU64, wanted: usize) -> Pass {
        let left = limit.saturating_sub(done.load(Ordering::SeqCst));
        match usize::try_from(left).unwrap_or(usize::MAX) {
            0 => Pass::Nothing,
            left => Pass::Some(left.min(wanted)),
        }
    }

    pub(super) fn wrote(&self, count: usize) {
        let written = self.written.fetch_add(count as u64, Ordering::SeqCst) + count as u64;
        if matches!(self.fault, Fault::DropAfterWritten(limit) if written >= limit) {
            self.drop_it();
        }
    }

    pub(super) fn has_read(&self, count: usize) {
        let read = self.read.fetch_add(count as u64, Ordering::SeqCst) + count as u64;
        if matches!(self.fault, Fault::DropAfterRead(limit) if read >= limit) {
            self.drop_it();
        }
    }

    fn drop_it(&self) {
        self.ending.come("a fault dropped it");
        let inner = self.inner.clone();
        tokio::spawn(async move { inner.close().await });
    }
}
