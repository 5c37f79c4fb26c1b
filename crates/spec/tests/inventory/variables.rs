//! Every variable of the table does what the table says.

use std::collections::HashSet;

use hatchery_spec::inventory::{Treatment, VARIABLES};

use super::{found, reading};

/// One machine that is everything. Its name is its address, so that any variable may say more.
const HOSTS: &str = "\
all:
  children:
    kube_control_plane: {hosts: {10.0.0.1: }}
    kube_node: {hosts: {10.0.0.1: }}
";

/// What holds unless a case has a line for the same variable.
const COMMON: [&str; 2] = ["cluster_name: base.local", "kube_network_plugin: cni"];

fn vars(lines: &str) -> String {
    let mut text = String::new();
    for line in COMMON {
        let (key, _) = line.split_once(':').unwrap();
        if !lines.contains(&format!("{key}:")) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text + lines
}

/// A variable, what is said beside it, and it.
type Case = (&'static str, &'static str, &'static str);

const DOCKER: &str = "container_manager: docker\n";
const SIX: &str = "ipv6_stack: true\n";
const NAMED: &str = "ip: 10.0.0.1\n";

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("ansible_host", NAMED, "10.0.0.9"),
    ("ansible_ssh_host", NAMED, "m.example.org"),
    ("ansible_port", "", "2222"),
    ("ansible_ssh_port", "", "2222"),
    ("ansible_user", "", "ops"),
    ("ansible_ssh_user", "", "ops"),
    ("ansible_password", "", "s3cret"),
    ("ansible_ssh_pass", "", "s3cret"),
    ("ansible_ssh_password", "", "s3cret"),
    ("ansible_ssh_private_key_file", "", "~/.ssh/id"),
    ("ansible_private_key_file", "", "/id"),
    ("ansible_ssh_common_args", "", "-o ProxyJump=jump"),
    ("ansible_ssh_extra_args", "", "-J jump"),
    ("ansible_become_password", "", "s3cret"),
    ("ansible_become_pass", "", "s3cret"),
    ("ansible_sudo_pass", "", "s3cret"),
    ("ansible_become", "ansible_user: ops\n", "false"),
    ("ip", "", "10.0.0.9"),
    ("access_ip", "", "10.0.0.9"),
    ("node_labels", "", "{zone: a}"),
    ("node_taints", "", "['a=b:NoSchedule']"),
    ("hatchery_allow_existing_runtime", "", "true"),
    ("hatchery_arch", "", "aarch64"),
    ("hatchery_host_key", "", "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ("override_system_hostname", "", "false"),
    ("hatchery_cluster_id", "", "other"),
    ("cluster_name", "", "other.local"),
    ("kube_version", "", "v1.31.4"),
    ("dns_domain", "", "other.local"),
    ("kube_service_addresses", "", "10.96.0.0/16"),
    ("kube_service_addresses_ipv6", SIX, "fd00:1::/112"),
    ("kube_pods_subnet", "", "10.96.0.0/16"),
    ("kube_pods_subnet_ipv6", SIX, "fd00:2::/112"),
    ("enable_dual_stack_networks", "", "true"),
    ("ipv4_stack", "ip: fd00::1\n", "false"),
    ("ipv6_stack", "", "true"),
    ("kube_network_node_prefix", "", "25"),
    ("kube_network_node_prefix_ipv6", SIX, "121"),
    ("kube_apiserver_ip", "", "10.233.0.2"),
    ("skydns_server", "", "10.233.0.53"),
    ("coredns_version", "", "v1.11.1"),
    ("coredns_replicas", "", "3"),
    ("dns_min_replicas", "", "3"),
    ("container_manager", "", "docker"),
    ("kube_network_plugin", "", "flannel"),
    ("hatchery_network_manifest", "kube_network_plugin: flannel\n", "/etc/kubernetes/f.yaml"),
    ("kube_proxy_mode", "", "ipvs"),
    ("kube_proxy_strict_arp", "", "true"),
    ("loadbalancer_apiserver", "", "{address: 10.9.0.1, port: 8443}"),
    ("apiserver_loadbalancer_domain_name", "", "k8s.example.org"),
    ("supplementary_addresses_in_ssl_keys", "", "[10.9.0.1]"),
    ("kube_apiserver_request_timeout", "", "60s"),
    ("docker_registry_mirrors", DOCKER, "[https://a.example.org]"),
    ("docker_insecure_registries", DOCKER, "[a.example.org]"),
    ("containerd_registries_mirrors", "", "[{prefix: docker.io, mirrors: [{host: https://a.example.org}]}]"),
    ("pod_infra_image_repo", "", "a.example.org/pause"),
    ("pod_infra_image_tag", "", "3.9"),
    ("pod_infra_version", "", "3.9"),
    ("kube_image_repo", "", "a.example.org"),
    ("kubelet_rotate_server_certificates", "", "false"),
    ("kubelet_custom_flags", "", "[--fail-swap-on=false]"),
    ("kube_kubeadm_apiserver_extra_args", "", "{profiling: false}"),
    ("kube_kubeadm_controller_extra_args", "", "{profiling: false}"),
    ("kube_kubeadm_scheduler_extra_args", "", "{profiling: false}"),
    ("kubelet_max_pods", "", "200"),
    ("kubelet_pods_per_core", "", "10"),
    ("kubelet_status_update_frequency", "", "10s"),
    ("kube_read_only_port", "", "10255"),
    ("kube_log_level", "", "4"),
    ("kube_apiserver_node_port_range", "", "30000-31000"),
    ("kube_apiserver_pod_eviction_not_ready_timeout_seconds", "", "30"),
    ("kube_apiserver_pod_eviction_unreachable_timeout_seconds", "", "30"),
    ("kube_api_anonymous_auth", "", "false"),
    ("event_ttl_duration", "", "2h0m0s"),
    ("tls_min_version", "", "VersionTLS12"),
    ("kube_controller_node_monitor_grace_period", "", "40s"),
    ("kube_controller_node_monitor_period", "", "5s"),
    ("kube_controller_terminated_pod_gc_threshold", "", "100"),
    ("etcd_quota_backend_bytes", "", "8589934592"),
    ("etcd_heartbeat_interval", "", "250"),
    ("etcd_election_timeout", "", "5000"),
    ("etcd_snapshot_count", "", "10000"),
    ("etcd_compaction_retention", "", "8"),
    ("etcd_max_request_bytes", "", "10485760"),
];

fn at(vars: &str, pointer: &str) -> serde_json::Value {
    let reading = reading(HOSTS, vars);
    let said = reading.diagnostics.render(false);
    let cluster = reading.cluster.unwrap_or_else(|| panic!("{vars}\n{said}"));
    let value = serde_json::to_value(cluster).unwrap();
    value.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn each_honoured_variable_changes_its_place() {
    let mut tried = HashSet::new();
    for (name, beside, value) in CASES {
        let info = VARIABLES.iter().find(|info| info.name == *name).unwrap();
        let Treatment::Honoured(effect) = info.treatment else {
            panic!("{name} is not honoured");
        };
        tried.insert(*name);
        let with = format!("{beside}{name}: {value}\n");
        if effect == "!" {
            let codes = found(HOSTS, &vars(&with));
            assert!(
                codes.iter().any(|one| one.contains("group_vars.yml")),
                "{name}: {codes:?}"
            );
            assert!(reading(HOSTS, &vars(&with)).cluster.is_none(), "{name}");
            continue;
        }
        // Without IPv4 the machine's own address cannot be IPv4 either, so only one side holds.
        let before = match *name {
            "ipv4_stack" => at(&vars(""), effect),
            _ => at(&vars(beside), effect),
        };
        let after = at(&vars(&with), effect);
        assert_ne!(before, after, "{name} changes nothing at {effect}");
    }
    for info in VARIABLES {
        let honoured = matches!(info.treatment, Treatment::Honoured(_));
        assert_eq!(honoured, tried.contains(info.name), "{}", info.name);
    }
}

#[test]
fn a_variable_with_one_possible_value_has_it_or_is_refused() {
    for info in VARIABLES {
        let Treatment::Only(values) = info.treatment else {
            continue;
        };
        for value in values.iter().chain(&["", "~", "[]", "{}", "''"]) {
            let text = vars(&format!("{}: {value}\n", info.name));
            assert_eq!(found(HOSTS, &text), [""; 0], "{}: {value}", info.name);
        }
        let text = vars(&format!("{}: other\n", info.name));
        let line = text.lines().count();
        let expected = format!("unsupported group_vars.yml:{line}:1");
        assert_eq!(found(HOSTS, &text), [expected], "{}", info.name);
    }
    let switched = vars("ingress_nginx_enabled: True\n");
    assert_eq!(found(HOSTS, &switched), ["unsupported group_vars.yml:3:1"]);
    assert_eq!(found(HOSTS, &switched.replace("True", "no")), [""; 0]);
}

#[test]
fn what_has_no_effect_is_noted_once() {
    let mut all = String::new();
    for info in VARIABLES {
        if info.treatment == Treatment::NoEffect {
            let name = info.name.replace('*', "x");
            let line = format!("{name}: '{{{{ anything }}}}'\n");
            assert_eq!(
                found(HOSTS, &vars(&line)),
                ["no-effect group_vars.yml:3:1"],
                "{name}"
            );
            all.push_str(&line);
        }
    }
    assert_eq!(found(HOSTS, &vars(&all)), ["no-effect group_vars.yml:3:1"]);
}

#[test]
fn what_is_not_known_is_warned_of_with_its_name() {
    let text = vars("colour: red\nkube_verion: v1.30.0\nvault_token: hunter2\n");
    let codes = found(HOSTS, &text);
    assert_eq!(
        codes,
        [3, 4, 5].map(|line| format!("unknown-variable group_vars.yml:{line}:1"))
    );
    let reading = reading(HOSTS, &text);
    assert!(reading.cluster.is_some());
    let said = reading.diagnostics.render(false);
    assert!(
        said.contains("`colour`") && said.contains("did you mean `kube_version`?"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
    // Set for many hosts, it is told once.
    let hosts = "\
all:
  hosts: {m: {ip: 10.0.0.1, colour: red}, n: {ip: 10.0.0.2, colour: blue}}
  children: {kube_control_plane: {hosts: m}, kube_node: {hosts: {m: , n: }}}
";
    assert_eq!(found(hosts, &vars("")), ["unknown-variable hosts.yml:2:29"]);
}

#[test]
fn dual_stack_has_networks_masks_and_defaults() {
    let dual = vars("enable_dual_stack_networks: true\n");
    assert_eq!(
        at(&dual, "/services/cidrs"),
        "10.233.0.0/18,fd85:ee78:d8a6:8607::1000/116"
    );
    assert_eq!(
        at(&dual, "/pods/cidrs"),
        "10.233.64.0/18,fd85:ee78:d8a6:8607::1:0/112"
    );
    let masks = at(&dual, "/extra_args/kube-controller-manager");
    assert_eq!(masks["--node-cidr-mask-size-ipv6"], "120", "{masks}");
    // Without it the IPv6 networks that every sample has mean nothing.
    let single = vars("kube_pods_subnet_ipv6: fd00::/112\n");
    assert_eq!(at(&single, "/pods/cidrs"), "10.233.64.0/18");
}

#[test]
fn manifests_mirrors_and_passwords_from_elsewhere() {
    let url = vars(
        "kube_network_plugin: calico\nhatchery_network_manifest: https://example.org/calico.yaml\n",
    );
    let items = at(&url, "/packages/lists/addition-master/0");
    assert_eq!(
        items["source"]["url"], "https://example.org/calico.yaml",
        "{items}"
    );
    let own = vars(
        "containerd_registries_mirrors: [{prefix: 'a:5000', mirrors: [{host: 'http://a:5000', skip_verify: true}]}]\n",
    );
    assert_eq!(at(&own, "/runtime/registries/insecure/0"), "a:5000");
    let hub = vars(
        "containerd_registries_mirrors: [{prefix: 'https://registry-1.docker.io', mirrors: [{host: https://b.example.org}]}]\n",
    );
    assert_eq!(
        at(&hub, "/runtime/registries/mirrors/docker.io/0"),
        "https://b.example.org"
    );
    let other = vars(
        "containerd_registries_mirrors: [{prefix: quay.io, mirrors: [{host: https://a.example.org}]}]\n",
    );
    assert_eq!(
        at(&other, "/runtime/registries/mirrors/quay.io/0"),
        "https://a.example.org"
    );
    let password = |text: &str| {
        at(
            &vars(&format!("ansible_password: \"{text}\"\n")),
            "/machines/0/access/password",
        )
    };
    assert_eq!(password("{{ lookup('env', 'PW') }}")["environment"], "PW");
    assert_eq!(password("{{ lookup('file', '~/pw') }}")["file"], "~/pw");
    assert_eq!(password("123")["text"], "[secret]");
}
