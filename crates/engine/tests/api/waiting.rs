//! Waiting ends as soon as the condition holds, or tells what it waited for.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use hatchery_engine::api::{Api, Workload, parse};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment},
    core::v1::Node,
};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::server::{api, namespace};

const LONG: Duration = Duration::from_secs(30);

pub(crate) async fn make_node(api: &Api, name: &str) {
    let node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let nodes = kube::Api::<Node>::all(api.client());
    nodes.create(&PostParams::default(), &node).await.unwrap();
}

pub(crate) async fn say(api: &Api, name: &str, status: &str, message: &str) {
    let reason = if status == "True" {
        "KubeletReady"
    } else {
        "KubeletNotReady"
    };
    let patch = json!({"status": {
        "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    }});
    let nodes = kube::Api::<Node>::all(api.client());
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

const EXPECTED: [&str; 3] = [
    "not registered",
    "says nothing yet",
    "NetworkPluginNotReady",
];

#[tokio::test]
async fn a_node_becomes_ready_and_nobody_waits_for_another() {
    let api = api().await;
    make_node(&api, "wait-1").await;
    say(&api, "wait-1", "True", "").await;
    let heard = Mutex::new(Vec::new());
    let watch = |text: &str| heard.lock().unwrap().push(text.to_owned());
    let steps = async {
        let until = async |text: &str| {
            while !heard.lock().unwrap().iter().any(|heard| heard == text) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        until(EXPECTED[0]).await;
        api.node_ready("wait-1", LONG, &|_| {}).await.unwrap();
        make_node(&api, "wait-2").await;
        until(EXPECTED[1]).await;
        let message = "network not ready: reason:NetworkPluginNotReady message:x";
        say(&api, "wait-2", "False", message).await;
        until(EXPECTED[2]).await;
        say(&api, "wait-2", "True", "").await;
        Instant::now()
    };
    let (waited, said) = tokio::join!(api.node_ready("wait-2", LONG, &watch), steps);
    waited.unwrap();
    assert!(
        said.elapsed() < Duration::from_secs(5),
        "{:?}",
        said.elapsed()
    );
    assert_eq!(heard.into_inner().unwrap(), EXPECTED);
}

#[tokio::test]
async fn a_node_is_ready_now_or_it_is_not() {
    let (api, node) = (api().await, "now-1");
    assert!(!api.node_ready_now(node).await.unwrap());
    make_node(&api, node).await;
    assert!(!api.node_ready_now(node).await.unwrap());
    for (status, is_ready) in [
        ("True", true),
        ("Unknown", false),
        ("True", true),
        ("False", false),
    ] {
        say(&api, node, status, "").await;
        assert_eq!(
            api.node_ready_now(node).await.unwrap(),
            is_ready,
            "{status}"
        );
    }
}

#[tokio::test]
async fn the_deadline_tells_what_is_missing() {
    let (api, begin) = (api().await, Instant::now());
    let short = Duration::from_secs(1);
    let error = api.node_ready("nobody", short, &|_| {}).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "waited 1 s for node nobody to be Ready: not registered"
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn workloads_are_rolled_out() {
    let (api, namespace) = (api().await, namespace("rollout").await);
    let text = |kind: &str| {
        format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: it, namespace: {namespace}}}\nspec:\n  \
             selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    \
             spec: {{containers: [{{name: c, image: i}}]}}\n"
        )
    };
    let short = Duration::from_millis(200);
    let judged = async |kind| {
        let result = api
            .rolled_out(kind, &namespace, "it", &[], short, &|_| {})
            .await;
        result.map_err(|error| error.to_string())
    };
    let told = judged(Workload::StatefulSet).await.unwrap_err();
    assert!(
        told.ends_with(&format!("StatefulSet {namespace}/it is not there")),
        "{told}"
    );

    let objects = [text("Deployment"), text("DaemonSet")].join("---\n");
    api.apply(&parse(&objects).unwrap(), true).await.unwrap();
    for kind in [Workload::Deployment, Workload::DaemonSet] {
        let told = judged(kind).await.unwrap_err();
        assert!(
            told.ends_with("its controller has not seen it yet"),
            "{told}"
        );
    }
    let merge = PatchParams::default();
    let status = json!({"status": {
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1,
    }});
    kube::Api::<Deployment>::namespaced(api.client(), &namespace)
        .patch_status("it", &merge, &Patch::Merge(&status))
        .await
        .unwrap();
    let status = json!({"status": {
        "observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1,
        "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 1,
    }});
    kube::Api::<DaemonSet>::namespaced(api.client(), &namespace)
        .patch_status("it", &merge, &Patch::Merge(&status))
        .await
        .unwrap();
    judged(Workload::Deployment).await.unwrap();
    let told = judged(Workload::DaemonSet).await.unwrap_err();
    assert!(told.ends_with("1 of 2 pods are available"), "{told}");
}

#[tokio::test]
async fn the_server_is_ready() {
    let api = api().await;
    let watch = |text: &str| println!("{text}");
    api.ready(LONG, &watch).await.unwrap();
}
