//! The samples in `examples/` are read without complaint, and the manual's as its reader would expect.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::path::Path;

use hatchery_spec::cluster::{Cluster, Dialect, Item, PackageList};
use hatchery_spec::reading::{Purpose, Reading, read};
use hatchery_spec::source::Input;

fn example(name: &str) -> Cluster {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    let bytes = std::fs::read(path).unwrap();
    let reading = read(Input::private(name, &bytes));
    let said = reading.diagnostics.render(false);
    assert!(reading.diagnostics.is_empty(), "{said}");
    reading.cluster.expect("a cluster, since nothing is wrong")
}

fn snapshot(name: &str) {
    let text = serde_json::to_string_pretty(&example(&format!("{name}.yaml"))).unwrap();
    insta::assert_snapshot!(name, text);
}

#[test]
fn classic() {
    snapshot("classic");
    let cluster = example("classic.yaml");
    assert_eq!(cluster.dialect, Dialect::Classic);
    // Every role's name becomes a host name, and one address is one machine.
    assert!(
        cluster
            .machines()
            .iter()
            .all(|machine| machine.set_hostname)
    );
    assert_eq!(cluster.machines().len(), 5);
    assert_eq!(cluster.first_master().name.as_str(), "test0");
    assert_eq!(cluster.endpoint.to_string(), "192.168.0.5:8443");
    // Only what is listed is installed.
    let lists: Vec<_> = cluster.packages.lists.keys().copied().collect();
    assert_eq!(
        lists,
        [
            PackageList::KubernetesMaster,
            PackageList::KubernetesWorker,
            PackageList::Etcd,
            PackageList::Loadbalance
        ]
    );
    let addons = cluster.packages.lists[&PackageList::KubernetesMaster].last();
    assert!(matches!(addons, Some(Item::Binary { name, destination })
        if name == "addons" && destination.as_str() == "/etc/kubernetes"));
}

#[test]
fn centos() {
    snapshot("centos");
    let cluster = example("centos.yaml");
    assert!(
        cluster
            .machines()
            .iter()
            .all(|machine| !machine.set_hostname)
    );
}

#[test]
fn openeuler() {
    snapshot("openeuler");
}

#[test]
fn online() {
    snapshot("online");
    let cluster = example("online.yaml");
    let container = &cluster.packages.lists[&PackageList::Container];
    let expected = Item::Repo {
        name: "iSulad".to_owned(),
    };
    assert_eq!(container, &[expected]);
}

#[test]
fn offline() {
    snapshot("offline");
}

fn manual() -> Reading {
    let bytes = include_bytes!("files/manual-sample.yaml");
    read(Input::private("deploy.yaml", bytes))
}

#[test]
fn the_manual_as_printed_has_three_mistakes() {
    let reading = manual();
    assert!(reading.cluster.is_none());
    let found: Vec<_> = reading
        .diagnostics
        .sorted()
        .iter()
        .map(|one| {
            (
                one.code,
                reading.diagnostics.place(one.span).unwrap().start.line,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("slash-comment", 1),
            ("example-password", 3),
            ("master-not-worker", 6),
            ("duplicate-name", 10),
            ("endpoint", 43),
        ]
    );
    assert_eq!(reading.diagnostics.errors(), 3);
    insta::assert_snapshot!("manual", reading.diagnostics.render(false));
}

#[test]
fn files_that_a_file_names_are_told_with_their_places() {
    let mut reading = manual();
    let archives: Vec<_> = reading
        .references
        .iter()
        .filter(|one| matches!(one.purpose, Purpose::Archive(_)))
        .cloned()
        .collect();
    assert_eq!(archives.len(), 2);
    let mut diagnostics = std::mem::take(&mut reading.diagnostics);
    diagnostics.push(archives[0].unusable("there is no such file"));
    let text = diagnostics.render(false);
    assert!(
        text.contains("armsrc: /root/rpms/pacakges-arm.tar.gz"),
        "{text}"
    );
}
