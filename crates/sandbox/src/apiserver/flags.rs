//! The command lines of etcd and kube-apiserver, for quick starts rather than for keeping data.

use std::path::Path;

/// The ports of one etcd and one kube-apiserver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
    pub(super) apiserver: u16,
}

pub(super) fn etcd(dir: &Path, ports: Ports) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    let client_url = format!("https://127.0.0.1:{}", ports.etcd);
    let peer_url = format!("https://127.0.0.1:{}", ports.etcd_peer);
    vec![
        format!("--data-dir={}", file("etcd")),
        "--name=sandbox".into(),
        format!("--initial-cluster=sandbox={peer_url}"),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        "--client-cert-auth".into(),
        format!("--trusted-ca-file={}", file("etcd-ca.crt")),
        format!("--cert-file={}", file("etcd.crt")),
        format!("--key-file={}", file("etcd.key")),
        "--peer-client-cert-auth".into(),
        format!("--peer-trusted-ca-file={}", file("etcd-ca.crt")),
        format!("--peer-cert-file={}", file("etcd.crt")),
        format!("--peer-key-file={}", file("etcd.key")),
        "--unsafe-no-fsync".into(),
        "--snapshot-count=1000".into(),
        // A single member elects itself when the first election times out.
        "--heartbeat-interval=20".into(),
        "--election-timeout=200".into(),
    ]
}

pub(super) fn apiserver(dir: &Path, ports: Ports) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    vec![
        format!("--etcd-servers=https://127.0.0.1:{}", ports.etcd),
        format!("--etcd-cafile={}", file("etcd-ca.crt")),
        format!("--etcd-certfile={}", file("etcd-client.crt")),
        format!("--etcd-keyfile={}", file("etcd-client.key")),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={}", ports.apiserver),
        format!("--cert-dir={}", file("generated")),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--allow-privileged=true".into(),
        // Without a controller manager no namespace has its default service account, and this
        // plugin would refuse every pod.
        "--disable-admission-plugins=ServiceAccount".into(),
        // There is no node to publish the service "kubernetes" to.
        "--endpoint-reconciler-type=none".into(),
        // A test is one client: nobody has to be protected from anybody.
        "--enable-priority-and-fairness=false".into(),
        "--profiling=false".into(),
    ]
}
