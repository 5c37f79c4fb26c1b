//! What each release of Kubernetes has, and what goes together.
//!
//! The one table of both: `check` asks it about what the deploy file says, the engine about what the packages turn out
//! to be. Whoever needs to know whether a release can do something asks for a [`Feature`] and never compares numbers.

use crate::cluster::{Cluster, Item, KubeProxyMode, Role, RuntimeKind};
use crate::diagnostic::Severity;
use crate::value::Version;

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
    FailCgroupV1,
    /// The kubelet tells at once when it has become ready, not with its next report.
    ImmediateReadiness,
    /// kube-proxy asks for its node, and waits where there is none yet.
    KubeProxyNeedsNode,
    /// The API server can turn requests away while it ends, instead of waiting a minute for those who watch.
    ShutdownSendRetryAfter,
    /// Anonymous requests can be let through to single paths.
    AnonymousAuthConditions,
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
    /// Addresses of both families are no longer beta.
    StableDualStack,
    /// The kubelet speaks the second version of the interface to runtimes, the only one of containerd 2.
    CriV1,
    /// The kubelet speaks no other version of that interface, so that containerd before 1.6 is of no use.
    CriV1Only,
}

const NEVER: u32 = u32::MAX;

/// From which minor version, and until which (exclusively).
const FEATURES: [(Feature, u32, u32); 16] = [
    (Feature::Dockershim, 0, 24),
    (Feature::RemoteRuntimeFlag, 0, 24),
    (Feature::RuntimeEndpointInConfiguration, 27, NEVER),
    (Feature::FailCgroupV1, 31, NEVER),
    (Feature::ImmediateReadiness, 26, NEVER),
    (Feature::ShutdownSendRetryAfter, 23, NEVER),
    (Feature::KubeProxyNeedsNode, 28, NEVER),
    (Feature::AnonymousAuthConditions, 34, NEVER),
    (Feature::ControlPlaneTaint, 24, NEVER),
    (Feature::MasterTaint, 0, 25),
    (Feature::EndpointSlices, 21, NEVER),
    (Feature::NftablesProxy, 31, NEVER),
    (Feature::DualStack, 21, NEVER),
    (Feature::StableDualStack, 23, NEVER),
    (Feature::CriV1, 23, NEVER),
    (Feature::CriV1Only, 26, NEVER),
];

/// Whether a release has it.
///
/// ```
/// use hatchery_spec::{value::Version, versions::{Feature, has}};
///
/// assert!(has(Version::parse("1.23.17").unwrap(), Feature::Dockershim));
/// assert!(!has(Version::parse("1.24").unwrap(), Feature::Dockershim));
/// ```
pub fn has(kubernetes: Version, feature: Feature) -> bool {
    FEATURES
        .iter()
        .any(|&(one, from, until)| one == feature && (from..until).contains(&kubernetes.minor))
}

/// The parts of a cluster whose versions and settings have to go together. What is not known is not judged.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The release of Kubernetes.
    pub kubernetes: Version,
    /// The container runtime.
    pub runtime: RuntimeKind,
    /// Whether cri-dockerd stands between the kubelet and docker.
    pub cri_dockerd: bool,
    /// kube-proxy's mode.
    pub proxy_mode: KubeProxyMode,
    /// Whether pods or Services have addresses of both families.
    pub dual_stack: bool,
    /// containerd's major and minor number.
    pub containerd: Option<(u32, u32)>,
    /// etcd's major and minor number.
    pub etcd: Option<(u32, u32)>,
    /// CoreDNS' major and minor number.
    pub coredns: Option<(u32, u32)>,
}

impl Parts {
    /// What a deploy file says, for this release; versions that only packages tell are unknown.
    pub fn from_cluster(cluster: &Cluster, kubernetes: Version) -> Self {
        let endpoint = cluster.runtime.endpoint.as_deref();
        Self {
            kubernetes,
            runtime: cluster.runtime.kind,
            cri_dockerd: is_cri_dockerd_socket(endpoint)
                || installs_cri_dockerd(cluster.packages.for_role(Role::Worker)),
            proxy_mode: cluster.kube_proxy.mode,
            dual_stack: cluster.pods.cidrs.is_dual() || cluster.services.cidrs.is_dual(),
            containerd: None,
            etcd: None,
            coredns: None,
        }
    }
}

/// What a [`Conflict`] is about, for whoever has a place in a file to point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The release of Kubernetes itself.
    Kubernetes,
    /// The container runtime.
    Runtime,
    /// containerd's version.
    Containerd,
    /// kube-proxy's mode.
    ProxyMode,
    /// The networks of pods and Services.
    Networks,
    /// CoreDNS.
    CoreDns,
    /// etcd.
    Etcd,
}

/// Parts that do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What it is about.
    pub subject: Subject,
    /// Whether the cluster can be made all the same.
    pub severity: Severity,
    /// The diagnostic's code.
    pub code: &'static str,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What to do instead.
    pub remedy: &'static str,
}

/// Everything among these parts that does not go together.
pub fn conflicts(parts: &Parts) -> Vec<Conflict> {
    let kubernetes = parts.kubernetes;
    let mut found = Vec::new();
    let mut error = |subject, code, message: String, remedy| {
        found.push(Conflict {
            subject,
            severity: Severity::Error,
            code,
            message,
            remedy,
        });
    };
    if kubernetes.minor < Version::OLDEST.minor {
        error(
            Subject::Kubernetes,
            "version-too-old",
            format!("Kubernetes {kubernetes} is too old"),
            "use 1.20 or later",
        );
    }
    if parts.runtime == RuntimeKind::Docker
        && !has(kubernetes, Feature::Dockershim)
        && !parts.cri_dockerd
    {
        error(
            Subject::Runtime,
            "runtime-gone",
            format!("Kubernetes {kubernetes} has no built-in support for docker"),
            "use runtime: containerd or isulad, or add cri-dockerd to the container packages; if it is installed already, set \
             runtime-endpoint: unix:///run/cri-dockerd.sock",
        );
    }
    if let (RuntimeKind::Containerd, Some((major, minor))) = (parts.runtime, parts.containerd) {
        let message =
            format!("containerd {major}.{minor} does not work with Kubernetes {kubernetes}");
        if major >= 2 && !has(kubernetes, Feature::CriV1) {
            error(
                Subject::Containerd,
                "version-mismatch",
                message,
                "use containerd 1.6 or 1.7, or Kubernetes 1.23 or later",
            );
        } else if (major, minor) < (1, 6) && has(kubernetes, Feature::CriV1Only) {
            error(
                Subject::Containerd,
                "version-mismatch",
                message,
                "use containerd 1.6 or later",
            );
        }
    }
    if parts.proxy_mode == KubeProxyMode::Nftables && !has(kubernetes, Feature::NftablesProxy) {
        error(
            Subject::ProxyMode,
            "version-too-old",
            format!("kube-proxy of Kubernetes {kubernetes} does not support nftables by default"),
            "use iptables or ipvs, or Kubernetes 1.31 or later",
        );
    }
    if parts.dual_stack && !has(kubernetes, Feature::DualStack) {
        error(
            Subject::Networks,
            "version-too-old",
            format!("dual-stack is not enabled by default in Kubernetes {kubernetes}"),
            "use one network for each, or Kubernetes 1.21 or later (1.23 for stable dual-stack)",
        );
    }
    if parts.coredns.is_some_and(|coredns| coredns >= (1, 11))
        && !has(kubernetes, Feature::EndpointSlices)
    {
        let (major, minor) = parts.coredns.unwrap_or_default();
        error(
            Subject::CoreDns,
            "version-mismatch",
            format!("CoreDNS {major}.{minor} does not work with Kubernetes {kubernetes}"),
            "use CoreDNS 1.8 to 1.10, or Kubernetes 1.21 or later",
        );
    }
    if let Some((major, minor)) = parts.etcd
        && (major, minor) < (3, 4)
    {
        error(
            Subject::Etcd,
            "version-mismatch",
            format!("etcd {major}.{minor} is too old for Kubernetes {kubernetes}"),
            "use etcd 3.4 or later",
        );
    }
    if parts.dual_stack
        && has(kubernetes, Feature::DualStack)
        && !has(kubernetes, Feature::StableDualStack)
    {
        found.push(Conflict {
            subject: Subject::Networks,
            severity: Severity::Warning,
            code: "beta-feature",
            message: format!("dual-stack is still beta in Kubernetes {kubernetes}"),
            remedy: "use Kubernetes 1.23 or later",
        });
    }
    found
}

/// The program that lets a kubelet without dockershim use docker.
pub const CRI_DOCKERD: &str = "cri-dockerd";

/// Whether a socket is that of cri-dockerd, which says that the user runs it.
pub fn is_cri_dockerd_socket(endpoint: Option<&str>) -> bool {
    endpoint.is_some_and(|socket| socket.contains(CRI_DOCKERD))
}

/// Whether the workers' lists install cri-dockerd.
pub fn installs_cri_dockerd<'a>(items: impl IntoIterator<Item = &'a Item>) -> bool {
    items.into_iter().any(|item| match item {
        Item::Repo { name }
        | Item::Pkg { name }
        | Item::Bin { name, .. }
        | Item::Binary { name, .. } => name == CRI_DOCKERD,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_begin_and_end() {
        let has = |minor, feature| {
            let version = Version {
                major: 1,
                minor,
                patch: None,
            };
            super::has(version, feature)
        };
        assert!(has(23, Feature::Dockershim) && !has(24, Feature::Dockershim));
        assert!(!has(26, Feature::RuntimeEndpointInConfiguration));
        assert!(has(37, Feature::RuntimeEndpointInConfiguration));
    }
}
