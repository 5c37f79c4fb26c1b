//! From what a file says to the cluster it means: defaults, derivations, and all that must agree.

mod access;
mod addresses;
mod archives;
mod endpoint;
mod lists;
mod machines;
mod names;
mod ports;
mod versions;

use std::collections::BTreeMap;

use crate::cluster::{
    Arguments, Certificates, Cluster, CompanionVersions, CoreDns, DnsService, NetworkPlugin,
    PodNetwork, ServiceNetwork,
};
use crate::diagnostic::{Diagnostic, Diagnostics, Topic};
use crate::draft::{Draft, Field};
use crate::settings::registries;
use crate::source::Span;
use crate::value::DnsName;

/// Adds defaults, compares what must agree, and makes the cluster unless there are errors.
pub(crate) fn resolve(draft: &Draft, diagnostics: &mut Diagnostics) -> Option<Cluster> {
    diagnostics.set_topic(Topic::Access);
    require_id(draft, diagnostics);
    let fleet = machines::merge(draft, diagnostics);
    let names = names::assign(draft, &fleet, diagnostics);
    access::check(draft, &fleet, diagnostics);
    let networks = addresses::derive(draft, &fleet, diagnostics);
    let bind_port = ports::check(draft, &fleet, diagnostics);
    let endpoint = endpoint::derive(draft, &fleet, bind_port, diagnostics);
    diagnostics.set_topic(Topic::Deployment);
    versions::check(draft, &networks, diagnostics);
    archives::check(draft, &fleet, diagnostics);
    registries::check(&draft.runtime, diagnostics);
    require_plugin(draft, diagnostics);
    diagnostics.set_topic(Topic::Access);
    if diagnostics.has_errors() {
        return None;
    }
    let masters = fleet.masters.clone();
    if masters.is_empty() {
        return None;
    }
    Some(Cluster {
        id: draft.id.value()?.clone(),
        dialect: draft.dialect,
        kubernetes_version: draft.kubernetes_version.value().copied(),
        companion_versions: CompanionVersions {
            etcd: draft.etcd_version.value().copied(),
            containerd: draft.containerd_version.value().copied(),
            coredns: draft.coredns_program_version.value().copied(),
        },
        machines: fleet.machines(draft, names)?,
        masters,
        workers: fleet.workers.clone(),
        etcds: fleet.etcds.clone(),
        load_balancer: fleet.load_balancer(bind_port),
        endpoint: endpoint?,
        services: ServiceNetwork {
            cidrs: networks.services,
            gateway: networks.gateway?,
        },
        dns: DnsService {
            address: networks.dns?,
            domain: dns_domain(draft)?,
            coredns: coredns(draft),
        },
        pods: PodNetwork {
            cidrs: networks.pods,
            plugin: plugin(draft),
        },
        api_server: draft.api_server.resolve(),
        certificates: Certificates {
            external_ca: draft.external_ca.value().cloned(),
        },
        etcd: draft.etcd.resolve(),
        runtime: draft.runtime.resolve(draft.dialect)?,
        kubelet: draft.kubelet.resolve(),
        kube_proxy: draft.kube_proxy.resolve(),
        extra_args: extra_args(draft),
        open_ports: ports::open(draft),
        packages: lists::packages(draft),
        leaving: Vec::new(),
    })
}

fn require_id(draft: &Draft, diagnostics: &mut Diagnostics) {
    if draft.id.is_absent() {
        diagnostics.push(
            Diagnostic::error("missing-key", draft.file, "the cluster has no name")
                .remedy("add cluster-id, such as cluster-id: k8s-cluster"),
        );
    }
}

/// Arguments for a plugin that is not named would be lost.
fn require_plugin(draft: &Draft, diagnostics: &mut Diagnostics) {
    if let (Some(span), Field::Absent) = (draft.network_manifest.span(), &draft.network_plugin) {
        diagnostics.push(
            Diagnostic::error(
                "missing-key",
                span,
                "arguments are given for a network plugin that is not named",
            )
            .remedy("add network.plugin, such as plugin: calico"),
        );
    }
}

fn plugin(draft: &Draft) -> Option<NetworkPlugin> {
    Some(NetworkPlugin {
        name: draft.network_plugin.value()?.clone(),
        manifest: draft.network_manifest.value().cloned(),
    })
}

fn dns_domain(draft: &Draft) -> Option<DnsName> {
    match draft.dns_domain.value() {
        Some(domain) => Some(domain.clone()),
        None => DnsName::parse("cluster.local").ok(),
    }
}

fn coredns(draft: &Draft) -> CoreDns {
    if !draft.coredns_in_pods.unwrap_or(false) {
        return CoreDns::Binary;
    }
    CoreDns::Pod {
        image_version: draft.coredns_version.unwrap_or("1.8.4".to_owned()),
        replicas: draft.coredns_replicas.unwrap_or(2),
    }
}

fn extra_args(draft: &Draft) -> BTreeMap<crate::cluster::Component, Arguments> {
    let mut all: BTreeMap<_, Vec<(String, String)>> = BTreeMap::new();
    for (component, name, value) in &draft.extra_args {
        all.entry(*component)
            .or_default()
            .push((name.value.clone(), value.clone()));
    }
    all.into_iter()
        .map(|(component, pairs)| (component, Arguments::new(pairs)))
        .collect()
}

/// In the same order, each once.
pub(crate) fn distinct<T: Clone + Eq + std::hash::Hash>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    all.filter(|one| seen.insert(one.clone())).collect()
}

/// Adds a related place where there is one.
pub(crate) trait RelatedTo {
    fn related_to(self, span: Option<Span>, label: &str) -> Self;
}

impl RelatedTo for Diagnostic {
    fn related_to(self, span: Option<Span>, label: &str) -> Self {
        match span {
            Some(span) => self.related(span, label),
            None => self,
        }
    }
}
