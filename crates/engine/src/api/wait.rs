//! Waiting for a condition, with a deadline and with word of what is still missing.
//!
//! Short looks, not watches: a watch would take one of few connections for long and has to be begun with a look anyway.

use std::time::Duration;

use http::Method;
use serde_json::Value;
use time::OffsetDateTime;
use tokio::time::{Instant, timeout};

use super::{
    Api, Node, Pace, Workload,
    error::{Asked, Error},
    kinds::escaped,
    node, rollout,
    troubles::Pods,
};
use crate::name_list::NameList;

/// Hears how far it is, in words, whenever that changes.
pub type Watch<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// So long all may be as usual; then, and every so often, pods are asked what keeps them.
const PODS: Duration = Duration::from_secs(5);

/// What a look found.
enum Look {
    Done,
    /// In words, what is missing.
    Missing(String),
}

impl Api {
    /// Waits until the API server says that it is ready.
    ///
    /// # Errors
    /// At the deadline, and at once for what does not pass by waiting.
    pub async fn ready(&self, deadline: Duration, watch: Watch<'_>) -> Result<(), Error> {
        let asked = Asked::of("get", "/readyz");
        let look = async || {
            let body = self.ask(&asked, Method::GET, "/readyz", None).await;
            match body {
                Ok(_) => Ok(Look::Done),
                // Its words are a list of checks, one on each line.
                Err(Error::Refused { words, .. }) if words.contains("[-]") => {
                    Ok(Look::Missing(failed_checks(&words)))
                }
                Err(error) => Err(error),
            }
        };
        let what = "the API server to be ready";
        self.wait(what, deadline, watch, None, look).await
    }

    /// Waits until a node is there and ready. Any number may be waited for at the same time.
    ///
    /// # Errors
    /// As [`Api::ready`].
    pub async fn node_ready(
        &self,
        name: &str,
        deadline: Duration,
        watch: Watch<'_>,
    ) -> Result<(), Error> {
        let look = async || {
            let nodes = self.recent_nodes().await?;
            Ok(readiness(name, &nodes))
        };
        let what = format!("node {name} to be Ready");
        let pods = Pods::on_node(name);
        self.wait(&what, deadline, watch, Some(&pods), look).await
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
        watch: Watch<'_>,
    ) -> Result<(), Error> {
        let asked = Asked::of("get", workload.to_string()).named(Some(namespace), name);
        let path = format!(
            "/apis/apps/v1/namespaces/{}/{}/{}",
            escaped(namespace),
            workload.plural(),
            escaped(name)
        );
        let called = format!("{workload} {namespace}/{name}");
        let look = async || match self.ask(&asked, Method::GET, &path, None).await {
            Ok(body) => {
                let mut object: Value = super::client::read(&asked, &body)?;
                let mut absent = 0;
                let mut checked = workload.check(&object, absent);
                if checked.is_err() {
                    absent = self.pods_away(&object, away).await?;
                    checked = workload.check(&object, absent);
                }
                if checked.is_ok() {
                    // One that ends again and again counts as available each time that it begins.
                    let unsettled = self.unsettled_pods(&object).await?;
                    workload.discount(&mut object, unsettled);
                    checked = workload.check(&object, absent);
                }
                Ok(match checked {
                    Ok(()) => Look::Done,
                    Err(missing) => Look::Missing(format!("{called}: {missing}")),
                })
            }
            Err(error) if error.is_not_found() => {
                Ok(Look::Missing(format!("{called} is not there")))
            }
            Err(error) => Err(error),
        };
        let what = format!("{called} to be rolled out");
        let pods = Pods::named(namespace, name);
        self.wait(&what, deadline, watch, Some(&pods), look).await
    }

    /// How many pods of a workload are on nodes that are not ready or known to be away.
    async fn pods_away(&self, workload: &Value, away: &[String]) -> Result<usize, Error> {
        let nodes = self.recent_nodes().await?;
        let lost: Vec<&str> = nodes
            .iter()
            .filter(|node| !node.is_ready() || away.contains(&node.name))
            .map(|node| node.name.as_str())
            .collect();
        if lost.is_empty() {
            return Ok(0);
        }
        Ok(rollout::pods_on(&self.pods_of(workload).await?, &lost))
    }

    async fn unsettled_pods(&self, workload: &Value) -> Result<usize, Error> {
        let pods = self.pods_of(workload).await?;
        Ok(rollout::unsettled(&pods, OffsetDateTime::now_utc()))
    }

    async fn pods_of(&self, workload: &Value) -> Result<Value, Error> {
        let asked = Asked::of("list", "Pod");
        let path = rollout::pods_path(workload);
        let body = self.ask(&asked, Method::GET, &path, None).await?;
        super::client::read(&asked, &body)
    }

    /// `pods`: those that may be the reason when they do not run.
    async fn wait(
        &self,
        what: &str,
        deadline: Duration,
        watch: Watch<'_>,
        pods: Option<&Pods>,
        look: impl AsyncFn() -> Result<Look, Error>,
    ) -> Result<(), Error> {
        let mut pace = Pace::new(deadline);
        let mut last = String::from("no answer yet");
        let mut next_question = Instant::now() + PODS;
        let mut troubles = String::new();
        loop {
            // The last look begins at the deadline, and may take a moment.
            let limit = pace.left().max(Duration::from_secs(1));
            let missing = match timeout(limit, look()).await {
                Ok(Ok(Look::Done)) => return Ok(()),
                Ok(Ok(Look::Missing(missing))) => {
                    if let Some(pods) = pods
                        && (Instant::now() >= next_question || pace.left().is_zero())
                    {
                        let told = timeout(PODS, self.troubles(pods)).await.unwrap_or_default();
                        troubles = told.iter().map(|one| format!("; {one}")).collect();
                        next_question = Instant::now() + PODS;
                    }
                    missing + &troubles
                }
                Ok(Err(error)) if error.may_pass() => error.to_string(),
                Ok(Err(error)) => return Err(error),
                Err(_late) => last.clone(),
            };
            if missing != last {
                watch(&missing);
                last = missing;
            }
            if !pace.rest().await {
                return Err(Error::Deadline {
                    what: what.into(),
                    after: deadline,
                    last,
                });
            }
        }
    }
}

fn failed_checks(words: &str) -> String {
    let failed: Vec<String> = words
        .lines()
        .filter_map(|line| line.strip_prefix("[-]"))
        .map(|check| check.split(' ').next().unwrap_or(check).to_owned())
        .collect();
    format!("the API server is not ready: {}", NameList(&failed))
}

/// `NetworkPluginNotReady`.
fn readiness(name: &str, nodes: &[Node]) -> Look {
    match nodes.iter().find(|node| node.name == name) {
        None => Look::Missing("not registered".into()),
        Some(node) => match node::unreadiness(node) {
            None => Look::Done,
            Some(reason) => Look::Missing(reason),
        },
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
        let missing = |name: &str| match readiness(name, &nodes) {
            Look::Done => "ready".into(),
            Look::Missing(missing) => missing,
        };
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
