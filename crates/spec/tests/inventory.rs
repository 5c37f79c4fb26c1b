//! Kubespray inventories: read as Ansible would, honoured as the table says, and never mistaken.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use hatchery_spec::cluster::{Cluster, Dialect, Role};
use hatchery_spec::inventory::{self, Files};
use hatchery_spec::reading::{self, Reading};
use hatchery_spec::source::Input;

#[path = "inventory/mistakes.rs"]
mod mistakes;
#[path = "inventory/precedence.rs"]
mod precedence;
#[path = "inventory/properties.rs"]
mod properties;
#[path = "inventory/variables.rs"]
mod variables;

const HOSTS: &str = include_str!("../../../examples/inventory/hosts.yml");
const VARS: &str = include_str!("../../../examples/inventory/group_vars.yml");

/// Reads both, and holds the answer to what every answer must be.
fn reading(hosts: &str, vars: &str) -> Reading {
    let reading = inventory::read(Files {
        hosts: Input {
            name: "hosts.yml",
            bytes: hosts.as_bytes(),
            others_can_read: true,
        },
        vars: Some(Input::private("group_vars.yml", vars.as_bytes())),
        id: None,
    });
    hold(&reading);
    reading
}

fn hold(reading: &Reading) {
    let all = &reading.diagnostics;
    assert_eq!(reading.cluster.is_none(), all.has_errors());
    for one in all.sorted() {
        let place = all.place(one.span).unwrap();
        assert!(place.start.line >= 1 && place.start <= place.end);
        assert!(one.remedy.is_some(), "{one:?}");
    }
    assert_eq!(all.render(false).is_empty(), all.is_empty());
    serde_json::to_string(all).unwrap();
}

#[track_caller]
fn cluster(hosts: &str, vars: &str) -> Cluster {
    let reading = reading(hosts, vars);
    let said = reading.diagnostics.render(false);
    reading.cluster.unwrap_or_else(|| panic!("{said}"))
}

/// The codes with file, line and column.
fn found(hosts: &str, vars: &str) -> Vec<String> {
    let reading = reading(hosts, vars);
    let all = &reading.diagnostics;
    all.sorted()
        .iter()
        .map(|one| {
            let place = all.place(one.span).unwrap();
            format!(
                "{} {}:{}:{}",
                one.code, place.file, place.start.line, place.start.column
            )
        })
        .collect()
}

fn names<'c>(machines: impl Iterator<Item = &'c hatchery_spec::cluster::Machine>) -> Vec<&'c str> {
    machines.map(|machine| machine.name.as_str()).collect()
}

#[test]
fn the_example_is_read_without_complaint() {
    let reading = reading(HOSTS, VARS);
    assert!(
        reading.diagnostics.is_empty(),
        "{}",
        reading.diagnostics.render(false)
    );
    let cluster = reading.cluster.unwrap();
    insta::assert_snapshot!("inventory", serde_json::to_string_pretty(&cluster).unwrap());
    assert_eq!(cluster.dialect, Dialect::Inventory);
    assert_eq!(names(cluster.masters()), ["node1", "node2", "node3"]);
    assert_eq!(
        names(cluster.workers()),
        ["node1", "node2", "node3", "node4", "node5"]
    );
    assert_eq!(names(cluster.etcds()), ["node1", "node2", "node3"]);
    assert_eq!(reading.references.len(), 1);
}

#[test]
fn the_sample_of_kube_on_kube() {
    let hosts = "\
all:
  hosts:
    master01:
      ip: 10.100.0.1
      access_ip: 10.100.0.1
      ansible_host: 10.100.0.1
      ansible_user: root
    worker01:
      ip: 10.100.0.2
      access_ip: 10.100.0.2
      ansible_host: 10.100.0.2
      ansible_user: root
  children:
    kube_control_plane:
      hosts:
        master01:
    kube_node:
      hosts:
        worker01:
";
    let id = hatchery_spec::value::Name::parse("sample").unwrap();
    let reading = inventory::read(Files {
        hosts: Input::private("hosts.yml", hosts.as_bytes()),
        vars: Some(Input::private(
            "group_vars.yml",
            b"kube_network_plugin: flannel\n",
        )),
        id: Some(&id),
    });
    assert!(
        reading.diagnostics.is_empty(),
        "{}",
        reading.diagnostics.render(false)
    );
    let cluster = reading.cluster.unwrap();
    assert_eq!(cluster.id, id);
    // Without a group etcd it is the control plane's; every machine of that is a node.
    assert_eq!(names(cluster.etcds()), ["master01"]);
    assert_eq!(names(cluster.workers()), ["worker01", "master01"]);
    assert_eq!(cluster.services.cidrs.to_string(), "10.233.0.0/18");
    assert_eq!(cluster.pods.cidrs.to_string(), "10.233.64.0/18");
    assert_eq!(cluster.dns.address.to_string(), "10.233.0.3");
    assert_eq!(cluster.dns.domain.as_str(), "cluster.local");
    assert!(
        cluster
            .machines()
            .iter()
            .all(|machine| machine.set_hostname)
    );
}

#[test]
fn kubespray_itself_would_be_told_only_of_what_has_no_effect() {
    // The lines that kubespray's own sample has, as far as they are not comments.
    let vars = "\
hatchery_cluster_id: sample
kube_config_dir: /etc/kubernetes
kube_script_dir: \"{{ bin_dir }}/kubernetes-scripts\"
kube_cert_dir: \"{{ kube_config_dir }}/ssl\"
kube_api_anonymous_auth: true
kube_version: v1.28.3
local_release_dir: \"/tmp/releases\"
kube_owner: kube
kube_log_level: 2
credentials_dir: \"{{ inventory_dir }}/credentials\"
kube_network_plugin: flannel
kube_network_plugin_multus: false
kube_service_addresses: 10.233.0.0/18
kube_pods_subnet: 10.233.64.0/18
kube_network_node_prefix: 24
enable_dual_stack_networks: false
kube_service_addresses_ipv6: fd85:ee78:d8a6:8607::1000/116
kube_pods_subnet_ipv6: fd85:ee78:d8a6:8607::1:0000/112
kube_network_node_prefix_ipv6: 120
kube_apiserver_ip: \"{{ kube_service_addresses | ipaddr('net') | ipaddr(1) | ipaddr('address') }}\"
kube_apiserver_port: 6443  # (https)
kube_proxy_mode: ipvs
kube_proxy_strict_arp: false
kube_encrypt_secret_data: false
cluster_name: cluster.local
dns_mode: coredns
enable_nodelocaldns: true
nodelocaldns_ip: 169.254.25.10
deploy_netchecker: false
skydns_server: \"{{ kube_service_addresses | ipaddr('net') | ipaddr(3) | ipaddr('address') }}\"
dns_domain: \"{{ cluster_name }}\"
container_manager: containerd
kata_containers_enabled: false
kubeadm_certificate_key: \"{{ lookup('password', credentials_dir) | lower }}\"
kubernetes_audit: false
podsecuritypolicy_enabled: false
event_ttl_duration: \"1h0m0s\"
auto_renew_certificates: false
etcd_data_dir: /var/lib/etcd
bin_dir: /usr/local/bin
loadbalancer_apiserver_port: 6443
";
    assert_eq!(found(HOSTS, vars), ["no-effect group_vars.yml:3:1"]);
    let said = reading(HOSTS, vars).diagnostics.render(false);
    assert!(
        said.contains("auto_renew_certificates, bin_dir") && said.contains(" more"),
        "{said}"
    );
}

#[test]
fn dialects_are_never_mistaken() {
    let dialect = |text: &str| {
        let reading = reading::read(Input::private("f", text.as_bytes()));
        reading.cluster.map(|cluster| cluster.dialect)
    };
    let beside = format!("{HOSTS}    unused: {{}}\n").replace(
        "  vars:\n",
        "  vars:\n    hatchery_cluster_id: a\n    kube_network_plugin: cni\n",
    );
    assert_eq!(dialect(&beside), Some(Dialect::Inventory));
    // Groups without `all`, even with a name that eggo's files have.
    let bare = "\
kube_control_plane:
  hosts: {m: {ip: 10.0.0.1}}
  vars: {hatchery_cluster_id: a}
kube_node: {hosts: {m: }}
workers: {children: {kube_node: }}
";
    assert_eq!(dialect(bare), Some(Dialect::Inventory));
    for eggo in ["classic", "centos", "openeuler", "online", "offline"] {
        let path = format!("{}/../../examples/{eggo}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let expected = if eggo == "classic" {
            Dialect::Classic
        } else {
            Dialect::Current
        };
        assert_eq!(dialect(&text), Some(expected), "{eggo}");
        // A stray group does not make it an inventory.
        for stray in ["kube_node: {hosts: {}}\n", "all: 1\n"] {
            let reading = reading::read(Input::private("f", format!("{text}{stray}").as_bytes()));
            let codes: Vec<_> = reading
                .diagnostics
                .sorted()
                .iter()
                .map(|one| one.code)
                .collect();
            assert_eq!(codes, ["unknown-key"], "{eggo}");
        }
        // As an inventory it is refused, once.
        let reading = inventory::read(Files {
            hosts: Input::private("f", text.as_bytes()),
            vars: None,
            id: None,
        });
        let codes: Vec<_> = reading
            .diagnostics
            .sorted()
            .iter()
            .map(|one| one.code)
            .collect();
        assert_eq!(codes, ["no-inventory"], "{eggo}");
    }
}

#[test]
fn a_bastion_is_on_the_way_to_all_others() {
    let hosts = format!(
        "{HOSTS}    bastion:\n      hosts:\n        jump: {{ansible_host: 10.9.0.1, ansible_port: 2200}}\n"
    );
    let reading = reading(&hosts, VARS);
    assert!(
        reading.diagnostics.is_empty(),
        "{}",
        reading.diagnostics.render(false)
    );
    let cluster = reading.cluster.unwrap();
    assert_eq!(cluster.machines().len(), 5);
    for machine in cluster.machines() {
        let way: Vec<_> = machine
            .access
            .bastions
            .iter()
            .map(|jump| jump.bastion.to_string())
            .collect();
        assert_eq!(way, ["ops@10.9.0.1:2200"]);
    }
    // A password that the machines have is not the bastion's; one of its own or of its group is.
    for (vars, bastion, known) in [
        ("", "hosts: {jump: {}}", false),
        ("", "hosts: {jump: {ansible_password: own}}", true),
        (
            "",
            "hosts: {jump: {}}\n      vars: {ansible_password: own}",
            true,
        ),
        ("ansible_password: shared\n", "hosts: {jump: {}}", false),
        (
            "ansible_password: shared\n",
            "hosts: {jump: {ansible_password: own}}",
            true,
        ),
    ] {
        let hosts = HOSTS.replacen("  vars:\n", "  vars:\n    ansible_ssh_pass: theirs\n", 1);
        assert_ne!(hosts, HOSTS);
        let hosts = format!("{hosts}    bastion:\n      {bastion}\n");
        let cluster = self::cluster(&hosts, &format!("{VARS}{vars}"));
        let way = &cluster.machines()[0].access.bastions[0];
        assert_eq!(way.password.is_some(), known, "{vars}{bastion}");
    }
    let itself = format!("{HOSTS}    bastion: {{hosts: {{node4: }}}}\n");
    let cluster = self::cluster(&itself, VARS);
    let direct: Vec<_> = cluster
        .machines()
        .iter()
        .filter(|machine| machine.access.bastions.is_empty())
        .map(|machine| machine.name.as_str())
        .collect();
    assert_eq!(direct, ["node4"]);
}

#[test]
fn a_name_is_where_ansible_goes() {
    let hosts = "\
all:
  vars: {hatchery_cluster_id: a, kube_network_plugin: cni}
  children:
    kube_control_plane:
      hosts:
        m.example.org: {ip: 10.0.0.1}
        10.0.0.2:
        n: {ansible_host: n.example.org, ip: 10.0.0.3}
    kube_node: {children: kube_control_plane}
";
    let cluster = cluster(hosts, "");
    let ways: Vec<_> = cluster
        .machines()
        .iter()
        .map(|machine| format!("{} {}", machine.address, machine.access.host))
        .collect();
    assert_eq!(
        ways,
        [
            "10.0.0.1 m.example.org",
            "10.0.0.2 10.0.0.2",
            "10.0.0.3 n.example.org"
        ]
    );
    assert_eq!(cluster.with_role(Role::Worker).len(), 3);
}
