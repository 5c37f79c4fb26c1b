//! Every file that is rendered: in full for the oldest Kubernetes, and for later ones what differs from the one before.

use std::fmt::Write as _;

use hatchery_host::facts::Facts;

use super::{
    ground,
    text::{self, Rendered},
};

const ONE: &str = "cluster-id: one
runtime: containerd
masters: [{name: m0, ip: 192.168.0.1}]
workers: [{name: m0, ip: 192.168.0.1}]
loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}
network: {plugin: flannel}
registry-mirrors: [mirror.example.org]
insecure-registries: ['registry.example.org:5000']
";

const VERSIONS: [&str; 5] = ["1.20", "1.24", "1.28", "1.34", "1.37"];

fn files(cluster: &str, version: &str, facts: &Facts) -> Vec<Rendered> {
    let plan = ground::plan(&ground::cluster(cluster), &ground::versions(version), facts);
    let mut files = text::rendered(&plan);
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// A flannel that we did not write has its own version; its text is not what matters here.
fn interesting(file: &Rendered) -> bool {
    file.name != "manifest pod network"
}

#[test]
fn for_each_kubernetes() {
    let facts = ground::real_machine();
    let mut before = files(ONE, VERSIONS[0], &facts);
    let whole: String = before
        .iter()
        .filter(|file| interesting(file))
        .map(|file| format!("=== {}\n{}\n", file.name, file.text))
        .collect();
    insta::assert_snapshot!(format!("kubernetes-{}", VERSIONS[0]), whole);
    for version in &VERSIONS[1..] {
        let now = files(ONE, version, &facts);
        insta::assert_snapshot!(format!("kubernetes-{version}"), difference(&before, &now));
        before = now;
    }
}

#[test]
fn for_a_machine_that_is_a_container() {
    let real = files(ONE, "1.37", &ground::real_machine());
    let container = files(ONE, "1.37", &ground::sandbox_machine());
    insta::assert_snapshot!(difference(&real, &container));
}

#[test]
fn for_dns_in_pods() {
    let facts = ground::real_machine();
    let pods =
        format!("{ONE}service: {{dns: {{corednstype: pod, imageversion: 1.8.4, replicas: 3}}}}\n");
    let (service, pods) = (files(ONE, "1.37", &facts), files(&pods, "1.37", &facts));
    insta::assert_snapshot!(difference(&service, &pods));
}

#[test]
fn for_both_families_of_addresses() {
    let facts = ground::real_machine();
    let dual = ONE.replace(
        "network: {plugin: flannel}",
        "service: {cidr: '10.32.0.0/16,fd00:1::/112'}\n\
         network: {plugin: flannel, podcidr: '10.244.0.0/16,fd00:2::/56'}",
    );
    let (single, dual) = (files(ONE, "1.37", &facts), files(&dual, "1.37", &facts));
    insta::assert_snapshot!(difference(&single, &dual));
}

/// Files that are new, gone or changed, with the lines that are.
fn difference(before: &[Rendered], now: &[Rendered]) -> String {
    let mut text = String::new();
    for old in before {
        if now.iter().all(|new| new.name != old.name) {
            let _ = writeln!(text, "=== {} is gone\n", old.name);
        }
    }
    for new in now {
        match before.iter().find(|old| old.name == new.name) {
            None => {
                let _ = writeln!(text, "=== {} is new\n{}", new.name, new.text);
            }
            Some(old) if old.text == new.text => {}
            Some(old) => {
                let _ = writeln!(text, "=== {}\n{}", new.name, lines(&old.text, &new.text));
            }
        }
    }
    text
}

/// Lines that only one of two texts has, by their longest common subsequence.
fn lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(text, "- {}", old[i]);
            i += 1;
        } else {
            let _ = writeln!(text, "+ {}", new[j]);
            j += 1;
        }
    }
    text
}

#[test]
fn differences_are_told_by_line() {
    assert_eq!(lines("a\nb\nc", "a\nx\nc\nd"), "- b\n+ x\n+ d\n");
}
