//! SSH: one connection per machine with many commands on it, directly or through bastions.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};

mod attempt;
mod authentication;
mod bastions;
mod channel;
mod connection;
mod handshake;
pub mod host_keys;
pub mod key;
mod known_hosts;
mod relay;
mod sockets;
mod stall;
mod target;
mod timeouts;

pub use bastions::Bastions;
pub use host_keys::{HostKey, Pin};
pub use key::Key;
pub use sockets::raise_open_files;
pub use target::{Auth, Hop, Target};
pub use timeouts::Timeouts;

use super::{Connection, Connector, Error};

/// Reaches one machine over SSH.
#[derive(Clone, Debug)]
pub struct Ssh {
    target: Target,
    timeouts: Timeouts,
    bastions: Bastions,
}

impl Ssh {
    /// Machines behind the same bastion share its connection when they are given the same
    /// `bastions`.
    pub fn new(target: Target, timeouts: Timeouts, bastions: Bastions) -> Self {
        Self {
            target,
            timeouts,
            bastions,
        }
    }
}

impl Connector for Ssh {
    fn name(&self) -> &str {
        &self.target.name
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        async move {
            let target = &self.target;
            let (name, last) = (&target.name, target.last());
            let connection = self
                .bastions
                .reach(name, &target.jumps, &last, &self.timeouts);
            Ok(connection.await? as Arc<dyn Connection>)
        }
        .boxed()
    }
}
