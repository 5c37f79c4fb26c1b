//! Ports that the parts of a cluster listen on, and which process has them already.

use std::{collections::BTreeMap, net::IpAddr};

use hatchery_host::facts::{Listener, Protocol};
use hatchery_spec::{
    cluster::{CoreDns, Role},
    value::Port,
};

use super::{
    Severity::{Error, Warning},
    subject::Subject,
};
use crate::finding::Findings;

/// A port that something of ours listens on.
struct Need {
    port: u16,
    protocol: Protocol,
    /// What listens there.
    part: &'static str,
    /// Whether it listens on the machine's own addresses only, not on all.
    own_addresses: bool,
}

fn needs(subject: &Subject<'_>) -> Vec<Need> {
    let tcp = |port, part| Need {
        port,
        protocol: Protocol::Tcp,
        part,
        own_addresses: part == "etcd",
    };
    let mut needs = Vec::new();
    if subject.is(Role::Master) {
        needs.extend([
            tcp(Port::API_SERVER.number(), "kube-apiserver"),
            tcp(10257, "kube-controller-manager"),
            tcp(10259, "kube-scheduler"),
        ]);
        if subject.cluster.dns.coredns == CoreDns::Binary {
            let udp = Need {
                protocol: Protocol::Udp,
                ..tcp(53, "coredns")
            };
            needs.extend([tcp(53, "coredns"), udp, tcp(9153, "coredns")]);
        }
    }
    if subject.is(Role::Worker) {
        needs.extend([
            tcp(10248, "kubelet"),
            tcp(10249, "kube-proxy"),
            tcp(10250, "kubelet"),
            tcp(10256, "kube-proxy"),
        ]);
    }
    if subject.is(Role::Etcd) {
        needs.extend([2379, 2380, 2381].map(|port| tcp(port, "etcd")));
    }
    if let Some(balancer) = subject.cluster.load_balancer()
        && subject.is(Role::LoadBalancer)
    {
        needs.push(tcp(balancer.bind_port.number(), "load balancer"));
    }
    needs
}

impl Need {
    fn is_taken_by(&self, listener: &Listener, own: IpAddr) -> bool {
        let address = listener.address;
        self.port == listener.port
            && self.protocol == listener.protocol
            && (!self.own_addresses
                || address.is_unspecified()
                || address.is_loopback()
                || address == own)
    }

    /// Whether a process is what we would put there ourselves. The kernel keeps 15 bytes of a name.
    fn is_ours(&self, process: &str) -> bool {
        match self.part {
            "load balancer" => ["nginx", "haproxy"].contains(&process),
            part => process == &part[..part.len().min(15)],
        }
    }
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let listeners = subject.facts.listeners.as_deref().unwrap_or_default();
    // Whoever holds a port, with all of ours that he holds.
    let mut taken: BTreeMap<(bool, String), Vec<String>> = BTreeMap::new();
    for need in needs(subject) {
        for listener in listeners
            .iter()
            .filter(|one| need.is_taken_by(one, subject.node.address))
        {
            let mut names: Vec<_> = listener
                .processes
                .iter()
                .map(|process| process.name.as_str())
                .collect();
            if subject.ours && names.iter().all(|name| need.is_ours(name)) {
                continue;
            }
            names.dedup();
            let holder = if names.is_empty() {
                "an unknown process".to_owned()
            } else {
                names.join(", ")
            };
            // A resolver for the machine itself, such as systemd-resolved: coredns can listen beside it.
            let beside = need.port == 53 && listener.address.is_loopback();
            let protocol = match need.protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
            };
            let port = format!("{}/{protocol} ({})", need.port, need.part);
            let ports = taken.entry((beside, holder)).or_default();
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    for ((beside, holder), ports) in taken {
        let plural = if ports.len() == 1 { "port" } else { "ports" };
        let severity = if beside { Warning } else { Error };
        subject.say(
            findings,
            (severity, "port"),
            format!("needs {plural} {}, which {holder} has", ports.join(", ")),
            format!(
                "stop {holder} there ('ss -lntup' shows it), or give the role to another machine"
            ),
        );
    }
}
