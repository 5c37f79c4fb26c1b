use super::*;
use crate::api::Node;

fn typed(node: &Value) -> v1::Node {
    serde_json::from_value(node.clone()).unwrap()
}

fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

fn taint(text: &str) -> Taint {
    Taint::parse(text).unwrap()
}

/// As the API server merges.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    for (key, value) in fields {
        match value {
            Value::Null => {
                into.as_object_mut().unwrap().remove(key);
            }
            value => merge(&mut into[key], value),
        }
    }
}

fn give(node: &mut Value, labels: &[&str], taints: &[&str]) -> Option<Vec<String>> {
    let labels: Vec<_> = labels.iter().map(|text| label(text)).collect();
    let taints: Vec<_> = taints.iter().map(|text| taint(text)).collect();
    let (change, fields) = patch(&typed(node), &labels, &taints)?;
    merge(node, &change);
    assert_eq!(
        patch(&typed(node), &labels, &taints),
        None,
        "once is enough"
    );
    Some(fields)
}

fn seen(node: &Value) -> (Vec<String>, Vec<String>) {
    let node = Node::from(typed(node));
    let labels = node
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    (labels.collect(), node.taints)
}

#[test]
fn ours_come_and_go_and_others_stay() {
    let mut node = json!({
        "metadata": {"name": "m0", "resourceVersion": "7", "labels": {"os": "linux", "a": "0"}},
        "spec": {"taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        ]},
    });
    let fields = give(
        &mut node,
        &["a=1", "b="],
        &["x=1:NoSchedule", "x:NoExecute"],
    );
    assert_eq!(
        fields.unwrap(),
        ["metadata.labels[a]", "metadata.labels[b]", "spec.taints"]
    );
    assert_eq!(
        seen(&node),
        (
            ["a=1", "b=", "os=linux"].map(str::to_owned).into(),
            [
                "node.kubernetes.io/not-ready:NoExecute",
                "x=1:NoSchedule",
                "x:NoExecute"
            ]
            .map(str::to_owned)
            .into()
        )
    );
    assert_eq!(
        node["spec"]["taints"][0]["timeAdded"],
        "2026-01-01T00:00:00Z"
    );

    let others = json!({"key": "other", "effect": "NoSchedule"});
    node["spec"]["taints"].as_array_mut().unwrap().push(others);
    let fields = give(&mut node, &["b=2"], &["x=2:NoSchedule"]).unwrap();
    assert_eq!(
        fields,
        ["metadata.labels[a]", "metadata.labels[b]", "spec.taints"]
    );
    let (labels, taints) = seen(&node);
    assert_eq!(labels, ["b=2", "os=linux"]);
    assert_eq!(
        taints,
        [
            "node.kubernetes.io/not-ready:NoExecute",
            "x=2:NoSchedule",
            "other:NoSchedule"
        ]
    );

    give(&mut node, &[], &[]).unwrap();
    let (labels, taints) = seen(&node);
    assert_eq!(labels, ["os=linux"]);
    assert_eq!(
        taints,
        ["node.kubernetes.io/not-ready:NoExecute", "other:NoSchedule"]
    );
}

#[test]
fn nothing_is_asked_of_a_node_that_is_so() {
    let mut node = json!({"metadata": {"name": "m0", "resourceVersion": "7"}});
    assert_eq!(give(&mut node, &[], &[]), None);
    node["metadata"]["annotations"][OWNED] = json!("not ours");
    assert_eq!(give(&mut node, &[], &[]), None);
}
