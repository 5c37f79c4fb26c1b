//! The addresses of Services and pods, with kubespray's defaults.

use ipnet::IpNet;

use super::Reader;
use crate::cluster::Component;
use crate::draft::Field;
use crate::source::Spanned;
use crate::value::{Cidrs, DnsName, Mismatch, address, cidr, nth_address};
use crate::walk::boolean;

/// A variable and what holds without it.
type Network = (&'static str, &'static str);

const SERVICES: [Network; 2] = [
    ("kube_service_addresses", "10.233.0.0/18"),
    (
        "kube_service_addresses_ipv6",
        "fd85:ee78:d8a6:8607::1000/116",
    ),
];
const PODS: [Network; 2] = [
    ("kube_pods_subnet", "10.233.64.0/18"),
    ("kube_pods_subnet_ipv6", "fd85:ee78:d8a6:8607::1:0/112"),
];
/// kubespray gives DNS the third address of the Service network.
const DNS: u32 = 3;
/// The part of the pods' IPv6 network that each node gets unless said.
const NODE_PREFIX_IPV6: &str = "120";

impl Reader<'_, '_> {
    pub(super) fn networks(&mut self) {
        let flag = |field: Field<bool>, default| field.unwrap_or(default);
        let v4 = flag(
            self.cluster_field(&["ipv4_stack"], "bad-boolean", boolean),
            true,
        );
        let dual = self.cluster_field(&["enable_dual_stack_networks"], "bad-boolean", boolean);
        let v6 = self.cluster_field(&["ipv6_stack"], "bad-boolean", boolean);
        let v6 = flag(v6, false) || flag(dual, false) || !v4;
        self.draft.service_cidrs = self.pair(SERVICES, v4, v6);
        self.draft.pod_cidrs = self.pair(PODS, v4, v6);
        self.node_prefixes(v4, v6);
        self.dns();
    }

    /// One network, or one of each family.
    fn pair(&mut self, [four, six]: [Network; 2], v4: bool, v6: bool) -> Field<Cidrs> {
        let first = if v4 { four } else { six };
        let primary = self.network(first, v4 && v6, true);
        let second = if v4 && v6 {
            self.network(six, true, false)
        } else {
            Field::Absent
        };
        match (primary, second) {
            (Field::Given(primary), Field::Absent) => Field::Given(primary.map(|primary| Cidrs {
                primary,
                secondary: None,
            })),
            (Field::Given(primary), Field::Given(second)) => {
                Field::Given(primary.map(|primary| Cidrs {
                    primary,
                    secondary: Some(second.value),
                }))
            }
            _ => Field::Wrong,
        }
    }

    fn network(&mut self, (name, usual): Network, dual: bool, four: bool) -> Field<IpNet> {
        let family = |text: &str| {
            let net = cidr(text)?;
            if dual && net.addr().is_ipv4() != four {
                return Err(Mismatch::new(
                    "a network of the other family",
                    "set the IPv4 network in the variable without _ipv6 and the IPv6 network in the one with it",
                ));
            }
            Ok(net)
        };
        let said = self.cluster_field(&[name], "bad-network", family);
        match cidr(usual) {
            Ok(usual) => said.or(self.default_field(usual)),
            Err(_) => said,
        }
    }

    /// The controller manager divides the pod network among the nodes.
    fn node_prefixes(&mut self, v4: bool, v6: bool) {
        let four = self.cluster_field(&["kube_network_node_prefix"], "bad-number", prefix);
        let six = self.cluster_field(&["kube_network_node_prefix_ipv6"], "bad-number", prefix);
        let six = six.or(self.default_field(NODE_PREFIX_IPV6.to_owned()));
        let wanted = match (v4, v6) {
            (true, true) => vec![
                ("--node-cidr-mask-size-ipv4", four),
                ("--node-cidr-mask-size-ipv6", six),
            ],
            (true, false) => vec![("--node-cidr-mask-size", four)],
            (false, _) => vec![("--node-cidr-mask-size", six)],
        };
        for (flag, field) in wanted {
            if let Field::Given(Spanned { value, span }) = field {
                self.argument(Component::KubeControllerManager, flag, span, value);
            }
        }
    }

    fn dns(&mut self) {
        let domain = ["dns_domain", "cluster_name"];
        self.draft.dns_domain = self.cluster_field(&domain, "bad-name", DnsName::parse);
        self.draft.service_gateway =
            self.cluster_field(&["kube_apiserver_ip"], "bad-address", address);
        let usual = self.draft.service_cidrs.given().and_then(|cidrs| {
            let address = nth_address(cidrs.value.primary, DNS)?;
            Some(Field::Given(Spanned::new(address, cidrs.span)))
        });
        let said = self.cluster_field(&["skydns_server"], "bad-address", address);
        self.draft.dns_address = said.or(usual.unwrap_or_default());
        // kubespray knows no other way.
        self.draft.coredns_in_pods = self.default_field(true);
        self.draft.coredns_version =
            self.cluster_field(&["coredns_version"], "bad-image-version", version);
        let replicas = ["coredns_replicas", "dns_min_replicas"];
        self.draft.coredns_replicas = self.cluster_field(&replicas, "bad-number", pods);
    }
}

fn prefix(text: &str) -> Result<String, Mismatch> {
    match text.parse::<u8>() {
        Ok(1..=128) => Ok(text.to_owned()),
        _ => Err(Mismatch::new(
            "not a prefix length",
            "use a number, such as 24 for IPv4 and 120 for IPv6",
        )),
    }
}

/// Images of CoreDNS are named by their version without v.
fn version(text: &str) -> Result<String, Mismatch> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let valid = bare.len() <= 128
        && bare.starts_with(|c: char| c.is_ascii_digit())
        && bare
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if valid {
        Ok(bare.to_owned())
    } else {
        Err(Mismatch::new("not a version", "write it as v1.11.1"))
    }
}

fn pods(text: &str) -> Result<u32, Mismatch> {
    text.parse()
        .ok()
        .filter(|number| (1..=1000).contains(number))
        .ok_or_else(|| Mismatch::new("not a number of pods", "use a number from 1 to 1000"))
}
