//! Addresses of Services and pods, and the cluster's DNS.

use std::net::IpAddr;

use serde::Serialize;

use crate::network_plugins::NetworkPluginKind;
use crate::value::{AbsolutePath, Cidrs, DnsName};

/// The Service network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceNetwork {
    /// Validated: they overlap neither each other nor any machine.
    pub cidrs: Cidrs,
    /// The API server's own Service: the first address.
    pub gateway: IpAddr,
}

/// The pod network and its plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PodNetwork {
    /// Validated: they overlap neither each other nor any machine.
    pub cidrs: Cidrs,
    /// `None` if the user installs one.
    pub plugin: Option<NetworkPlugin>,
}

/// The network plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkPlugin {
    /// Its name, such as `calico`.
    pub name: String,
    /// The manifest as a path on the masters, taken from the archive. `None` to find it by the plugin's name.
    pub manifest: Option<AbsolutePath>,
}

impl NetworkPlugin {
    /// The plugin's properties.
    pub fn kind(&self) -> &'static NetworkPluginKind {
        NetworkPluginKind::called(&self.name)
    }
}

/// The cluster's own DNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DnsService {
    /// Its address, in the Service network.
    pub address: IpAddr,
    /// The cluster's domain.
    pub domain: DnsName,
    /// How it runs.
    pub coredns: CoreDns,
}

/// How CoreDNS runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreDns {
    /// As a systemd service on every master.
    Binary,
    /// As a Deployment.
    Pod {
        /// The tag of the image.
        image_version: String,
        /// The number of pods.
        replicas: u32,
    },
}
