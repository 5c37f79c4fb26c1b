//! Waiting for a condition, with a deadline and with word of what is still missing.
//!
//! Short looks, not watches: a watch would take one of few connections for long and has to be begun with a look anyway.

use std::time::Duration;

use http::Request;
use tokio::time::{Instant, timeout};

use super::{
    Api, Node, Workload,
    backoff::Pauses,
    error::{Error, Operation},
    pod_problems::PodSelection,
};
use crate::name_list::NameList;

/// Called with what is still missing, in words, whenever that changes.
pub type OnProgress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How long a workload may take before its pods are searched for problems, and the interval after that.
const PODS: Duration = Duration::from_secs(5);

impl Api {
    /// Waits until the API server says that it is ready.
    ///
    /// # Errors
    /// At the deadline, and at once for what does not pass by waiting.
    pub async fn ready(
        &self,
        deadline: Duration,
        on_progress: OnProgress<'_>,
    ) -> Result<(), Error> {
        let operation = Operation::new("get", "/readyz");
        let look = async || {
            let request = Request::get("/readyz").body(Vec::new());
            let request = request.map_err(kube::Error::HttpError);
            let answer = async { self.client.request_text(request?).await };
            match self.request_once(&operation, answer).await {
                Ok(_) => Ok(None),
                // A list of checks, one on each line.
                Err(Error::Refused { message, .. }) if message.contains("[-]") => {
                    Ok(Some(failed_checks(&message)))
                }
                Err(error) => Err(error),
            }
        };
        let what = "the API server to be ready";
        self.wait(what, deadline, on_progress, None, look).await
    }

    /// Waits until a node is there and ready. Any number may be waited for at the same time.
    ///
    /// # Errors
    /// As [`Api::ready`].
    pub async fn node_ready(
        &self,
        name: &str,
        deadline: Duration,
        on_progress: OnProgress<'_>,
    ) -> Result<(), Error> {
        let look = async || Ok(unreadiness(name, &self.recent_nodes().await?));
        let what = format!("node {name} to be Ready");
        let pods = PodSelection::on_node(name);
        self.wait(&what, deadline, on_progress, Some(&pods), look)
            .await
    }

    /// Waits until a workload runs everywhere as it was applied last. Its pods on nodes that are not ready, or that are
    /// named in `away`, are not waited for.
    ///
    /// # Errors
    /// As [`Api::ready`].
    pub async fn rolled_out(
        &self,
        workload: Workload,
        namespace: &str,
        name: &str,
        away: &[String],
        deadline: Duration,
        on_progress: OnProgress<'_>,
    ) -> Result<(), Error> {
        let look = async || self.not_rolled_out(workload, namespace, name, away).await;
        let what = format!("{workload} {namespace}/{name} to be rolled out");
        let pods = PodSelection::made_by(namespace, name);
        self.wait(&what, deadline, on_progress, Some(&pods), look)
            .await
    }

    /// Looks until nothing is missing. `pods`: those that may be the reason when they do not run.
    async fn wait<F>(
        &self,
        what: &str,
        deadline: Duration,
        on_progress: OnProgress<'_>,
        pods: Option<&PodSelection>,
        look: impl Fn() -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<Option<String>, Error>>,
    {
        let mut pauses = Pauses::new(deadline);
        let mut last = String::from("no answer yet");
        let mut next_question = Instant::now() + PODS;
        let mut problems = String::new();
        loop {
            // The last look begins at the deadline, and may take a moment.
            let limit = pauses.left().max(Duration::from_secs(1));
            let missing = match timeout(limit, look()).await {
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(missing))) => {
                    if let Some(pods) = pods
                        && (Instant::now() >= next_question || pauses.left().is_zero())
                    {
                        let found = timeout(PODS, self.pod_problems(pods)).await;
                        let found = found.unwrap_or_default().into_iter();
                        problems = found.map(|one| format!("; {one}")).collect();
                        next_question = Instant::now() + PODS;
                    }
                    missing + &problems
                }
                Ok(Err(error)) if error.may_pass() => error.to_string(),
                Ok(Err(error)) => return Err(error),
                Err(_late) => last.clone(),
            };
            if missing != last {
                on_progress(&missing);
                last = missing;
            }
            if !pauses.pause().await {
                return Err(Error::Deadline {
                    what: what.into(),
                    after: deadline,
                    last,
                });
            }
        }
    }
}

fn failed_checks(text: &str) -> String {
    let failed: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("[-]"))
        .map(|check| check.split(' ').next().unwrap_or(check).to_owned())
        .collect();
    format!("the API server is not ready: {}", NameList(&failed))
}

fn unreadiness(name: &str, nodes: &[Node]) -> Option<String> {
    match nodes.iter().find(|node| node.name == name) {
        None => Some("not registered".into()),
        Some(node) => node.unreadiness().map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        let node = |name: &str, status: &str, reason: &str, message: &str| {
            let node = serde_json::json!({
                "metadata": {"name": name},
                "status": {"conditions": [{
                    "type": "Ready", "status": status, "reason": reason, "message": message,
                }]},
            });
            Node::from(serde_json::from_value::<k8s_openapi::api::core::v1::Node>(node).unwrap())
        };
        let network = "container runtime network not ready: NetworkReady=false \
            reason:NetworkPluginNotReady message:cni plugin not initialized";
        let nodes = [
            node("lab-1", "True", "KubeletReady", ""),
            node("lab-3", "False", "KubeletNotReady", network),
            node(
                "lab-4",
                "Unknown",
                "NodeStatusUnknown",
                "Kubelet stopped posting",
            ),
        ];
        let missing = |name: &str| unreadiness(name, &nodes).unwrap_or("ready".into());
        assert_eq!(missing("lab-1"), "ready");
        assert_eq!(missing("lab-2"), "not registered");
        assert_eq!(missing("lab-3"), "NetworkPluginNotReady");
        assert_eq!(missing("lab-4"), "NodeStatusUnknown");
    }

    #[test]
    fn failed_checks_are_named() {
        let words = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac failed\nreadyz check failed";
        assert_eq!(
            failed_checks(words),
            "the API server is not ready: etcd, poststarthook/rbac"
        );
    }
}
