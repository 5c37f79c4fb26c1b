//! Wrong files: every mistake is told, each at its place, with a remedy, and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use hatchery_spec::reading::{Reading, read};
use hatchery_spec::source::Input;

#[path = "mistakes/networks.rs"]
mod networks;
#[path = "mistakes/packages.rs"]
mod packages;

/// A file in which all is well; tests change a line of it.
const GOOD: &str = "\
cluster-id: demo
username: root
private-key-path: ~/.ssh/id
masters:
- {name: m0, ip: 192.168.0.1, port: 22, arch: amd64}
workers:
- {name: m0, ip: 192.168.0.1, port: 22, arch: amd64}
- {name: w0, ip: 192.168.0.2, port: 22, arch: amd64}
";

fn reading(text: &str) -> Reading {
    let reading = read(Input {
        name: "deploy.yaml",
        bytes: text.as_bytes(),
        others_can_read: true,
    });
    assert_eq!(reading.cluster.is_none(), reading.diagnostics.has_errors());
    for one in reading.diagnostics.sorted() {
        assert!(one.remedy.is_some(), "{} has no remedy", one.code);
    }
    reading
}

/// The codes with line and column.
fn found(text: &str) -> Vec<(String, usize, usize)> {
    let reading = reading(text);
    let all = &reading.diagnostics;
    all.sorted()
        .iter()
        .map(|one| {
            let start = all.place(one.span).unwrap().start;
            (one.code.to_owned(), start.line, start.column)
        })
        .collect()
}

/// The only thing wrong with the good file and these lines, and its place among these lines.
#[track_caller]
fn only(added: &str) -> (String, usize, usize) {
    let all = found(&format!("{GOOD}{added}"));
    match &all[..] {
        [(code, line, column)] => (code.clone(), line.saturating_sub(8), *column),
        _ => panic!(
            "{added}: {all:?}\n{}",
            reading(&format!("{GOOD}{added}")).diagnostics.render(false)
        ),
    }
}

#[track_caller]
fn assert_only(added: &str, code: &str, line: usize, column: usize) {
    assert_eq!(only(added), (code.to_owned(), line, column), "{added}");
}

#[track_caller]
fn assert_fine(added: &str) {
    let reading = reading(&format!("{GOOD}{added}"));
    assert!(
        reading.diagnostics.is_empty(),
        "{}",
        reading.diagnostics.render(false)
    );
}

#[test]
fn ten_mistakes_at_once() {
    let text = include_str!("files/ten-mistakes.yaml");
    let reading = reading(text);
    assert_eq!(reading.diagnostics.errors(), 10);
    assert_eq!(reading.diagnostics.warnings(), 0);
    insta::assert_snapshot!("ten-mistakes-text", reading.diagnostics.render(false));
    let json = serde_json::to_string_pretty(&reading.diagnostics).unwrap();
    insta::assert_snapshot!("ten-mistakes-json", json);
}

#[test]
fn an_object_of_kubernetes_is_no_deploy_file() {
    let all = found("apiVersion: v1\nkind: Pod\nmetadata: {}\n");
    assert_eq!(all, [("kubernetes-object".into(), 1, 1)]);
}

#[test]
fn the_good_file_is_good() {
    assert_fine("");
}

#[test]
fn single_values() {
    assert_only("dns-domain: Cluster_Local\n", "bad-name", 1, 13);
    assert_only("kubernetes-version: 1.10\n", "bad-version", 1, 21);
    assert_only("apiserver-timeout: 120\n", "bad-duration", 1, 20);
    assert_only("apiserver-endpoint: 192.168.0.1\n", "bad-endpoint", 1, 21);
    assert_only("etcd-external: true\n", "unsupported", 1, 16);
    assert_only("etcd-external: maybe\n", "bad-boolean", 1, 16);
    assert_only("etcd-token: a b\n", "bad-token", 1, 13);
    assert_only("network-plugin: kubenet\n", "unsupported", 1, 17);
    assert_only("cni-bin-dir: /a, b\n", "bad-path", 1, 14);
    assert_only("external-ca: true\n", "missing-key", 1, 14);
    assert_only("external-ca-path: opt\n", "bad-path", 1, 19);
    assert_only("runtime: podman\n", "bad-runtime", 1, 10);
    assert_only("runtime-endpoint: tcp://1.2.3.4\n", "bad-socket", 1, 19);
    assert_only("pause-image: http://x\n", "bad-image", 1, 14);
    assert_only("registry-mirrors: ['a b']\n", "bad-registry", 1, 20);
    assert_only("dns-vip: 10.32.0\n", "bad-address", 1, 10);
    assert_only("bastion: 'u@'\n", "bad-bastion", 1, 10);
    assert_only("bastion: ['u@h', x:0]\n", "bad-bastion", 1, 18);
    assert_only("password-env: A-B\n", "bad-variable", 1, 15);
    assert_only("password-file: rel\n", "bad-path", 1, 16);
    assert_only("kube-proxy: {mode: ebpf}\n", "bad-mode", 1, 20);
    assert_only(
        "service: {dns: {corednstype: pods}}\n",
        "bad-coredns-type",
        1,
        30,
    );
    assert_only("service: {dns: {replicas: -1}}\n", "bad-number", 1, 27);
    assert_only(
        "service: {dns: {imageversion: 'a:b'}}\n",
        "bad-image-version",
        1,
        31,
    );
    assert_only(
        "apiserver-cert-sans: {dnsnames: [a_b], ips: []}\n",
        "bad-name",
        1,
        34,
    );
    assert_only("apiserver-cert-sans: {ips: [host]}\n", "bad-address", 1, 29);
}

#[test]
fn kinds_of_values() {
    assert_only("etcds: yes\n", "wrong-kind", 1, 8);
    assert_only("service: [1]\n", "wrong-kind", 1, 10);
    assert_only("dns-domain: [a]\n", "wrong-kind", 1, 13);
    assert_only("install: {etcd: {name: a}}\n", "wrong-kind", 1, 17);
    assert_eq!(found("- a\n- b\n")[0].0, "wrong-kind");
}

#[test]
fn unknown_keys() {
    assert_only("dns-domian: a\n", "unknown-key", 1, 1);
    assert_only("service: {cdir: 10.0.0.0/16}\n", "unknown-key", 1, 11);
    assert_only("open-ports: {mastre: []}\n", "unknown-key", 1, 14);
    assert_only("install: {etcds: []}\n", "unknown-key", 1, 11);
    assert_only("install: {addition: {node: []}}\n", "unknown-key", 1, 22);
    let remedy = |added: &str| {
        let reading = reading(&format!("{GOOD}{added}"));
        reading.diagnostics.sorted()[0].remedy.clone().unwrap()
    };
    assert_eq!(remedy("dns_domain: a\n"), "did you mean `dns-domain`?");
    assert_eq!(remedy("loadbalancer: {}\n"), "did you mean `loadbalance`?");
}

#[test]
fn machines() {
    let with = |from: &str, to: &str| found(&GOOD.replacen(from, to, 1));
    assert_eq!(
        with("ip: 192.168.0.1", "ip: 192.168.0"),
        [("bad-address".into(), 5, 18)]
    );
    assert_eq!(with("name: w0", "name: w_0"), [("bad-name".into(), 8, 10)]);
    assert_eq!(
        with("name: w0", "name: m0"),
        [("duplicate-name".into(), 8, 10)]
    );
    assert_eq!(
        with("ip: 192.168.0.2, port: 22", "ip: 192.168.0.2, port: 0"),
        [("bad-port".into(), 8, 37)]
    );
    assert_eq!(
        with(
            "ip: 192.168.0.2, port: 22, arch: amd64",
            "ip: 192.168.0.2, arch: sparc"
        ),
        [("bad-arch".into(), 8, 37)]
    );
    assert_eq!(
        with("ip: 192.168.0.2, ", ""),
        [("missing-key".into(), 8, 10)]
    );
    assert_eq!(
        with("name: w0, ip: 192.168.0.2", "name: m0, ip: 192.168.0.1"),
        [("duplicate-host".into(), 8, 18)]
    );
    assert_eq!(
        with("name: m0", "name: other"),
        [("host-mismatch".into(), 7, 10)]
    );
    assert_eq!(
        with("arch: amd64}", "arch: arm64}"),
        [("host-mismatch".into(), 7, 47)]
    );
    assert_eq!(
        with("arch: amd64}", "arch: amd64, host-key: x}"),
        [("bad-host-key".into(), 5, 64)]
    );
    assert_eq!(
        with("arch: amd64}", "arch: amd64, labels: {a: b c}}"),
        [("bad-label".into(), 5, 63)]
    );
    assert_eq!(
        with("arch: amd64}", "arch: amd64, taints: [a=b]}"),
        [("bad-taint".into(), 5, 63)]
    );
    assert_eq!(
        with("cluster-id: demo\n", ""),
        [("missing-key".into(), 1, 1)]
    );
    assert_eq!(found("cluster-id: a\n"), [("missing-key".into(), 1, 1)]);
    assert_eq!(found("").len(), 2);
}

#[test]
fn doubtful_machines() {
    assert_only(
        "etcds: [{name: m0, ip: 192.168.0.1}, {name: w0, ip: 192.168.0.2}]\n",
        "even-etcd",
        1,
        53,
    );
    assert_fine("etcds: [{ip: 192.168.0.1}]\n");
    assert_only(
        "etcds: [{name: e0, ip: 192.168.0.9, labels: {a: b}}]\n",
        "unused-key",
        1,
        45,
    );
    let alone = GOOD.replace(
        "- {name: m0, ip: 192.168.0.1, port: 22, arch: amd64}\n- {name: w0",
        "- {name: w0",
    );
    assert_eq!(found(&alone), [("master-not-worker".into(), 5, 18)]);
    let none = GOOD.split("workers").next().unwrap();
    assert_eq!(found(none), [("no-workers".into(), 5, 18)]);
    assert_only("password: s3cret\n", "readable-password", 1, 11);
    let both = found(&format!("{GOOD}password: 123456\n"));
    assert_eq!(both[0].0, "example-password");
    assert_eq!(both.len(), 2);
}

#[test]
fn a_comment_glued_to_a_value_is_explained() {
    let reading = reading(&format!("{GOOD}dns-domain: a//b\n"));
    let remedy = reading.diagnostics.sorted()[0].remedy.clone().unwrap();
    assert!(remedy.contains("instead of //"), "{remedy}");
}

#[test]
fn arguments() {
    let with = |name: &str, args: &str| {
        format!("config-extra-args:\n- name: {name}\n  extra-args: {args}\n")
    };
    assert_fine(&with("kubelet", "{--v: 2}"));
    assert_fine(&with("etcd", "{ETCD_DEBUG: true}"));
    assert_only(&with("kubelet", "{v: 2}"), "bad-argument", 3, 16);
    assert_only(&with("etcd", "{--debug: true}"), "bad-argument", 3, 16);
    assert_only(&with("kube-api-server", "{--v: 2}"), "bad-component", 2, 9);
    assert_only(
        "config-extra-args: [{extra-args: {--v: 2}}]\n",
        "missing-key",
        1,
        21,
    );
    assert_only(
        &(with("kubelet", "{--v: 2}") + "- name: kubelet\n"),
        "said-twice",
        4,
        9,
    );
}

#[test]
fn the_same_said_twice() {
    assert_only("nodes: []\n", "said-twice", 1, 1);
    assert_only("packages: {}\npacakges: {}\n", "said-twice", 2, 1);
    assert_only(
        "network: {plugin: a, pluginargs: {}, plugin-args: {}}\n",
        "said-twice",
        1,
        38,
    );
    assert_only("open-ports: {node: [], worker: []}\n", "said-twice", 1, 24);
    assert_only(
        "package-src: {x86src: /a}\ninstall: {package-source: {srcpath: {amd64: /a}}}\n",
        "said-twice",
        2,
        11,
    );
    assert_only(
        "packages: {etcd: [{name: a, type: repo}]}\ninstall: {etcd: [{name: a, type: repo}]}\n",
        "said-twice",
        2,
        11,
    );
    assert_only("password-env: A\npassword-file: /b\n", "said-twice", 2, 1);
    assert_only("runtime: docker\nruntime: isulad\n", "duplicate-key", 2, 1);
}

#[test]
fn mirrors_that_no_runtime_would_ask() {
    assert_fine(
        "runtime: containerd\nregistry-mirrors: {quay.io: [https://a.example.org], 'b:5000': c.example.org}\n",
    );
    assert_fine("runtime: containerd\nregistry-mirrors: [a.example.org]\n");
    assert_fine("registry-mirrors: {docker.io: [a.example.org]}\n");
    assert_fine("registry-mirrors: [a.example.org]\npause-image: mirrorgcrio/pause:3.2\n");
    // docker knows mirrors of docker.io only, and the usual pause image is in k8s.gcr.io.
    assert_only(
        "registry-mirrors: [a.example.org]\n",
        "mirror-unused",
        1,
        20,
    );
    assert_only(
        "registry-mirrors: {quay.io: [a, b]}\n",
        "unsupported",
        1,
        20,
    );
    assert_only(
        "runtime: isulad\nregistry-mirrors: {k8s.gcr.io: [a.example.org]}\n",
        "unsupported",
        2,
        20,
    );
    let named = "runtime: containerd\nregistry-mirrors: {'https://quay.io': [a]}\n";
    assert_only(named, "bad-registry", 2, 20);
    let wrong = "runtime: containerd\nregistry-mirrors: {quay.io: ['a b']}\n";
    assert_only(wrong, "bad-registry", 2, 30);
}

#[test]
fn arguments_of_plugins_that_nobody_reads() {
    assert_fine(
        "network: {plugin: calico, plugin-args: {NetworkYamlPath: /etc/kubernetes/c.yaml}}\n",
    );
    assert_only(
        "network: {plugin: calico, pluginargs: {NetworkYamlPath: /c.yaml, ipip: always}}\n",
        "unsupported",
        1,
        66,
    );
}

#[test]
fn versions_and_runtimes() {
    assert_only(
        "kubernetes-version: 1.24.0\nruntime: docker\n",
        "runtime-gone",
        2,
        10,
    );
    assert_only("kubernetes-version: 1.24.0\n", "runtime-gone", 1, 21);
    assert!(
        reading(&format!("{GOOD}kubernetes-version: 1.24.0\n"))
            .cluster
            .is_none()
    );
    let old = "kubernetes-version: 1.20\nruntime: containerd\n";
    assert_only(
        &format!("{old}containerd-version: 2.1\n"),
        "version-mismatch",
        3,
        21,
    );
    assert_fine(&format!("{old}containerd-version: 1.7\n"));
    assert_only(
        &format!("{old}etcd-version: 3.3\n"),
        "version-mismatch",
        3,
        15,
    );
    assert_fine("kubernetes-version: 1.23.9\n");
    assert_fine(
        "kubernetes-version: 1.28\ninstall: {container: [{name: 'docker-ce,cri-dockerd', type: repo}]}\n",
    );
    assert_fine(
        "kubernetes-version: 1.28\nruntime: docker\nruntime-endpoint: unix:///run/cri-dockerd.sock\n",
    );
    assert_only(
        "runtime: containerd\nruntime-endpoint: unix:///var/run/isulad.sock\n",
        "other-socket",
        2,
        19,
    );
    assert_only(
        "kubernetes-version: 1.30\nruntime: isulad\nkube-proxy: {mode: nftables}\n",
        "version-too-old",
        3,
        20,
    );
    assert_fine("kubernetes-version: 1.31\nruntime: isulad\nkube-proxy: {mode: nftables}\n");
}

#[test]
fn a_secret_is_never_shown() {
    for line in [
        "password: hunter2",
        "password: [hunter2]",
        "password: {a: hunter2}",
        "password: |\n  hunter2\n  hunter2",
        "password: hunter2\npassword-env: X",
        "password: hunter2\npassword: hunter2",
        "passwrd: hunter2",
        "Password: 'hunter2'",
        "password: \"hunter2",
        "password: hunter2: hunter2",
        "password:\n\thunter2",
        "x: &p hunter2\npassword: *p",
        "masters2: [{password: hunter2, ip: x}]",
        "etcds: [{password: hunter2, ip: x, colour: y}]",
        "password: !vault hunter2",
        "password: hunter2 // comment",
        "bastion: root:hunter2@host",
        "registry-mirrors: ['https://u:hunter2@host']",
        "install: {addition: {master: [{name: 'https://u:hunter2@h/x', type: yaml}]}}",
    ] {
        let reading = reading(&format!("{GOOD}{line}\n"));
        assert!(!reading.diagnostics.is_empty(), "{line}");
        let text = reading.diagnostics.render(false) + &reading.diagnostics.render(true);
        let json = serde_json::to_string(&reading.diagnostics).unwrap();
        let value = format!("{reading:?}");
        for shown in [text, json, value] {
            assert!(!shown.contains("hunter2"), "{line}\n{shown}");
        }
    }
}
