//! The contents of a deploy file independent of its dialect: values with their spans, not yet compared with each other.
//!
//! A dialect fills a [`Draft`]; `resolve` adds defaults, compares, and makes the
//! [`Cluster`](crate::cluster::Cluster).

use std::net::IpAddr;

use crate::cluster::{Component, Dialect, Item, Jump, OpenPort, PackageList, Password, Role};
use crate::settings::{
    api_server::ApiServerDraft, etcd::EtcdDraft, kube_proxy::KubeProxyDraft, kubelet::KubeletDraft,
    runtime::RuntimeDraft,
};
use crate::source::{Span, Spanned};
use crate::value::{
    AbsolutePath, Arch, Cidrs, DnsName, Endpoint, Host, HostKey, Label, LocalPath, Name, Port,
    Release, Taint, Version,
};

/// A value that may not have been given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Field<T> {
    #[default]
    Absent,
    /// Not valid, and already reported.
    Wrong,
    Given(Spanned<T>),
}

impl<T> Field<T> {
    pub(crate) fn given(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.given().map(|given| &given.value)
    }

    pub(crate) fn span(&self) -> Option<Span> {
        self.given().map(|given| given.span)
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// This value, or the other where this one is absent.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        if self.is_absent() { other } else { self }
    }
}

impl<T: Clone> Field<T> {
    pub(crate) fn unwrap_or(&self, default: T) -> T {
        self.value().cloned().unwrap_or(default)
    }
}

/// The access settings of the cluster or of one machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessDraft {
    pub(crate) user: Field<String>,
    pub(crate) password: Field<Password>,
    /// Where it differs from the login password.
    pub(crate) sudo_password: Field<Password>,
    pub(crate) private_key: Field<LocalPath>,
    /// In the order of the connection; an empty list means none, even where the cluster has some.
    pub(crate) bastions: Field<Vec<Jump>>,
    pub(crate) strict_host_keys: Field<bool>,
}

/// One entry of a list of machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostDraft {
    pub(crate) span: Span,
    pub(crate) name: Field<Name>,
    pub(crate) address: Field<IpAddr>,
    /// The SSH host, where it is not the address.
    pub(crate) ssh_host: Field<Host>,
    pub(crate) port: Field<Port>,
    pub(crate) arch: Field<Arch>,
    /// Overrides of the cluster's access.
    pub(crate) access: AccessDraft,
    pub(crate) host_key: Field<HostKey>,
    pub(crate) set_hostname: Field<bool>,
    pub(crate) labels: Field<Vec<Label>>,
    pub(crate) taints: Field<Vec<Taint>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LoadBalancerDraft {
    pub(crate) host: HostDraft,
    pub(crate) bind_port: Field<Port>,
}

#[derive(Clone, Debug)]
pub(crate) struct ListDraft {
    pub(crate) list: PackageList,
    pub(crate) items: Vec<Spanned<Item>>,
}

/// The contents of a deploy file.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) dialect: Dialect,
    /// The beginning of the file, where missing keys are reported.
    pub(crate) file: Span,
    pub(crate) others_can_read: bool,
    pub(crate) id: Field<Name>,
    pub(crate) kubernetes_version: Field<Version>,
    pub(crate) etcd_version: Field<Release>,
    pub(crate) containerd_version: Field<Release>,
    /// The version of CoreDNS where it runs as a service.
    pub(crate) coredns_program_version: Field<Release>,
    pub(crate) access: AccessDraft,
    /// The dialect decides where it is absent.
    pub(crate) set_hostname: Field<bool>,
    pub(crate) masters: Vec<HostDraft>,
    pub(crate) workers: Vec<HostDraft>,
    /// The masters where it is empty.
    pub(crate) etcds: Vec<HostDraft>,
    pub(crate) load_balancer: Option<LoadBalancerDraft>,
    /// A list of machines could not be read, so missing machines are not reported.
    pub(crate) hosts_incomplete: bool,
    pub(crate) endpoint: Field<Endpoint>,
    pub(crate) service_cidrs: Field<Cidrs>,
    pub(crate) service_gateway: Field<IpAddr>,
    pub(crate) dns_address: Field<IpAddr>,
    /// `dns-vip`, which has to equal `dns_address`.
    pub(crate) dns_vip: Field<IpAddr>,
    pub(crate) dns_domain: Field<DnsName>,
    pub(crate) coredns_in_pods: Field<bool>,
    /// The tag of CoreDNS' image.
    pub(crate) coredns_version: Field<String>,
    pub(crate) coredns_replicas: Field<u32>,
    pub(crate) pod_cidrs: Field<Cidrs>,
    pub(crate) network_plugin: Field<String>,
    /// The path of the manifest on the masters.
    pub(crate) network_manifest: Field<AbsolutePath>,
    pub(crate) external_ca: Field<LocalPath>,
    pub(crate) api_server: ApiServerDraft,
    pub(crate) etcd: EtcdDraft,
    pub(crate) runtime: RuntimeDraft,
    pub(crate) kubelet: KubeletDraft,
    pub(crate) kube_proxy: KubeProxyDraft,
    pub(crate) extra_args: Vec<(Component, Spanned<String>, String)>,
    pub(crate) open_ports: Vec<(Role, Spanned<OpenPort>)>,
    pub(crate) archives: Vec<(Spanned<Arch>, Spanned<String>)>,
    pub(crate) archives_section: Option<Span>,
    /// `dstpath` of the archives, where eggo unpacked them.
    pub(crate) package_directory: Field<AbsolutePath>,
    pub(crate) lists: Vec<ListDraft>,
    /// Whether missing lists get the default packages.
    pub(crate) default_lists: bool,
    /// File names below `addons/` in the archive.
    pub(crate) addons: Vec<Spanned<String>>,
}

impl Draft {
    pub(crate) fn new(dialect: Dialect, file: Span, others_can_read: bool) -> Self {
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
            external_ca: Field::Absent,
            api_server: ApiServerDraft::default(),
            etcd: EtcdDraft::default(),
            runtime: RuntimeDraft::default(),
            kubelet: KubeletDraft::default(),
            kube_proxy: KubeProxyDraft::default(),
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
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (Role, &HostDraft)> {
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
