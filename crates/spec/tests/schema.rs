//! The schema accepts every file that we show, refuses what the reader refuses for its keys and
//! kinds, and is the one that lies in `docs/`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::path::{Path, PathBuf};

use hatchery_spec::schema::schema;
use hatchery_spec::template::{Machines, Options, render};
use hatchery_spec::value::{Name, Secret};
use jsonschema::Validator;
use serde_json::Value;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn validator() -> Validator {
    let schema = schema();
    jsonschema::draft202012::meta::validate(&schema).expect("a schema of the draft");
    jsonschema::draft202012::new(&schema).unwrap()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn complaints(validator: &Validator, text: &str) -> Vec<String> {
    let value = yaml(text);
    let errors = validator.iter_errors(&value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn every_example_is_valid() {
    let validator = validator();
    let mut seen = 0;
    for entry in std::fs::read_dir(top().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(complaints(&validator, &text), [""; 0], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 5, "{seen} examples");
}

#[test]
fn every_template_is_valid() {
    let validator = validator();
    for classic in [false, true] {
        for password in [None, Some(Secret::new("123456"))] {
            let text = render(&Options {
                name: Name::parse("k8s-cluster").unwrap(),
                user: "root".to_owned(),
                password,
                machines: Machines::new(Vec::new(), Vec::new(), Vec::new(), None).unwrap(),
                classic,
            });
            assert_eq!(complaints(&validator, &text), [""; 0]);
        }
    }
}

const SMALL: &str = "cluster-id: a\nmasters: [{ip: 10.0.0.1}]\n";

#[test]
fn what_the_reader_takes_as_text_is_valid() {
    let validator = validator();
    for good in [
        "",
        "password: 123456",
        "kubernetes-version: 1.28",
        "kubernetes-version: v1.28.3",
        "runtime: iSulad",
        "external-ca: yes",
        "workers:",
        "bastion: root@jump:22",
        "bastion: [a, b]",
        "service: {cidr: '10.32.0.0/16,fd00::/108', dns: {replicas: 2}}",
        "install: {package-source: {srcpath: {x86_64: a.tar.gz}}}",
        "loadbalance: {ip: 'fd00::1', arch: arm64, bind-port: 8443}",
        "config-extra-args: [{name: etcd, extra-args: {ETCD_X: 5}}]",
        "registry-mirrors: docker.io",
        "registry-mirrors: {quay.io: [https://a.example.org], docker.io: b}",
    ] {
        let said = complaints(&validator, &format!("{SMALL}{good}\n"));
        assert_eq!(said, [""; 0], "{good}");
    }
}

#[test]
fn wrong_keys_and_kinds_are_not() {
    let validator = validator();
    for bad in [
        "colour: red",
        "network: {podcdir: 10.244.0.0/16}",
        "workers: [{name: a}]",
        "workers: [{ip: 10.0.0.2, adress: x}]",
        "workers: 10.0.0.2",
        "runtime: dokcer",
        "apiserver-timeout: 120",
        "external-ca: maybe",
        "service: {cidr: 10.32.0.0}",
        "install: {etcd: [{name: etcd, type: pkgs}]}",
        "install: {package-source: {srcpath: {mips: /a}}}",
        "loadbalance: {ip: 10.0.0.5, bind-port: 99999}",
        "addons: [{type: file}]",
        "open-ports: {worker: [{port: 1, protocol: sctp}]}",
        "kube-proxy: {mode: userspace}",
        "external-ca-path: here",
    ] {
        let said = complaints(&validator, &format!("{SMALL}{bad}\n"));
        assert_eq!(said.len(), 1, "{bad}: {said:?}");
    }
    assert_eq!(complaints(&validator, "cluster-id: a").len(), 1);
    assert_eq!(
        complaints(&validator, "cluster-id: a\nmasters: []").len(),
        1
    );
    let mistakes = include_str!("files/ten-mistakes.yaml");
    assert!(complaints(&validator, mistakes).len() >= 6);
}

#[test]
fn the_schema_in_docs_is_fresh() {
    let path = top().join("docs/deploy-file.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "docs/deploy-file.schema.json is stale: run UPDATE_DOCS=1 cargo test -p hatchery-spec"
    );
}
