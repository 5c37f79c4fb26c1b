//! Certificates and kubeconfigs of a cluster that is put together by hand.

use std::net::Ipv4Addr;

use hatchery_pki::{
    AUTHORITY_LIFETIME, Authority, Credentials, Kubeconfig, Leaf, Request, ServiceAccountKey,
};
use hatchery_sandbox::lab::Machine;
use secrecy::{ExposeSecret, SecretString};
use time::OffsetDateTime;

use crate::node::API_SERVICE;

/// What all nodes of a cluster agree on.
pub(crate) struct Material {
    /// Names and addresses of the masters, all of them etcd members.
    pub(crate) masters: Vec<(String, Ipv4Addr)>,
    /// Where clients find the API.
    pub(crate) endpoint: String,
    authority: Authority,
    etcd_authority: Authority,
    service_accounts: ServiceAccountKey,
    made: OffsetDateTime,
}

/// A file below a node's own directory, and its text.
pub(crate) type File = (String, String);

impl Material {
    pub(crate) fn new(masters: &[&Machine], endpoint: Ipv4Addr) -> Self {
        let made = OffsetDateTime::now_utc();
        let masters: Vec<_> = masters
            .iter()
            .map(|machine| (machine.name.clone(), machine.address))
            .collect();
        let port = if masters.iter().any(|(_, address)| *address == endpoint) {
            6443
        } else {
            8443
        };
        Self {
            endpoint: format!("{endpoint}:{port}"),
            masters,
            authority: Authority::new("kubernetes", AUTHORITY_LIFETIME, made).unwrap(),
            etcd_authority: Authority::new("etcd-ca", AUTHORITY_LIFETIME, made).unwrap(),
            service_accounts: ServiceAccountKey::generate().unwrap(),
            made,
        }
    }

    fn leaf(authority: &Authority, request: &Request, made: OffsetDateTime) -> Leaf {
        authority.issue(request, made).unwrap()
    }

    fn kubeconfig(&self, server: &str, request: &Request) -> String {
        let kubeconfig = Kubeconfig {
            cluster: "plain".into(),
            user: request.common_name.clone(),
            context: "plain".into(),
            server: format!("https://{server}"),
            authority_pem: self.authority.cert_pem().into(),
            credentials: Credentials::Certificate(Self::leaf(&self.authority, request, self.made)),
        };
        kubeconfig.render().expose_secret().into()
    }

    /// What a master keeps.
    pub(crate) fn of_master(&self, machine: &Machine) -> Vec<File> {
        let endpoint: Ipv4Addr = self.endpoint.split(':').next().unwrap().parse().unwrap();
        let local = Ipv4Addr::LOCALHOST;
        let member = Request::server_and_client(&machine.name)
            .with_dns_names(["localhost", &machine.name])
            .with_ips([local, machine.address]);
        let apiserver = Request::server("kube-apiserver")
            .with_dns_names(["kubernetes", "kubernetes.default", "kubernetes.default.svc"])
            .with_ips([local, machine.address, endpoint, API_SERVICE]);
        let kubelet_client =
            Request::client("kube-apiserver-kubelet-client").in_group("system:masters");
        let mut files = Vec::new();
        let mut pair = |name: &str, authority, request: &Request| {
            let leaf = Self::leaf(authority, request, self.made);
            files.push((format!("pki/{name}.crt"), leaf.cert_pem));
            files.push((format!("pki/{name}.key"), reveal(&leaf.key_pem)));
        };
        pair("etcd", &self.etcd_authority, &member);
        pair(
            "etcd-client",
            &self.etcd_authority,
            &Request::client("kube-apiserver-etcd-client"),
        );
        pair("apiserver", &self.authority, &apiserver);
        pair("kubelet-client", &self.authority, &kubelet_client);
        files.extend(
            [
                ("pki/etcd-ca.crt", self.etcd_authority.cert_pem().to_owned()),
                ("pki/ca.crt", self.authority.cert_pem().to_owned()),
                ("pki/ca.key", reveal(self.authority.key_pem())),
                ("pki/sa.key", reveal(self.service_accounts.private_pem())),
                ("pki/sa.pub", self.service_accounts.public_pem().to_owned()),
            ]
            .map(|(name, text)| (name.to_owned(), text)),
        );
        for (name, server, request) in [
            (
                "admin",
                self.endpoint.as_str(),
                Request::client("admin").in_group("system:masters"),
            ),
            (
                "controller-manager",
                "127.0.0.1:6443",
                Request::client("system:kube-controller-manager"),
            ),
            (
                "scheduler",
                "127.0.0.1:6443",
                Request::client("system:kube-scheduler"),
            ),
        ] {
            files.push((
                format!("conf/{name}.kubeconfig"),
                self.kubeconfig(server, &request),
            ));
        }
        files
    }

    /// What a worker keeps.
    pub(crate) fn of_worker(&self, machine: &Machine) -> Vec<File> {
        let kubelet =
            Request::client(format!("system:node:{}", machine.name)).in_group("system:nodes");
        let proxy = Request::client("system:kube-proxy");
        vec![
            ("pki/ca.crt".into(), self.authority.cert_pem().into()),
            (
                "conf/kubelet.kubeconfig".into(),
                self.kubeconfig(&self.endpoint, &kubelet),
            ),
            (
                "conf/kube-proxy.kubeconfig".into(),
                self.kubeconfig(&self.endpoint, &proxy),
            ),
        ]
    }
}

fn reveal(secret: &SecretString) -> String {
    secret.expose_secret().into()
}
