//! Nodes as the API server knows them: listed, found, and deleted.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1;
use kube::api::{DeleteParams, ListParams};
use tokio::{sync::Mutex, time::Instant};

use super::{
    Api,
    error::{Error, Operation, if_found},
};

/// The part of a node that is used. Kept instead of the whole object, which lists all images and is large.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The node's name.
    pub name: String,
    /// For example `v1.37.0`.
    pub kubelet_version: String,
    /// The runtime with its version, for example `containerd://2.1.0`.
    pub runtime_version: String,
    /// As the node calls its system.
    pub os_image: String,
    /// Addresses inside the cluster's network of machines.
    pub addresses: Vec<String>,
    /// What the node and the controllers report.
    pub conditions: Vec<Condition>,
    /// Whether it takes no new pods.
    pub cordoned: bool,
    /// All labels, ours and others'.
    pub labels: BTreeMap<String, String>,
    /// All taints, as `key=value:Effect`.
    pub taints: Vec<String>,
}

/// A condition of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about, for example `Ready`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The condition's reason, for example `KubeletNotReady`.
    pub reason: String,
    /// The condition's message, a sentence.
    pub message: String,
}

impl Node {
    /// Whether its kubelet reports that it is ready.
    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == "True")
    }

    fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.kind == "Ready")
    }

    /// The reason why it is not ready, for example `NetworkPluginNotReady`.
    pub(super) fn unreadiness(&self) -> Option<&str> {
        if self.is_ready() {
            return None;
        }
        let Some(ready) = self.ready() else {
            return Some("says nothing yet");
        };
        // The runtime's reason stands in the message, and says more than KubeletNotReady.
        let inner = ready.message.split_once("reason:").map(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_alphanumeric())
                .next()
                .unwrap_or_default()
        });
        let reason = inner.filter(|inner| !inner.is_empty());
        Some(reason.unwrap_or(&ready.reason))
    }
}

impl From<v1::Node> for Node {
    fn from(node: v1::Node) -> Self {
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let info = status.node_info.unwrap_or_default();
        let addresses = status.addresses.unwrap_or_default().into_iter();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let taint = |taint: v1::Taint| match taint.value.as_deref() {
            None | Some("") => format!("{}:{}", taint.key, taint.effect),
            Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
        };
        Self {
            name: node.metadata.name.unwrap_or_default(),
            kubelet_version: info.kubelet_version,
            runtime_version: info.container_runtime_version,
            os_image: info.os_image,
            addresses: addresses
                .filter(|address| address.type_ == "InternalIP")
                .map(|address| address.address)
                .collect(),
            conditions: conditions
                .map(|condition| Condition {
                    kind: condition.type_,
                    status: condition.status,
                    reason: condition.reason.unwrap_or_default(),
                    message: condition.message.unwrap_or_default(),
                })
                .collect(),
            cordoned: spec.unschedulable.unwrap_or(false),
            labels: node.metadata.labels.unwrap_or_default(),
            taints: spec.taints.into_iter().flatten().map(taint).collect(),
        }
    }
}

/// A list of all nodes that is good for everybody who waits for one of them.
#[derive(Default)]
pub(super) struct RecentNodes(Mutex<Option<Recent>>);

struct Recent {
    nodes: Arc<[Node]>,
    /// The next request is not made before this time.
    fresh_until: Instant,
}

/// A list is asked for again after this time, or ten times what the last one took: a thousand nodes are megabytes.
const FRESH: Duration = Duration::from_millis(100);

impl Api {
    /// All nodes.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        self.retry(async || self.list_nodes(&ListParams::default()).await)
            .await
    }

    /// All nodes as they were a moment ago, asked once for all who wait.
    pub(super) async fn recent_nodes(&self) -> Result<Arc<[Node]>, Error> {
        let mut known = self.nodes.0.lock().await;
        let begin = Instant::now();
        if let Some(recent) = known.as_ref().filter(|recent| begin < recent.fresh_until) {
            return Ok(Arc::clone(&recent.nodes));
        }
        // What the API server has in memory is good enough, and costs etcd nothing.
        let from_memory = ListParams::default().match_any();
        let nodes: Arc<[Node]> = self.list_nodes(&from_memory).await?.into();
        *known = Some(Recent {
            nodes: Arc::clone(&nodes),
            fresh_until: Instant::now() + FRESH.max(begin.elapsed() * 10),
        });
        Ok(nodes)
    }

    async fn list_nodes(&self, parameters: &ListParams) -> Result<Vec<Node>, Error> {
        let operation = Operation::new("list", "Node");
        let nodes = self.node_objects();
        let nodes = self.request_once(&operation, nodes.list(parameters));
        Ok(nodes.await?.into_iter().map(Node::from).collect())
    }

    pub(super) fn node_objects(&self) -> kube::Api<v1::Node> {
        kube::Api::all(self.client())
    }

    pub(super) async fn find_node(&self, name: &str) -> Result<Option<v1::Node>, Error> {
        let operation = Operation::on("get", "Node", None, name);
        let nodes = self.node_objects();
        if_found(self.request(&operation, || nodes.get(name)).await)
    }

    /// Whether there is such a node.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn has_node(&self, name: &str) -> Result<bool, Error> {
        Ok(self.find_node(name).await?.is_some())
    }

    /// Whether the node is there and ready at this moment. Nothing is waited for: [`Api::node_ready`] does that.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn node_ready_now(&self, name: &str) -> Result<bool, Error> {
        let node = self.find_node(name).await?;
        Ok(node.is_some_and(|node| Node::from(node).is_ready()))
    }

    /// Deletes a node's object. Whether it was there.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_node(&self, name: &str) -> Result<bool, Error> {
        let operation = Operation::on("delete", "Node", None, name);
        let (nodes, parameters) = (self.node_objects(), DeleteParams::default());
        let deleted = self.request(&operation, || nodes.delete(name, &parameters));
        Ok(if_found(deleted.await)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_node_is_read_that_an_old_api_server_tells_less_of() {
        let node = json!({
            "metadata": {"name": "a", "creationTimestamp": null, "managedFields": [{"fieldsV1": {"f:x": {}}}]},
            "spec": {"podCIDR": "10.0.0.0/24", "externalID": "gone since 1.11"},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a"}],
                "conditions": [{"type": "Ready", "status": "True"}],
                "daemonEndpoints": {},
                "images": [{"names": null}],
                "nodeInfo": {"kubeletVersion": "v1.20.15"},
            },
        });
        let node = Node::from(from_value::<v1::Node>(node).unwrap());
        assert!(node.is_ready());
        assert_eq!(node.kubelet_version, "v1.20.15");
        assert_eq!(
            (node.runtime_version, node.addresses),
            (String::new(), vec!["10.0.0.1".into()])
        );
    }
}
