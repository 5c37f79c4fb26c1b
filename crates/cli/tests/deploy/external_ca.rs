//! A company's own authority, one below its root, as the cluster's.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hatchery_pki::{Authority, Request};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

use crate::bench::Bench;

const NAME: &str = "company clusters";

pub(crate) struct Company {
    root_pem: String,
    authority: Authority,
    other: Authority,
    directory: PathBuf,
}

impl Company {
    /// Makes a root and an authority below it, and puts the latter where a deploy file can name it.
    pub(crate) fn new(home: &Path) -> Self {
        let (root, root_key) = (
            params("company root", BasicConstraints::Constrained(1)),
            key(),
        );
        let root_pem = root.self_signed(&root_key).unwrap().pem();
        let issuer = Issuer::from_ca_cert_pem(&root_pem, root_key).unwrap();
        let (other, other_key) = (
            params("company laptops", BasicConstraints::Constrained(0)),
            key(),
        );
        let other_pem = other.signed_by(&other_key, &issuer).unwrap().pem() + &root_pem;
        let other_key = other_key.serialize_pem().into();
        let (below, own_key) = (params(NAME, BasicConstraints::Constrained(0)), key());
        let own_pem = below.signed_by(&own_key, &issuer).unwrap().pem();
        let (cert_pem, key_pem) = (own_pem + &root_pem, own_key.serialize_pem());
        let directory = home.join("company");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("ca.crt"), &cert_pem).unwrap();
        fs::write(directory.join("ca.key"), &key_pem).unwrap();
        Self {
            root_pem,
            authority: Authority::from_pem(&cert_pem, key_pem.into()).unwrap(),
            other: Authority::from_pem(&other_pem, other_key).unwrap(),
            directory,
        }
    }

    /// For a deploy file.
    pub(crate) fn keys(&self) -> String {
        format!(
            "external-ca: true\nexternal-ca-path: {}\n",
            self.directory.display()
        )
    }

    /// Everything that the cluster was issued holds for whoever knows the company's root alone: files, kubeconfigs and
    /// what servers present.
    pub(crate) async fn vouches(&self, bench: &Bench, machine: usize) {
        let check = format!(
            r#"set -e; root='{root}'
            verify() {{ openssl verify -CAfile <(echo "$root") -untrusted "$1" "$1"; }}
            for file in /etc/kubernetes/pki/*.crt; do
              openssl x509 -noout -issuer -in $file | grep -q '{NAME}' || continue
              verify $file
            done
            grep client-certificate-data /etc/kubernetes/admin.conf | cut -d: -f2 | tr -d ' "' | base64 -d >/run/admin.crt
            verify /run/admin.crt; rm /run/admin.crt
            for port in 6443 10250; do
              openssl s_client -connect 127.0.0.1:$port -CAfile <(echo "$root") -verify_return_error </dev/null >/dev/null
            done"#,
            root = self.root_pem
        );
        let said = bench.inside(machine, &check).await;
        for name in ["apiserver", "kubelet", "kubelet-client", "admin"] {
            let good = format!("/{name}.crt: OK");
            assert!(said.contains(&good), "{name}: {said}");
        }
        // Pods, whose programs may know no other way than up to a root.
        let given = "get configmap kube-root-ca.crt -o jsonpath='{.data.ca\\.crt}'";
        let given = bench.kubectl_on(machine, given).await;
        assert!(given.contains(self.root_pem.trim()), "{given}");
    }

    /// Whom another authority of the company calls an administrator is none in the cluster.
    pub(crate) async fn lets_no_others_in(&self, bench: &Bench, machine: usize) {
        let ask = |authority: &Authority| {
            let request = Request::client("somebody").in_group("system:masters");
            let leaf = authority.issue(&request, OffsetDateTime::now_utc());
            let leaf = leaf.unwrap();
            format!(
                "umask 077; cat >/run/c.crt <<'E'\n{}E\ncat >/run/c.key <<'E'\n{}E\n\
                 for url in 6443/api/v1/secrets 10250/pods; do\n\
                 curl -sko /dev/null -w '%{{http_code}} ' --cert /run/c.crt --key /run/c.key https://127.0.0.1:$url\n\
                 done; rm /run/c.crt /run/c.key",
                leaf.cert_pem,
                secrecy::ExposeSecret::expose_secret(&leaf.key_pem),
            )
        };
        let known = bench.inside(machine, &ask(&self.authority)).await;
        assert_eq!(known.trim(), "200 200");
        let stranger = bench.inside(machine, &ask(&self.other)).await;
        assert_eq!(stranger.trim(), "401 401");
    }

    /// A kubelet whose certificate is about to end gets the next one from the cluster, signed by the company's authority.
    pub(crate) async fn renews_a_kubelet(&self, bench: &Bench, machine: usize) {
        let name = bench.machine(machine).name.clone();
        let request = Request::client(format!("system:node:{name}")).in_group("system:nodes");
        // Nine tenths of its hour are over.
        let begin = OffsetDateTime::now_utc() - Duration::minutes(57);
        let old = self
            .authority
            .issue(&request.with_lifetime(Duration::HOUR), begin);
        let old = old.unwrap();
        let base = "/etc/kubernetes/pki/kubelet-client";
        let replace = format!(
            "umask 077; cp {base}.crt {base}.crt.kept; cp {base}.key {base}.key.kept\n\
             cat >{base}.crt <<'E'\n{}E\ncat >{base}.key <<'E'\n{}E\nsystemctl restart kubelet",
            old.cert_pem,
            secrecy::ExposeSecret::expose_secret(&old.key_pem),
        );
        bench.inside(machine, &replace).await;
        let next = format!(
            r#"set -e; root='{}'; own='{}'; next=/var/lib/kubelet/pki/kubelet-client-current.pem
            openssl x509 -noout -issuer -in $next | grep '{NAME}'
            openssl verify -CAfile <(echo "$root") -untrusted <(echo "$own") $next
            openssl x509 -noout -checkend 86400 -in $next"#,
            self.root_pem,
            self.authority.signer_pem(),
        );
        bench.eventually(machine, &next).await;
        let back = format!("mv {base}.crt.kept {base}.crt; mv {base}.key.kept {base}.key");
        bench.inside(machine, &back).await;
        let ready = format!("wait --for=condition=Ready node/{name} --timeout=60s");
        bench.kubectl_on(machine, &ready).await;
    }
}

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

fn params(name: &str, constraints: BasicConstraints) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(constraints);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params.not_before = OffsetDateTime::now_utc() - Duration::DAY;
    params.not_after = OffsetDateTime::now_utc() + Duration::days(3650);
    params
}
