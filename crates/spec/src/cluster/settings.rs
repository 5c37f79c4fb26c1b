//! Settings of the components of a cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::runtimes::RuntimeKind;
use crate::value::{AbsolutePath, DnsName, GoDuration, LocalPath, Port};

/// Settings of the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApiServer {
    /// Additional DNS names for its certificate.
    pub extra_names: Vec<DnsName>,
    /// Additional addresses for its certificate.
    pub extra_addresses: Vec<IpAddr>,
    /// The value of `--request-timeout`.
    pub request_timeout: GoDuration,
}

/// The certificate authorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Certificates {
    /// The directory on the control machine with the user's own authorities; `None` to generate them.
    pub external_ca: Option<LocalPath>,
}

/// Settings of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Etcd {
    /// The value of `--initial-cluster-token`.
    pub token: String,
}

/// The container runtime and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Runtime {
    /// The runtime to install.
    pub kind: &'static RuntimeKind,
    /// Its CRI socket; docker has none of its own.
    pub endpoint: Option<String>,
    /// Where images come from.
    pub registries: Registries,
    /// The image that holds a pod's namespaces.
    pub pause_image: String,
    /// Where CNI plugins are.
    pub cni_bin_dirs: Vec<AbsolutePath>,
    /// Whether a runtime that a machine already uses for something else may be shared with it.
    pub allow_existing: bool,
}

/// Where images come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Registries {
    /// Mirrors that are tried first, by the name of the registry in image references.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Accessed without TLS, or without verification of the certificate.
    pub insecure: Vec<String>,
}

/// The registry of images whose reference names none.
pub const DOCKER_HUB: &str = "docker.io";

impl Registries {
    /// The mirrors of a registry, in the order in which they are tried.
    pub fn mirrors_for(&self, registry: &str) -> &[String] {
        self.mirrors.get(registry).map_or(&[], Vec::as_slice)
    }
}

/// Settings of the kubelets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kubelet {
    /// Whether its serving certificate is signed by the cluster's authority, and verified by the API server.
    pub serving_certificate: bool,
}

/// Settings of kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KubeProxy {
    /// The proxy mode.
    pub mode: KubeProxyMode,
}

/// The proxy mode of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KubeProxyMode {
    /// iptables rules.
    Iptables,
    /// The kernel's IP Virtual Server.
    Ipvs,
    /// nftables rules.
    Nftables,
}

/// A component that accepts extra arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// etcd; its arguments are environment variables.
    Etcd,
    /// kube-apiserver.
    KubeApiserver,
    /// kube-controller-manager.
    KubeControllerManager,
    /// kube-scheduler.
    KubeScheduler,
    /// kube-proxy.
    KubeProxy,
    /// kubelet.
    Kubelet,
    /// The container runtime.
    ContainerEngine,
}

impl Component {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::KubeProxy,
        Self::Kubelet,
        Self::ContainerEngine,
    ];

    /// Its name in a deploy file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::KubeProxy => "kube-proxy",
            Self::Kubelet => "kubelet",
            Self::ContainerEngine => "container-engine",
        }
    }
}

/// Arguments in the file's order, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Vec<(String, String)>);

impl Arguments {
    pub(crate) fn new(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// Names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of an argument.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(one, _)| *one == name)
            .map(|(_, value)| value)
    }
}

impl Serialize for Arguments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A port to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct OpenPort {
    /// Opened in the firewall of each machine of the role.
    pub port: Port,
    /// TCP by default.
    pub protocol: Protocol,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}
