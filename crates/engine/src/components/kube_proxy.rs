//! kube-proxy, on each worker.

use hatchery_pki::Request;
use hatchery_spec::cluster::{Component, KubeProxyMode};

use super::{CA, PKI, Site, kubeconfig, yaml};
use crate::{
    arguments::Flags,
    unit_file::Service,
    wish::{Error, Issuer, Wishes},
};

const CONFIGURATION: &str = "/etc/kubernetes/kube-proxy-config.yaml";
const KUBECONFIG: &str = "/etc/kubernetes/kube-proxy.conf";
const USER: &str = "system:kube-proxy";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    let base = format!("{PKI}/kube-proxy");
    wishes.leaf(Issuer::Cluster, &base, Request::client(USER))?;
    let id = site.cluster.id.as_str();
    wishes.file(KUBECONFIG, 0o600, kubeconfig(id, &site.api(), USER, &base))?;
    wishes.file(CONFIGURATION, 0o600, configuration(site))?;
    let unit = Service {
        description: "Kubernetes network proxy",
        notifies: false,
        after: &[],
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
    Flags::new([("config", CONFIGURATION)]).overridden(site.extra(Component::KubeProxy))
}

fn configuration(site: &Site<'_>) -> String {
    let mode = match site.cluster.kube_proxy.mode {
        KubeProxyMode::Iptables => "iptables",
        KubeProxyMode::Ipvs => "ipvs",
        KubeProxyMode::Nftables => "nftables",
    };
    let cidrs: Vec<_> = site
        .cluster
        .pods
        .cidrs
        .iter()
        .map(|net| net.to_string())
        .collect();
    let mut text = format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
clientConnection: {{kubeconfig: {KUBECONFIG}}}
clusterCIDR: {}
hostnameOverride: {}
metricsBindAddress: 127.0.0.1:10249
mode: {mode}
",
        yaml(&cidrs.join(",")),
        yaml(site.node.name.as_str()),
    );
    if site.is_container() {
        // The table of connections is the outer machine's, and its limits cannot be set from inside.
        text += "conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}\n";
    }
    text
}
