//! The Kubernetes API of a cluster, reached through the SSH connection to a master.
//!
//! No firewall rule and no kubectl is needed: every connection is a stream through the master's sshd ([`way`]), and
//! kube's own client runs on it. All that is asked here may be repeated, so requests that failed for a passing reason
//! are repeated until [`Api::retry_timeout`].

mod apply;
mod backoff;
mod difference;
mod discovery;
mod drain;
mod error;
mod labels_and_taints;
pub mod manifest;
mod node;
mod pod_problems;
mod port_protocol;
mod prune;
mod requests;
mod rollout;
mod wait;
pub mod way;

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use tracing::{Dispatch, instrument::WithSubscriber as _, subscriber::NoSubscriber};

pub use self::{
    apply::{Applied, Effect},
    drain::Drain,
    error::{Error, Operation},
    manifest::parse,
    node::{Condition, Node},
    prune::{ADDON, ObjectRef},
    rollout::Workload,
    wait::OnProgress,
    way::{Access, Address},
};
use self::{backoff::Pauses, discovery::Kinds, node::RecentNodes};

/// The name under which the API server remembers what is ours.
pub const FIELD_MANAGER: &str = "hatchery";

/// Ignores all events. It is registered, unlike `Dispatch::none()`, under which a place in the code that is reached for the
/// first time would stay silent for ever.
static NO_LOG: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The API of one cluster. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
    kinds: Arc<Kinds>,
    nodes: Arc<RecentNodes>,
    server: String,
    /// How long a request that failed for a passing reason is repeated, and a kind that was just defined is waited for.
    pub retry_timeout: Duration,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Prepares a client; the first request connects. It belongs to the runtime that this is called in.
    ///
    /// # Errors
    /// When a certificate or key cannot be used.
    pub fn connect(access: Access) -> Result<Self, Error> {
        let server = access.server.to_string();
        Ok(Self {
            client: requests::client(access)?,
            kinds: Arc::default(),
            nodes: Arc::default(),
            server,
            retry_timeout: Duration::from_secs(30),
        })
    }

    /// The client below, for what is not here. At most [`way::CONNECTIONS`] requests are under way at once, and a
    /// watch is one of them for as long as it lasts.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    async fn request_once<T>(
        &self,
        operation: &Operation,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let answer = match operation.may_tell_secrets() {
            // kube logs refusals, and answers that it cannot read, with their content.
            true => request.with_subscriber(NO_LOG.clone()).await,
            false => request.await,
        };
        answer.map_err(|error| Error::new(operation, error))
    }

    async fn request<T, F>(
        &self,
        operation: &Operation,
        request: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = kube::Result<T>>,
    {
        self.retry(|| self.request_once(operation, request())).await
    }

    async fn retry<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut pauses = Pauses::new(self.retry_timeout);
        loop {
            let answer = attempt().await;
            match &answer {
                Err(error) if error.may_pass() => {
                    tracing::debug!(server = self.server, %error, "asked again");
                }
                _ => return answer,
            }
            if !pauses.pause().await {
                return answer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send<T: Send>(_: T) {}

    /// Compiling is the test: controllers run many clusters on a runtime of several threads.
    #[test]
    fn an_api_and_its_futures_may_change_threads() {
        #[expect(unused, reason = "only its types matter")]
        fn futures(api: Api, drain: Drain, on_progress: OnProgress<'_>) {
            let limit = Duration::ZERO;
            is_send(api.apply(&[], true));
            is_send(api.would_apply(&[], true));
            is_send(api.ready(limit, on_progress));
            is_send(api.node_ready("", limit, on_progress));
            is_send(api.node_ready_now(""));
            is_send(api.nodes());
            is_send(api.has_node(""));
            is_send(api.delete_node(""));
            is_send(api.label_and_taint("", &[], &[]));
            is_send(api.would_label_and_taint("", &[], &[]));
            is_send(api.drain("", drain, on_progress));
            is_send(api.rolled_out(Workload::DaemonSet, "", "", &[], limit, on_progress));
            is_send(api.list_addon_objects(&[]));
            is_send(api.would_prune_addons(&[]));
            is_send(api.prune_addons(&[]));
            is_send(api);
        }
    }
}
