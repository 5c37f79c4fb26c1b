//! What is checked of a cluster by those who check clusters: file modes, nothing open that need not be.

use hatchery_engine::wish::Wish;
use hatchery_host::operation::Operation;
use serde_json::Value;

use super::{
    ground,
    text::{self, Rendered},
};
use hatchery_engine::plan::{Plan, Work};

const BASE: &str = "cluster-id: one\nruntime: containerd\nmasters: [{name: m0, ip: 192.168.0.1}]\n\
    workers: [{name: m0, ip: 192.168.0.1}, {name: w0, ip: 192.168.0.2}]\n";
const VERSIONS: [&str; 5] = ["1.20", "1.24", "1.28", "1.34", "1.37"];

fn plan(text: &str, version: &str) -> Plan {
    let cluster = ground::cluster(text);
    ground::plan(
        &cluster,
        &ground::versions(version),
        &ground::real_machine(),
    )
}

fn file(files: &[Rendered], name: &str) -> String {
    let found = files.iter().find(|file| file.name.ends_with(name));
    found.unwrap_or_else(|| panic!("no {name}")).text.clone()
}

fn wishes(plan: &Plan) -> impl Iterator<Item = &Wish> {
    plan.tasks.iter().flat_map(|task| match &task.work {
        Work::Machine { wishes, .. } => wishes.as_slice(),
        Work::Api(_) => &[],
    })
}

#[test]
fn files_of_kubernetes_are_roots_alone() {
    let plan = plan(BASE, "1.37");
    let mut seen = 0;
    for wish in wishes(&plan) {
        let Wish::Operation(Operation::File(file)) = wish else {
            continue;
        };
        let path = file.path.as_str();
        let is_unit = path.starts_with("/etc/systemd/system/");
        // Programs of other users ask it for names, and there is nothing in it.
        if path == "/etc/kubernetes/resolv.conf" {
            continue;
        }
        if path.starts_with("/etc/kubernetes/") || path.starts_with("/etc/etcd/") || is_unit {
            seen += 1;
            assert_eq!(file.access.mode.bits(), 0o600, "{path}");
            assert_eq!(file.access.owner.as_str(), "root", "{path}");
        }
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn data_of_etcd_is_roots_alone() {
    let plan = plan(BASE, "1.37");
    let mode = wishes(&plan).find_map(|wish| match wish {
        Wish::Operation(Operation::Directory(one)) if one.path.as_str() == "/var/lib/etcd" => {
            Some(one.access.mode.bits())
        }
        _ => None,
    });
    assert_eq!(mode, Some(0o700));
}

#[test]
fn the_api_server_is_closed() {
    for version in VERSIONS {
        let files = text::rendered(&plan(BASE, version));
        let unit = file(&files, "/kube-apiserver.service");
        for flag in [
            "--audit-log-maxage=30",
            "--audit-log-maxbackup=10",
            "--audit-log-maxsize=100",
            "--audit-log-path=/var/log/kubernetes/audit/audit.log",
            "--audit-policy-file=/etc/kubernetes/audit-policy.yaml",
            "--authorization-mode=Node,RBAC",
            "--client-ca-file=/etc/kubernetes/pki/ca.crt",
            "--enable-admission-plugins=NodeRestriction",
            "--encryption-provider-config=/etc/kubernetes/encryption-config.yaml",
            "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt",
            "--profiling=false",
            "--tls-min-version=VersionTLS12",
        ] {
            assert!(unit.contains(flag), "{version}: no {flag}\n{unit}");
        }
        assert_strong(&unit);
        for flag in [
            "token-auth-file",
            "insecure-port",
            "AlwaysAllow",
            "AlwaysAdmit",
        ] {
            assert!(!unit.contains(flag), "{version}: {flag}");
        }
        // Nobody is let in without a name, except to ask whether the server is well.
        if unit.contains("--authentication-config=") {
            let text = file(&files, "/authentication.yaml");
            let value: Value = serde_saphyr::from_str(&text).unwrap();
            let paths: Vec<_> = value["anonymous"]["conditions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["path"].as_str().unwrap())
                .collect();
            assert_eq!(paths, ["/livez", "/readyz", "/healthz"]);
        } else {
            assert!(unit.contains("--anonymous-auth=false"), "{version}");
        }
    }
}

fn assert_strong(text: &str) {
    assert!(text.contains("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"));
    for weak in ["CBC", "RC4", "3DES", "TLS_RSA_"] {
        assert!(!text.contains(weak), "{weak}");
    }
}

#[test]
fn the_control_plane_listens_to_itself_alone() {
    for version in VERSIONS {
        let files = text::rendered(&plan(BASE, version));
        for program in ["kube-controller-manager", "kube-scheduler"] {
            let unit = file(&files, &format!("/{program}.service"));
            assert!(
                unit.contains("--bind-address=127.0.0.1"),
                "{version} {program}"
            );
            assert!(unit.contains("--profiling=false"), "{version} {program}");
        }
        let unit = file(&files, "/kube-controller-manager.service");
        assert!(unit.contains("--use-service-account-credentials=true"));
        assert!(unit.contains("--terminated-pod-gc-threshold="));
        let proxy: Value =
            serde_saphyr::from_str(&file(&files, "/kube-proxy-config.yaml")).unwrap();
        assert_eq!(proxy["metricsBindAddress"], "127.0.0.1:10249");
    }
}

#[test]
fn kubelets_are_closed_and_known() {
    for version in VERSIONS {
        let plan = plan(BASE, version);
        let files = text::rendered(&plan);
        let text = file(&files, "/kubelet_config.yaml");
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(config["authentication"]["anonymous"]["enabled"], false);
        assert_eq!(config["authentication"]["webhook"]["enabled"], true);
        assert_eq!(config["authorization"]["mode"], "Webhook");
        assert_eq!(config["readOnlyPort"], 0);
        assert_eq!(config["protectKernelDefaults"], true);
        assert_eq!(config["rotateCertificates"], true);
        assert_eq!(config["tlsMinVersion"], "VersionTLS12");
        assert_eq!(config["tlsCertFile"], "/etc/kubernetes/pki/kubelet.crt");
        assert_strong(&text);
    }
    let leaf = "certificate /etc/kubernetes/pki/kubelet.crt by Cluster, server, CN=system:node:w0, O=system:nodes w0 192.168.0.2";
    assert!(text::short(&plan(BASE, "1.37")).contains(leaf));
}

#[test]
fn kubelets_sign_for_themselves_only_when_told() {
    let plan = plan(&format!("{BASE}enable-kubelet-serving: false\n"), "1.37");
    let full = text::full(&plan);
    assert!(!full.contains("pki/kubelet.crt") && !full.contains("kubelet-certificate-authority"));
}

#[test]
fn etcd_asks_everyone_for_a_certificate() {
    let files = text::rendered(&plan(BASE, "1.37"));
    let text = file(&files, "/etcd.conf");
    for line in [
        "ETCD_CLIENT_CERT_AUTH=\"true\"",
        "ETCD_PEER_CLIENT_CERT_AUTH=\"true\"",
        "ETCD_TRUSTED_CA_FILE=\"/etc/kubernetes/pki/etcd/ca.crt\"",
    ] {
        assert!(text.contains(line), "{line}");
    }
    assert!(!text.contains("AUTO_TLS"));
    let urls = text
        .lines()
        .filter(|line| line.contains("LISTEN") || line.contains("ADVERTISE"));
    for line in urls.filter(|line| line.contains("http://")) {
        assert_eq!(line, "ETCD_LISTEN_METRICS_URLS=\"http://127.0.0.1:2381\"");
    }
}

#[test]
fn the_signer_has_one_certificate() {
    let plan = plan(BASE, "1.37");
    let unit = file(&text::rendered(&plan), "/kube-controller-manager.service");
    assert!(unit.contains("--cluster-signing-cert-file=/etc/kubernetes/pki/ca-signer.crt"));
    // What others trust is the whole chain.
    assert!(unit.contains("--root-ca-file=/etc/kubernetes/pki/ca.crt"));
    assert!(text::short(&plan).contains("secret /etc/kubernetes/pki/ca-signer.crt ClusterSigner"));
}
