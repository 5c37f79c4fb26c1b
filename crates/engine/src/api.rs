//! The Kubernetes API of a cluster, reached through the SSH connection to a master.
//!
//! No firewall rule and no kubectl is needed: every connection is a stream through the master's sshd ([`way`]).
//! What is asked is small: apply manifests ([`Api::apply`]), wait for a condition ([`Api::node_ready`] and others), and
//! look after nodes ([`Api::label_and_taint`]). Everything may be repeated, so what may pass is tried again by itself.

mod apply;
mod client;
mod difference;
mod drain;
mod error;
mod kinds;
pub mod manifest;
mod node;
mod pace;
mod protocol;
mod prune;
mod rollout;
mod troubles;
mod wait;
pub mod way;

use std::{fmt, sync::Arc, time::Duration};

pub use self::{
    apply::{Applied, Effect},
    drain::Drain,
    error::{Asked, Error},
    manifest::parse,
    node::{Condition, Node},
    prune::{ADDON, ObjectRef},
    rollout::Workload,
    wait::Watch,
    way::{Access, Address},
};
use self::{kinds::Kinds, node::RecentNodes, pace::Pace};

/// The name under which the API server remembers what is ours.
pub const FIELD_MANAGER: &str = "hatchery";

/// The API of one cluster. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
    kinds: Arc<Kinds>,
    nodes: Arc<RecentNodes>,
    server: String,
    /// How long that which may pass is tried again, and a new kind is waited for.
    pub patience: Duration,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Makes ready to ask; the first question connects. Belongs to the runtime that this is called in.
    ///
    /// # Errors
    /// When a certificate or key cannot be used.
    pub fn connect(access: Access) -> Result<Self, Error> {
        let server = access.server.to_string();
        Ok(Self {
            client: client::new(access)?,
            kinds: Arc::default(),
            nodes: Arc::default(),
            server,
            patience: Duration::from_secs(30),
        })
    }

    /// The client below, for what is not here. At most [`way::CONNECTIONS`] requests are under way at once, and a
    /// watch is one of them for as long as it lasts.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Asks again while the answer may be another one in a moment. Only for what may be repeated.
    async fn insist<T>(&self, question: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
        let mut pace = Pace::new(self.patience);
        loop {
            match question().await {
                Err(error) if error.may_pass() => {
                    tracing::debug!(server = self.server, %error, "asked again");
                    if !pace.rest().await {
                        return Err(error);
                    }
                }
                answer => return answer,
            }
        }
    }
}
