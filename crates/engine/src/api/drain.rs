//! A node that is to leave: nothing new comes to it, and its pods go elsewhere.
//!
//! Pods are evicted, not deleted, so that PodDisruptionBudgets are obeyed: what one of them holds back is asked for again
//! until the deadline. Those of a DaemonSet and static ones stay, since they would come back at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, EvictParams, ListParams, Patch},
};
use serde_json::json;

use super::{
    Api, OnProgress,
    backoff::Pauses,
    error::{Error, Operation, if_found},
    labels_and_taints::{DRAINED, manager},
};
use crate::name_list::NameList;

/// How a node is drained.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long pods may take to leave.
    pub deadline: Duration,
    /// Whether pods that have not left by then are deleted, whatever a PodDisruptionBudget says.
    pub force: bool,
    /// Whether pods are left to the node's end; no new ones come in any case.
    pub skip: bool,
    /// Whether the node's machine does not answer. When its kubelet does not report either, its pods are lost, and no budget
    /// can keep them.
    pub is_silent: bool,
}

/// A pod that has to leave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Leaving {
    namespace: String,
    name: String,
    /// Whether it has been asked to end.
    ends: bool,
}

impl Api {
    /// Keeps new pods away from a node and waits until those that can leave have left. Nothing happens where there is no
    /// such node. Returns how many pods left.
    ///
    /// # Errors
    /// At the deadline, with the pods that are still there and what holds them, unless the drain is forced.
    pub async fn drain(
        &self,
        node: &str,
        drain: Drain,
        on_progress: OnProgress<'_>,
    ) -> Result<usize, Error> {
        if !self.cordon(node).await? || drain.skip {
            return Ok(0);
        }
        let mut pauses = Pauses::new(drain.deadline);
        let mut evicted = BTreeSet::new();
        let mut last = String::new();
        loop {
            if drain.is_silent && !self.node_ready_now(node).await? {
                return Ok(evicted.len());
            }
            let left = self.leaving(node).await?;
            // Many pods are held back by the same.
            let mut held: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for pod in &left {
                if !pod.ends
                    && let Some(reason) = self.evict(pod).await?
                {
                    held.entry(reason).or_default().push(pod.to_string());
                }
                evicted.insert((pod.namespace.clone(), pod.name.clone()));
            }
            // A kubelet that does not answer confirms no end; the pods go with the node's object.
            let waits = match left.iter().all(|pod| pod.ends) {
                true => !left.is_empty() && self.node_ready_now(node).await?,
                false => true,
            };
            if !waits {
                return Ok(evicted.len());
            }
            let names: Vec<_> = left.iter().map(ToString::to_string).collect();
            let held: Vec<_> = held
                .into_iter()
                .map(|(reason, pods)| format!("{}: {reason}", NameList(&pods)))
                .collect();
            let missing = match held.is_empty() {
                true => format!("pods are leaving: {}", NameList(&names)),
                false => held.join("; "),
            };
            if missing != last {
                on_progress(&missing);
                last = missing;
            }
            if pauses.pause().await {
                continue;
            }
            if !drain.force {
                return Err(Error::Deadline {
                    what: format!("pods to leave node {node}"),
                    after: drain.deadline,
                    last,
                });
            }
            for pod in &left {
                self.delete_at_once(pod).await?;
            }
            return Ok(evicted.len());
        }
    }

    /// False when there is no such node. What keeps pods away is taken back by [`Api::label_and_taint`].
    async fn cordon(&self, name: &str) -> Result<bool, Error> {
        let Some(node) = self.find_node(name).await? else {
            return Ok(false);
        };
        let mut patch = json!({"spec": {"unschedulable": true}});
        if node.spec.and_then(|spec| spec.unschedulable) != Some(true) {
            patch["metadata"]["annotations"][DRAINED] = json!("true");
        }
        let operation = Operation::on("patch", "Node", None, name);
        let (nodes, parameters, patch) = (self.node_objects(), manager(), Patch::Merge(patch));
        let patched = self.request(&operation, || nodes.patch(name, &parameters, &patch));
        Ok(if_found(patched.await)?.is_some())
    }

    async fn leaving(&self, node: &str) -> Result<Vec<Leaving>, Error> {
        let operation = Operation::new("list", "Pod");
        let pods = kube::Api::<Pod>::all(self.client());
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let listed = self.request(&operation, || pods.list(&on_node)).await?;
        Ok(listed.iter().filter_map(leaving).collect())
    }

    /// Asks a pod to leave; what holds it back, if something does.
    async fn evict(&self, pod: &Leaving) -> Result<Option<String>, Error> {
        let operation = pod.operation("evict");
        let (pods, parameters) = (self.neighbours(pod), EvictParams::default());
        self.retry(async || {
            let evicted = pods.evict(&pod.name, &parameters);
            match if_found(self.request_once(&operation, evicted).await) {
                // One budget holds it back, several stand in each other's way, or its namespace is being deleted.
                Err(Error::Refused {
                    code: 429 | 500 | 403,
                    message,
                    ..
                }) => Ok(Some(message)),
                evicted => evicted.map(|_| None),
            }
        })
        .await
    }

    /// Without waiting for its node to confirm the end.
    async fn delete_at_once(&self, pod: &Leaving) -> Result<(), Error> {
        let operation = pod.operation("delete");
        let pods = self.neighbours(pod);
        let parameters = DeleteParams::default().grace_period(0);
        let deleted = self.request(&operation, || pods.delete(&pod.name, &parameters));
        if_found(deleted.await).map(drop)
    }

    /// The pods of a pod's namespace.
    fn neighbours(&self, pod: &Leaving) -> kube::Api<Pod> {
        kube::Api::namespaced(self.client(), &pod.namespace)
    }
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Leaving {
    fn operation(&self, verb: &'static str) -> Operation {
        Operation::on(verb, "Pod", Some(&self.namespace), &self.name)
    }
}

/// Whether a pod has to leave before its node does.
fn leaving(pod: &Pod) -> Option<Leaving> {
    let is_static = pod
        .annotations()
        .contains_key("kubernetes.io/config.mirror");
    let mut owners = pod.owner_references().iter();
    let is_of_daemon_set =
        owners.any(|owner| owner.kind == "DaemonSet" && owner.controller == Some(true));
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    if is_static || is_of_daemon_set || has_ended {
        return None;
    }
    Some(Leaving {
        namespace: pod.namespace()?,
        name: pod.metadata.name.clone()?,
        ends: pod.metadata.deletion_timestamp.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pod(metadata: &Value, phase: &str) -> Pod {
        let pod = json!({"metadata": metadata, "status": {"phase": phase}});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn pods_leave_that_would_not_come_back_to_the_same_node() {
        let owner = |kind: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u", "controller": true}]);
        let named = |more: &Value| {
            let mut metadata = json!({"namespace": "a", "name": "b"});
            for (key, value) in more.as_object().unwrap() {
                metadata[key] = value.clone();
            }
            metadata
        };
        let leaves = |more: Value, phase: &str| leaving(&pod(&named(&more), phase)).is_some();
        assert!(leaves(json!({}), "Running"));
        assert!(leaves(json!({}), "Pending"));
        assert!(leaves(
            json!({"ownerReferences": owner("ReplicaSet")}),
            "Running"
        ));
        assert!(!leaves(
            json!({"ownerReferences": owner("DaemonSet")}),
            "Running"
        ));
        assert!(!leaves(
            json!({"annotations": {"kubernetes.io/config.mirror": "h"}}),
            "Running"
        ));
        assert!(!leaves(
            json!({"ownerReferences": owner("Job")}),
            "Succeeded"
        ));
        let ending = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(leaving(&pod(&named(&ending), "Running")).unwrap().ends);
    }
}
