//! kube-proxy, on each worker.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hatchery_pki::Request;
use hatchery_spec::cluster::{Arguments, Component, KubeProxyMode};
use serde_json::{Value, json};

use super::{CA, PKI, Site, api_client};
use crate::{
    arguments::Flags,
    unit_file::Service,
    versions::Feature,
    wish::{Error, Wishes},
};

const CONFIGURATION: &str = "/etc/kubernetes/kube-proxy-config.yaml";
const KUBECONFIG: &str = "/etc/kubernetes/kube-proxy.conf";
const USER: &str = "system:kube-proxy";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    let base = format!("{PKI}/kube-proxy");
    let request = Request::client(USER);
    api_client(site, wishes, &site.api(), KUBECONFIG, &base, request)?;
    wishes.file(CONFIGURATION, 0o600, configuration(site))?;
    let unit = Service {
        description: "Kubernetes network proxy",
        notifies: false,
        after: &[],
        stamp: site.stamp(&["kube-proxy"]),
        command: flags(site).command(&site.program("kube-proxy")),
        lines: vec!["LimitNOFILE=65536".into()],
    };
    let leaf = format!("{base}.crt");
    wishes.service(
        "kube-proxy",
        unit.render(),
        &[CONFIGURATION, KUBECONFIG, &leaf, CA],
    )
}

pub(crate) fn flags(site: &Site<'_>) -> Flags {
    let mut flags = Flags::new([("config", CONFIGURATION)]);
    for (name, value) in user(site).filter(|(name, _)| key(name).is_none()) {
        flags.set(name, value);
    }
    flags
}

/// The user's arguments, without their dashes.
fn user<'a>(site: &Site<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let arguments = site.extra(Component::KubeProxy).into_iter();
    let pairs = arguments.flat_map(Arguments::iter);
    pairs.map(|(name, value)| (name.trim_start_matches('-'), value))
}

fn configuration(site: &Site<'_>) -> String {
    let mode = match site.cluster.kube_proxy.mode {
        KubeProxyMode::Iptables => "iptables",
        KubeProxyMode::Ipvs => "ipvs",
        KubeProxyMode::Nftables => "nftables",
    };
    // Where it is told its address it need not wait for the node.
    let address = match site.node.address {
        own if !site.versions.has(Feature::ProxyWantsNode) => own,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let cidrs: Vec<_> = site
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
        "hostnameOverride": site.node.name.as_str(),
        "metricsBindAddress": "127.0.0.1:10249",
        "mode": mode,
    });
    if site.is_container() {
        // The table of connections is the outer machine's, and its limits cannot be set from inside.
        configuration["conntrack"] =
            json!({"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"});
    }
    for (name, value) in user(site) {
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
