//! Networks, addresses, endpoints and ports that do not fit.

use super::{GOOD, assert_fine, assert_only, found, reading};

#[test]
fn networks() {
    assert_only("service: {cidr: 10.32.0.1/16}\n", "bad-network", 1, 17);
    assert_only(
        "service: {cidr: 10.32.0.0/16, gateway: 10.32.0.2}\n",
        "wrong-gateway",
        1,
        40,
    );
    assert_only(
        "service: {cidr: 172.0.0.0/8}\n",
        "service-network-size",
        1,
        17,
    );
    assert_only(
        "service: {cidr: 10.0.0.0/30}\n",
        "service-network-size",
        1,
        17,
    );
    assert_only("service: {dnsaddr: 10.33.0.10}\n", "dns-address", 1, 20);
    assert_only("service: {dnsaddr: 10.32.0.1}\n", "dns-address", 1, 20);
    assert_only("service: {dnsaddr: 10.32.0.0}\n", "dns-address", 1, 20);
    assert_only(
        "dns-vip: 10.32.0.11\nservice: {dnsaddr: 10.32.0.10}\n",
        "contradiction",
        2,
        20,
    );
    assert_fine("dns-vip: 10.32.0.11\n");
    assert_only(
        "network: {podcidr: 10.32.128.0/17}\n",
        "network-overlap",
        1,
        20,
    );
    assert_only(
        "network: {podcidr: 10.32.0.0/15}\n",
        "network-overlap",
        1,
        20,
    );
    assert_only(
        "network: {podcidr: 10.0.0.0/25}\n",
        "pod-network-size",
        1,
        20,
    );
    assert_only(
        "network: {podcidr: 10.244.0.0/24}\n",
        "pod-network-size",
        1,
        20,
    );
    assert_fine("network: {podcidr: 10.244.0.0/23}\n");
    assert_only(
        "network: {pluginargs: {NetworkYamlPath: /a}}\n",
        "missing-key",
        1,
        41,
    );
    assert_only("network: {podcidr: 'fd00::/56'}\n", "network-family", 1, 20);
    let dual = "service: {cidr: '10.32.0.0/16,fd00:1::/112'}\n";
    assert_only(dual, "network-family", 1, 17);
    let both = format!("{dual}network: {{podcidr: '10.244.0.0/16,fd00:2::/56'}}\n");
    assert_fine(&both);
    assert_only(
        &format!("kubernetes-version: 1.20\n{both}"),
        "version-too-old",
        3,
        20,
    );
    assert_only(
        &format!("kubernetes-version: 1.22\nruntime: containerd\n{both}"),
        "beta-feature",
        4,
        20,
    );
    let inside = found(&format!("{GOOD}network: {{podcidr: 192.168.0.0/16}}\n"));
    let lines: Vec<_> = inside
        .iter()
        .map(|(code, line, _)| (code.as_str(), *line))
        .collect();
    assert_eq!(
        lines,
        [("address-in-network", 5), ("address-in-network", 8)]
    );
}

#[test]
fn a_cluster_of_ipv6_alone() {
    let text = "cluster-id: six\nmasters: [{name: m, ip: 'fd00::1'}]\nworkers: [{name: m, ip: 'fd00::1'}]\n\
        service: {cidr: 'fd01::/112'}\nnetwork: {podcidr: 'fd02::/56'}\n";
    let cluster = reading(text).cluster.unwrap();
    assert_eq!(cluster.endpoint.to_string(), "[fd00::1]:6443");
    assert_eq!(cluster.dns.address.to_string(), "fd01::a");
    assert_eq!(cluster.services.gateway.to_string(), "fd01::1");
    assert_eq!(
        found(&text.replace("'fd01::/112'", "10.32.0.0/16"))[0].0,
        "network-family"
    );
}

#[test]
fn endpoints_and_ports() {
    assert_only("apiserver-endpoint: 192.168.0.2:6443\n", "endpoint", 1, 21);
    assert_only("apiserver-endpoint: 192.168.0.1:8443\n", "endpoint", 1, 21);
    assert_only("apiserver-endpoint: 192.168.0.99:443\n", "endpoint", 1, 21);
    assert_fine("apiserver-endpoint: 192.168.0.1:6443\n");
    assert_fine("apiserver-endpoint: k8s.example.org:443\n");
    let balancer = "loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}\n";
    assert_fine(balancer);
    assert_fine(&format!("{balancer}apiserver-endpoint: 192.168.0.9:8443\n"));
    assert_only(
        &format!("{balancer}apiserver-endpoint: 192.168.0.1:6443\n"),
        "endpoint",
        2,
        21,
    );
    assert_only(
        &format!("{balancer}apiserver-endpoint: 192.168.0.9:6443\n"),
        "endpoint",
        2,
        21,
    );
    assert_only(
        &format!("{balancer}apiserver-endpoint: lb.example.org:6443\n"),
        "endpoint",
        2,
        21,
    );
    assert_only(
        "loadbalance: {name: m0, ip: 192.168.0.1, bind-port: 6443}\n",
        "port-conflict",
        1,
        53,
    );
    assert_only(
        "loadbalance: {name: lb, bind-port: 8443}\n",
        "missing-key",
        1,
        21,
    );
    assert_fine("loadbalance: {name: '', ip: '', port: 0, arch: '', bind-port: 0}\n");
    assert_fine("loadbalance:\n");
    assert_only("open-ports: {worker: [{port: 70000}]}\n", "bad-port", 1, 30);
    assert_only(
        "open-ports: {worker: [{port: 1, protocol: icmp}]}\n",
        "bad-protocol",
        1,
        43,
    );
    assert_only(
        "open-ports: {worker: [{protocol: tcp}]}\n",
        "missing-key",
        1,
        23,
    );
    assert_only(
        "open-ports: {worker: [{port: 1}, {port: 1, protocol: tcp}]}\n",
        "duplicate-port",
        1,
        41,
    );
}
