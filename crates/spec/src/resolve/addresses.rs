//! Networks that must not overlap, and addresses that must be in them.

use std::net::IpAddr;

use ipnet::IpNet;

use super::RelatedTo;
use super::machines::Fleet;
use crate::cluster::Component;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::{Draft, Field};
use crate::source::Span;
use crate::value::{Cidrs, nth_address};

/// The networks, and what follows from them.
pub(super) struct Networks {
    pub(super) services: Cidrs,
    pub(super) pods: Cidrs,
    pub(super) gateway: Option<IpAddr>,
    pub(super) dns: Option<IpAddr>,
}

const SERVICES: Cidrs = Cidrs {
    primary: IpNet::V4(ipnet::Ipv4Net::new_assert(
        std::net::Ipv4Addr::new(10, 32, 0, 0),
        16,
    )),
    secondary: None,
};
const PODS: Cidrs = Cidrs {
    primary: IpNet::V4(ipnet::Ipv4Net::new_assert(
        std::net::Ipv4Addr::new(10, 244, 0, 0),
        16,
    )),
    secondary: None,
};

pub(super) fn derive(draft: &Draft, fleet: &Fleet, diagnostics: &mut Diagnostics) -> Networks {
    let services = draft.service_cidrs.unwrap_or(SERVICES);
    let pods = draft.pod_cidrs.unwrap_or(PODS);
    let mut networks = Networks {
        services,
        pods,
        gateway: nth_address(services.primary, 1),
        dns: None,
    };
    // What cannot be read cannot be compared.
    let readable = draft.service_cidrs != Field::Wrong;
    if readable {
        check_service_size(draft, services, diagnostics);
        check_gateway(draft, &networks, diagnostics);
    }
    networks.dns = dns(draft, &networks, readable, diagnostics);
    if draft.pod_cidrs != Field::Wrong {
        check_pod_size(draft, fleet, pods, diagnostics);
    }
    if readable && draft.pod_cidrs != Field::Wrong {
        check_overlap(draft, &networks, diagnostics);
        check_families(draft, fleet, &networks, diagnostics);
        check_machines(draft, fleet, &networks, diagnostics);
    }
    networks
}

/// What the API server accepts as its Services' network.
fn check_service_size(draft: &Draft, services: Cidrs, diagnostics: &mut Diagnostics) {
    let span = draft.service_cidrs.span().unwrap_or(draft.file);
    for net in services.iter() {
        let free = net.max_prefix_len() - net.prefix_len();
        let (message, remedy) = if free > 20 {
            let longest = net.max_prefix_len() - 20;
            (
                format!(
                    "{net} is too large: the API server supports at most 2^20 Service addresses"
                ),
                format!("use a prefix of /{longest} or longer"),
            )
        } else if free < 4 {
            let shortest = net.max_prefix_len() - 4;
            (
                format!("{net} is too small for Services and DNS"),
                format!("use a prefix of /{shortest} or shorter, such as 10.32.0.0/16"),
            )
        } else {
            continue;
        };
        diagnostics.push(Diagnostic::error("service-network-size", span, message).remedy(remedy));
    }
}

fn check_gateway(draft: &Draft, networks: &Networks, diagnostics: &mut Diagnostics) {
    let (Some(given), Some(first)) = (draft.service_gateway.given(), networks.gateway) else {
        return;
    };
    if given.value != first {
        let message = format!(
            "the gateway {} is not the first address of the Service network {}",
            given.value, networks.services.primary
        );
        diagnostics.push(
            Diagnostic::error("wrong-gateway", given.span, message)
                .related_to(draft.service_cidrs.span(), "the network")
                .remedy(format!(
                    "write {first}, or remove the line: it is derived from the network"
                )),
        );
    }
}

/// The DNS Service's address: said once, twice alike, or derived.
fn dns(
    draft: &Draft,
    networks: &Networks,
    readable: bool,
    diagnostics: &mut Diagnostics,
) -> Option<IpAddr> {
    if let (Some(one), Some(two)) = (draft.dns_address.given(), draft.dns_vip.given())
        && one.value != two.value
    {
        let (late, early) = if one.span.start > two.span.start {
            (one, two)
        } else {
            (two, one)
        };
        let message = format!(
            "two different DNS addresses are given, {} and {}",
            early.value, late.value
        );
        diagnostics.push(
            Diagnostic::error("contradiction", late.span, message)
                .label("another one here")
                .related(early.span, "one address here")
                .remedy("dns-vip and service.dnsaddr are the same address: remove dns-vip"),
        );
        return None;
    }
    let Some(given) = draft.dns_address.given().or(draft.dns_vip.given()) else {
        return nth_address(networks.services.primary, 10);
    };
    if !readable {
        return None;
    }
    let services = networks.services;
    let suggestion = nth_address(services.primary, 10).map_or_else(String::new, |tenth| {
        format!("write {tenth}, or remove the line: it is derived from the network")
    });
    let problem = match services.iter().find(|net| net.contains(&given.value)) {
        None => format!(
            "the DNS address {} is outside the Service network {services}",
            given.value
        ),
        Some(_) if Some(given.value) == networks.gateway => format!(
            "the DNS address {} belongs to the API server's own Service",
            given.value
        ),
        Some(net)
            if given.value == net.network()
                || (given.value.is_ipv4() && given.value == net.broadcast()) =>
        {
            format!("{} is an address that no Service can have", given.value)
        }
        Some(_) => return Some(given.value),
    };
    diagnostics.push(
        Diagnostic::error("dns-address", given.span, problem)
            .related_to(draft.service_cidrs.span(), "the network")
            .remedy(suggestion),
    );
    None
}

/// Every node gets a part of the pod network.
fn check_pod_size(draft: &Draft, fleet: &Fleet, pods: Cidrs, diagnostics: &mut Diagnostics) {
    let span = draft.pod_cidrs.span().unwrap_or(draft.file);
    let nodes = fleet.workers.len();
    for net in pods.iter() {
        let (mask, said) = node_mask(draft, net);
        let Some(bits) = mask.checked_sub(net.prefix_len()) else {
            let message = format!("{net} is too small: each node gets a /{mask} of it");
            diagnostics.push(
                Diagnostic::error("pod-network-size", span, message)
                    .related_to(said, "set here")
                    .remedy(format!(
                        "use a prefix of /{} or shorter",
                        mask.saturating_sub(8)
                    )),
            );
            continue;
        };
        if bits > 16 {
            let message = format!("{net} is too large to be divided into parts of /{mask}");
            diagnostics.push(
                Diagnostic::error("pod-network-size", span, message)
                    .related_to(said, "set here")
                    .remedy(format!("use a prefix of /{} or longer", mask - 16)),
            );
        } else if nodes > 1 << bits {
            let message = format!(
                "{net} has room for {} nodes of /{mask} each; the cluster has {nodes}",
                1 << bits
            );
            diagnostics.push(
                Diagnostic::error("pod-network-size", span, message)
                    .related_to(said, "set here")
                    .remedy("use a shorter prefix, such as 10.244.0.0/16 for 256 nodes or 10.240.0.0/12 for 4096"),
            );
        }
    }
}

/// The prefix of one node's part, and where it was said.
fn node_mask(draft: &Draft, net: IpNet) -> (u8, Option<Span>) {
    let (usual, flag) = match net {
        IpNet::V4(_) => (24, "--node-cidr-mask-size-ipv4"),
        IpNet::V6(_) => (64, "--node-cidr-mask-size-ipv6"),
    };
    let said = draft.extra_args.iter().find(|(component, name, _)| {
        *component == Component::KubeControllerManager
            && (name.value == flag || name.value == "--node-cidr-mask-size")
    });
    match said.and_then(|(_, name, value)| Some((value.parse().ok()?, name.span))) {
        Some((mask, span)) => (mask, Some(span)),
        None => (usual, None),
    }
}

fn overlap(one: IpNet, two: IpNet) -> bool {
    one.contains(&two) || two.contains(&one)
}

fn check_overlap(draft: &Draft, networks: &Networks, diagnostics: &mut Diagnostics) {
    for service in networks.services.iter() {
        for pod in networks.pods.iter().filter(|pod| overlap(service, *pod)) {
            let (service_span, pod_span) = (draft.service_cidrs.span(), draft.pod_cidrs.span());
            let span = pod_span.or(service_span).unwrap_or(draft.file);
            let message =
                format!("the pod network {pod} and the Service network {service} overlap");
            let mut diagnostic = Diagnostic::error("network-overlap", span, message).remedy(
                "use two networks that have no address in common, such as 10.244.0.0/16 and 10.32.0.0/16",
            );
            if pod_span.is_some() {
                diagnostic = diagnostic.related_to(service_span, "the Service network");
            }
            diagnostics.push(diagnostic);
        }
    }
}

fn family(v4: bool) -> &'static str {
    if v4 { "IPv4" } else { "IPv6" }
}

fn check_families(
    draft: &Draft,
    fleet: &Fleet,
    networks: &Networks,
    diagnostics: &mut Diagnostics,
) {
    let is_v4 = |net: IpNet| net.addr().is_ipv4();
    let services = is_v4(networks.services.primary);
    let span = draft
        .pod_cidrs
        .span()
        .or(draft.service_cidrs.span())
        .unwrap_or(draft.file);
    if services != is_v4(networks.pods.primary) {
        let message = format!(
            "the Service network is {} first, but the pod network is {} first",
            family(services),
            family(!services)
        );
        diagnostics.push(
            Diagnostic::error("network-family", span, message)
                .related_to(
                    draft
                        .service_cidrs
                        .span()
                        .filter(|_| draft.pod_cidrs.span().is_some()),
                    "the Service network",
                )
                .remedy("use networks of the same family, in the same order"),
        );
        return;
    }
    if networks.services.is_dual() && !networks.pods.is_dual() {
        diagnostics.push(
            Diagnostic::error(
                "network-family",
                span,
                "Services have two networks but pods only one",
            )
            .related_to(
                draft
                    .service_cidrs
                    .span()
                    .filter(|_| draft.pod_cidrs.span().is_some()),
                "the Service networks",
            )
            .remedy("give network.podcidr an IPv4 and an IPv6 network too"),
        );
    }
    let stranger = fleet
        .all
        .iter()
        .find(|merged| merged.address.value.is_ipv4() != services);
    if let Some(merged) = stranger {
        let message = format!(
            "{} is {}, but the Service network is {}",
            merged.address.value,
            family(!services),
            family(services)
        );
        diagnostics.push(
            Diagnostic::error("network-family", merged.address.span, message)
                .related_to(draft.service_cidrs.span(), "the Service network")
                .remedy("use addresses and networks of the same family"),
        );
    }
}

fn check_machines(
    draft: &Draft,
    fleet: &Fleet,
    networks: &Networks,
    diagnostics: &mut Diagnostics,
) {
    let kinds = [
        ("pod", networks.pods, draft.pod_cidrs.span()),
        ("Service", networks.services, draft.service_cidrs.span()),
    ];
    for merged in &fleet.all {
        let address = merged.address.value;
        for (kind, cidrs, span) in kinds {
            if let Some(net) = cidrs.iter().find(|net| net.contains(&address)) {
                let message =
                    format!("the machine's address {address} is within the {kind} network {net}");
                diagnostics.push(
                    Diagnostic::error("address-in-network", merged.address.span, message)
                        .related_to(span, "the network")
                        .remedy("use a network that contains no machine"),
                );
            }
        }
    }
}
