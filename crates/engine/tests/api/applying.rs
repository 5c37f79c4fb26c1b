//! Objects are made, changed and left alone, and a dry run says so before.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hatchery_engine::api::{Applied, Effect, Error, parse};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::server::{api, namespace};

fn told(applied: &[Applied]) -> Vec<String> {
    let words = applied.iter().map(|one| {
        let effect = match &one.effect {
            Effect::Created => "created".into(),
            Effect::Changed { fields } => format!("changed {}", fields.join(" ")),
            Effect::Unchanged => "unchanged".into(),
        };
        let namespace = one.namespace.as_deref().unwrap_or("-");
        format!("{} {namespace} {} {effect}", one.kind, one.name)
    });
    words.collect()
}

/// A kind, its objects and their namespace, in the least helpful order.
const NESTS: &str = "
apiVersion: birds.example.org/v1
kind: Nest
metadata: {name: oak, namespace: forest}
spec: {eggs: 3}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: map, namespace: forest}
data: {a: '1'}
---
apiVersion: v1
kind: Service
metadata: {name: song, namespace: forest}
spec: {ports: [{name: web, port: 80}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nests.birds.example.org}
spec:
  group: birds.example.org
  scope: Namespaced
  names: {kind: Nest, plural: nests, singular: nest}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: forest}
";

#[tokio::test]
async fn a_kind_its_namespace_and_its_objects_at_once() {
    let api = api().await;
    let objects = parse(NESTS).unwrap();
    let created = [
        "CustomResourceDefinition - nests.birds.example.org created",
        "Namespace - forest created",
        "Nest forest oak created",
        "ConfigMap forest map created",
        "Service forest song created",
    ];
    // Twice: the first one changed nothing.
    for _ in 0..2 {
        let would = api.would_apply(&objects, true).await.unwrap();
        assert_eq!(told(&would), created);
    }
    let begin = Instant::now();
    assert_eq!(told(&api.apply(&objects, true).await.unwrap()), created);
    println!("applied in {:?}", begin.elapsed());
    let unchanged = created.map(|line| line.replace("created", "unchanged"));
    let begin = Instant::now();
    assert_eq!(told(&api.apply(&objects, true).await.unwrap()), unchanged);
    println!("applied again in {:?}", begin.elapsed());

    let changed = NESTS.replace("eggs: 3", "eggs: 4");
    let changed = parse(&changed.replace("a: '1'", "b: '2'")).unwrap();
    let mut expected = unchanged.clone();
    expected[2] = "Nest forest oak changed spec.eggs".into();
    expected[3] = "ConfigMap forest map changed data.a data.b".into();
    assert_eq!(
        told(&api.would_apply(&changed, true).await.unwrap()),
        expected
    );
    assert_eq!(told(&api.apply(&changed, true).await.unwrap()), expected);
    assert_eq!(
        told(&api.would_apply(&changed, true).await.unwrap()),
        unchanged
    );
}

#[tokio::test]
async fn what_others_own_is_taken_by_force_only() {
    let (api, namespace) = (api().await, namespace("owners").await);
    let maps = kube::Api::<ConfigMap>::namespaced(api.client(), &namespace);
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"a": "theirs"}});
    let other = PatchParams::apply("somebody");
    maps.patch("map", &other, &Patch::Apply(&theirs))
        .await
        .unwrap();

    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map, namespace: {namespace}}}\ndata: {{a: ours}}\n"
    );
    let ours = parse(&text).unwrap();
    let same = parse(&text.replace("ours", "theirs")).unwrap();
    // That our name is added to the owners is no change.
    let applied = api.apply(&same, false).await.unwrap();
    assert_eq!(applied[0].effect, Effect::Unchanged);
    for refused in [
        api.apply(&ours, false).await,
        api.would_apply(&ours, false).await,
    ] {
        let error = refused.unwrap_err();
        assert!(!error.may_pass(), "{error}");
        let told = error.to_string();
        let begin = format!("cannot apply ConfigMap {namespace}/map: the API server says 409");
        assert!(told.starts_with(&begin), "{told}");
        assert!(
            told.contains("somebody") && told.contains(".data.a"),
            "{told}"
        );
    }
    let applied = api.apply(&ours, true).await.unwrap();
    assert!(matches!(applied[0].effect, Effect::Changed { .. }));
}

/// What is logged, by all tests here.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_refused_secret_is_not_logged() {
    let (api, namespace) = (api().await, namespace("unlogged").await);
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .init();
    // Secrets between others: what is not logged of them must not silence the rest.
    for (kind, value) in [
        ("Secret", "sparrow"),
        ("ConfigMap", "wren"),
        ("Secret", "robin"),
    ] {
        let text = format!(
            "apiVersion: v1\nkind: {kind}\nmetadata: {{name: it, namespace: {namespace}}}\ndata: {{a: [{value}]}}\n"
        );
        let refused = api.apply(&parse(&text).unwrap(), true).await;
        refused.unwrap_err();
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("wren"));
    assert!(!logged.contains("sparrow") && !logged.contains("robin"));
}

#[tokio::test]
async fn refusals_name_the_object_and_the_reason() {
    let (api, namespace) = (api().await, namespace("refused").await);
    let object = |kind: &str, rest: &str| {
        let head = format!(
            "apiVersion: v1\nkind: {kind}\nmetadata: {{name: it, namespace: {namespace}}}\n"
        );
        parse(&(head + rest)).unwrap()
    };
    let refused = async |objects: &[_]| {
        let begin = Instant::now();
        let error = api.apply(objects, true).await.unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(10), "{error}");
        assert!(!error.may_pass(), "{error}");
        error
    };

    let unknown = refused(&object("Nonsense", "")).await;
    assert!(matches!(unknown, Error::UnknownKind { .. }), "{unknown:?}");
    assert!(unknown.to_string().contains("Nonsense in v1"), "{unknown}");

    let invalid = refused(&object("Service", "spec: {ports: [{port: 99999}]}\n")).await;
    let told = invalid.to_string();
    assert!(told.contains(&format!("Service {namespace}/it")), "{told}");
    assert!(told.contains("65535"), "{told}");

    let secret = object("Secret", "stringData: {password: [hunter2]}\n");
    let withheld = refused(&secret).await;
    let told = format!("{withheld} {withheld:?}");
    assert!(
        told.contains("withheld") && !told.contains("hunter2"),
        "{told}"
    );

    let nameless = parse("apiVersion: v1\nkind: Pod\n").unwrap();
    let told = api.apply(&nameless, true).await.unwrap_err().to_string();
    assert_eq!(told, "cannot apply Pod: it has no name");

    let mut homeless = object("ConfigMap", "");
    homeless[0].metadata.namespace = Some("no-such-place".into());
    let told = api
        .would_apply(&homeless, true)
        .await
        .unwrap_err()
        .to_string();
    assert!(told.contains("no-such-place\" not found"), "{told}");
    let maps = kube::Api::<ConfigMap>::namespaced(api.client(), &namespace);
    assert!(
        maps.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}
