//! Arguments and ports of the components, and the certificate authorities.

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::value::{LocalPath, Port};

/// The certificate authorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Certificates {
    /// The directory on the control machine with the user's own authorities; `None` to generate them.
    pub external_ca: Option<LocalPath>,
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
