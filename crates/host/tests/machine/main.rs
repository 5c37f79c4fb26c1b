//! Real machines: facts, a task of two hundred operations, the same task again, and back to what they were.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

mod debian;
mod interruptions;
mod lab;
mod refusals;
mod services;
mod work;

use std::{sync::Mutex, time::Duration};

use hatchery_host::{
    machine::{Difference, Event},
    operation::PackageName,
};
use hatchery_sandbox::settings::{RequestedSettings, Sudo, System};

use hatchery_sandbox::snapshot::Snapshot;

use crate::lab::Bench;

async fn there_and_back(name: &str, settings: RequestedSettings) {
    let bench = Bench::new(name, 1, settings).await;
    let machine = bench.machine(0);
    let node = &bench.lab.machines[0];
    bench.furnish(node).await;
    let before = Snapshot::take(node).await.unwrap();

    let (facts, managed) = machine.facts(Duration::from_secs(30)).await.unwrap();
    assert_eq!(facts.names.hostname.as_deref(), Some(node.name.as_str()));
    assert_eq!(managed.cluster, None);

    let task = work::two_hundred(bench.system(), "first").await;
    assert_eq!(task.operations().len(), 200);
    let difference = machine.look(&task).await.unwrap().differences;
    let packages = ["kubernetes-node", "no-such-thing"].map(|name| PackageName::new(name).unwrap());
    let offered = machine.offered(&packages, Duration::from_secs(60)).await;
    let offered: Vec<_> = offered.unwrap().into_iter().collect();
    assert_eq!(offered.len(), 1, "{offered:?}");
    assert_eq!(offered[0].0, packages[0]);
    assert!(offered[0].1.starts_with("1.37.0"), "{offered:?}");
    let expected = difference
        .iter()
        .filter(|o| **o != Difference::Unchanged)
        .count();
    Snapshot::take(node)
        .await
        .unwrap()
        .assert_same(&before, "facts and looking change nothing");

    let steps = Mutex::new(0);
    let count = |event: Event<'_>| {
        if let Event::Step { .. } = event {
            *steps.lock().unwrap() += 1;
        }
    };
    let report = machine.apply(&task, &count).await.unwrap();
    // What only a task's own packages and modules make possible is seen when it is done.
    assert_eq!(report.changes(), expected, "as foreseen");
    assert!(report.changes() > 190, "{}", report.changes());
    assert!(*steps.lock().unwrap() >= report.changes());
    eprintln!(
        "{name}: {} changes, {} bytes sent",
        report.changes(),
        report.bytes_sent
    );

    let again = machine.apply(&task, &|_| ()).await.unwrap();
    assert_eq!((again.changes(), again.round_trips), (0, 1));
    assert!(
        again.bytes_sent < 150_000,
        "only the question: {}",
        again.bytes_sent
    );
    assert!(machine.look(&task).await.unwrap().is_unchanged());
    let (_, managed) = machine.facts(Duration::from_secs(30)).await.unwrap();
    assert_eq!(managed.cluster, Some(("c1".into(), "one".into())));
    assert!(managed.resources.len() > 190, "{}", managed.resources.len());

    let other = machine
        .apply(&work::two_hundred(bench.system(), "second").await, &|_| ())
        .await
        .unwrap();
    assert!(other.changes() > 100, "{}", other.changes());

    let undone = machine.undo(&[], Duration::from_secs(120)).await.unwrap();
    assert!(undone.left.is_empty(), "{:?}", undone.left);
    assert!(undone.kept.is_empty(), "{:?}", undone.kept);
    Snapshot::take(node)
        .await
        .unwrap()
        .assert_same(&before, "undone");
    machine.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn debian_as_root() {
    there_and_back(
        "t-there",
        RequestedSettings {
            system: Some(System::Debian),
            ..RequestedSettings::default()
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rpm_with_sudo_and_a_password_through_a_bastion() {
    let settings = RequestedSettings {
        system: Some(System::Rpm),
        user: Some("ops".into()),
        sudo: Some(Sudo::Password),
        bastion: Some(true),
    };
    there_and_back("t-back", settings).await;
}
