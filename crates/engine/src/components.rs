//! What runs on a cluster's machines: a file for each thing.
//!
//! A component knows the files, certificates and services that it needs on one machine ([`NodeContext`]), for any version.

pub(crate) mod agents;
pub(crate) mod api_server;
pub(crate) mod control_plane;
pub(crate) mod controller_manager;
pub(crate) mod coredns;
pub(crate) mod etcd;
pub(crate) mod hooks;
pub(crate) mod kube_proxy;
pub(crate) mod kubelet;
pub(crate) mod load_balancer;
pub(crate) mod machine;
pub(crate) mod network;
pub(crate) mod network_plugin;
pub(crate) mod pods;
pub(crate) mod rbac;
pub(crate) mod registry;
pub(crate) mod runtime;
pub(crate) mod scheduler;
#[cfg(test)]
pub(crate) mod trial;

use std::net::IpAddr;

use hatchery_host::{
    content::Hash,
    facts::{CgroupVersion, Facts},
    operation::{Operation, PackageSource, Packages},
};
use hatchery_pki::Request;
use hatchery_spec::{
    Cluster,
    cluster::{Arguments, Component, Machine},
};

use self::runtime::Runtime;
use crate::{
    arguments::systemd_word,
    package::Installation,
    resource::{Error, Issuer, Resources, Secret},
    versions::Versions,
};

/// The first try to lead often comes before a new API server knows anybody's rights. The next one is up to twice this later.
pub(crate) const LEADER_RETRY: &str = "1s";

/// Where certificates lie.
pub(crate) const PKI: &str = "/etc/kubernetes/pki";
/// The cluster's authority.
pub(crate) const CA: &str = "/etc/kubernetes/pki/ca.crt";
/// By what clients of the cluster are known: never by an authority above its own.
pub(crate) const SIGNER: &str = "/etc/kubernetes/pki/ca-signer.crt";
/// What is left of TLS 1.2 when everything weak is taken away; every version knows these. TLS 1.3 has no weak ones.
pub(crate) const CIPHER_SUITES: [&str; 4] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
];

/// One machine of a cluster, with all that decides what it needs.
#[derive(Clone, Copy)]
pub(crate) struct NodeContext<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) versions: &'a Versions,
    pub(crate) node: &'a Machine,
    pub(crate) facts: &'a Facts,
    /// What is put there for it.
    pub(crate) installation: &'a Installation,
}

impl<'a> NodeContext<'a> {
    /// Where a program lies.
    pub(crate) fn program(&self, name: &str) -> String {
        self.installation
            .programs
            .get(name)
            .map_or_else(|| format!("/usr/bin/{name}"), ToString::to_string)
    }

    /// A value that changes when these programs change, as far as that is known beforehand.
    pub(crate) fn stamp(&self, programs: &[&str]) -> Option<String> {
        let paths: Vec<_> = programs.iter().map(|name| self.program(name)).collect();
        let (mut placed, mut packaged) = (String::new(), String::new());
        for operation in &self.installation.operations {
            match operation {
                Operation::File(file) if paths.iter().any(|path| path == file.path.as_str()) => {
                    placed += file.content.hash().as_str();
                }
                Operation::Packages(Packages {
                    source: PackageSource::Files(files),
                }) => packaged.extend(files.iter().map(|file| file.content.hash().as_str())),
                _ => {}
            }
        }
        // Where it is no file of its own, any of the packages may bring it.
        let sums = if placed.is_empty() { packaged } else { placed };
        (!sums.is_empty()).then(|| format!("{:.16}", Hash::digest(sums.as_bytes()).as_str()))
    }

    /// The user's own arguments for a component.
    pub(crate) fn extra(&self, component: Component) -> Option<&'a Arguments> {
        self.cluster.extra_args.get(&component)
    }

    /// Whether the kernel is another machine's, so that its limits cannot be raised.
    pub(crate) fn is_container(&self) -> bool {
        self.facts.confinement.is_container()
    }

    /// Who makes control groups; kubelet and runtime must agree.
    pub(crate) fn cgroup_driver(&self) -> &'static str {
        // systemd inside a container does not own all of the old trees.
        let usual = match self.is_container() && self.has_cgroup_v1() {
            true => "cgroupfs",
            false => "systemd",
        };
        self.runtime().cgroup_driver(self).unwrap_or(usual)
    }

    pub(crate) fn has_cgroup_v1(&self) -> bool {
        let version = self.facts.cgroups.as_ref().map(|groups| groups.version);
        version.is_some_and(|version| version != CgroupVersion::V2)
    }

    /// In what its pods run.
    pub(crate) fn runtime(&self) -> &'static dyn Runtime {
        runtime::for_cluster(self.cluster)
    }

    /// Whether the kubelet runs the runtime by itself.
    pub(crate) fn has_built_in_runtime(&self) -> bool {
        let kind = self.cluster.runtime.kind;
        kind.is_built_into(self.versions.kubernetes)
    }

    /// Where the kubelet finds its runtime, unless it runs that by itself.
    pub(crate) fn runtime_endpoint(&self) -> Option<&'a str> {
        if self.has_built_in_runtime() {
            return None;
        }
        self.runtime().endpoint(self.cluster)
    }

    /// Lines of a service that the kernel kills last when memory is short.
    pub(crate) fn protected(&self, score: i32) -> Vec<String> {
        if self.is_container() {
            return Vec::new();
        }
        vec![format!("OOMScoreAdjust={score}")]
    }

    /// Whether systemd can prepare a service as root and run it as another user; older ones run everything as root.
    pub(crate) fn can_drop_privileges(&self) -> bool {
        let systemd = self.facts.init.systemd.as_ref();
        let version = systemd.and_then(|systemd| systemd.version);
        version.is_none_or(|version| version >= 231)
    }

    /// The name servers behind a machine's own one, where it has one on its loopback; that one only the machine reaches.
    pub(crate) fn upstream_resolvers(&self) -> Option<Vec<IpAddr>> {
        let resolver = self.facts.resolver.as_ref();
        let resolver = resolver.filter(|resolver| resolver.has_loopback())?;
        let upstream = resolver.upstream.iter().flatten();
        let all = upstream.chain(&resolver.nameservers);
        Some(all.filter(|one| !one.is_loopback()).copied().collect())
    }

    /// Where this machine's own parts of the control plane reach the API.
    pub(crate) fn own_api(&self) -> String {
        format!("https://{}", host_port(self.node.address, 6443))
    }

    /// Where everybody reaches the API.
    pub(crate) fn api(&self) -> String {
        format!("https://{}", self.cluster.endpoint)
    }
}

/// An address with a port, as URLs want it.
pub(crate) fn host_port(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

/// By what a machine knows the API and everybody else in the cluster.
pub(crate) fn authority(_: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    resources.secret(CA, Secret::Certificate(Issuer::Cluster))?;
    resources.secret(SIGNER, Secret::Signer(Issuer::Cluster))
}

/// A program's way to the API: a client certificate at `BASE.crt`, and a kubeconfig that names it. Who it is, is the
/// request's common name.
pub(crate) fn api_client(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
    server: &str,
    path: &str,
    base: &str,
    request: Request,
) -> Result<(), Error> {
    let user = &request.common_name;
    let text = kubeconfig(node_context.cluster.id.as_str(), server, user, CA, base);
    resources.leaf(Issuer::Cluster, base, request)?;
    resources.file(path, 0o600, text)
}

/// Lines of a service that runs as a user of its own: its certificates and keys are root's alone, so it gets copies of them, in a
/// directory in memory that only this user can read. `more` is done as root before each start.
pub(crate) fn unprivileged(user: &str, files: &[String], more: &str) -> Vec<String> {
    let directory = format!("/run/{user}");
    let prepare = format!(
        "install -o {user} -g {user} -m 0600 {} {directory}/{more}",
        files.join(" ")
    );
    vec![
        format!("User={user}"),
        format!("Group={user}"),
        format!("RuntimeDirectory={user}"),
        "RuntimeDirectoryMode=0700".into(),
        format!("ExecStartPre=+/bin/sh -c {}", systemd_word(&prepare)),
    ]
}

/// A kubeconfig whose certificate lies in files beside it.
pub(crate) fn kubeconfig(
    cluster: &str,
    server: &str,
    user: &str,
    authority: &str,
    base: &str,
) -> String {
    let [cluster, server, user] = [cluster, server, user].map(yaml);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority: {authority}
users:
- name: {user}
  user:
    client-certificate: {base}.crt
    client-key: {base}.key
contexts:
- name: default
  context:
    cluster: {cluster}
    user: {user}
current-context: default
"
    )
}

/// A scalar of YAML: a string of JSON is one, whatever it holds.
pub(crate) fn yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use hatchery_host::{
        content::Content,
        operation::{Access, File, PackageFile},
        path::MachinePath,
    };

    use super::{trial::Trial, *};

    fn stamps(kubelet: Option<&str>, package: Option<&str>) -> [Option<String>; 2] {
        let mut trial = Trial::new(30, "");
        let mut operations = Vec::new();
        if let Some(text) = kubelet {
            let path = MachinePath::new("/usr/local/bin/kubelet").unwrap();
            trial.installation.programs = [("kubelet".to_owned(), path.clone())].into();
            operations.push(Operation::File(File {
                path,
                content: Content::bytes(text.as_bytes().to_vec()),
                access: Access::root(0o755).unwrap(),
            }));
        }
        if let Some(text) = package {
            let content = Content::bytes(text.as_bytes().to_vec());
            operations.push(Operation::Packages(Packages {
                source: PackageSource::Files(vec![
                    PackageFile::new("etcd-3.4-1.x86_64.rpm", content).unwrap(),
                ]),
            }));
        }
        trial.installation.operations = operations;
        ["kubelet", "etcd"].map(|name| trial.node_context().stamp(&[name]))
    }

    #[test]
    fn a_unit_knows_its_program() {
        assert_eq!(stamps(None, None), [None, None]);
        let [kubelet, etcd] = stamps(Some("1"), Some("a"));
        assert!(kubelet.is_some() && etcd.is_some());
        assert_eq!(
            stamps(Some("1"), Some("a")),
            [kubelet.clone(), etcd.clone()]
        );
        let newer = stamps(Some("2"), Some("a"));
        assert!(newer[0] != kubelet && newer[1] == etcd);
        let newer = stamps(Some("1"), Some("b"));
        assert!(newer[0] == kubelet && newer[1] != etcd);
    }
}
