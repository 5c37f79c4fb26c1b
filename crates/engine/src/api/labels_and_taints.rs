//! Labels and taints of ours on nodes. Those that are no longer wanted are removed, and those of others stay.

use std::collections::{BTreeMap, BTreeSet};

use hatchery_spec::value::{Label, Taint};
use k8s_openapi::api::core::v1;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Api, Effect, FIELD_MANAGER,
    error::{Error, Operation},
};

/// The annotation that lists which labels and taints are ours. Field owners do not show it: the taints of a node are one field.
const OWNED: &str = "hatchery/owned";

/// The annotation of a node that was cordoned because it leaves the cluster, and not by another user.
pub(super) const DRAINED: &str = "hatchery/drained";

/// What is ours on a node: keys of labels, and of taints with their effect.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Owned {
    #[serde(default)]
    labels: BTreeSet<String>,
    #[serde(default)]
    taints: BTreeSet<String>,
}

impl Api {
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
        let [get, change] = ["get", "patch"].map(|verb| Operation::on(verb, "Node", None, node));
        let (nodes, parameters) = (self.node_objects(), manager());
        // Between both requests somebody else may change the node: then both again.
        self.retry(async || {
            let before = self.request_once(&get, nodes.get(node)).await?;
            let Some((patch, fields)) = patch(&before, labels, taints) else {
                return Ok(Effect::Unchanged);
            };
            let patch = Patch::Merge(patch);
            let patched = nodes.patch(node, &parameters, &patch);
            self.request_once(&change, patched).await?;
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
        let Some(before) = self.find_node(node).await? else {
            return Ok(Effect::Created);
        };
        Ok(match patch(&before, labels, taints) {
            Some((_, fields)) => Effect::Changed { fields },
            None => Effect::Unchanged,
        })
    }
}

/// For a merge patch by us.
pub(super) fn manager() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    }
}

fn identity(taint: &v1::Taint) -> String {
    format!("{}:{}", taint.key, taint.effect)
}

fn taint_object(taint: &Taint) -> v1::Taint {
    let value = &taint.label.value;
    v1::Taint {
        key: taint.label.key.clone(),
        value: (!value.is_empty()).then(|| value.clone()),
        effect: format!("{:?}", taint.effect),
        time_added: None,
    }
}

/// The patch that makes it so, and the fields that it changes; `None` when it is so.
fn patch(node: &v1::Node, labels: &[Label], taints: &[Taint]) -> Option<(Value, Vec<String>)> {
    // What somebody else wrote there is not ours.
    let before: Owned = node
        .annotations()
        .get(OWNED)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let taints: Vec<_> = taints.iter().map(taint_object).collect();
    let after = Owned {
        labels: labels.iter().map(|label| label.key.clone()).collect(),
        taints: taints.iter().map(identity).collect(),
    };
    let label_changes = label_changes(node.labels(), labels, &before);
    let spec = node.spec.clone().unwrap_or_default();
    let taints_now = spec.taints.unwrap_or_default();
    let taints = with_taints(&taints_now, taints, &before);
    // It was to leave, and stays after all. Somebody else may have let pods come again, and cordoned it another time.
    let was_drained = node.annotations().contains_key(DRAINED);
    let uncordon = was_drained && spec.unschedulable == Some(true);

    let mut fields = Vec::new();
    let mut patch = json!({"metadata": {
        "resourceVersion": node.metadata.resource_version,
        "annotations": {OWNED: json!(after).to_string()},
    }});
    if was_drained {
        patch["metadata"]["annotations"][DRAINED] = Value::Null;
        fields.push(format!("metadata.annotations[{DRAINED}]"));
    }
    if uncordon {
        patch["spec"]["unschedulable"] = Value::Null;
        fields = vec!["spec.unschedulable".into()];
    }
    let keys = label_changes.keys();
    fields.extend(keys.map(|key| format!("metadata.labels[{key}]")));
    patch["metadata"]["labels"] = json!(label_changes);
    if taints != taints_now {
        patch["spec"]["taints"] = json!(taints);
        fields.push("spec.taints".into());
    }
    (!fields.is_empty() || before != after).then_some((patch, fields))
}

/// The labels that have to be set, and those of ours that have to go.
fn label_changes<'a>(
    now: &BTreeMap<String, String>,
    wanted: &'a [Label],
    before: &'a Owned,
) -> BTreeMap<&'a str, Option<&'a str>> {
    let ours = before.labels.iter().map(|key| (key.as_str(), None));
    let wanted = wanted
        .iter()
        .map(|label| (label.key.as_str(), Some(label.value.as_str())));
    let mut changes: BTreeMap<_, _> = ours.chain(wanted).collect();
    changes.retain(|key, value| now.get(*key).map(String::as_str) != *value);
    changes
}

/// The taints that there are, with those that are wanted and without the others of ours.
fn with_taints(now: &[v1::Taint], wanted: Vec<v1::Taint>, before: &Owned) -> Vec<v1::Taint> {
    let value = |taint: &v1::Taint| taint.value.clone().unwrap_or_default();
    let is_same = |one: &v1::Taint, other| identity(one) == identity(other);
    let mut taints = Vec::new();
    for taint in now {
        match wanted.iter().find(|wanted| is_same(wanted, taint)) {
            Some(wanted) if value(wanted) != value(taint) => taints.push(wanted.clone()),
            None if before.taints.contains(&identity(taint)) => {}
            _ => taints.push(taint.clone()),
        }
    }
    let is_new = |wanted: &v1::Taint| !now.iter().any(|taint| is_same(wanted, taint));
    taints.extend(wanted.into_iter().filter(is_new));
    taints
}

#[cfg(test)]
mod tests;
