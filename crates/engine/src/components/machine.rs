//! What every machine needs before anything of Kubernetes runs on it.

use hatchery_host::operation::{Firewall, HostsEntry, Operation, Port, Protocol};
use hatchery_spec::cluster::{self, CoreDns, Machine, Role};

use super::{
    NodeContext, agents,
    network_plugin::{self, NetworkPlugin},
};
use crate::resource::{Error, Resources, word};

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    if node_context.node.set_hostname {
        resources.operation(Operation::Hostname(word(node_context.node.name.as_str())?));
    }
    for node in peers(node_context) {
        resources.operation(Operation::HostsEntry(HostsEntry {
            address: node.address,
            names: vec![word(node.name.as_str())?],
        }));
    }
    if node_context.node.is(Role::Worker) {
        kernel(node_context, resources)?;
    }
    for (port, protocol) in ports(node_context)? {
        resources.operation(Operation::Firewall(Firewall {
            port,
            protocol,
            address: Some(node_context.node.address),
        }));
    }
    if node_context.node.is(Role::Worker) {
        // Packets of pods are forwarded, from and to interfaces that no zone knows.
        let cluster = node_context.cluster;
        for network in cluster
            .pods
            .cidrs
            .iter()
            .chain(cluster.services.cidrs.iter())
        {
            resources.operation(Operation::TrustedNetwork(network));
        }
    }
    agents::resources(node_context, resources)
}

/// The machines that this one calls by name: those that lead to the API, members of etcd, and itself. A worker more does
/// not concern the others.
fn peers<'a>(node_context: &NodeContext<'a>) -> impl Iterator<Item = &'a Machine> {
    let own = &node_context.node.name;
    let machines = node_context.cluster.machines().iter();
    machines
        .filter(move |one| one.name == *own || one.roles.iter().any(|role| *role != Role::Worker))
}

/// Kernel parameters that pods need, now and after a restart.
fn kernel(node_context: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    let modules = ["br_netfilter", "overlay"];
    for module in modules {
        resources.operation(Operation::Module(word(module)?));
    }
    let lines = modules.map(|module| format!("{module}\n")).concat();
    resources.file("/etc/modules-load.d/hatchery.conf", 0o644, lines)?;
    let mut parameters = vec![
        ("net.bridge.bridge-nf-call-iptables", "1"),
        ("net.bridge.bridge-nf-call-ip6tables", "1"),
        ("net.ipv4.ip_forward", "1"),
        // kube-proxy sets it by itself; so it is recorded, and comes back.
        ("net.ipv4.conf.all.route_localnet", "1"),
    ];
    let addresses = node_context
        .cluster
        .pods
        .cidrs
        .iter()
        .chain(node_context.cluster.services.cidrs.iter());
    if addresses.into_iter().any(|net| net.addr().is_ipv6()) {
        parameters.push(("net.ipv6.conf.all.forwarding", "1"));
    }
    if !node_context.is_container() {
        // The kubelet insists on these, and would otherwise set them behind our back.
        parameters.extend([
            ("vm.overcommit_memory", "1"),
            ("vm.panic_on_oom", "0"),
            ("kernel.panic", "10"),
            ("kernel.panic_on_oops", "1"),
            ("kernel.keys.root_maxkeys", "1000000"),
            ("kernel.keys.root_maxbytes", "25000000"),
        ]);
    }
    for (name, value) in &parameters {
        resources.sysctl(name, value)?;
    }
    let lines: String = parameters
        .iter()
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    resources.file("/etc/sysctl.d/90-hatchery.conf", 0o644, lines)
}

/// Ports that others must reach, where a firewall is active.
fn ports(node_context: &NodeContext<'_>) -> Result<Vec<(Port, Protocol)>, Error> {
    let mut wanted: Vec<(u16, u16, Protocol)> = Vec::new();
    let mut tcp =
        |ports: &[u16]| wanted.extend(ports.iter().map(|port| (*port, *port, Protocol::Tcp)));
    let node = node_context.node;
    if node.is(Role::Master) {
        tcp(&[6443]);
        if node_context.cluster.dns.coredns == CoreDns::Binary {
            tcp(&[53, 9153]);
        }
    }
    if node.is(Role::Etcd) {
        tcp(&[2379, 2380]);
    }
    if node.is(Role::Worker) {
        tcp(&[10250, 10256]);
    }
    if let Some(balancer) = node_context
        .cluster
        .load_balancer()
        .filter(|_| node.is(Role::LoadBalancer))
    {
        tcp(&[balancer.bind_port.number()]);
    }
    if node.is(Role::Master) && node_context.cluster.dns.coredns == CoreDns::Binary {
        wanted.push((53, 53, Protocol::Udp));
    }
    if node.is(Role::Worker) {
        wanted.extend([(30000, 32767, Protocol::Tcp), (30000, 32767, Protocol::Udp)]);
        let plugin = network_plugin::for_cluster(node_context.cluster);
        let ports = plugin.map_or(&[][..], NetworkPlugin::ports).iter();
        wanted.extend(ports.map(|&(port, protocol)| (port, port, protocol)));
    }
    for role in &node.roles {
        for port in node_context
            .cluster
            .open_ports
            .get(role)
            .into_iter()
            .flatten()
        {
            let protocol = match port.protocol {
                cluster::Protocol::Tcp => Protocol::Tcp,
                cluster::Protocol::Udp => Protocol::Udp,
            };
            wanted.push((port.port.number(), port.port.number(), protocol));
        }
    }
    let mut ports: Vec<(Port, Protocol)> = Vec::new();
    for (low, high, protocol) in wanted {
        let port = if low == high {
            Port::one(low)?
        } else {
            Port::range(low, high)?
        };
        if !ports.contains(&(port, protocol)) {
            ports.push((port, protocol));
        }
    }
    Ok(ports)
}
