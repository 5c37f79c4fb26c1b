//! Whom CoreDNS answers as a service on a master, which shares its network with others.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::components::NodeContext;

/// Who may ask a master: pods, and the cluster's machines, whose addresses pods have outside of their network. Machines in
/// subnets of the master's own come as these subnets, so that one more of them does not change its file.
pub(super) fn allowed(node_context: &NodeContext<'_>) -> String {
    let cluster = node_context.cluster;
    let own = own_subnets(node_context);
    let (mut subnets, mut others) = (BTreeSet::new(), Vec::new());
    for machine in cluster.machines() {
        let around = own
            .iter()
            .filter(|subnet| subnet.contains(&machine.address));
        match around.max_by_key(|subnet| subnet.prefix_len()) {
            Some(subnet) => {
                subnets.insert(*subnet);
            }
            None => others.push(IpNet::from(machine.address)),
        }
    }
    let networks = cluster
        .pods
        .cidrs
        .iter()
        .chain(cluster.services.cidrs.iter());
    let all = networks.chain(subnets).chain(others);
    let words: Vec<_> = all.map(|network| network.to_string()).collect();
    words.join(" ")
}

/// The subnets that a machine has interfaces in. An address alone does not give its subnet.
fn own_subnets(node_context: &NodeContext<'_>) -> Vec<IpNet> {
    let interfaces = node_context.facts.interfaces.iter().flatten();
    let addresses = interfaces.flat_map(|interface| &interface.addresses);
    addresses
        .filter_map(|one| IpNet::new(one.address, one.prefix).ok())
        .filter(|net| (1..net.max_prefix_len()).contains(&net.prefix_len()))
        .map(|net| net.trunc())
        .collect()
}

#[cfg(test)]
mod tests {
    use hatchery_host::facts::{Address, Interface};

    use super::*;
    use crate::components::trial::Trial;

    /// Whom the first master answers, beside pods and Services; `own` are the addresses of its interfaces.
    fn clients_of(workers: &[&str], own: Option<&[&str]>) -> String {
        let workers = workers.iter().enumerate();
        let workers = workers.map(|(number, ip)| format!("{{name: w{number}, ip: '{ip}'}}"));
        let workers = workers.collect::<Vec<_>>().join(", ");
        let mut trial = Trial::with_workers(30, "runtime: containerd", &workers);
        let addresses = |texts: &[&str]| -> Vec<Address> {
            let nets = texts.iter().map(|text| text.parse::<IpNet>().unwrap());
            nets.map(|net| Address {
                address: net.addr(),
                prefix: net.prefix_len(),
            })
            .collect()
        };
        trial.facts.interfaces = own.map(|own| {
            vec![Interface {
                name: "eth0".into(),
                up: true,
                carrier: true,
                mtu: None,
                mac: None,
                addresses: addresses(own),
            }]
        });
        let all = allowed(&trial.node_context());
        let pods = trial.cluster.pods.cidrs.iter().count() + 1;
        let rest: Vec<_> = all.split(' ').skip(pods).collect();
        rest.join(" ")
    }

    #[test]
    fn machines_of_the_masters_subnets_are_no_list() {
        let eth0: &[&str] = &["10.0.0.1/24", "10.9.0.1/16"];
        for (workers, own, expected) in [
            (&["10.0.0.2"][..], Some(eth0), "10.0.0.0/24"),
            // One more is no change, wherever it stands.
            (&["10.0.0.9", "10.0.0.2"], Some(eth0), "10.0.0.0/24"),
            // Elsewhere they are named one by one, behind the subnets.
            (
                &["172.16.0.7", "10.9.8.7", "10.0.0.2", "10.9.0.3"],
                Some(eth0),
                "10.0.0.0/24 10.9.0.0/16 172.16.0.7/32",
            ),
            // The narrowest subnet is enough.
            (
                &["10.0.0.2"],
                Some(&["10.0.0.1/8", "10.0.0.1/25"]),
                "10.0.0.0/25",
            ),
            // An address without a subnet, or a subnet of everything, tells nothing.
            (
                &["10.0.0.2"],
                Some(&["10.0.0.1/32", "10.0.0.1/0"]),
                "10.0.0.1/32 10.0.0.2/32",
            ),
            (&["10.0.0.2"], None, "10.0.0.1/32 10.0.0.2/32"),
        ] {
            assert_eq!(clients_of(workers, own), expected, "{workers:?} {own:?}");
        }
    }
}
