//! What a file says, dialect aside: every value read and in its place, nothing yet compared.
//!
//! A dialect fills a [`Draft`]; [`crate::resolve`] adds defaults, compares, and makes the
//! [`Cluster`](crate::cluster::Cluster).

use std::net::IpAddr;

use crate::cluster::{
    Component, Dialect, Item, Jump, KubeProxyMode, OpenPort, PackageList, Password, Role,
};
use crate::runtimes::{self, RuntimeKind};
use crate::source::{Span, Spanned};
use crate::value::{
    AbsolutePath, Arch, Cidrs, DnsName, Endpoint, GoDuration, Host, HostKey, KeyPath, Label, Name,
    Port, Release, Taint, Version,
};

/// A value that may not have been given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Field<T> {
    /// Not written.
    #[default]
    Absent,
    /// Written wrongly, and already reported.
    Wrong,
    /// Written.
    Given(Spanned<T>),
}

impl<T> Field<T> {
    /// The value with its place.
    pub fn given(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The value.
    pub fn value(&self) -> Option<&T> {
        self.given().map(|given| &given.value)
    }

    /// The place of the value.
    pub fn span(&self) -> Option<Span> {
        self.given().map(|given| given.span)
    }

    /// Whether nothing was written.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// This value, or the other where nothing was written.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self.is_absent() { other } else { self }
    }
}

impl<T: Clone> Field<T> {
    /// The value, or this.
    pub fn unwrap_or(&self, default: T) -> T {
        self.value().cloned().unwrap_or(default)
    }
}

/// How machines are reached, as far as it was said in one place.
#[derive(Clone, Debug, Default)]
pub struct AccessDraft {
    /// The login user.
    pub user: Field<String>,
    /// The login password.
    pub password: Field<Password>,
    /// sudo's password, where it is another.
    pub sudo_password: Field<Password>,
    /// The private key.
    pub private_key: Field<KeyPath>,
    /// Machines on the way; an empty list means "none", also where the cluster has some.
    pub bastions: Field<Vec<Jump>>,
    /// Whether host keys that are not known are refused.
    pub strict_host_keys: Field<bool>,
}

/// One entry of a list of machines.
#[derive(Clone, Debug, Default)]
pub struct HostDraft {
    /// The entry.
    pub span: Span,
    /// The machine's name.
    pub name: Field<Name>,
    /// The machine's address.
    pub address: Field<IpAddr>,
    /// Where SSH reaches it, if not at its address.
    pub ssh_host: Field<Host>,
    /// The SSH port.
    pub port: Field<Port>,
    /// The processor.
    pub arch: Field<Arch>,
    /// How it is reached, where it differs from the cluster.
    pub access: AccessDraft,
    /// What its host key must be.
    pub host_key: Field<HostKey>,
    /// Whether the name becomes its host name.
    pub set_hostname: Field<bool>,
    /// The node's labels.
    pub labels: Field<Vec<Label>>,
    /// The node's taints.
    pub taints: Field<Vec<Taint>>,
}

/// The load balancer.
#[derive(Clone, Debug, Default)]
pub struct LoadBalancerDraft {
    /// The machine.
    pub host: HostDraft,
    /// Where it listens.
    pub bind_port: Field<Port>,
}

/// A list of things to install.
#[derive(Clone, Debug)]
pub struct ListDraft {
    /// Which list.
    pub list: PackageList,
    /// What is installed.
    pub items: Vec<Spanned<Item>>,
}

/// What a file says.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The language of the file.
    pub dialect: Dialect,
    /// The beginning of the file, for what is missing.
    pub file: Span,
    /// Whether others than the owner may read the file.
    pub others_can_read: bool,
    /// The cluster's name.
    pub id: Field<Name>,
    /// The version of Kubernetes.
    pub kubernetes_version: Field<Version>,
    /// The version of etcd.
    pub etcd_version: Field<Release>,
    /// The version of containerd.
    pub containerd_version: Field<Release>,
    /// The version of CoreDNS where it is a program.
    pub coredns_program_version: Field<Release>,
    /// How machines are reached.
    pub access: AccessDraft,
    /// Whether names become host names; else the dialect decides.
    pub set_hostname: Field<bool>,
    /// The masters.
    pub masters: Vec<HostDraft>,
    /// The workers.
    pub workers: Vec<HostDraft>,
    /// The etcd members; without any, the masters.
    pub etcds: Vec<HostDraft>,
    /// The load balancer.
    pub load_balancer: Option<LoadBalancerDraft>,
    /// A list of machines is broken, so what it lacks cannot be judged.
    pub hosts_incomplete: bool,
    /// Where clients reach the API.
    pub endpoint: Field<Endpoint>,
    /// The addresses of Services.
    pub service_cidrs: Field<Cidrs>,
    /// The API server's Service.
    pub service_gateway: Field<IpAddr>,
    /// The DNS Service's address.
    pub dns_address: Field<IpAddr>,
    /// The same, said again.
    pub dns_vip: Field<IpAddr>,
    /// The cluster's domain.
    pub dns_domain: Field<DnsName>,
    /// Whether CoreDNS runs in pods.
    pub coredns_in_pods: Field<bool>,
    /// The version of CoreDNS' image.
    pub coredns_version: Field<String>,
    /// The number of CoreDNS' pods.
    pub coredns_replicas: Field<u32>,
    /// The addresses of pods.
    pub pod_cidrs: Field<Cidrs>,
    /// The network plugin's name.
    pub network_plugin: Field<String>,
    /// Its manifest, as a path on the masters.
    pub network_manifest: Field<AbsolutePath>,
    /// Names for the API server's certificate.
    pub extra_names: Vec<Spanned<DnsName>>,
    /// Addresses for the API server's certificate.
    pub extra_addresses: Vec<Spanned<IpAddr>>,
    /// How long an API request may take.
    pub api_timeout: Field<GoDuration>,
    /// The directory of the user's own authorities.
    pub external_ca: Field<KeyPath>,
    /// What new etcd members must know.
    pub etcd_token: Field<String>,
    /// The container runtime.
    pub runtime: Field<&'static RuntimeKind>,
    /// Its socket.
    pub runtime_endpoint: Field<String>,
    /// Mirrors that are not said to be of a certain registry.
    pub registry_mirrors: Vec<Spanned<String>>,
    /// Registries by name, each with a mirror of it.
    pub named_mirrors: Vec<(Spanned<String>, Spanned<String>)>,
    /// Registries spoken to without TLS.
    pub insecure_registries: Vec<Spanned<String>>,
    /// The pause image.
    pub pause_image: Field<String>,
    /// Where CNI plugins are.
    pub cni_bin_dirs: Field<Vec<AbsolutePath>>,
    /// Whether a runtime that is in use already may be shared.
    pub allow_existing_runtime: Field<bool>,
    /// Whether kubelets get serving certificates.
    pub kubelet_serving: Field<bool>,
    /// kube-proxy's mode.
    pub kube_proxy_mode: Field<KubeProxyMode>,
    /// Arguments per component.
    pub extra_args: Vec<(Component, Spanned<String>, String)>,
    /// Ports to open.
    pub open_ports: Vec<(Role, Spanned<OpenPort>)>,
    /// Archives per architecture.
    pub archives: Vec<(Spanned<Arch>, Spanned<String>)>,
    /// The section that names the archives.
    pub archives_section: Option<Span>,
    /// Where archives were unpacked by eggo.
    pub package_directory: Field<AbsolutePath>,
    /// What is installed.
    pub lists: Vec<ListDraft>,
    /// Whether lists that are missing have defaults.
    pub default_lists: bool,
    /// Manifests below `addons/` in the archive.
    pub addons: Vec<Spanned<String>>,
}

impl Draft {
    /// The container runtime: the one that is named, or the usual one.
    pub fn runtime_kind(&self) -> &'static RuntimeKind {
        self.runtime.unwrap_or(runtimes::DEFAULT)
    }

    /// A draft that says nothing.
    pub fn new(dialect: Dialect, file: Span, others_can_read: bool) -> Self {
        Self {
            dialect,
            file,
            others_can_read,
            id: Field::Absent,
            kubernetes_version: Field::Absent,
            etcd_version: Field::Absent,
            containerd_version: Field::Absent,
            coredns_program_version: Field::Absent,
            access: AccessDraft::default(),
            set_hostname: Field::Absent,
            masters: Vec::new(),
            workers: Vec::new(),
            etcds: Vec::new(),
            load_balancer: None,
            hosts_incomplete: false,
            endpoint: Field::Absent,
            service_cidrs: Field::Absent,
            service_gateway: Field::Absent,
            dns_address: Field::Absent,
            dns_vip: Field::Absent,
            dns_domain: Field::Absent,
            coredns_in_pods: Field::Absent,
            coredns_version: Field::Absent,
            coredns_replicas: Field::Absent,
            pod_cidrs: Field::Absent,
            network_plugin: Field::Absent,
            network_manifest: Field::Absent,
            extra_names: Vec::new(),
            extra_addresses: Vec::new(),
            api_timeout: Field::Absent,
            external_ca: Field::Absent,
            etcd_token: Field::Absent,
            runtime: Field::Absent,
            runtime_endpoint: Field::Absent,
            registry_mirrors: Vec::new(),
            named_mirrors: Vec::new(),
            insecure_registries: Vec::new(),
            pause_image: Field::Absent,
            cni_bin_dirs: Field::Absent,
            allow_existing_runtime: Field::Absent,
            kubelet_serving: Field::Absent,
            kube_proxy_mode: Field::Absent,
            extra_args: Vec::new(),
            open_ports: Vec::new(),
            archives: Vec::new(),
            archives_section: None,
            package_directory: Field::Absent,
            lists: Vec::new(),
            default_lists: true,
            addons: Vec::new(),
        }
    }

    /// Every entry of every list of machines, with its role.
    pub fn hosts(&self) -> impl Iterator<Item = (Role, &HostDraft)> {
        let with = |role| move |host| (role, host);
        self.masters
            .iter()
            .map(with(Role::Master))
            .chain(self.workers.iter().map(with(Role::Worker)))
            .chain(self.etcds.iter().map(with(Role::Etcd)))
            .chain(
                self.load_balancer
                    .iter()
                    .map(|one| (Role::LoadBalancer, &one.host)),
            )
    }
}
