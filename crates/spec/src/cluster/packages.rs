//! What is installed on the machines, and from where.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Role;
use crate::value::{AbsolutePath, Arch, GoDuration};

/// What is installed, and from where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Packages {
    /// The archives on the control machine; none for an installation from repositories only.
    pub archives: BTreeMap<Arch, Archive>,
    /// The directory on the machines for scripts, which are placed in `file/` below it.
    pub directory: Option<AbsolutePath>,
    /// What each list installs, in the file's order.
    pub lists: BTreeMap<PackageList, Vec<Item>>,
    /// The manifests of the classic dialect's `addons`, below `addons/` in the archive.
    pub addons: Vec<String>,
}

/// An archive on the control machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Archive {
    /// A relative path is resolved against the current directory.
    pub path: String,
}

/// One of the lists that a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageList {
    /// `kubernetes-master`, on masters.
    KubernetesMaster,
    /// `kubernetes-worker`, on workers.
    KubernetesWorker,
    /// CNI plugins, on workers.
    Network,
    /// etcd, on etcd members.
    Etcd,
    /// nginx, on the load balancer.
    Loadbalance,
    /// The container runtime, on workers.
    Container,
    /// Images, loaded on workers.
    Image,
    /// CoreDNS as a service, on masters.
    Dns,
    /// `addition`, on masters.
    AdditionMaster,
    /// `addition`, on workers.
    AdditionWorker,
    /// `addition`, on etcd members.
    AdditionEtcd,
    /// `addition`, on the load balancer.
    AdditionLoadbalance,
}

impl PackageList {
    /// All there are.
    pub const ALL: [Self; 12] = [
        Self::KubernetesMaster,
        Self::KubernetesWorker,
        Self::Network,
        Self::Etcd,
        Self::Loadbalance,
        Self::Container,
        Self::Image,
        Self::Dns,
        Self::AdditionMaster,
        Self::AdditionWorker,
        Self::AdditionEtcd,
        Self::AdditionLoadbalance,
    ];

    /// Where it is installed.
    pub fn role(self) -> Role {
        match self {
            Self::KubernetesMaster | Self::Dns | Self::AdditionMaster => Role::Master,
            Self::KubernetesWorker
            | Self::Network
            | Self::Container
            | Self::Image
            | Self::AdditionWorker => Role::Worker,
            Self::Etcd | Self::AdditionEtcd => Role::Etcd,
            Self::Loadbalance | Self::AdditionLoadbalance => Role::LoadBalancer,
        }
    }

    /// Whether it holds additions.
    pub fn is_addition(self) -> bool {
        matches!(
            self,
            Self::AdditionMaster
                | Self::AdditionWorker
                | Self::AdditionEtcd
                | Self::AdditionLoadbalance
        )
    }
}

impl Packages {
    /// What is installed for a role, in the order of the lists.
    pub fn for_role(&self, role: Role) -> impl Iterator<Item = &Item> {
        self.lists
            .iter()
            .filter(move |(list, _)| list.role() == role)
            .flat_map(|(_, items)| items)
    }
}

/// One thing to install.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Item {
    /// A package of the machine's repositories.
    Repo {
        /// The name of the package in the repository.
        name: String,
    },
    /// A package file of the archive, found by [`crate::package_name::matches`].
    Pkg {
        /// The package's name without version.
        name: String,
    },
    /// A program of the archive.
    Bin {
        /// Its file name in the archive.
        name: String,
        /// The directory it goes to.
        destination: AbsolutePath,
    },
    /// A file of the archive.
    File {
        /// Its file name in the archive.
        name: String,
        /// The directory it goes to.
        destination: AbsolutePath,
    },
    /// A directory of the archive.
    Dir {
        /// Its path in the archive.
        name: String,
        /// The directory it goes into.
        destination: AbsolutePath,
    },
    /// A file or directory of a classic archive, whichever it turns out to be.
    Binary {
        /// Its path in the archive.
        name: String,
        /// The directory it goes into.
        destination: AbsolutePath,
    },
    /// An image archive of the archive.
    Image {
        /// Its file name in the archive.
        name: String,
    },
    /// A manifest to apply.
    Yaml {
        /// In the archive or on the web.
        source: ManifestSource,
    },
    /// A script to run.
    Shell {
        /// Its file name in the archive.
        name: String,
        /// When it runs.
        schedule: Schedule,
        /// How long it may run.
        timeout: GoDuration,
    },
}

/// Where a manifest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManifestSource {
    /// In the archive.
    Archive(String),
    /// On the web.
    Url(String),
}

/// When a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Before the machine joins.
    Prejoin,
    /// After it joined.
    Postjoin,
    /// Before it is cleaned.
    Precleanup,
    /// After it was cleaned.
    Postcleanup,
}
