//! Features of the releases of Kubernetes, and which versions work together.
//!
//! `check` applies this table to the deploy file, and the engine to the versions found in packages. Code asks for a
//! [`Feature`] instead of comparing version numbers.

use crate::cluster::{Cluster, KubeProxyMode, Role};
use crate::diagnostic::Severity;
use crate::runtimes::RuntimeKind;
use crate::value::Version;

/// A feature that only some releases of Kubernetes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The kubelet contains dockershim.
    Dockershim,
    /// The kubelet needs `--container-runtime=remote`.
    RemoteRuntimeFlag,
    /// `containerRuntimeEndpoint` is a field of the kubelet's configuration.
    RuntimeEndpointInConfiguration,
    /// The kubelet refuses cgroup v1 unless `failCgroupV1` is false.
    FailCgroupV1,
    /// The kubelet reports at once that it is ready, not with its next periodic report.
    ImmediateReadiness,
    /// kube-proxy waits for its Node object.
    KubeProxyNeedsNode,
    /// The API server has `--shutdown-send-retry-after`, with which it does not wait a minute for watchers to end.
    ShutdownSendRetryAfter,
    /// Anonymous requests can be limited to paths.
    AnonymousAuthConditions,
    /// Taint and label of masters are named `control-plane`.
    ControlPlaneTaint,
    /// Taint and label of masters are named `master`.
    MasterTaint,
    /// EndpointSlices have replaced Endpoints.
    EndpointSlices,
    /// kube-proxy can use nftables.
    NftablesProxy,
    /// Dual-stack is enabled by default.
    DualStack,
    /// Dual-stack is stable.
    StableDualStack,
    /// The kubelet supports CRI v1, the only version of containerd 2.
    CriV1,
    /// The kubelet supports CRI v1 only, which containerd has since 1.6.
    CriV1Only,
}

const NEVER: u32 = u32::MAX;

/// The first minor version with the feature, and the first without it.
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

/// The parts of a cluster whose versions and settings have to be compatible. Unknown versions are not checked.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The release of Kubernetes.
    pub kubernetes: Version,
    /// The container runtime.
    pub runtime: &'static RuntimeKind,
    /// Whether the runtime's [adapter](RuntimeKind::adapter) connects the kubelet to it.
    pub runtime_adapter: bool,
    /// The mode of kube-proxy.
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
    /// From a deploy file, for this release; versions that only packages reveal are unknown.
    pub fn from_cluster(cluster: &Cluster, kubernetes: Version) -> Self {
        let runtime = cluster.runtime.kind;
        Self {
            kubernetes,
            runtime,
            runtime_adapter: runtime.is_adapter_socket(cluster.runtime.endpoint.as_deref())
                || runtime.installs_adapter(cluster.packages.for_role(Role::Worker)),
            proxy_mode: cluster.kube_proxy.mode,
            dual_stack: cluster.pods.cidrs.is_dual() || cluster.services.cidrs.is_dual(),
            containerd: None,
            etcd: None,
            coredns: None,
        }
    }
}

/// The part that a [`Conflict`] is about, so that it can be shown at its position in a file.
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

/// An incompatible combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The part that the user should change.
    pub subject: Subject,
    /// Whether the cluster can be deployed anyway.
    pub severity: Severity,
    /// The diagnostic's code.
    pub code: &'static str,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What to do instead.
    pub remedy: &'static str,
}

impl Conflict {
    /// A conflict with which the cluster cannot be deployed.
    pub(crate) fn error(
        subject: Subject,
        code: &'static str,
        message: String,
        remedy: &'static str,
    ) -> Self {
        Self {
            subject,
            severity: Severity::Error,
            code,
            message,
            remedy,
        }
    }
}

/// All incompatible combinations among these parts.
pub fn conflicts(parts: &Parts) -> Vec<Conflict> {
    let kubernetes = parts.kubernetes;
    let mut found = Vec::new();
    if kubernetes.minor < Version::OLDEST.minor {
        found.push(Conflict::error(
            Subject::Kubernetes,
            "version-too-old",
            format!("Kubernetes {kubernetes} is too old"),
            "use 1.20 or later",
        ));
    }
    found.extend(parts.runtime.conflict(parts));
    if parts.proxy_mode == KubeProxyMode::Nftables && !has(kubernetes, Feature::NftablesProxy) {
        found.push(Conflict::error(
            Subject::ProxyMode,
            "version-too-old",
            format!("kube-proxy of Kubernetes {kubernetes} does not support nftables by default"),
            "use iptables or ipvs, or Kubernetes 1.31 or later",
        ));
    }
    if parts.dual_stack && !has(kubernetes, Feature::DualStack) {
        found.push(Conflict::error(
            Subject::Networks,
            "version-too-old",
            format!("dual-stack is not enabled by default in Kubernetes {kubernetes}"),
            "use one network for each, or Kubernetes 1.21 or later (1.23 for stable dual-stack)",
        ));
    }
    if parts.coredns.is_some_and(|coredns| coredns >= (1, 11))
        && !has(kubernetes, Feature::EndpointSlices)
    {
        let (major, minor) = parts.coredns.unwrap_or_default();
        found.push(Conflict::error(
            Subject::CoreDns,
            "version-mismatch",
            format!("CoreDNS {major}.{minor} does not work with Kubernetes {kubernetes}"),
            "use CoreDNS 1.8 to 1.10, or Kubernetes 1.21 or later",
        ));
    }
    if let Some((major, minor)) = parts.etcd
        && (major, minor) < (3, 4)
    {
        found.push(Conflict::error(
            Subject::Etcd,
            "version-mismatch",
            format!("etcd {major}.{minor} is too old for Kubernetes {kubernetes}"),
            "use etcd 3.4 or later",
        ));
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
