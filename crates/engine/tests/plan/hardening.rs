//! What is checked of a cluster by those who check clusters: file modes, nothing open that need not be.

use hatchery_engine::resource::Resource;
use hatchery_host::{facts::Agents, operation::Operation};
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

fn resources(plan: &Plan) -> impl Iterator<Item = &Resource> {
    plan.tasks.iter().flat_map(|task| match &task.work {
        Work::Machine { resources, .. } => resources.as_slice(),
        _ => &[],
    })
}

#[test]
fn files_of_kubernetes_are_roots_alone() {
    let plan = plan(BASE, "1.37");
    let mut seen = 0;
    for resource in resources(&plan) {
        let Resource::Operation(Operation::File(file)) = resource else {
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
fn data_of_etcd_is_its_users_alone() {
    let plan = plan(BASE, "1.37");
    let access = resources(&plan).find_map(|resource| match resource {
        Resource::Operation(Operation::Directory(one)) if one.path.as_str() == "/var/lib/etcd" => {
            Some(one.access.clone())
        }
        _ => None,
    });
    let access = access.unwrap();
    assert_eq!(access.mode.bits(), 0o700);
    assert_eq!(
        (access.owner.as_str(), access.group.as_str()),
        ("etcd", "etcd")
    );
    // Its keys stay root's; it reads copies that no other user can.
    let files = text::rendered(&plan);
    let unit = file(&files, "/etcd.service");
    for line in [
        "User=etcd",
        "RuntimeDirectory=etcd",
        "RuntimeDirectoryMode=0700",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}\n{unit}");
    }
    let conf = file(&files, "/etcd.conf");
    assert!(
        conf.contains("ETCD_KEY_FILE=\"/run/etcd/server.key\""),
        "{conf}"
    );
}

#[test]
fn coredns_is_nobodys_resolver_but_the_clusters() {
    let cluster = format!("{BASE}network: {{podcidr: 10.77.0.0/16}}\n");
    let plan = plan(&cluster, "1.37");
    let files = text::rendered(&plan);
    let corefile = file(&files, "/Corefile");
    for line in [
        "bind 192.168.0.1",
        "allow net 10.77.0.0/16 10.32.0.0/16 192.168.0.1/32 192.168.0.2/32",
        "block",
        "health 127.0.0.1:8080",
        "ready 127.0.0.1:8181",
        "prometheus 192.168.0.1:9153",
        "kubeconfig /run/coredns/coredns.conf default",
    ] {
        let has = corefile.lines().any(|found| found.trim() == line);
        assert!(has, "{line}\n{corefile}");
    }
    let unit = file(&files, "/coredns.service");
    for line in ["User=coredns", "CapabilityBoundingSet=CAP_NET_BIND_SERVICE"] {
        assert!(unit.lines().any(|found| found == line), "{line}\n{unit}");
    }
    let config = file(&files, "/coredns.conf");
    assert!(
        config.contains("client-key: /run/coredns/coredns.key"),
        "{config}"
    );
}

/// A systemd that cannot prepare a service as root and run it as another runs it as root.
#[test]
fn an_old_systemd_is_asked_for_nothing_it_does_not_know() {
    let mut facts = ground::real_machine();
    facts.init.systemd.as_mut().unwrap().version = Some(219);
    let cluster = ground::cluster(BASE);
    let plan = ground::plan(&cluster, &ground::versions("1.20"), &facts);
    let files = text::rendered(&plan);
    for unit in ["/etcd.service", "/coredns.service"] {
        let text = file(&files, unit);
        assert!(!text.contains("User=") && !text.contains("=+"), "{text}");
    }
    assert!(
        file(&files, "/etcd.conf")
            .contains("ETCD_KEY_FILE=\"/etc/kubernetes/pki/etcd/server.key\"")
    );
    assert!(file(&files, "/coredns.conf").contains("client-key: /etc/kubernetes/pki/coredns.key"));
    assert!(!text::short(&plan).contains("  user "));
}

/// Where tools look for them; the names that eggo gave them lead there.
#[test]
fn kubelets_files_are_where_they_are_looked_for() {
    let plan = plan(BASE, "1.37");
    let links: Vec<_> = resources(&plan)
        .filter_map(|resource| match resource {
            Resource::Operation(Operation::Link(link)) => Some((link.path.as_str(), &*link.target)),
            _ => None,
        })
        .take(2)
        .collect();
    let expected = [
        (
            "/etc/kubernetes/kubelet_config.yaml",
            "/var/lib/kubelet/config.yaml",
        ),
        (
            "/etc/kubernetes/kubelet.kubeconfig",
            "/etc/kubernetes/kubelet.conf",
        ),
    ];
    assert_eq!(links, expected);
    let unit = file(&text::rendered(&plan), "/kubelet.service");
    for flag in [
        "--config=/var/lib/kubelet/config.yaml",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
    ] {
        assert!(unit.contains(flag), "{unit}");
    }
}

#[test]
fn agents_of_the_machine_leave_nodes_alone() {
    let mut facts = ground::real_machine();
    let cluster = ground::cluster(BASE);
    let versions = ground::versions("1.37");
    let plain = text::short(&ground::plan(&cluster, &versions, &facts));
    assert!(
        !plain.contains("cloud") && !plain.contains("NetworkManager"),
        "{plain}"
    );
    facts.agents = Agents {
        network_manager: true,
        cloud_init: true,
        cloud_init_hosts: false,
    };
    let plan = ground::plan(&cluster, &versions, &facts);
    let files = text::rendered(&plan);
    let network = file(&files, "/NetworkManager/conf.d/90-hatchery.conf");
    for device in ["cali*", "flannel*", "cni*", "veth*", "vxlan.calico"] {
        assert!(
            network.contains(&format!("interface-name:{device}")),
            "{network}"
        );
    }
    let cloud = file(&files, "/cloud.cfg.d/99-hatchery.cfg");
    let cloud: Value = serde_saphyr::from_str(&cloud).unwrap();
    assert_eq!(cloud["manage_etc_hosts"], false);
    assert!(text::short(&plan).contains("step network-manager"));
}

/// firewalld drops what comes from pods, unless it knows their networks.
#[test]
fn networks_of_pods_and_services_are_trusted_where_pods_run() {
    let cluster = "cluster-id: one\nruntime: containerd\nmasters: [{name: m0, ip: 192.168.0.1}]\n\
        workers: [{name: w0, ip: 192.168.0.2}]\nnetwork: {podcidr: 10.77.0.0/16}\n";
    let plan = plan(cluster, "1.37");
    let trusted: Vec<_> = plan
        .tasks
        .iter()
        .filter(|task| text::one(task).contains("trusted network"))
        .map(ToString::to_string)
        .collect();
    assert_eq!(trusted, ["w0: prepare"]);
    let short = text::short(&plan);
    assert!(
        short.contains("trusted network 10.77.0.0/16\n  trusted network 10.32.0.0/16"),
        "{short}"
    );
    let addresses: Vec<_> = resources(&plan)
        .filter_map(|resource| match resource {
            Resource::Operation(Operation::Firewall(wall)) => wall.address,
            _ => None,
        })
        .collect();
    assert!(addresses.contains(&"192.168.0.1".parse().unwrap()));
    assert!(addresses.contains(&"192.168.0.2".parse().unwrap()));
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
            "--client-ca-file=/etc/kubernetes/pki/ca-signer.crt",
            "--enable-admission-plugins=NodeRestriction",
            "--encryption-provider-config=/etc/kubernetes/encryption-config.yaml",
            "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt",
            "--profiling=false",
            "--service-account-extend-token-expiration=false",
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
            "bootstrap-token",
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
        // Nodes come with a certificate: there is no token to sign for or to clean up.
        assert!(!unit.contains("bootstrapsigner") && !unit.contains("tokencleaner"));
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
        let text = file(&files, "/var/lib/kubelet/config.yaml");
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
        "ETCD_TRUSTED_CA_FILE=\"/run/etcd/ca.crt\"",
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
    assert!(
        text::short(&plan).contains("secret /etc/kubernetes/pki/ca-signer.crt Signer(Cluster)")
    );
}
