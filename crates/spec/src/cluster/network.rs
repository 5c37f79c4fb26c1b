//! Addresses of Services and pods, and the cluster's DNS.

use std::net::IpAddr;

use serde::Serialize;

use crate::value::{AbsolutePath, Cidrs, DnsName};

/// The addresses of Services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceNetwork {
    /// The networks.
    pub cidrs: Cidrs,
    /// The API server's own Service: the first address.
    pub gateway: IpAddr,
}

/// The addresses of pods, and what makes them reachable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PodNetwork {
    /// The networks.
    pub cidrs: Cidrs,
    /// The plugin, if one is made.
    pub plugin: Option<NetworkPlugin>,
}

/// The network plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkPlugin {
    /// Its name, such as `calico`.
    pub name: String,
    /// Its manifest: a path on the masters, found in the archive. Without one it is looked for by the plugin's name.
    pub manifest: Option<AbsolutePath>,
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
    /// As a service on every master.
    Binary,
    /// In pods.
    Pod {
        /// The image's version.
        image_version: String,
        /// How many pods.
        replicas: u32,
    },
}
