//! Pods leave a node that is to go, unless something holds them back.

use std::{sync::Mutex, time::Duration};

use futures::future::join_all;
use hatchery_engine::api::{Api, Drain, Effect};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::{
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::pinned_kind,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    server::{api, namespace},
    waiting::{make_node, say},
};

const SHORT: Drain = Drain {
    deadline: Duration::from_secs(2),
    force: false,
    skip: false,
    is_silent: false,
};

async fn make<K>(api: kube::Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// A pod on a node that no kubelet looks after.
async fn make_pod(api: &Api, namespace: &str, name: &str, node: &str, more: Value) {
    let mut metadata = json!({"name": name, "labels": {"app": name}});
    for (key, value) in more.as_object().unwrap() {
        metadata[key] = value.clone();
    }
    let spec = json!({"nodeName": node, "containers": [{"name": "a", "image": "a"}]});
    let pods = kube::Api::<Pod>::namespaced(api.client(), namespace);
    make(pods.clone(), json!({"metadata": metadata, "spec": spec})).await;
    // A budget has nothing to say about one that does not run yet.
    let runs = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let (parameters, runs) = (PatchParams::default(), Patch::Merge(&runs));
    pods.patch_status(name, &parameters, &runs).await.unwrap();
}

/// Names of pods, and whether each was asked to end.
async fn pods(api: &Api, namespace: &str) -> Vec<(String, bool)> {
    let pods = kube::Api::<Pod>::namespaced(api.client(), namespace);
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let pods = pods.items.into_iter();
    pods.map(|pod| {
        (
            pod.metadata.name.unwrap(),
            pod.metadata.deletion_timestamp.is_some(),
        )
    })
    .collect()
}

#[tokio::test]
async fn a_budget_holds_pods_back_and_a_silent_kubelet_does_not() {
    let api = api().await;
    let space = namespace("drain").await;
    let account = json!({"metadata": {"name": "default"}});
    let accounts = kube::Api::<ServiceAccount>::namespaced(api.client(), &space);
    // Whether anybody makes them here is not this test's business.
    let account = serde_json::from_value(account).unwrap();
    accounts.create(&PostParams::default(), &account).await.ok();

    assert_eq!(api.drain("drain-0", SHORT, &|_| {}).await.unwrap(), 0);

    let node = "drain-1";
    make_node(&api, node).await;
    say(&api, node, "True", "").await;
    make_pod(&api, &space, "web", node, json!({})).await;
    let of_daemon_set = json!({"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "u", "controller": true}
    ]});
    make_pod(&api, &space, "everywhere", node, of_daemon_set).await;
    make_pod(&api, &space, "elsewhere", "drain-9", json!({})).await;
    // policy/v1 came with 1.21.
    let versions = ["v1", "v1beta1"]
        .map(|version| GroupVersionKind::gvk("policy", version, "PodDisruptionBudget"));
    let client = api.client();
    let found = join_all(versions.iter().map(|version| pinned_kind(&client, version))).await;
    let (resource, _) = found.into_iter().find_map(Result::ok).unwrap();
    let budgets = kube::Api::<DynamicObject>::namespaced_with(client, &space, &resource);
    let budget = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    make(budgets.clone(), budget).await;

    let heard = Mutex::new(Vec::new());
    let watch = |text: &str| heard.lock().unwrap().push(text.to_owned());
    let late = api
        .drain(node, SHORT, &watch)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        late.starts_with("waited 2 s for pods to leave node drain-1: "),
        "{late}"
    );
    assert!(
        late.contains(&format!("{space}/web: ")) && late.contains("keep"),
        "{late}"
    );
    assert!(
        !late.contains("everywhere") && !late.contains("elsewhere"),
        "{late}"
    );
    assert_eq!(heard.lock().unwrap().len(), 1, "{heard:?}");
    assert!(pods(&api, &space).await.iter().all(|(_, ends)| !ends));
    let nodes = kube::Api::<Node>::all(api.client());
    let is_cordoned = async || {
        let spec = nodes.get(node).await.unwrap().spec.unwrap();
        spec.unschedulable == Some(true)
    };
    assert!(is_cordoned().await);

    // A machine that does not answer, and a kubelet that does not report: what a budget says is of no use.
    let silent = Drain {
        is_silent: true,
        ..SHORT
    };
    assert!(api.drain(node, silent, &|_| {}).await.is_err());
    say(&api, node, "Unknown", "").await;
    assert_eq!(api.drain(node, silent, &|_| {}).await.unwrap(), 0);
    say(&api, node, "True", "").await;
    let skip = Drain {
        skip: true,
        ..SHORT
    };
    assert_eq!(api.drain(node, skip, &|_| {}).await.unwrap(), 0);

    // It stays after all: what the drain did to it is taken back, once.
    let labels = async || api.label_and_taint(node, &[], &[]).await.unwrap();
    assert_ne!(labels().await, Effect::Unchanged);
    assert!(!is_cordoned().await);
    assert_eq!(labels().await, Effect::Unchanged);

    // Nothing holds the pod back any more, and its kubelet, which is not there, does not confirm that it has ended.
    let deleted = budgets.delete("keep", &DeleteParams::default()).await;
    deleted.unwrap();
    let late = api
        .drain(node, SHORT, &|_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(
        late.contains(&format!("pods are leaving: {space}/web")),
        "{late}"
    );
    assert!(pods(&api, &space).await.contains(&("web".into(), true)));
    say(&api, node, "Unknown", "").await;
    assert_eq!(api.drain(node, SHORT, &|_| {}).await.unwrap(), 1);

    // Whoever says so does not wait for anybody.
    make_pod(
        &api,
        &space,
        "slow",
        node,
        json!({"finalizers": ["example.org/never"]}),
    )
    .await;
    say(&api, node, "True", "").await;
    let force = Drain {
        force: true,
        ..SHORT
    };
    assert_eq!(api.drain(node, force, &|_| {}).await.unwrap(), 2);
    assert!(
        !pods(&api, &space)
            .await
            .iter()
            .any(|(name, _)| name == "web")
    );
}
