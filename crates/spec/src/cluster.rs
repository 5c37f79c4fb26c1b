//! The one value that every dialect becomes. Whoever holds one need not check it again.

mod machine;
mod network;
mod packages;
mod settings;

use std::collections::BTreeMap;

use serde::Serialize;

pub use machine::{Access, Jump, Machine, Password, Role};
pub use network::{CoreDns, DnsService, NetworkPlugin, PodNetwork, ServiceNetwork};
pub use packages::{Archive, Item, ManifestSource, PackageList, Packages, Schedule};
pub use settings::{
    ApiServer, Arguments, Certificates, Component, DOCKER_HUB, Etcd, KubeProxy, KubeProxyMode,
    Kubelet, OpenPort, Protocol, Registries, Runtime, RuntimeKind,
};

use crate::value::{Endpoint, Name, Port, Release, Version};

/// In which language the file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// That of the eggo manual: `nodes`, `package-src`, `pacakges`.
    Classic,
    /// That of later eggo: `workers`, `install`.
    Current,
    /// A kubespray inventory.
    Inventory,
}

/// The versions of programs beside Kubernetes, as far as a file says them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompanionVersions {
    /// Of etcd.
    pub etcd: Option<Release>,
    /// Of containerd, alone or beneath Docker.
    pub containerd: Option<Release>,
    /// Of CoreDNS, where it runs as a service.
    pub coredns: Option<Release>,
}

impl CompanionVersions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A cluster as it shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cluster {
    /// Its name.
    pub id: Name,
    /// In which language it was described.
    pub dialect: Dialect,
    /// The version wanted; without one, the packages' version.
    pub kubernetes_version: Option<Version>,
    /// What the file says of the programs beside Kubernetes, for archives that do not tell.
    #[serde(skip_serializing_if = "CompanionVersions::is_empty")]
    pub companion_versions: CompanionVersions,
    pub(crate) machines: Vec<Machine>,
    pub(crate) masters: Vec<MachineIndex>,
    pub(crate) workers: Vec<MachineIndex>,
    pub(crate) etcds: Vec<MachineIndex>,
    pub(crate) load_balancer: Option<LoadBalancerIndex>,
    /// Where clients reach the API.
    pub endpoint: Endpoint,
    /// The addresses of Services.
    pub services: ServiceNetwork,
    /// The addresses of pods.
    pub pods: PodNetwork,
    /// The cluster's own DNS.
    pub dns: DnsService,
    /// The API server.
    pub api_server: ApiServer,
    /// The authorities.
    pub certificates: Certificates,
    /// The store.
    pub etcd: Etcd,
    /// The container runtime.
    pub runtime: Runtime,
    /// The kubelet.
    pub kubelet: Kubelet,
    /// kube-proxy.
    pub kube_proxy: KubeProxy,
    /// Arguments beside or instead of ours, per component.
    pub extra_args: BTreeMap<Component, Arguments>,
    /// Ports to open beside those that the cluster needs, per role.
    pub open_ports: BTreeMap<Role, Vec<OpenPort>>,
    /// What is installed, and from where.
    pub packages: Packages,
    /// Machines that leave the cluster, with the roles that they had. No file names one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaving: Vec<Machine>,
}

/// A machine of the cluster, by its place in the list.
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
    /// Where it runs.
    pub machine: &'a Machine,
    /// Where it listens.
    pub bind_port: Port,
}

impl Cluster {
    /// Every machine once, in the order of first mention.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// The same cluster, which these machines leave.
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

    /// One of [`Cluster::all_machines`], by its place there.
    pub fn machine(&self, place: usize) -> &Machine {
        match place.checked_sub(self.machines.len()) {
            None => &self.machines[place],
            Some(place) => &self.leaving[place],
        }
    }

    /// The masters in the file's order; at least one.
    pub fn masters(&self) -> impl ExactSizeIterator<Item = &Machine> {
        self.pick(&self.masters)
    }

    /// The master that is made first.
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

    /// The load balancer, if one is made.
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
