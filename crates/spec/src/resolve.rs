//! From what a file says to the cluster it means: defaults, derivations, and all that must agree.

mod access;
mod addresses;
mod archives;
mod endpoint;
mod lists;
mod machines;
mod names;
mod ports;
mod registries;
mod versions;

use std::collections::BTreeMap;

use crate::cluster::{
    ApiServer, Arguments, Certificates, Cluster, CompanionVersions, CoreDns, Dialect, DnsService,
    Etcd, KubeProxy, KubeProxyMode, Kubelet, NetworkPlugin, PodNetwork, Runtime, ServiceNetwork,
};
use crate::diagnostic::{Diagnostic, Diagnostics, Topic};
use crate::draft::{Draft, Field};
use crate::source::Span;
use crate::value::{AbsolutePath, DnsName, GoDuration};

/// How long the API server works at one request unless said.
const REQUEST_TIMEOUT: GoDuration = GoDuration::seconds(120);

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
    registries::check(draft, diagnostics);
    require_plugin(draft, diagnostics);
    diagnostics.set_topic(Topic::Access);
    if diagnostics.has_errors() {
        return None;
    }
    let masters = fleet.masters.clone();
    if masters.is_empty() {
        return None;
    }
    let runtime = draft.runtime_kind();
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
        api_server: ApiServer {
            extra_names: distinct(draft.extra_names.iter().map(|one| one.value.clone())),
            extra_addresses: distinct(draft.extra_addresses.iter().map(|one| one.value)),
            request_timeout: draft.api_timeout.unwrap_or(REQUEST_TIMEOUT),
        },
        certificates: Certificates {
            external_ca: draft.external_ca.value().cloned(),
        },
        etcd: Etcd {
            token: draft.etcd_token.unwrap_or("etcd-cluster".to_owned()),
        },
        runtime: Runtime {
            kind: runtime,
            endpoint: draft
                .runtime_endpoint
                .value()
                .cloned()
                .or_else(|| runtime.endpoint.map(str::to_owned)),
            registries: registries::derive(draft),
            pause_image: draft
                .pause_image
                .unwrap_or(registries::PAUSE_IMAGE.to_owned()),
            cni_bin_dirs: cni_bin_dirs(draft)?,
            allow_existing: draft.allow_existing_runtime.unwrap_or(false),
        },
        kubelet: Kubelet {
            serving_certificate: draft.kubelet_serving.unwrap_or(true),
        },
        kube_proxy: KubeProxy {
            mode: draft.kube_proxy_mode.unwrap_or(KubeProxyMode::Iptables),
        },
        extra_args: extra_args(draft),
        open_ports: ports::open(draft),
        packages: lists::packages(draft, runtime),
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

fn cni_bin_dirs(draft: &Draft) -> Option<Vec<AbsolutePath>> {
    if let Some(given) = draft.cni_bin_dirs.value() {
        return Some(given.clone());
    }
    let usual = match draft.dialect {
        Dialect::Classic => "/usr/libexec/cni",
        Dialect::Current | Dialect::Inventory => "/opt/cni/bin",
    };
    AbsolutePath::parse(usual).ok().map(|path| vec![path])
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
fn distinct<T: Clone + Eq + std::hash::Hash>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    all.filter(|one| seen.insert(one.clone())).collect()
}

/// Adds a related place where there is one.
trait RelatedTo {
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
