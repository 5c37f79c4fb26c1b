//! Names, addresses, firewalls, resolvers and proxies.

use hatchery_spec::cluster::Role;
use ipnet::IpNet;

use super::{
    Severity::{Error, Note, Warning},
    subject::Subject,
};
use crate::finding::Findings;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    hostname(subject, findings);
    own_address(subject, findings);
    overlaps(subject, findings);
    firewalls(subject, findings);
    if subject.is(Role::Worker) {
        resolver(subject, findings);
    }
    proxies(subject, findings);
}

fn hostname(subject: &Subject<'_>, findings: &mut Findings) {
    let wanted = subject.node.name.as_str();
    if let Some(now) = subject.facts.names.hostname.as_deref()
        && subject.node.set_hostname
        && now != wanted
    {
        subject.say(
            findings,
            (Note, "hostname"),
            format!("will be renamed to {wanted}; now it is {now}"),
            "",
        );
    }
}

/// Behind a translated address the machine can be reached, but nothing there can listen on it.
fn own_address(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(interfaces) = &subject.facts.interfaces else {
        return;
    };
    let address = subject.node.address;
    let mut addresses = interfaces.iter().flat_map(|interface| &interface.addresses);
    if addresses.any(|own| own.address == address) {
        return;
    }
    let severity = if subject.is(Role::Etcd) || subject.is(Role::Master) {
        Error
    } else {
        Warning
    };
    subject.say(
        findings,
        (severity, "address"),
        format!("does not have the address {address} itself"),
        "give as ip an address of one of its interfaces; where SSH needs another way, name a bastion",
    );
}

fn overlaps(subject: &Subject<'_>, findings: &mut Findings) {
    // Our own pod network is no stranger.
    if subject.ours {
        return;
    }
    let cluster = subject.cluster;
    let ranges = cluster.services.cidrs.iter().map(|net| ("Services", net));
    let ranges: Vec<_> = ranges
        .chain(cluster.pods.cidrs.iter().map(|net| ("pods", net)))
        .collect();
    for interface in subject.facts.interfaces.iter().flatten() {
        for own in &interface.addresses {
            let Ok(net) = IpNet::new(own.address, own.prefix) else {
                continue;
            };
            for (what, range) in &ranges {
                if net.contains(range) || range.contains(&net) {
                    subject.say(
                        findings,
                        (Error, "network-overlap"),
                        format!("has the network {} on {}, which overlaps {range} of the {what}", net.trunc(), interface.name),
                        "choose other addresses for Services and pods in the file, or take that network off the machine",
                    );
                }
            }
        }
    }
}

fn firewalls(subject: &Subject<'_>, findings: &mut Findings) {
    let firewalls = &subject.facts.firewalls;
    for (name, firewall) in [("firewalld", &firewalls.firewalld), ("ufw", &firewalls.ufw)] {
        if firewall
            .as_ref()
            .is_some_and(|firewall| firewall.active == Some(true))
        {
            let more = match name {
                "firewalld" => ", and the networks of pods and Services trusted",
                _ => "",
            };
            subject.say(
                findings,
                (Note, "firewall"),
                format!("is behind {name}: the ports of its roles will be opened there{more}"),
                "",
            );
        }
    }
    if firewalls
        .nftables
        .as_ref()
        .is_some_and(|firewall| firewall.active == Some(true))
    {
        subject.say(
            findings,
            (Warning, "firewall"),
            "has nftables.service, whose own rules may block the ports of its roles",
            "allow the cluster's ports in /etc/nftables.conf",
        );
    }
}

fn resolver(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(resolver) = &subject.facts.resolver else {
        return;
    };
    let real = resolver.upstream.as_deref().unwrap_or_default();
    let real = real.iter().filter(|server| !server.is_loopback()).count();
    if resolver.nameservers.is_empty() {
        subject.say(
            findings,
            (Warning, "resolver"),
            "names no server in /etc/resolv.conf: pods cannot resolve names outside the cluster",
            "name the network's name server in /etc/resolv.conf there",
        );
    } else if resolver.has_loopback() && real > 0 {
        subject.say(
            findings,
            (Note, "resolver"),
            "resolves names by itself: pods will be given the servers behind it",
            "",
        );
    } else if resolver.has_loopback() {
        subject.say(
            findings,
            (Warning, "resolver"),
            "names itself in /etc/resolv.conf, where pods cannot reach it",
            "name the network's own name server in /etc/resolv.conf there",
        );
    }
}

fn proxies(subject: &Subject<'_>, findings: &mut Findings) {
    let is = |wanted: &[&str]| {
        let proxies = &subject.facts.proxies;
        proxies
            .iter()
            .any(|name| wanted.contains(&name.to_ascii_lowercase().as_str()))
    };
    if is(&["http_proxy", "https_proxy", "all_proxy"]) {
        let names = subject.facts.proxies.join(", ");
        if is(&["no_proxy"]) {
            subject.say(
                findings,
                (Note, "proxy"),
                format!("sets {names} in /etc/environment"),
                "see that no_proxy covers the machines, the Services and the pods",
            );
        } else {
            subject.say(
                findings,
                (Warning, "proxy"),
                format!("sets {names} in /etc/environment, but no no_proxy: the cluster's own traffic may go to the proxy"),
                "add no_proxy with the addresses of the machines, the Services and the pods",
            );
        }
    }
}
