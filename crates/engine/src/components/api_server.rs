//! kube-apiserver, on each master.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hatchery_pki::Request;
use hatchery_spec::{cluster::Component, value::Host};

use super::{CA, CIPHER_SUITES, NodeContext, PKI, SIGNER, etcd};
use crate::{
    arguments::Flags,
    resource::{Error, Issuer, Resources, Secret},
    unit_file::Service,
    versions::Feature,
};

const AUDIT_POLICY: &str = "/etc/kubernetes/audit-policy.yaml";
const AUTHENTICATION: &str = "/etc/kubernetes/authentication.yaml";
const ENCRYPTION: &str = "/etc/kubernetes/encryption-config.yaml";
const AUDIT_LOG: &str = "/var/log/kubernetes/audit";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    resources.secret(
        &format!("{PKI}/front-proxy-ca.crt"),
        Secret::Signer(Issuer::FrontProxy),
    )?;
    resources.secret(
        &format!("{PKI}/apiserver-etcd-ca.crt"),
        Secret::Signer(Issuer::Etcd),
    )?;
    resources.secret(&format!("{PKI}/sa.pub"), Secret::ServiceAccountPublicKey)?;
    resources.secret(&format!("{PKI}/sa.key"), Secret::ServiceAccountKey)?;
    resources.secret(ENCRYPTION, Secret::EncryptionConfiguration)?;
    resources.leaf(
        Issuer::Cluster,
        &format!("{PKI}/apiserver"),
        serving(node_context),
    )?;
    let client = |name: &str| Request::client(name);
    resources.leaf(
        Issuer::Cluster,
        &format!("{PKI}/apiserver-kubelet-client"),
        client(KUBELET_CLIENT),
    )?;
    resources.leaf(
        Issuer::FrontProxy,
        &format!("{PKI}/front-proxy-client"),
        client("front-proxy-client"),
    )?;
    resources.leaf(
        Issuer::Etcd,
        &format!("{PKI}/apiserver-etcd-client"),
        client("kube-apiserver-etcd-client"),
    )?;
    resources.file(AUDIT_POLICY, 0o600, POLICY)?;
    resources.own_directory(AUDIT_LOG, 0o700)?;
    let mut files: Vec<String> = [
        "apiserver",
        "apiserver-kubelet-client",
        "front-proxy-client",
        "apiserver-etcd-client",
    ]
    .map(|leaf| format!("{PKI}/{leaf}.crt"))
    .into();
    files.extend([CA, SIGNER, AUDIT_POLICY, ENCRYPTION].map(str::to_owned));
    files.extend(
        [
            "front-proxy-ca.crt",
            "apiserver-etcd-ca.crt",
            "sa.pub",
            "sa.key",
        ]
        .map(|file| format!("{PKI}/{file}")),
    );
    if node_context.versions.has(Feature::AnonymousAuthConditions) {
        resources.file(AUTHENTICATION, 0o600, HEALTH_ONLY)?;
        files.push(AUTHENTICATION.into());
    }
    let mut lines = node_context.protected(-999);
    lines.extend([
        "LimitNOFILE=1048576".into(),
        "TimeoutStartSec=180".into(),
        // Before 1.23 it waits for watches to end, which they do not: by then it listens to nobody any more.
        "TimeoutStopSec=15".into(),
        // When a cluster is removed, its etcd may be gone before it.
        "X-HatcheryRemoval=kill".into(),
    ]);
    let unit = Service {
        description: "Kubernetes API server",
        notifies: true,
        after: &["etcd.service"],
        stamp: node_context.stamp(&["kube-apiserver"]),
        command: flags(node_context).command(&node_context.program("kube-apiserver")),
        lines,
    };
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    resources.service("kube-apiserver", unit.render(), &files)
}

/// Who the API server is to kubelets.
pub(crate) const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";

pub(crate) fn flags(node_context: &NodeContext<'_>) -> Flags {
    let cluster = node_context.cluster;
    let ranges: Vec<_> = cluster
        .services
        .cidrs
        .iter()
        .map(|net| net.to_string())
        .collect();
    let pki = |file: &str| format!("{PKI}/{file}");
    let mut flags = Flags::new([
        ("advertise-address", node_context.node.address.to_string()),
        ("allow-privileged", "true".into()),
        ("audit-log-maxage", "30".into()),
        ("audit-log-maxbackup", "10".into()),
        ("audit-log-maxsize", "100".into()),
        ("audit-log-path", format!("{AUDIT_LOG}/audit.log")),
        ("audit-policy-file", AUDIT_POLICY.into()),
        ("authorization-mode", "Node,RBAC".into()),
        ("client-ca-file", SIGNER.into()),
        ("enable-admission-plugins", "NodeRestriction".into()),
        ("encryption-provider-config", ENCRYPTION.into()),
        ("etcd-cafile", pki("apiserver-etcd-ca.crt")),
        ("etcd-certfile", pki("apiserver-etcd-client.crt")),
        ("etcd-keyfile", pki("apiserver-etcd-client.key")),
        ("etcd-servers", etcd::servers(node_context)),
        (
            "kubelet-client-certificate",
            pki("apiserver-kubelet-client.crt"),
        ),
        ("kubelet-client-key", pki("apiserver-kubelet-client.key")),
        (
            "kubelet-preferred-address-types",
            "InternalIP,Hostname,ExternalIP".into(),
        ),
        ("profiling", "false".into()),
        ("proxy-client-cert-file", pki("front-proxy-client.crt")),
        ("proxy-client-key-file", pki("front-proxy-client.key")),
        (
            "request-timeout",
            cluster.api_server.request_timeout.to_string(),
        ),
        ("requestheader-allowed-names", "front-proxy-client".into()),
        ("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
        (
            "requestheader-extra-headers-prefix",
            "X-Remote-Extra-".into(),
        ),
        ("requestheader-group-headers", "X-Remote-Group".into()),
        ("requestheader-username-headers", "X-Remote-User".into()),
        ("secure-port", "6443".into()),
        ("service-account-extend-token-expiration", "false".into()),
        (
            "service-account-issuer",
            format!("https://kubernetes.default.svc.{}", cluster.dns.domain),
        ),
        ("service-account-key-file", pki("sa.pub")),
        ("service-account-signing-key-file", pki("sa.key")),
        ("service-cluster-ip-range", ranges.join(",")),
        ("service-node-port-range", "30000-32767".into()),
        ("tls-cert-file", pki("apiserver.crt")),
        ("tls-cipher-suites", CIPHER_SUITES.join(",")),
        ("tls-min-version", "VersionTLS12".into()),
        ("tls-private-key-file", pki("apiserver.key")),
    ]);
    if cluster.kubelet.serving_certificate {
        flags.set("kubelet-certificate-authority", CA);
    }
    if node_context.versions.has(Feature::ShutdownSendRetryAfter) {
        flags.set("shutdown-send-retry-after", "true");
    }
    if node_context.versions.has(Feature::AnonymousAuthConditions) {
        flags.set("authentication-config", AUTHENTICATION);
    } else {
        flags.set("anonymous-auth", "false");
    }
    flags.overridden(node_context.extra(Component::KubeApiserver))
}

/// All names and addresses that clients may call it by.
fn serving(node_context: &NodeContext<'_>) -> Request {
    let cluster = node_context.cluster;
    let domain = cluster.dns.domain.as_str();
    let mut names: Vec<String> = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "localhost",
    ]
    .map(str::to_owned)
    .into();
    names.push(format!("kubernetes.default.svc.{domain}"));
    names.push(node_context.node.name.to_string());
    names.extend(
        cluster
            .api_server
            .extra_names
            .iter()
            .map(ToString::to_string),
    );
    let mut ips: Vec<IpAddr> = vec![
        Ipv4Addr::LOCALHOST.into(),
        Ipv6Addr::LOCALHOST.into(),
        cluster.services.gateway,
        node_context.node.address,
    ];
    ips.extend(&cluster.api_server.extra_addresses);
    ips.extend(cluster.load_balancer().map(|one| one.machine.address));
    match &cluster.endpoint.host {
        Host::Address(address) => ips.push(*address),
        Host::Name(name) => names.push(name.to_string()),
    }
    Request::server("kube-apiserver")
        .with_dns_names(names)
        .with_ips(ips)
}

/// Who did what to which object, without contents: those may be secret.
const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
# Machines ask all day long; what people and controllers change is what matters.
- level: None
  users: [system:kube-proxy]
  verbs: [watch]
- level: None
  nonResourceURLs: ['/healthz*', '/livez*', '/readyz*', /version]
- level: None
  resources: [{group: '', resources: [events]}, {group: events.k8s.io, resources: [events]}]
- level: None
  resources: [{group: coordination.k8s.io, resources: [leases]}]
# Who reads secrets is worth knowing, whoever it is.
- level: Metadata
  resources: [{group: '', resources: [secrets, configmaps, serviceaccounts/token]}]
- level: None
  verbs: [get, list, watch]
  userGroups: [system:nodes]
- level: Metadata
";

/// Clients without a certificate may ask for the server's health, and nothing else.
const HEALTH_ONLY: &str = "apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
";
