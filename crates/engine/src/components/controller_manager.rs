//! kube-controller-manager, on each master.

use hatchery_pki::Request;
use hatchery_spec::cluster::Component;
use ipnet::IpNet;

use super::{CA, LEADER_RETRY, NodeContext, PKI, SIGNER, api_client};
use crate::{
    arguments::Flags,
    resource::{Error, Resources, Secret},
    unit_file::Service,
};

const KUBECONFIG: &str = "/etc/kubernetes/controller-manager.conf";
/// It makes the directory by itself; at the usual place it would stay behind.
const VOLUME_PLUGINS: &str = "/etc/kubernetes/volume-plugins";
const USER: &str = "system:kube-controller-manager";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let base = format!("{PKI}/controller-manager");
    resources.secret(&format!("{PKI}/ca.key"), Secret::ClusterKey)?;
    resources.own_directory(VOLUME_PLUGINS, 0o755)?;
    let request = Request::client(USER);
    api_client(
        node_context,
        resources,
        &node_context.own_api(),
        KUBECONFIG,
        &base,
        request,
    )?;
    let unit = Service {
        description: "Kubernetes controller manager",
        notifies: false,
        after: &["kube-apiserver.service"],
        stamp: node_context.stamp(&["kube-controller-manager"]),
        command: flags(node_context).command(&node_context.program("kube-controller-manager")),
        lines: vec!["LimitNOFILE=65536".into()],
    };
    let leaf = format!("{base}.crt");
    let key = format!("{PKI}/ca.key");
    resources.service(
        "kube-controller-manager",
        unit.render(),
        &[KUBECONFIG, &leaf, CA, SIGNER, &key],
    )
}

pub(crate) fn flags(node_context: &NodeContext<'_>) -> Flags {
    let cluster = node_context.cluster;
    let list = |nets: Vec<IpNet>| {
        nets.iter()
            .map(IpNet::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    let mut flags = Flags::new([
        ("allocate-node-cidrs", "true".to_owned()),
        ("authentication-kubeconfig", KUBECONFIG.into()),
        ("authorization-kubeconfig", KUBECONFIG.into()),
        ("bind-address", "127.0.0.1".into()),
        ("client-ca-file", SIGNER.into()),
        ("cluster-cidr", list(cluster.pods.cidrs.iter().collect())),
        ("cluster-name", cluster.id.to_string()),
        // It refuses a file with more than one certificate.
        ("cluster-signing-cert-file", SIGNER.into()),
        ("cluster-signing-key-file", format!("{PKI}/ca.key")),
        ("flex-volume-plugin-dir", VOLUME_PLUGINS.into()),
        // The usual numbers keep its forty controllers waiting for their accounts for seconds.
        ("kube-api-burst", "200".into()),
        ("kube-api-qps", "100".into()),
        ("kubeconfig", KUBECONFIG.into()),
        ("leader-elect", "true".into()),
        ("leader-elect-retry-period", LEADER_RETRY.into()),
        ("profiling", "false".into()),
        (
            "requestheader-client-ca-file",
            format!("{PKI}/front-proxy-ca.crt"),
        ),
        ("root-ca-file", CA.into()),
        ("service-account-private-key-file", format!("{PKI}/sa.key")),
        (
            "service-cluster-ip-range",
            list(cluster.services.cidrs.iter().collect()),
        ),
        // The usual number, said aloud.
        ("terminated-pod-gc-threshold", "12500".into()),
        ("use-service-account-credentials", "true".into()),
    ]);
    let dual = cluster.pods.cidrs.is_dual();
    for net in cluster.pods.cidrs.iter() {
        let name = match (dual, net) {
            (false, _) => "node-cidr-mask-size",
            (true, IpNet::V4(_)) => "node-cidr-mask-size-ipv4",
            (true, IpNet::V6(_)) => "node-cidr-mask-size-ipv6",
        };
        flags.set(name, node_prefix(net).to_string());
    }
    flags.overridden(node_context.extra(Component::KubeControllerManager))
}

/// How much of the pods' network a node gets: what is usual, or less where there is less to share.
fn node_prefix(net: IpNet) -> u8 {
    let (usual, longest) = match net {
        IpNet::V4(_) => (24, 30),
        IpNet::V6(_) => (64, 126),
    };
    let least = net.prefix_len().saturating_add(4).min(longest);
    if net.prefix_len() + 4 <= usual {
        usual
    } else {
        least
    }
}

#[cfg(test)]
mod tests {
    use super::node_prefix;

    #[test]
    fn nodes_share_small_networks_too() {
        let prefix = |net: &str| node_prefix(net.parse().unwrap());
        assert_eq!(prefix("10.244.0.0/16"), 24);
        assert_eq!(prefix("10.244.0.0/22"), 26);
        assert_eq!(prefix("10.244.0.0/28"), 30);
        assert_eq!(prefix("fd00::/56"), 64);
    }
}
