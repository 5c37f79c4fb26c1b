//! One run at a time on a machine in memory.

use tokio::time::{Instant, timeout_at};

use super::Shared;
use crate::transport::ending::Ending;

/// The run that has the machine.
#[derive(Clone)]
pub(super) struct Holder {
    pub(super) run: String,
    /// The connection that carries it; without one its control process counts as connected for ever.
    carrier: Option<Ending>,
    /// Comes when another run ends it.
    pub(super) killed: Ending,
}

impl Holder {
    pub(super) fn new(run: &str, carrier: Option<Ending>) -> Self {
        Self {
            run: run.into(),
            carrier,
            killed: Ending::new(),
        }
    }
}

/// Who has the machine now.
pub(super) enum Taken {
    Now,
    ByOther(String),
}

impl Shared {
    pub(super) fn take(&self, holder: &Holder) -> Taken {
        let mut state = self.lock();
        if let Some(other) = &state.holder {
            return Taken::ByOther(other.run.clone());
        }
        state.holder = Some(holder.clone());
        Taken::Now
    }

    pub(super) fn release(&self, run: &str) {
        self.lock().holder.take_if(|holder| holder.run == run);
        self.freed.notify_waiters();
    }

    /// Waits until the machine is free; returns the run that still has it then.
    pub(super) async fn held_until(&self, until: Instant) -> Option<String> {
        loop {
            let freed = self.freed.notified();
            let run = self.lock().holder.as_ref()?.run.clone();
            if timeout_at(until, freed).await.is_err() {
                return Some(run);
            }
        }
    }

    /// Ends the run that has the machine, unless its control process is connected.
    pub(super) fn fence(&self) -> bool {
        let state = self.lock();
        let carried = |holder: &&Holder| holder.carrier.as_ref().is_some_and(Ending::has_come);
        let Some(holder) = state.holder.as_ref().filter(carried) else {
            return false;
        };
        holder.killed.come("another run ended it");
        true
    }
}
