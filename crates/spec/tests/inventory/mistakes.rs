//! Wrong inventories: every mistake at its place, in the right file, and nothing else.

use super::{HOSTS, VARS, found, reading};

/// What is said of the example with one change in either file.
#[track_caller]
fn hosts(from: &str, to: &str) -> Vec<String> {
    assert!(HOSTS.contains(from), "{from}");
    found(&HOSTS.replacen(from, to, 1), VARS)
}

#[track_caller]
fn vars(from: &str, to: &str) -> Vec<String> {
    assert!(VARS.contains(from), "{from}");
    found(HOSTS, &VARS.replacen(from, to, 1))
}

#[test]
fn structure() {
    assert_eq!(
        hosts("node[1:5]", "node[5:1]"),
        ["bad-range hosts.yml:25:9"]
    );
    assert_eq!(
        hosts(
            "      hosts:\n        node[1:5]",
            "      host:\n        node[1:5]"
        ),
        ["unknown-key hosts.yml:24:7"]
    );
    assert_eq!(
        hosts(
            "    kube_control_plane:\n      hosts",
            "    kube_controlplane:\n      hosts"
        ),
        ["no-control-plane hosts.yml:20:5"]
    );
    let circle = "        kube_node:\n    a: {children: {b: {children: {a: }}}}\n";
    assert_eq!(
        hosts("        kube_node:\n", circle),
        ["group-cycle hosts.yml:33:35"]
    );
    assert_eq!(
        hosts(
            "        kube_node:\n",
            "        kube_node: {children: {k8s_cluster: }}\n"
        ),
        ["group-cycle hosts.yml:32:32"]
    );
    assert_eq!(
        hosts(
            "        kube_node:\n",
            "        kube_node:\n        k8s_cluster:\n"
        ),
        ["group-cycle hosts.yml:33:9"]
    );
    assert_eq!(
        hosts("        node[1:5]:\n", "        - node1\n"),
        ["wrong-kind hosts.yml:25:9"]
    );
    assert_eq!(found("all:\n", VARS), ["no-control-plane hosts.yml:1:1"]);
    assert_eq!(
        found("all: {children: {kube_control_plane: }}\n", VARS),
        ["no-control-plane hosts.yml:1:18"]
    );
}

#[test]
fn doubtful_groups_and_hosts() {
    let old = HOSTS
        .replace("kube_control_plane", "kube-master")
        .replace("kube_node", "kube-node")
        .replace("k8s_cluster", "k8s-cluster");
    let reading = reading(&old, VARS);
    assert!(reading.cluster.is_some());
    let codes: Vec<_> = reading
        .diagnostics
        .sorted()
        .iter()
        .map(|one| one.code)
        .collect();
    assert_eq!(codes, ["old-group"; 3]);
    assert_eq!(
        hosts(
            "    node5:\n",
            "    spare: {ip: 192.168.0.20}\n    node5:\n"
        ),
        ["host-without-role hosts.yml:15:5"]
    );
    assert_eq!(
        hosts(
            "    etcd:\n",
            "    no_floating: {hosts: {spare: }}\n    etcd:\n"
        ),
        ["host-without-role hosts.yml:26:27"]
    );
    let nodeless = HOSTS
        .replace("node[1:5]", "node[1:3]")
        .replace("    kube_node:\n      hosts", "    other:\n      hosts");
    assert_eq!(
        found(&nodeless, VARS),
        [
            "no-workers hosts.yml:3:1",
            "host-without-role hosts.yml:12:5"
        ]
    );
    let two = "    bastion: {hosts: {a: , b: }}\n    etcd:\n";
    assert_eq!(
        hosts("    etcd:\n", two),
        ["second-bastion hosts.yml:26:28"]
    );
}

#[test]
fn values_of_hosts() {
    let node4 = "ansible_host: 192.168.0.14";
    assert_eq!(
        hosts(node4, "ansible_host: 192.168.0"),
        ["bad-address hosts.yml:13:21"]
    );
    assert_eq!(
        hosts(node4, "ansible_host: 127.0.0.1"),
        ["bad-address hosts.yml:13:21"]
    );
    assert_eq!(
        hosts(node4, "ansible_host: n.example.org"),
        ["missing-key hosts.yml:12:5"]
    );
    assert_eq!(
        hosts(node4, "ip: 192.168.0.11"),
        ["duplicate-host hosts.yml:13:11"]
    );
    assert_eq!(
        hosts(node4, "ip: 192.168.0.14\n      ansible_host: 192.168.0.11"),
        ["duplicate-ssh-host hosts.yml:14:21"]
    );
    assert_eq!(
        hosts("access_ip: 192.168.0.12", "access_ip: 1.2.3.4"),
        ["unsupported hosts.yml:10:70"]
    );
    assert_eq!(
        hosts("ansible_port: 2222", "ansible_port: x"),
        ["bad-port hosts.yml:17:21"]
    );
    assert_eq!(
        hosts("gpu=yes:NoSchedule", "gpu=yes"),
        ["bad-taint hosts.yml:18:21"]
    );
    assert_eq!(
        hosts("{disk: ssd}", "{disk: a b}"),
        ["bad-label hosts.yml:14:21"]
    );
    assert_eq!(
        hosts("{disk: ssd}", "[disk]"),
        ["wrong-kind hosts.yml:14:20"]
    );
    assert_eq!(
        hosts("ansible_user: ops", "ansible_user: a b"),
        ["bad-user hosts.yml:5:19"]
    );
    assert_eq!(
        hosts("ansible_become: true", "ansible_become: false"),
        ["unsupported hosts.yml:6:21"]
    );
    assert_eq!(
        hosts("ansible_become: true", "ansible_become_user: ops"),
        ["unsupported hosts.yml:6:5"]
    );
    assert_eq!(
        hosts("ansible_become: true", "ansible_connection: local"),
        ["unsupported hosts.yml:6:5"]
    );
    assert_eq!(
        hosts("ansible_become: true", "ansible_ssh_common_args: -F config"),
        ["bad-ssh-arguments hosts.yml:6:30"]
    );
    assert_eq!(
        hosts(
            "ansible_become: true",
            "ansible_ssh_common_args: -o StrictHostKeyChecking=no"
        ),
        ["host-keys-checked hosts.yml:6:30"]
    );
    assert_eq!(
        hosts("~/.ssh/id_rsa", "id_rsa"),
        ["bad-path hosts.yml:7:35"]
    );
    assert_eq!(hosts("    node4:\n", "    Node_4:\n").len(), 2);
}

#[test]
fn passwords() {
    let with = |text: &str| HOSTS.replacen("ansible_become: true", text, 1);
    let readable = with("ansible_password: hunter2");
    assert_eq!(found(&readable, VARS), ["readable-password hosts.yml:6:23"]);
    let said = reading(&readable, VARS).diagnostics.render(false);
    assert!(!said.contains("hunter2"), "{said}");
    // The other file is its owner's alone.
    assert_eq!(
        found(HOSTS, &format!("{VARS}ansible_password: hunter2\n")),
        [""; 0]
    );
    assert_eq!(
        hosts("ansible_become: true", "ansible_password: \"{{ vault }}\""),
        ["template hosts.yml:6:23"]
    );
    assert_eq!(
        hosts(
            "ansible_become: true",
            "ansible_become_pass: $ANSIBLE_VAULT;1.1"
        ),
        ["bad-password hosts.yml:6:26"]
    );
    assert_eq!(
        hosts("ansible_become: true", "ansible_become_pass: [a]"),
        ["wrong-kind hosts.yml:6:26"]
    );
}

#[test]
fn values_of_the_cluster() {
    assert_eq!(
        vars("v1.31.4", "v1.10"),
        ["bad-version group_vars.yml:3:15"]
    );
    assert_eq!(
        vars("{{ cluster_name }}", "{{ cluster_name | lower }}"),
        ["template group_vars.yml:5:13"]
    );
    assert_eq!(
        vars("container_manager: containerd", "container_manager: crio"),
        ["unsupported group_vars.yml:6:20"]
    );
    assert_eq!(
        vars("plugin: flannel", "plugin: calico"),
        ["network-plugin group_vars.yml:7:22"]
    );
    assert_eq!(
        vars("kube_network_plugin: flannel\n", ""),
        ["network-plugin hosts.yml:3:1"]
    );
    assert_eq!(
        vars("hatchery_cluster_id: k8s-cluster\n", ""),
        ["missing-key group_vars.yml:3:15"]
    );
    assert_eq!(
        vars("10.233.64.0/18", "10.233.64.1/18"),
        ["bad-network group_vars.yml:9:19"]
    );
    assert_eq!(
        vars("10.233.64.0/18", "10.233.0.0/16"),
        ["network-overlap group_vars.yml:9:19"]
    );
    assert_eq!(
        vars("10.233.64.0/18", "192.168.0.0/16"),
        [
            "address-in-network hosts.yml:9:45",
            "address-in-network hosts.yml:10:45",
            "address-in-network hosts.yml:11:45",
            "address-in-network hosts.yml:13:21",
            "address-in-network hosts.yml:16:21",
        ]
    );
    assert_eq!(
        vars("node_prefix: 24", "node_prefix: 17"),
        ["pod-network-size group_vars.yml:9:19"]
    );
    assert_eq!(vars("ipvs", "userspace"), ["bad-mode group_vars.yml:11:18"]);
    assert_eq!(
        vars("k8s.example.org,", "k8s_example,"),
        ["bad-name group_vars.yml:13:39"]
    );
    assert_eq!(vars("prefix: docker.io", "prefix: quay.io"), [""; 0]);
    assert_eq!(
        vars("prefix: docker.io", "prefix: https://quay.io/"),
        [""; 0]
    );
    let part = vars("prefix: docker.io", "prefix: quay.io/team");
    assert_eq!(part.len(), 1, "{part:?}");
    assert_eq!(
        vars("prefix: docker.io", "other: docker.io"),
        ["missing-key group_vars.yml:15:5"]
    );
    assert_eq!(
        vars("https://registry", "ftp://registry"),
        ["bad-registry group_vars.yml:17:15"]
    );
    assert_eq!(
        vars(
            "kubelet_max_pods: 150",
            "kubelet_custom_flags: [fail-swap-on]"
        ),
        ["bad-argument group_vars.yml:12:24"]
    );
    assert_eq!(
        vars(
            "kubelet_max_pods: 150",
            "loadbalancer_apiserver: {address: 10.0.0.9}"
        ),
        ["missing-key group_vars.yml:12:25"]
    );
}

#[test]
fn files_that_are_no_files() {
    assert_eq!(found(HOSTS, "- a\n"), ["wrong-kind group_vars.yml:1:1"]);
    assert_eq!(found("- a\n", VARS), ["wrong-kind hosts.yml:1:1"]);
    assert_eq!(
        found("[kube_node]\nnode1\n", VARS),
        ["ini-inventory hosts.yml:1:1"]
    );
    let both = found("all: [", "a: [");
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(
        both[0].contains("hosts.yml") && both[1].contains("group_vars.yml"),
        "{both:?}"
    );
    // Whatever is wrong in either file is told at once.
    let hosts = HOSTS.replace("2222", "x");
    assert_eq!(
        found(&hosts, &VARS.replace("ipvs", "x")),
        ["bad-port hosts.yml:17:21", "bad-mode group_vars.yml:11:18"]
    );
}
