//! Networks for Services and pods that hold none of the machines.

use std::net::IpAddr;

use ipnet::IpNet;

/// Services' networks, the usual one first.
const SERVICES: [&str; 3] = ["10.32.0.0/16", "172.30.0.0/16", "192.168.128.0/20"];
/// Pods' networks with room for 256 nodes.
const PODS: [&str; 3] = ["10.244.0.0/16", "172.20.0.0/16", "10.128.0.0/16"];
/// Pods' networks with room for 4096 nodes.
const MANY_PODS: [&str; 3] = ["10.240.0.0/12", "10.128.0.0/12", "100.64.0.0/12"];
const SERVICES_6: [&str; 2] = ["fd00:10:32::/112", "fd10:32::/112"];
const PODS_6: [&str; 2] = ["fd00:10:244::/48", "fd10:244::/48"];

/// How many nodes the usual pods' network has room for.
const USUAL_NODES: usize = 256;

pub(super) struct Networks {
    pub(super) services: &'static str,
    pub(super) pods: &'static str,
}

pub(super) fn choose(machines: &[IpAddr], nodes: usize) -> Networks {
    let v4 = machines.iter().all(IpAddr::is_ipv4);
    let (services, pods): (&[_], &[_]) = match (v4, nodes > USUAL_NODES) {
        (true, false) => (&SERVICES, &PODS),
        (true, true) => (&SERVICES, &MANY_PODS),
        (false, _) => (&SERVICES_6, &PODS_6),
    };
    Networks {
        services: free(services, machines),
        pods: free(pods, machines),
    }
}

/// The first network without a machine in it; if all have one, the user must choose.
fn free(candidates: &[&'static str], machines: &[IpAddr]) -> &'static str {
    let is_free = |text: &&&str| {
        text.parse::<IpNet>()
            .is_ok_and(|net| !machines.iter().any(|machine| net.contains(machine)))
    };
    candidates
        .iter()
        .find(is_free)
        .or(candidates.first())
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(machine: &str, nodes: usize) -> (&'static str, &'static str) {
        let Networks { services, pods } = choose(&[machine.parse().unwrap()], nodes);
        (services, pods)
    }

    #[test]
    fn avoid_the_machines() {
        assert_eq!(chosen("192.168.0.1", 3), ("10.32.0.0/16", "10.244.0.0/16"));
        assert_eq!(chosen("10.32.7.1", 3), ("172.30.0.0/16", "10.244.0.0/16"));
        assert_eq!(chosen("10.244.0.1", 3), ("10.32.0.0/16", "172.20.0.0/16"));
        assert_eq!(chosen("10.0.0.1", 300), ("10.32.0.0/16", "10.240.0.0/12"));
        assert_eq!(
            chosen("fd00::1", 1),
            ("fd00:10:32::/112", "fd00:10:244::/48")
        );
    }

    #[test]
    fn no_two_candidates_overlap() {
        let net = |text: &&str| text.parse::<IpNet>().unwrap();
        for (services, pods) in [
            (&SERVICES[..], &PODS[..]),
            (&SERVICES[..], &MANY_PODS[..]),
            (&SERVICES_6[..], &PODS_6[..]),
        ] {
            for one in services.iter().map(net) {
                for two in pods.iter().map(net) {
                    assert!(
                        !one.contains(&two) && !two.contains(&one),
                        "{one} and {two}"
                    );
                }
            }
        }
    }
}
