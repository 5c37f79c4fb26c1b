//! The certificates and keys of one API server, as files in its directory.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    net::Ipv4Addr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use hatchery_pki::{
    AUTHORITY_LIFETIME, Authority, Credentials, Kubeconfig, Leaf, Request, ServiceAccountKey,
};
use secrecy::{ExposeSecret as _, SecretString};
use snafu::{ResultExt as _, Snafu};
use time::OffsetDateTime;

/// Why the certificates could not be made or written.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(transparent)]
    Certificate { source: hatchery_pki::Error },
    #[snafu(transparent)]
    ServiceAccount {
        source: hatchery_pki::InvalidServiceAccountKey,
    },
    #[snafu(display("cannot write {}: {source}", path.display()))]
    Write { path: PathBuf, source: io::Error },
}

/// Everything that proves an identity, except the server's address.
pub(super) struct Identities {
    authority: Authority,
    admin: Leaf,
}

impl Identities {
    /// Makes all certificates and writes those that etcd and kube-apiserver read.
    pub(super) fn make(dir: &Path) -> Result<Self, Error> {
        let now = OffsetDateTime::now_utc();
        let etcd_authority = Authority::new("etcd-ca", AUTHORITY_LIFETIME, now)?;
        let authority = Authority::new("kubernetes", AUTHORITY_LIFETIME, now)?;
        let here = |request: Request| {
            request
                .with_dns_names(["localhost"])
                .with_ips([Ipv4Addr::LOCALHOST])
        };
        let etcd = here(Request::server_and_client("etcd"));
        let etcd_client = Request::client("kube-apiserver-etcd-client");
        let server = here(Request::server("kube-apiserver"));
        let admin = Request::client("kubernetes-admin").in_group("system:masters");
        let service_account = ServiceAccountKey::generate()?;

        write(dir, "etcd-ca.crt", etcd_authority.cert_pem())?;
        write_leaf(dir, "etcd", &etcd_authority.issue(&etcd, now)?)?;
        write_leaf(
            dir,
            "etcd-client",
            &etcd_authority.issue(&etcd_client, now)?,
        )?;
        write(dir, "ca.crt", authority.cert_pem())?;
        write_leaf(dir, "apiserver", &authority.issue(&server, now)?)?;
        write(dir, "sa.pub", service_account.public_pem())?;
        write(dir, "sa.key", service_account.private_pem().expose_secret())?;
        Ok(Self {
            admin: authority.issue(&admin, now)?,
            authority,
        })
    }

    /// The administrator's kubeconfig, also written to `kubeconfig` in the directory.
    pub(super) fn kubeconfig(&self, dir: &Path, port: u16) -> Result<SecretString, Error> {
        let text = Kubeconfig {
            cluster: "sandbox".into(),
            user: "admin".into(),
            context: "sandbox".into(),
            server: format!("https://127.0.0.1:{port}"),
            authority_pem: self.authority.cert_pem().into(),
            credentials: Credentials::Certificate(self.admin.clone()),
        }
        .render();
        write(dir, "kubeconfig", text.expose_secret())?;
        Ok(text)
    }
}

fn write_leaf(dir: &Path, name: &str, leaf: &Leaf) -> Result<(), Error> {
    write(dir, &format!("{name}.crt"), &leaf.cert_pem)?;
    write(dir, &format!("{name}.key"), leaf.key_pem.expose_secret())
}

fn write(dir: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = dir.join(name);
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .context(WriteSnafu { path })
}
