//! kube-proxy, on each worker.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hatchery_pki::Request;
use hatchery_spec::cluster::{Arguments, Component, KubeProxyMode};
use serde_json::{Value, json};

use super::{CA, NodeContext, PKI, api_client};
use crate::{
    arguments::Flags,
    resource::{Error, Resources},
    unit_file::Service,
    versions::Feature,
};

const CONFIGURATION: &str = "/etc/kubernetes/kube-proxy-config.yaml";
const KUBECONFIG: &str = "/etc/kubernetes/kube-proxy.conf";
const USER: &str = "system:kube-proxy";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let base = format!("{PKI}/kube-proxy");
    let request = Request::client(USER);
    api_client(
        node_context,
        resources,
        &node_context.api(),
        KUBECONFIG,
        &base,
        request,
    )?;
    resources.file(CONFIGURATION, 0o600, configuration(node_context))?;
    let unit = Service {
        description: "Kubernetes network proxy",
        notifies: false,
        after: &[],
        stamp: node_context.stamp(&["kube-proxy"]),
        command: flags(node_context).command(&node_context.program("kube-proxy")),
        lines: vec!["LimitNOFILE=65536".into()],
    };
    let leaf = format!("{base}.crt");
    resources.service(
        "kube-proxy",
        unit.render(),
        &[CONFIGURATION, KUBECONFIG, &leaf, CA],
    )
}

pub(crate) fn flags(node_context: &NodeContext<'_>) -> Flags {
    let mut flags = Flags::new([("config", CONFIGURATION)]);
    for (name, value) in user(node_context).filter(|(name, _)| key(name).is_none()) {
        flags.set(name, value);
    }
    flags
}

/// The user's arguments, without their dashes.
fn user<'a>(node_context: &NodeContext<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let arguments = node_context.extra(Component::KubeProxy).into_iter();
    let pairs = arguments.flat_map(Arguments::iter);
    pairs.map(|(name, value)| (name.trim_start_matches('-'), value))
}

fn configuration(node_context: &NodeContext<'_>) -> String {
    let mode = match node_context.cluster.kube_proxy.mode {
        KubeProxyMode::Iptables => "iptables",
        KubeProxyMode::Ipvs => "ipvs",
        KubeProxyMode::Nftables => "nftables",
    };
    // Where it is told its address it need not wait for the node.
    let address = match node_context.node.address {
        own if !node_context.versions.has(Feature::KubeProxyNeedsNode) => own,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let cidrs: Vec<_> = node_context
        .cluster
        .pods
        .cidrs
        .iter()
        .map(|net| net.to_string())
        .collect();
    let mut configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": address,
        "clientConnection": {"kubeconfig": KUBECONFIG},
        "clusterCIDR": cidrs.join(","),
        "hostnameOverride": node_context.node.name.as_str(),
        "metricsBindAddress": "127.0.0.1:10249",
        "mode": mode,
    });
    if node_context.is_container() {
        // The table of connections is the outer machine's, and its limits cannot be set from inside.
        configuration["conntrack"] =
            json!({"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"});
    }
    for (name, value) in user(node_context) {
        if let Some((path, kind)) = key(name) {
            let place = path
                .split('.')
                .fold(&mut configuration, |above, part| &mut above[part]);
            *place = kind.value(value);
        }
    }
    // JSON is YAML too, only less pleasant to read.
    serde_saphyr::to_string(&configuration).unwrap_or_else(|_| configuration.to_string())
}

/// What a flag's value is in the file.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A number or a truth value.
    Plain,
    /// Words with commas between.
    List,
    /// `name=true` with commas between.
    Gates,
}

impl Kind {
    fn value(self, text: &str) -> Value {
        // What is neither is left to kube-proxy to refuse.
        let plain = |text: &str| text.parse().unwrap_or_else(|_| text.into());
        let words = text.split(',').map(str::trim);
        let words = words.filter(|word| !word.is_empty());
        match self {
            Self::Text => text.into(),
            Self::Plain => plain(text),
            Self::List => words.map(Value::from).collect(),
            Self::Gates => words
                .map(|word| word.split_once('=').unwrap_or((word, "true")))
                .map(|(name, value)| (name.to_owned(), plain(value)))
                .collect(),
        }
    }
}

/// Where a flag stands in the file: beside a file kube-proxy pays no attention to most of its flags.
fn key(flag: &str) -> Option<(&'static str, Kind)> {
    let row = KEYS.iter().find(|(name, _, _)| *name == flag);
    row.map(|(_, path, kind)| (*path, *kind))
}

#[rustfmt::skip]
const KEYS: [(&str, &str, Kind); 28] = [
    ("bind-address", "bindAddress", Kind::Text),
    ("cluster-cidr", "clusterCIDR", Kind::Text),
    ("config-sync-period", "configSyncPeriod", Kind::Text),
    ("conntrack-max-per-core", "conntrack.maxPerCore", Kind::Plain),
    ("conntrack-min", "conntrack.min", Kind::Plain),
    ("conntrack-tcp-timeout-close-wait", "conntrack.tcpCloseWaitTimeout", Kind::Text),
    ("conntrack-tcp-timeout-established", "conntrack.tcpEstablishedTimeout", Kind::Text),
    ("detect-local-mode", "detectLocalMode", Kind::Text),
    ("feature-gates", "featureGates", Kind::Gates),
    ("healthz-bind-address", "healthzBindAddress", Kind::Text),
    ("hostname-override", "hostnameOverride", Kind::Text),
    ("iptables-masquerade-bit", "iptables.masqueradeBit", Kind::Plain),
    ("iptables-min-sync-period", "iptables.minSyncPeriod", Kind::Text),
    ("iptables-sync-period", "iptables.syncPeriod", Kind::Text),
    ("ipvs-exclude-cidrs", "ipvs.excludeCIDRs", Kind::List),
    ("ipvs-min-sync-period", "ipvs.minSyncPeriod", Kind::Text),
    ("ipvs-scheduler", "ipvs.scheduler", Kind::Text),
    ("ipvs-strict-arp", "ipvs.strictARP", Kind::Plain),
    ("ipvs-sync-period", "ipvs.syncPeriod", Kind::Text),
    ("kube-api-burst", "clientConnection.burst", Kind::Plain),
    ("kube-api-qps", "clientConnection.qps", Kind::Plain),
    ("kubeconfig", "clientConnection.kubeconfig", Kind::Text),
    ("masquerade-all", "iptables.masqueradeAll", Kind::Plain),
    ("metrics-bind-address", "metricsBindAddress", Kind::Text),
    ("nodeport-addresses", "nodePortAddresses", Kind::List),
    ("oom-score-adj", "oomScoreAdj", Kind::Plain),
    ("profiling", "enableProfiling", Kind::Plain),
    ("proxy-mode", "mode", Kind::Text),
];
