//! A node that is to leave: nothing new comes to it, and its pods go elsewhere.
//!
//! Pods are evicted, not deleted, so that PodDisruptionBudgets are obeyed: what one of them holds back is asked for again
//! until the deadline. Those of a DaemonSet and static ones stay, since they would come back at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::{Duration, Instant},
};

use http::Method;
use k8s_openapi::api::core::v1;
use serde::Deserialize;
use serde_json::json;

use super::{
    Api, FIELD_MANAGER, Node, Pace, Watch,
    error::{Asked, Error},
    kinds::escaped,
    node::DRAINED,
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

/// The deletion of a pod whose node cannot confirm it.
const AT_ONCE: &str = r#"{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}"#;

#[derive(Deserialize)]
struct Pods {
    items: Vec<v1::Pod>,
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
    /// such node. Tells how many pods left.
    ///
    /// # Errors
    /// At the deadline, with the pods that are still there and what holds them, unless the drain is forced.
    pub async fn drain(&self, node: &str, drain: Drain, watch: Watch<'_>) -> Result<usize, Error> {
        if !self.cordon(node).await? || drain.skip {
            return Ok(0);
        }
        let mut pace = Pace::new(drain.deadline);
        let mut evicted = BTreeSet::new();
        let mut last = String::new();
        loop {
            if drain.is_silent && !self.answers(node).await? {
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
                true => !left.is_empty() && self.answers(node).await?,
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
                watch(&missing);
                last = missing;
            }
            if pace.rest().await {
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
                self.delete_pod(pod).await?;
            }
            return Ok(evicted.len());
        }
    }

    /// False when there is no such node. What keeps pods away is taken back by [`Api::label_and_taint`].
    async fn cordon(&self, node: &str) -> Result<bool, Error> {
        let asked = Asked::of("patch", "Node").named(None, node);
        let path = format!(
            "/api/v1/nodes/{}?fieldManager={FIELD_MANAGER}",
            escaped(node)
        );
        let is_cordoned = self.is_cordoned(node).await?;
        let mut patch = json!({"spec": {"unschedulable": true}});
        if !is_cordoned {
            patch["metadata"]["annotations"][DRAINED] = json!("true");
        }
        let patch = patch.to_string();
        let patched = self
            .insist(async || {
                let content = ("application/merge-patch+json", patch.clone().into_bytes());
                self.ask(&asked, Method::PATCH, &path, Some(content)).await
            })
            .await;
        match patched {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn is_cordoned(&self, node: &str) -> Result<bool, Error> {
        let node = self.known_node(node).await?;
        let spec = node.and_then(|node| node.spec);
        Ok(spec.is_some_and(|spec| spec.unschedulable == Some(true)))
    }

    async fn known_node(&self, node: &str) -> Result<Option<v1::Node>, Error> {
        let asked = Asked::of("get", "Node").named(None, node);
        let path = format!("/api/v1/nodes/{}", escaped(node));
        self.find(&asked, &path).await
    }

    /// Whether the node's kubelet reports.
    async fn answers(&self, node: &str) -> Result<bool, Error> {
        let node = self.known_node(node).await?;
        Ok(node.is_some_and(|node| Node::from(node).is_ready()))
    }

    async fn leaving(&self, node: &str) -> Result<Vec<Leaving>, Error> {
        let asked = Asked::of("list", "Pod");
        let path = format!(
            "/api/v1/pods?fieldSelector=spec.nodeName%3D{}",
            escaped(node)
        );
        let pods: Pods = self.get(&asked, &path).await?;
        Ok(pods.items.iter().filter_map(leaving).collect())
    }

    /// Asks a pod to leave; what holds it back, if something does.
    async fn evict(&self, pod: &Leaving) -> Result<Option<String>, Error> {
        let asked = Asked::of("evict", "Pod").named(Some(&pod.namespace), &pod.name);
        let path = pod.path("/eviction");
        let eviction = |version: &str| {
            json!({
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": {"namespace": pod.namespace, "name": pod.name},
            })
        };
        let ask = async |version: &str| {
            let content = (
                "application/json",
                eviction(version).to_string().into_bytes(),
            );
            self.ask(&asked, Method::POST, &path, Some(content)).await
        };
        let began = Instant::now();
        loop {
            let mut answer = ask("policy/v1").await;
            // API servers before 1.22 know only this one.
            if matches!(answer, Err(Error::Refused { code: 400, .. })) {
                answer = ask("policy/v1beta1").await;
            }
            match answer {
                Ok(_) => return Ok(None),
                Err(error) if error.is_not_found() => return Ok(None),
                // One budget holds it back, several stand in each other's way, or its namespace is being deleted.
                Err(Error::Refused {
                    code: 429 | 500 | 403,
                    words,
                    ..
                }) => return Ok(Some(words)),
                Err(error) if error.may_pass() && began.elapsed() < self.patience => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn delete_pod(&self, pod: &Leaving) -> Result<(), Error> {
        let asked = Asked::of("delete", "Pod").named(Some(&pod.namespace), &pod.name);
        let path = pod.path("");
        let deleted = self
            .insist(async || {
                let content = ("application/json", AT_ONCE.as_bytes().to_vec());
                self.ask(&asked, Method::DELETE, &path, Some(content)).await
            })
            .await;
        match deleted {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Leaving {
    fn path(&self, below: &str) -> String {
        let (namespace, name) = (escaped(&self.namespace), escaped(&self.name));
        format!("/api/v1/namespaces/{namespace}/pods/{name}{below}")
    }
}

/// Whether a pod has to leave before its node does.
fn leaving(pod: &v1::Pod) -> Option<Leaving> {
    let metadata = &pod.metadata;
    let annotations = metadata.annotations.iter().flatten();
    let is_static = annotations
        .into_iter()
        .any(|(key, _)| key == "kubernetes.io/config.mirror");
    let mut owners = metadata.owner_references.iter().flatten();
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
        namespace: metadata.namespace.clone()?,
        name: metadata.name.clone()?,
        ends: metadata.deletion_timestamp.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pod(metadata: &Value, phase: &str) -> v1::Pod {
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
