//! Every connection goes through the machine, is few, and is trusted only with reason.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, future::join_all};
use hatchery_engine::api::{Address, Api, Error, way::CONNECTIONS};
use hatchery_host::transport::local::Local;
use hatchery_pki::{AUTHORITY_LIFETIME, Authority, Leaf, Request};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    ResourceExt as _,
    api::{PostParams, WatchEvent, WatchParams},
};
use serde_json::json;
use time::OffsetDateTime;
use tokio::time::timeout;

use crate::server::{Gate, Streams, access, api, machine, namespace};

#[tokio::test]
async fn a_few_connections_are_used_again() {
    let gate = Gate::new(Streams::Here);
    let api = Api::connect(access(gate.clone()).await).unwrap();
    for _ in 0..3 {
        join_all((0..30).map(|_| api.nodes()))
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
    }
    let most = gate.most.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most} at once");
    let opened = gate.opened.load(Ordering::SeqCst);
    assert!(opened <= 6, "{opened} for 90 requests");

    let namespaces = kube::Api::<Namespace>::all(api.client());
    let found = namespaces.list(&kube::api::ListParams::default()).await;
    assert!(!found.unwrap().items.is_empty());

    drop((api, namespaces));
    let end = Instant::now() + Duration::from_secs(5);
    while gate.open.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < end, "a connection outlives its owner");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_watch_lasts_and_is_a_request_under_way() {
    let (api, namespace) = (api().await, namespace("watch").await);
    let maps = kube::Api::<ConfigMap>::namespaced(api.client(), &namespace);
    let watch = || async {
        let events = maps.watch(&WatchParams::default(), "0").await;
        events.unwrap().boxed()
    };
    let mut watches = join_all((0..CONNECTIONS).map(|_| watch())).await;
    let short = Duration::from_millis(500);
    assert!(timeout(short, api.nodes()).await.is_err(), "one too many");
    watches.pop();
    let map = serde_json::from_value(json!({"metadata": {"name": "it"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    for events in &mut watches {
        let is_it = |event: &WatchEvent<ConfigMap>| matches!(event, WatchEvent::Added(map) if map.name_any() == "it");
        while !is_it(&events.next().await.unwrap().unwrap()) {}
    }
}

#[tokio::test]
async fn where_there_is_no_way_it_is_said_at_once() {
    let api = Api::connect(access(Gate::new(Streams::Forbidden)).await).unwrap();
    let begin = Instant::now();
    let error = api.ready(Duration::from_secs(60), &|_| {}).await;
    let error = error.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(10), "asked in vain");
    assert!(error.to_string().contains("forbids forwarding"), "{error}");
    assert!(error.remedy().unwrap().contains("AllowTcpForwarding"));
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let real = access(Gate::new(Streams::Here)).await;
    let mut other_name = real.clone();
    other_name.server.host = "api.example.org".into();
    let now = OffsetDateTime::now_utc();
    let authority = Authority::new("other", AUTHORITY_LIFETIME, now).unwrap();
    let mut other_authority = real.clone();
    other_authority.authority_pem = authority.cert_pem().into();
    for (access, words) in [
        (other_name, "api.example.org"),
        (other_authority, "UnknownIssuer"),
    ] {
        let begin = Instant::now();
        let error = Api::connect(access).unwrap().nodes().await.unwrap_err();
        assert!(!error.may_pass(), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10), "asked in vain");
    }

    // Nor are we, with a certificate of somebody else.
    let request = Request::client("kubernetes-admin").in_group("system:masters");
    let mut stranger = real;
    stranger.admin = authority.issue(&request, now).unwrap();
    let error = Api::connect(stranger).unwrap().nodes().await.unwrap_err();
    assert!(!error.may_pass(), "{error}");
}

#[tokio::test]
async fn unusable_credentials_are_told_without_them() {
    let real = access(Arc::new(Local::new("m0"))).await;
    let mut no_authority = real.clone();
    no_authority.authority_pem = "nothing".into();
    let mut no_key = real.clone();
    no_key.admin = Leaf {
        key_pem: "-----BEGIN PRIVATE KEY-----\nhunter2\n".into(),
        ..real.admin.clone()
    };
    for (access, words) in [(no_authority, "authority"), (no_key, "key")] {
        assert!(!format!("{access:?}").contains("hunter2"));
        let error = Api::connect(access).unwrap_err();
        assert!(matches!(error, Error::Credentials { .. }), "{error:?}");
        let told = format!("{error} {error:?}");
        assert!(told.contains(words) && !told.contains("hunter2"), "{told}");
    }
}

#[tokio::test]
async fn silence_has_a_deadline() {
    let now = OffsetDateTime::now_utc();
    let authority = Authority::new("kubernetes", AUTHORITY_LIFETIME, now).unwrap();
    let access = hatchery_engine::api::Access {
        machine: machine(Gate::new(Streams::Silent)),
        server: Address::new("127.0.0.1", 6443),
        authority_pem: authority.cert_pem().into(),
        admin: authority.issue(&Request::client("a"), now).unwrap(),
    };
    let mut api = Api::connect(access).unwrap();
    api.retry_timeout = Duration::ZERO;
    let begin = Instant::now();
    let error = api.nodes().await.unwrap_err();
    assert!(error.may_pass(), "{error}");
    assert!(
        error.to_string().contains("did not answer within 10 s"),
        "{error}"
    );
    let took = begin.elapsed();
    let expected = Duration::from_secs(10)..Duration::from_secs(15);
    assert!(expected.contains(&took), "{took:?}");
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let shown = format!("{:?}", api().await);
    assert!(
        shown.contains("127.0.0.1:") && !shown.contains("PRIVATE"),
        "{shown}"
    );
}
