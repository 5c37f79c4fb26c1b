//! Which versions a cluster is made of, and what differs between them.
//!
//! What changed from one Kubernetes to another is rows of [`Feature`], so that the components ask for a feature and
//! never compare numbers themselves.

use hatchery_spec::{
    Cluster,
    cluster::{KubeProxyMode, RuntimeKind},
    value::Version,
};
use snafu::Snafu;

use crate::{components::docker, package::Release};

/// Versions, as far as they are known before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of Kubernetes.
    pub kubernetes: Version,
    /// Of containerd.
    pub containerd: Option<Release>,
    /// Of etcd.
    pub etcd: Option<Release>,
    /// Of CoreDNS.
    pub coredns: Option<Release>,
}

/// Something that only some versions of Kubernetes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The kubelet runs docker by itself.
    Dockershim,
    /// The kubelet wants to be told that its runtime is another program.
    RemoteRuntimeFlag,
    /// The runtime's socket stands in the kubelet's configuration.
    RuntimeEndpointInConfiguration,
    /// The kubelet refuses control groups v1 unless told.
    RefusesCgroupV1,
    /// The kubelet tells at once when it has become ready, not with its next report.
    TellsReadiness,
    /// kube-proxy asks for its node, and waits where there is none yet.
    ProxyWantsNode,
    /// The API server can turn requests away while it ends, instead of waiting a minute for those who watch.
    TurnsAway,
    /// Anonymous requests can be let through to single paths.
    AnonymousConditions,
    /// The taint and label of masters are called `control-plane`.
    ControlPlaneTaint,
    /// The taint and label of masters are called `master`.
    MasterTaint,
    /// Endpoints are slices; the older kind is only for those before.
    EndpointSlices,
    /// kube-proxy can use nftables.
    NftablesProxy,
    /// Pods and Services can have addresses of both families.
    DualStack,
}

/// From which minor version, and until which (exclusively).
const FEATURES: [(Feature, u32, u32); 13] = [
    (Feature::Dockershim, 0, 24),
    (Feature::RemoteRuntimeFlag, 0, 24),
    (Feature::RuntimeEndpointInConfiguration, 27, NEVER),
    (Feature::RefusesCgroupV1, 31, NEVER),
    (Feature::TellsReadiness, 26, NEVER),
    (Feature::TurnsAway, 23, NEVER),
    (Feature::ProxyWantsNode, 28, NEVER),
    (Feature::AnonymousConditions, 34, NEVER),
    (Feature::ControlPlaneTaint, 24, NEVER),
    (Feature::MasterTaint, 0, 25),
    (Feature::EndpointSlices, 21, NEVER),
    (Feature::NftablesProxy, 31, NEVER),
    (Feature::DualStack, 21, NEVER),
];

const NEVER: u32 = u32::MAX;

impl Versions {
    /// Whether this Kubernetes has it.
    pub fn has(&self, feature: Feature) -> bool {
        let minor = self.kubernetes.minor;
        FEATURES
            .iter()
            .any(|&(one, from, until)| one == feature && (from..until).contains(&minor))
    }

    /// Combinations that cannot work, by name.
    ///
    /// # Errors
    /// All of them.
    pub fn check(&self, cluster: &Cluster) -> Result<(), Vec<Mismatch>> {
        let kubernetes = self.kubernetes;
        let mut mismatches = Vec::new();
        let mut refuse = |what: String, remedy: &str| {
            mismatches.push(Mismatch {
                what,
                remedy: remedy.to_owned(),
            });
        };
        if kubernetes.minor < Version::OLDEST.minor {
            refuse(
                format!("Kubernetes {kubernetes} is too old"),
                "use 1.20 or later",
            );
        }
        if let (RuntimeKind::Containerd, Some(containerd)) = (cluster.runtime.kind, self.containerd)
        {
            // containerd 2 speaks only the second version of the interface, which kubelets know from 1.23 on.
            if containerd.major >= 2 && !kubernetes.at_least(23) {
                refuse(
                    format!("containerd {containerd} does not work with Kubernetes {kubernetes}"),
                    "use containerd 1.6 or 1.7, or Kubernetes 1.23 or later",
                );
            }
            if containerd.major < 2 && containerd.minor < 6 && kubernetes.at_least(26) {
                refuse(
                    format!("containerd {containerd} does not work with Kubernetes {kubernetes}"),
                    "use containerd 1.6 or later",
                );
            }
        }
        if cluster.kube_proxy.mode == KubeProxyMode::Nftables && !self.has(Feature::NftablesProxy) {
            refuse(
                format!("kube-proxy of Kubernetes {kubernetes} does not use nftables"),
                "use Kubernetes 1.31 or later, or kube-proxy: {mode: iptables}",
            );
        }
        let dual = cluster.pods.cidrs.is_dual() || cluster.services.cidrs.is_dual();
        if dual && !self.has(Feature::DualStack) {
            refuse(
                format!("Kubernetes {kubernetes} gives no addresses of both IPv4 and IPv6"),
                "use Kubernetes 1.21 or later, or networks of one family",
            );
        }
        // A socket of cri-dockerd in the file says that the user runs it.
        let endpoint = cluster.runtime.endpoint.as_deref().unwrap_or_default();
        if cluster.runtime.kind == RuntimeKind::Docker
            && !self.has(Feature::Dockershim)
            && !docker::brings_bridge(cluster)
            && !endpoint.contains("cri-dockerd")
        {
            refuse(
                format!("Kubernetes {kubernetes} does not work with docker by itself"),
                "use runtime: containerd, or add cri-dockerd to the container packages",
            );
        }
        if let Some(coredns) = self.coredns
            && (coredns.major, coredns.minor) >= (1, 11)
            && !kubernetes.at_least(21)
        {
            refuse(
                format!("CoreDNS {coredns} does not work with Kubernetes {kubernetes}"),
                "use CoreDNS 1.8 to 1.10, or Kubernetes 1.21 or later",
            );
        }
        if let Some(etcd) = self.etcd
            && (etcd.major, etcd.minor) < (3, 4)
        {
            refuse(
                format!("etcd {etcd} is too old for Kubernetes {kubernetes}"),
                "use etcd 3.4 or later",
            );
        }
        if mismatches.is_empty() {
            Ok(())
        } else {
            Err(mismatches)
        }
    }
}

/// Two versions that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{what}"))]
pub struct Mismatch {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    fn with(minor: u32) -> Versions {
        Versions {
            kubernetes: Version {
                major: 1,
                minor,
                patch: None,
            },
            containerd: None,
            etcd: None,
            coredns: None,
        }
    }

    fn refused(minor: u32, more: &str) -> Vec<String> {
        let text = format!(
            "cluster-id: demo\nruntime: containerd\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: []\n{more}"
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        let cluster = reading.cluster.unwrap();
        let mismatches = with(minor).check(&cluster).err().unwrap_or_default();
        mismatches.into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn what_a_version_lacks_is_refused() {
        let nftables = "kube-proxy: {mode: nftables}\n";
        assert_eq!(
            refused(30, nftables),
            ["kube-proxy of Kubernetes 1.30 does not use nftables"]
        );
        assert_eq!(refused(31, nftables), [""; 0]);
        let dual = "network: {podcidr: '10.244.0.0/16,fd00:2::/56'}\nservice: {cidr: '10.32.0.0/16,fd00:1::/112'}\n";
        assert_eq!(
            refused(20, dual),
            ["Kubernetes 1.20 gives no addresses of both IPv4 and IPv6"]
        );
        assert_eq!(refused(21, dual), [""; 0]);
        assert_eq!(refused(20, ""), [""; 0]);
    }

    #[test]
    fn features_begin_and_end() {
        assert!(with(23).has(Feature::Dockershim));
        assert!(!with(24).has(Feature::Dockershim));
        assert!(!with(26).has(Feature::RuntimeEndpointInConfiguration));
        assert!(with(37).has(Feature::RuntimeEndpointInConfiguration));
    }
}
