//! Nodes as the API server knows them: listed, labelled, tainted and forgotten.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use hatchery_spec::value::{Label, Taint};
use http::Method;
use k8s_openapi::api::core::v1;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::Instant};

use super::{
    Api, Effect, FIELD_MANAGER,
    client::read,
    error::{Asked, Error},
    kinds::escaped,
};

/// Says on a node which labels and taints are ours, so that those that are wanted no more can go and others stay.
/// Field owners cannot tell: the taints of a node are one field.
const OWNED: &str = "hatchery/owned";

/// Says that a node was kept from new pods because it was to leave, and not by somebody else.
pub(super) const DRAINED: &str = "hatchery/drained";

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Of the kubelet, for example `v1.37.0`.
    pub kubelet_version: String,
    /// The runtime with its version, for example `containerd://2.1.0`.
    pub runtime_version: String,
    /// As the node calls its system.
    pub os_image: String,
    /// Addresses inside the cluster's network of machines.
    pub addresses: Vec<String>,
    /// What the node and the controllers say of it.
    pub conditions: Vec<Condition>,
    /// Whether it takes no new pods.
    pub cordoned: bool,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// All taints, as `key=value:Effect`.
    pub taints: Vec<String>,
}

/// Something that is said of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about, for example `Ready`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
}

impl Node {
    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == "True")
    }

    fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().find(|said| said.kind == "Ready")
    }
}

/// Why a node is not ready, in a word.
pub(super) fn unreadiness(node: &Node) -> Option<String> {
    if node.is_ready() {
        return None;
    }
    let Some(ready) = node.ready() else {
        return Some("says nothing yet".into());
    };
    // The runtime's reason stands in the message, and says more than KubeletNotReady.
    let inner = ready.message.split_once("reason:").map(|(_, rest)| {
        rest.split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default()
    });
    let reason = inner.filter(|inner| !inner.is_empty());
    Some(reason.unwrap_or(&ready.reason).to_owned())
}

impl From<v1::Node> for Node {
    fn from(node: v1::Node) -> Self {
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let info = status.node_info.unwrap_or_default();
        let addresses = status.addresses.unwrap_or_default().into_iter();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let taints = spec.taints.unwrap_or_default().into_iter();
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
                .map(|said| Condition {
                    kind: said.type_,
                    status: said.status,
                    reason: said.reason.unwrap_or_default(),
                    message: said.message.unwrap_or_default(),
                })
                .collect(),
            cordoned: spec.unschedulable.unwrap_or(false),
            labels: node.metadata.labels.unwrap_or_default(),
            taints: taints
                .map(
                    |taint| match taint.value.filter(|value| !value.is_empty()) {
                        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
                        None => format!("{}:{}", taint.key, taint.effect),
                    },
                )
                .collect(),
        }
    }
}

/// A list of all nodes that is good for everybody who waits for one of them.
#[derive(Default)]
pub(super) struct RecentNodes(Mutex<Option<Recent>>);

struct Recent {
    nodes: Arc<[Node]>,
    /// Until when nobody asks again.
    fresh_until: Instant,
}

/// A list is asked for again after this time, or ten times what the last one took: a thousand nodes are megabytes.
const FRESH: Duration = Duration::from_millis(100);

/// What is ours on a node: keys of labels, and of taints with their effect.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Owned {
    #[serde(default)]
    labels: BTreeSet<String>,
    #[serde(default)]
    taints: BTreeSet<String>,
}

impl Api {
    /// All nodes.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        self.insist(async || self.list_nodes("").await).await
    }

    /// All nodes as they were a moment ago, asked once for all who wait.
    pub(super) async fn recent_nodes(&self) -> Result<Arc<[Node]>, Error> {
        let mut known = self.nodes.0.lock().await;
        let begin = Instant::now();
        if let Some(recent) = known.as_ref().filter(|recent| begin < recent.fresh_until) {
            return Ok(Arc::clone(&recent.nodes));
        }
        // What the API server remembers is good enough, and costs etcd nothing.
        let nodes: Arc<[Node]> = self.list_nodes("?resourceVersion=0").await?.into();
        *known = Some(Recent {
            nodes: Arc::clone(&nodes),
            fresh_until: Instant::now() + FRESH.max(begin.elapsed() * 10),
        });
        Ok(nodes)
    }

    /// Asks once.
    pub(super) async fn list_nodes(&self, query: &str) -> Result<Vec<Node>, Error> {
        #[derive(Deserialize)]
        struct List {
            items: Vec<v1::Node>,
        }
        let asked = Asked::of("list", "Node");
        let path = format!("/api/v1/nodes{query}");
        let body = self.ask(&asked, Method::GET, &path, None).await?;
        let list: List = read(&asked, &body)?;
        Ok(list.items.into_iter().map(Node::from).collect())
    }

    /// Gives a node these labels and taints. Those that were given so before and are not among these go; what
    /// others gave stays.
    ///
    /// # Errors
    /// When there is no such node, or the API server refuses.
    pub async fn label_and_taint(
        &self,
        node: &str,
        labels: &[Label],
        taints: &[Taint],
    ) -> Result<Effect, Error> {
        let asked = Asked::of("get", "Node").named(None, node);
        let patched = Asked::of("patch", "Node").named(None, node);
        let path = format!("/api/v1/nodes/{}", escaped(node));
        // Between look and patch somebody else may change the node: then both again.
        self.insist(async || {
            let body = self.ask(&asked, Method::GET, &path, None).await?;
            let before: Value = read(&asked, &body)?;
            let Some((patch, fields)) = patch(&before, labels, taints) else {
                return Ok(Effect::Unchanged);
            };
            let content = (
                "application/merge-patch+json",
                patch.to_string().into_bytes(),
            );
            let path = format!("{path}?fieldManager={FIELD_MANAGER}");
            self.ask(&patched, Method::PATCH, &path, Some(content))
                .await?;
            Ok(Effect::Changed { fields })
        })
        .await
    }

    /// What [`Api::label_and_taint`] would do. Changes nothing; a node that is not there is one to be made.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn would_label_and_taint(
        &self,
        node: &str,
        labels: &[Label],
        taints: &[Taint],
    ) -> Result<Effect, Error> {
        let asked = Asked::of("get", "Node").named(None, node);
        let path = format!("/api/v1/nodes/{}", escaped(node));
        let Some(before) = self.find::<Value>(&asked, &path).await? else {
            return Ok(Effect::Created);
        };
        Ok(match patch(&before, labels, taints) {
            Some((_, fields)) => Effect::Changed { fields },
            None => Effect::Unchanged,
        })
    }

    /// Whether there is such a node.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn has_node(&self, node: &str) -> Result<bool, Error> {
        let asked = Asked::of("get", "Node").named(None, node);
        let path = format!("/api/v1/nodes/{}", escaped(node));
        Ok(self.find::<Value>(&asked, &path).await?.is_some())
    }

    /// Forgets a node. Whether it was there.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_node(&self, node: &str) -> Result<bool, Error> {
        let asked = Asked::of("delete", "Node").named(None, node);
        let path = format!("/api/v1/nodes/{}", escaped(node));
        let deleted = self.insist(async || self.ask(&asked, Method::DELETE, &path, None).await);
        match deleted.await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn identity(key: &str, effect: &str) -> String {
    format!("{key}:{effect}")
}

/// The patch that makes it so, and the fields that it changes; `None` when it is so.
fn patch(node: &Value, labels: &[Label], taints: &[Taint]) -> Option<(Value, Vec<String>)> {
    let metadata = &node["metadata"];
    let owned = metadata["annotations"][OWNED].as_str();
    // What somebody else wrote there is not ours.
    let before: Owned = owned
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let wanted_labels: BTreeMap<_, _> = labels
        .iter()
        .map(|label| (label.key.as_str(), label.value.as_str()))
        .collect();
    let wanted_taints: Vec<_> = taints
        .iter()
        .map(|taint| {
            let effect = format!("{:?}", taint.effect);
            (identity(&taint.label.key, &effect), taint, effect)
        })
        .collect();
    let after = Owned {
        labels: wanted_labels.keys().map(|key| (*key).to_owned()).collect(),
        taints: wanted_taints.iter().map(|(id, ..)| id.clone()).collect(),
    };
    let mut fields = Vec::new();
    // It was to leave, and stays after all.
    let was_drained = !metadata["annotations"][DRAINED].is_null();
    // Somebody else may have let pods come again, and keep them away another time.
    let comes_back = was_drained && node["spec"]["unschedulable"] == true;
    if comes_back {
        fields.push("spec.unschedulable".into());
    } else if was_drained {
        fields.push(format!("metadata.annotations[{DRAINED}]"));
    }

    let mut label_patch = serde_json::Map::new();
    for (key, value) in &wanted_labels {
        if metadata["labels"][*key] != **value {
            label_patch.insert((*key).to_owned(), json!(value));
        }
    }
    for key in before.labels.difference(&after.labels) {
        if !metadata["labels"][key.as_str()].is_null() {
            label_patch.insert(key.clone(), Value::Null);
        }
    }
    fields.extend(
        label_patch
            .keys()
            .map(|key| format!("metadata.labels[{key}]")),
    );

    let there = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut left: Vec<Value> = Vec::new();
    let mut found = BTreeSet::new();
    for taint in &there {
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        let id = identity(text("key"), text("effect"));
        let wanted = wanted_taints.iter().find(|(wanted, ..)| *wanted == id);
        match wanted {
            Some((_, wanted, _)) if text("value") == wanted.label.value => left.push(taint.clone()),
            Some((_, wanted, effect)) => left.push(rendered(wanted, effect)),
            None if before.taints.contains(&id) => {}
            None => left.push(taint.clone()),
        }
        found.insert(id);
    }
    let new = wanted_taints.iter().filter(|(id, ..)| !found.contains(id));
    left.extend(new.map(|(_, taint, effect)| rendered(taint, effect)));
    if left != there {
        fields.push("spec.taints".into());
    }
    if fields.is_empty() && before == after {
        return None;
    }

    let mut patch = json!({"metadata": {
        "resourceVersion": metadata["resourceVersion"],
        "annotations": {OWNED: serde_json::to_string(&after).unwrap_or_default()},
        "labels": label_patch,
    }});
    if left != there {
        patch["spec"]["taints"] = json!(left);
    }
    if comes_back {
        patch["spec"]["unschedulable"] = Value::Null;
    }
    if was_drained {
        patch["metadata"]["annotations"][DRAINED] = Value::Null;
    }
    Some((patch, fields))
}

fn rendered(taint: &Taint, effect: &str) -> Value {
    let mut object = json!({"key": taint.label.key, "effect": effect});
    if !taint.label.value.is_empty() {
        object["value"] = json!(taint.label.value);
    }
    object
}

#[cfg(test)]
mod tests;
