//! A lost connection is made again, and what was asked is asked again.

use std::{sync::Arc, time::Duration};

use hatchery_engine::api::{Api, Effect, parse};
use hatchery_host::transport::{
    faulty::{Fault, FaultyConnector},
    local::Local,
};

use crate::server::{access, namespace};

fn faulty(faults: &[Fault]) -> Arc<FaultyConnector> {
    let here = Arc::new(Local::new("m0"));
    Arc::new(FaultyConnector::new(here, faults.iter().cloned().map(Some)))
}

fn maps(namespace: &str, count: usize) -> String {
    let map = |number| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}, namespace: {namespace}}}\ndata: {{a: b}}\n---\n"
        )
    };
    (0..count).map(map).collect()
}

#[tokio::test]
async fn manifests_arrive_over_connections_that_break() {
    let namespace = namespace("lost").await;
    let faults = [
        Fault::Refuse,
        Fault::DropAfterRead(1),
        Fault::DropAfterRead(1500),
        Fault::DropAfterWritten(2500),
        Fault::DropAfterRead(20_000),
        Fault::DropAfterRead(25_000),
        Fault::DropAfterWritten(9000),
    ];
    let connector = faulty(&faults);
    let api = Api::connect(access(connector.clone()).await).unwrap();
    let objects = parse(&maps(&namespace, 80)).unwrap();
    let applied = api.apply(&objects, true).await.unwrap();
    assert_eq!(applied.len(), 80);
    assert_eq!(connector.connects(), faults.len() + 1);
    let again = api.apply(&objects, true).await.unwrap();
    assert!(again.iter().all(|one| one.effect == Effect::Unchanged));
}

#[tokio::test]
async fn the_next_request_connects_anew() {
    let connector = faulty(&[]);
    let access = access(connector.clone()).await;
    let machine = access.machine.clone();
    let mut api = Api::connect(access).unwrap();
    // Nothing is asked twice here.
    api.retry_timeout = Duration::ZERO;
    api.nodes().await.unwrap();
    for connects in 2..5 {
        machine.disconnect().await;
        // The end of a stream is noticed by its reader a moment later.
        tokio::time::sleep(Duration::from_millis(50)).await;
        api.nodes().await.unwrap();
        assert_eq!(connector.connects(), connects);
    }
}

#[tokio::test]
async fn requests_are_not_repeated_for_ever() {
    let connector = faulty(&vec![Fault::Refuse; 100]);
    let mut api = Api::connect(access(connector.clone()).await).unwrap();
    api.retry_timeout = Duration::from_millis(500);
    let error = api.nodes().await.unwrap_err();
    assert!(error.may_pass(), "{error}");
    let told = error.to_string();
    assert!(
        told.starts_with("cannot list Node: cannot reach m0"),
        "{told}"
    );
    assert!((3..10).contains(&connector.connects()));
}
