//! Of several values the one that Ansible would take.

use super::{cluster, reading};

/// One host `m`, with a place for variables at every level.
fn hosts(all: &str, parent: &str, child: &str, host: &str) -> String {
    format!(
        "\
all:
  vars: {{hatchery_cluster_id: a, kube_network_plugin: cni, {all}}}
  hosts:
    m: {{ip: 10.0.0.1, {host}}}
  children:
    site:
      vars: {{{parent}}}
      children:
        kube_node:
          vars: {{{child}}}
          children: {{kube_control_plane: }}
    kube_control_plane: {{hosts: {{m: }}}}
"
    )
}

fn user(hosts: &str, vars: &str) -> String {
    cluster(hosts, vars).machines()[0].access.user.clone()
}

#[test]
fn nearer_wins_and_the_file_wins_over_all() {
    let (a, b, c, d) = (
        "ansible_user: all",
        "ansible_user: parent",
        "ansible_user: child",
        "ansible_user: host",
    );
    assert_eq!(user(&hosts("", "", "", ""), ""), "root");
    assert_eq!(user(&hosts(a, "", "", ""), ""), "all");
    assert_eq!(user(&hosts(a, b, "", ""), ""), "parent");
    assert_eq!(user(&hosts(a, b, c, ""), ""), "child");
    assert_eq!(user(&hosts(a, b, c, d), ""), "host");
    assert_eq!(user(&hosts(a, b, c, d), "ansible_user: file"), "file");
}

#[test]
fn among_equals_the_alphabet_unless_a_priority_says_otherwise() {
    let hosts = |priority: &str| {
        format!(
            "\
all:
  vars: {{hatchery_cluster_id: a, kube_network_plugin: cni}}
  children:
    kube_control_plane: {{hosts: {{m: {{ip: 10.0.0.1}}}}}}
    kube_node: {{hosts: {{m: }}}}
    aa: {{hosts: {{m: }}, vars: {{ansible_user: aa{priority}}}}}
    zz: {{hosts: {{m: }}, vars: {{ansible_user: zz}}}}
"
        )
    };
    assert_eq!(user(&hosts(""), ""), "zz");
    assert_eq!(user(&hosts(", ansible_group_priority: 10"), ""), "aa");
}

#[test]
fn a_host_named_again_adds_to_what_was_said() {
    let again = hosts("", "", "", "ansible_port: 1").replace(
        "hosts: {m: }",
        "hosts: {m: {ansible_user: there, ansible_port: 2}}",
    );
    let cluster = cluster(&again, "");
    let access = &cluster.machines()[0].access;
    // Ansible reads children before hosts, so `all.hosts` has the last word.
    assert_eq!((access.user.as_str(), access.port.number()), ("there", 1));
}

#[test]
fn hosts_must_agree_on_what_is_the_clusters() {
    let text = "\
all:
  vars: {hatchery_cluster_id: a, kube_network_plugin: cni}
  hosts:
    m: {ip: 10.0.0.1, kube_proxy_mode: ipvs}
    n: {ip: 10.0.0.2, kube_proxy_mode: iptables}
  children:
    kube_control_plane: {hosts: {m: }}
    kube_node: {hosts: {m: , n: }}
";
    let said = reading(text, "").diagnostics;
    let all = said.sorted();
    assert_eq!(all.len(), 1, "{}", said.render(false));
    assert_eq!((all[0].code, all[0].related.len()), ("contradiction", 1));
    assert!(reading(text, "kube_proxy_mode: ipvs").cluster.is_some());
    let alike = text.replace("iptables", "ipvs");
    assert!(reading(&alike, "").cluster.is_some());
}

#[test]
fn ranges_stand_for_hosts_everywhere() {
    let text = "\
all:
  vars: {hatchery_cluster_id: a, kube_network_plugin: cni}
  hosts:
    m[1:3]: {ansible_user: ops, ansible_port: 2222}
    m1: {ip: 10.0.0.1}
    m2: {ip: 10.0.0.2}
    m3: {ip: 10.0.0.3}
  children:
    kube_control_plane: {hosts: 'm[1:3:2]'}
    kube_node: {hosts: {'m[01:03]': }}
    etcd: {hosts: {'m[1:3]': }}
";
    let cluster = cluster(&text.replace("[01:03]", "[1:3]"), "");
    assert_eq!(super::names(cluster.masters()), ["m1", "m3"]);
    assert_eq!(super::names(cluster.etcds()), ["m1", "m2", "m3"]);
    assert!(
        cluster
            .machines()
            .iter()
            .all(|machine| machine.access.user == "ops")
    );
    // m01 is not m1.
    assert!(reading(text, "").cluster.is_none());
}
