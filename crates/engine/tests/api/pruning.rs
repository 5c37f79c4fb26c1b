//! What addons no longer bring goes, and nothing else.

use hatchery_engine::api::{ADDON, Api, ObjectRef, parse};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::server::{api, namespace};

fn map(name: &str, namespace: &str, label: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{{label}}}}}\n"
    )
}

async fn apply(api: &Api, text: &str) -> Vec<ObjectRef> {
    let objects = parse(text).unwrap();
    let references: Vec<_> = objects.iter().filter_map(ObjectRef::to).collect();
    api.list_addon_objects(&references).await.unwrap();
    api.apply(&objects, true).await.unwrap();
    references
}

#[tokio::test]
async fn objects_of_dropped_addons_go() {
    let api = api().await;
    let space = namespace("prune").await;
    let ours = format!("{ADDON}: web");
    let names = async || {
        let maps = kube::Api::<ConfigMap>::namespaced(api.client(), &space);
        let maps = maps.list(&Default::default()).await.unwrap();
        let names = maps.items.into_iter().filter_map(|map| map.metadata.name);
        names
            .filter(|name| name != "kube-root-ca.crt")
            .collect::<Vec<_>>()
    };
    let own = format!("{space}-own");
    let text = [
        map("one", &space, &ours),
        map("two", &space, &ours),
        map("taken", &space, &ours),
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}, labels: {{{ours}}}}}\n"),
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {space}, labels: {{{ours}}}}}\n"
        ),
    ];
    let all = apply(&api, &text.join("---\n")).await;
    assert_eq!(api.would_prune_addons(&all).await.unwrap(), []);
    assert_eq!(api.prune_addons(&all).await.unwrap(), []);
    // Somebody else has one of them now.
    let maps = kube::Api::<ConfigMap>::namespaced(api.client(), &space);
    let patch = json!({"metadata": {"labels": {ADDON: null}}});
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
    maps.patch("taken", &parameters, &patch).await.unwrap();

    let left = [all[0].clone()];
    let would = api.would_prune_addons(&left).await.unwrap();
    let told: Vec<_> = would.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(told, [&space, "two"]);
    assert_eq!(names().await, ["one", "taken", "two"]);
    assert_eq!(api.prune_addons(&left).await.unwrap(), would);
    assert_eq!(names().await, ["one", "taken"]);
    // A namespace may hold what is somebody else's.
    let spaces = kube::Api::<Namespace>::all(api.client());
    assert!(
        spaces
            .get(&own)
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
    assert_eq!(api.prune_addons(&left).await.unwrap(), []);

    // The same object in other words is still wanted.
    let named = apply(&api, &map("spoken", &space, &ours)).await;
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {space}-role, labels: {{{ours}}}}}\n"
    );
    let mut others = [named, apply(&api, &role).await].concat();
    others[0].api_version = "v2".into();
    others[1].namespace = Some("anywhere".into());
    assert_eq!(
        api.would_prune_addons(&others).await.unwrap(),
        [left[0].clone()]
    );
    assert_eq!(api.prune_addons(&others).await.unwrap(), [left[0].clone()]);
    assert_eq!(names().await, ["spoken", "taken"]);
}
