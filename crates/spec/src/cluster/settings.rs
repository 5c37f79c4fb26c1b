//! What can be set on the parts of a cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::value::{AbsolutePath, DnsName, GoDuration, LocalPath, Port};

/// The API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApiServer {
    /// Names for its certificate beside our own.
    pub extra_names: Vec<DnsName>,
    /// Addresses for its certificate beside our own.
    pub extra_addresses: Vec<IpAddr>,
    /// How long a request may take.
    pub request_timeout: GoDuration,
}

/// The authorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Certificates {
    /// The directory on the control machine that holds them; without one they are made.
    pub external_ca: Option<LocalPath>,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Etcd {
    /// What new members must know.
    pub token: String,
}

/// The container runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Runtime {
    /// Which.
    pub kind: RuntimeKind,
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

/// Which runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeKind {
    /// Docker.
    Docker,
    /// iSulad.
    Isulad,
    /// containerd.
    Containerd,
}

impl RuntimeKind {
    /// In a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Isulad => "iSulad",
            Self::Containerd => "containerd",
        }
    }

    /// Where its CRI socket usually is.
    pub fn usual_endpoint(self) -> Option<&'static str> {
        match self {
            Self::Docker => None,
            Self::Isulad => Some("unix:///var/run/isulad.sock"),
            Self::Containerd => Some("unix:///run/containerd/containerd.sock"),
        }
    }
}

/// Where images come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Registries {
    /// What is asked before a registry itself, by the registry's name as images have it.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Spoken to without TLS, or without checking its certificate.
    pub insecure: Vec<String>,
}

/// The registry of images whose name has none.
pub const DOCKER_HUB: &str = "docker.io";

impl Registries {
    /// What is asked before this registry itself, in order; perhaps nothing.
    pub fn mirrors_for(&self, registry: &str) -> &[String] {
        self.mirrors.get(registry).map_or(&[], Vec::as_slice)
    }
}

/// The kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kubelet {
    /// Whether its serving certificate is signed by the cluster's authority, and verified by the API server.
    pub serving_certificate: bool,
}

/// kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KubeProxy {
    /// How it makes Services reachable.
    pub mode: KubeProxyMode,
}

/// How kube-proxy makes Services reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KubeProxyMode {
    /// By iptables rules.
    Iptables,
    /// By the kernel's load balancer.
    Ipvs,
    /// By nftables rules.
    Nftables,
}

/// What takes extra arguments.
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
    /// The port.
    pub port: Port,
    /// Its protocol.
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
