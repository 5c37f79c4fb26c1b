//! The one value that every dialect becomes. It is valid: nothing in it has to be checked again.

mod components;
mod machine;
mod network;
mod packages;

use std::collections::BTreeMap;

use serde::Serialize;

pub use components::{Arguments, Certificates, Component, OpenPort, Protocol};
pub use machine::{Access, Jump, Machine, Password, Role};
pub use network::{CoreDns, DnsService, NetworkPlugin, PodNetwork, ServiceNetwork};
pub use packages::{Archive, Item, ManifestSource, PackageList, Packages, Schedule};

pub use crate::settings::{
    api_server::*, etcd::*, kube_proxy::*, kubelet::*, registries::*, runtime::*,
};
use crate::value::{Endpoint, Name, Port, Release, Version};

/// The dialect of a deploy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// eggo's manual: `nodes`, `package-src`, `pacakges`.
    Classic,
    /// Later versions of eggo: `workers`, `install`.
    Current,
    /// A kubespray inventory.
    Inventory,
}

/// Versions of programs other than Kubernetes, as given in the deploy file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompanionVersions {
    /// The etcd in the archives.
    pub etcd: Option<Release>,
    /// containerd, also where Docker uses it.
    pub containerd: Option<Release>,
    /// CoreDNS, where it runs as a service.
    pub coredns: Option<Release>,
}

impl CompanionVersions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The desired state of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cluster {
    /// The cluster's name, which also names its state directory.
    pub id: Name,
    /// Decides some defaults, such as the host names.
    pub dialect: Dialect,
    /// `None` for the version of the packages.
    pub kubernetes_version: Option<Version>,
    /// For archives that do not state these versions.
    #[serde(skip_serializing_if = "CompanionVersions::is_empty")]
    pub companion_versions: CompanionVersions,
    pub(crate) machines: Vec<Machine>,
    pub(crate) masters: Vec<MachineIndex>,
    pub(crate) workers: Vec<MachineIndex>,
    pub(crate) etcds: Vec<MachineIndex>,
    pub(crate) load_balancer: Option<LoadBalancerIndex>,
    /// Where clients reach the API.
    pub endpoint: Endpoint,
    /// The Service network.
    pub services: ServiceNetwork,
    /// The pod network and its plugin.
    pub pods: PodNetwork,
    /// The cluster DNS.
    pub dns: DnsService,
    /// Settings of the API server.
    pub api_server: ApiServer,
    /// The certificate authorities.
    pub certificates: Certificates,
    /// Settings of etcd.
    pub etcd: Etcd,
    /// The container runtime.
    pub runtime: Runtime,
    /// Settings of the kubelets.
    pub kubelet: Kubelet,
    /// Settings of kube-proxy.
    pub kube_proxy: KubeProxy,
    /// Arguments that are added to the defaults or override them.
    pub extra_args: BTreeMap<Component, Arguments>,
    /// Additional ports to open; those that the cluster needs are always opened.
    pub open_ports: BTreeMap<Role, Vec<OpenPort>>,
    /// What is installed, and from where.
    pub packages: Packages,
    /// Machines to remove from the cluster, with their former roles; never read from a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaving: Vec<Machine>,
}

/// An index into the list of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct MachineIndex(pub(crate) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LoadBalancerIndex {
    pub(crate) machine: MachineIndex,
    pub(crate) bind_port: Port,
}

/// The machine in front of the masters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBalancer<'a> {
    /// Also has [`Role::LoadBalancer`].
    pub machine: &'a Machine,
    /// The port that forwards to the API servers.
    pub bind_port: Port,
}

impl Cluster {
    /// Every machine once, in the order of first mention.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Adds machines that leave the cluster.
    #[must_use]
    pub fn with_leaving(mut self, machines: impl IntoIterator<Item = Machine>) -> Self {
        self.leaving.extend(machines);
        self
    }

    /// Machines that leave the cluster.
    pub fn leaving(&self) -> &[Machine] {
        &self.leaving
    }

    /// The machines of the cluster, then those that leave it.
    pub fn all_machines(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().chain(&self.leaving)
    }

    /// The machine at this index of [`Cluster::all_machines`].
    pub fn machine(&self, index: usize) -> &Machine {
        match index.checked_sub(self.machines.len()) {
            None => &self.machines[index],
            Some(index) => &self.leaving[index],
        }
    }

    /// The masters in the file's order; at least one.
    pub fn masters(&self) -> impl ExactSizeIterator<Item = &Machine> {
        self.pick(&self.masters)
    }

    /// The master that is deployed first.
    pub fn first_master(&self) -> &Machine {
        &self.machines[self.masters[0].0]
    }

    /// The workers in the file's order; perhaps none.
    pub fn workers(&self) -> impl ExactSizeIterator<Item = &Machine> {
        self.pick(&self.workers)
    }

    /// The etcd members in the file's order; at least one.
    pub fn etcds(&self) -> impl ExactSizeIterator<Item = &Machine> {
        self.pick(&self.etcds)
    }

    /// The load balancer, if Hatchery deploys one.
    pub fn load_balancer(&self) -> Option<LoadBalancer<'_>> {
        self.load_balancer.map(|one| LoadBalancer {
            machine: &self.machines[one.machine.0],
            bind_port: one.bind_port,
        })
    }

    /// The machines of a role, in the file's order.
    pub fn with_role(&self, role: Role) -> Vec<&Machine> {
        match role {
            Role::Master => self.masters().collect(),
            Role::Worker => self.workers().collect(),
            Role::Etcd => self.etcds().collect(),
            Role::LoadBalancer => self
                .load_balancer()
                .map(|one| one.machine)
                .into_iter()
                .collect(),
        }
    }

    fn pick(&self, indexes: &[MachineIndex]) -> impl ExactSizeIterator<Item = &Machine> {
        indexes.iter().map(|index| &self.machines[index.0])
    }
}
