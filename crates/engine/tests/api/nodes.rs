//! Labels and taints of ours come and go; a node can be forgotten.

use hatchery_engine::api::Effect;
use hatchery_spec::value::{Label, Taint};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::server::api;

#[tokio::test]
async fn labels_and_taints_and_the_end_of_a_node() {
    let api = api().await;
    let nodes = kube::Api::<Node>::all(api.client());
    let node = json!({"metadata": {"name": "n1", "labels": {"os": "linux"}}});
    let node = serde_json::from_value(node).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let theirs = json!({"spec": {"taints": [{"key": "theirs", "effect": "NoExecute"}], "unschedulable": true}});
    nodes
        .patch("n1", &PatchParams::default(), &Patch::Merge(&theirs))
        .await
        .unwrap();

    let give = async |labels: &[&str], taints: &[&str]| {
        let labels: Vec<_> = labels
            .iter()
            .map(|text| Label::parse(text).unwrap())
            .collect();
        let taints: Vec<_> = taints
            .iter()
            .map(|text| Taint::parse(text).unwrap())
            .collect();
        let effect = api.label_and_taint("n1", &labels, &taints).await.unwrap();
        let again = api.label_and_taint("n1", &labels, &taints).await.unwrap();
        assert_eq!(again, Effect::Unchanged);
        let nodes = api.nodes().await.unwrap();
        let node = nodes.into_iter().find(|node| node.name == "n1").unwrap();
        assert!(!node.is_ready());
        let labels: Vec<_> = node
            .labels
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        (effect != Effect::Unchanged, labels, node.taints)
    };
    let role = "node-role.kubernetes.io/control-plane";
    let master = format!("{role}:NoSchedule");
    let (changed, labels, mut taints) = give(&[role, "rack=a"], &[&master]).await;
    assert!(changed);
    assert_eq!(labels, [&format!("{role}="), "os=linux", "rack=a"]);
    taints.sort();
    assert!(
        taints.contains(&"theirs:NoExecute".into()) && taints.contains(&master),
        "{taints:?}"
    );

    let (changed, labels, taints) = give(&["rack=b"], &[]).await;
    assert!(changed);
    assert_eq!(labels, ["os=linux", "rack=b"]);
    assert!(
        taints.contains(&"theirs:NoExecute".into()) && !taints.contains(&master),
        "{taints:?}"
    );

    assert!(api.delete_node("n1").await.unwrap());
    assert!(!api.delete_node("n1").await.unwrap());
    let error = api.label_and_taint("n1", &[], &[]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot get Node n1: the API server says 404 NotFound: nodes \"n1\" not found"
    );
}
