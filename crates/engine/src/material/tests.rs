//! Secrets come in as files of root's alone; a certificate that is still good stays.

use hatchery_pki::Request;
use hatchery_spec::value::Name;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256};
use time::Duration;

use super::*;
use crate::{
    resource::Resources,
    state::{Directory, Holder, Store as _},
};

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

async fn authorities() -> Authorities {
    let place = tempfile::tempdir().unwrap();
    let store = Directory::new(place.path(), &Name::parse("demo").unwrap());
    let lock = store.lock(Holder::this_process("deploy", now()));
    let lock = lock.await.unwrap();
    let made = Authorities::load_or_create(&store, &lock, false, None, now());
    made.await.unwrap()
}

/// An authority below another, with both certificates in its file.
fn intermediate() -> Authority {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&root, key).unwrap();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "below");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = now() - Duration::HOUR;
    params.not_after = now() + Duration::days(2000);
    params.use_authority_key_identifier_extension = true;
    let own = params.signed_by(&key, &issuer).unwrap().pem();
    let bundle = own + &root;
    Authority::from_pem(&bundle, key.serialize_pem().into()).unwrap()
}

fn make(authorities: &Authorities, managed: &Managed, resources: &Resources) -> Made {
    let material = Material {
        authorities,
        cluster: "demo",
        managed,
        now: now(),
    };
    material.make(&resources.0, true).unwrap()
}

fn files(made: &Made) -> Vec<&File> {
    let files = made.operations.iter().map(|operation| match operation {
        Operation::File(file) => file,
        other => panic!("{other:?}"),
    });
    files.collect()
}

fn text(file: &File) -> &str {
    std::str::from_utf8(file.content.in_memory().unwrap()).unwrap()
}

#[tokio::test]
async fn the_signer_takes_no_chain() {
    let mut authorities = authorities().await;
    authorities.cluster = intermediate();
    let mut resources = Resources::default();
    resources
        .secret("/ca.crt", Secret::Certificate(Issuer::Cluster))
        .unwrap();
    resources
        .secret("/ca-signer.crt", Secret::Signer(Issuer::Cluster))
        .unwrap();
    let made = make(&authorities, &Managed::default(), &resources);
    let files = files(&made);
    let count = |file: &File| text(file).matches("BEGIN CERTIFICATE").count();
    assert_eq!((count(files[0]), count(files[1])), (2, 1));
    // Its own, not the one above it.
    assert!(text(files[0]).starts_with(text(files[1]).trim_end()));
}

#[tokio::test]
async fn secrets_are_roots_alone() {
    let authorities = authorities().await;
    let mut resources = Resources::default();
    for (number, what) in [
        Secret::Certificate(Issuer::Etcd),
        Secret::ClusterKey,
        Secret::Signer(Issuer::Cluster),
        Secret::ServiceAccountKey,
        Secret::ServiceAccountPublicKey,
        Secret::EncryptionConfiguration,
    ]
    .into_iter()
    .enumerate()
    {
        resources.secret(&format!("/{number}"), what).unwrap();
    }
    resources
        .leaf(Issuer::Cluster, "/leaf", Request::client("someone"))
        .unwrap();
    let made = make(&authorities, &Managed::default(), &resources);
    let files = files(&made);
    assert_eq!(files.len(), 8);
    for file in files {
        assert_eq!(file.access, Access::root(0o600).unwrap(), "{}", file.path);
    }
}

/// What a machine says of files that are as they were put there.
fn managed(made: &Made) -> Managed {
    let resources = files(made).into_iter().map(|file| ManagedResource {
        key: hatchery_host::script::RecordKey::parse("k").unwrap(),
        kind: "file".into(),
        name: file.path.to_string(),
        state: Some(file.content.hash().as_str().into()),
        size: Some(file.content.size()),
        put: Some(file.content.hash().as_str().into()),
        text: file
            .path
            .as_str()
            .ends_with(".crt")
            .then(|| text(file).to_owned()),
        owners: vec!["master".into()],
    });
    Managed {
        resources: resources.collect(),
        ..Managed::default()
    }
}

#[tokio::test]
async fn a_kubeconfig_follows_the_address_of_the_api() {
    let authorities = authorities().await;
    let at = |path: &str| MachinePath::new(path).unwrap();
    let resources = |server: &str| {
        let mut resources = Resources::default();
        resources.file("/server", 0o600, server).unwrap();
        let config = crate::resource::Kubeconfig {
            path: at("/conf"),
            user: "someone".into(),
            server: server.into(),
            server_file: at("/server"),
        };
        let request = Request::client("someone");
        resources
            .leaf_with(Issuer::Cluster, "/leaf", request, Some(config))
            .unwrap();
        resources
    };
    let first = make(&authorities, &Managed::default(), &resources("https://a"));
    let mut there = managed(&first);
    let again = |there: &Managed, server: &str| make(&authorities, there, &resources(server));
    assert_eq!(again(&there, "https://a").issued, []);
    let moved = again(&there, "https://b");
    assert_eq!(moved.issued[0].1, "the API has another address now");
    let files = files(&moved);
    let config = files.iter().find(|file| file.path.as_str() == "/conf");
    assert!(text(config.unwrap()).contains("https://b"));
    // An earlier release did not write it down.
    there.resources.retain(|one| one.name != "/server");
    let unknown = again(&there, "https://a");
    assert_eq!(unknown.issued[0].1, "nothing says where it leads");
}

#[tokio::test]
async fn a_certificate_that_is_good_stays() {
    let authorities = authorities().await;
    let resources = |name: &str| {
        let mut resources = Resources::default();
        let request = Request::client(name);
        resources.leaf(Issuer::Cluster, "/leaf", request).unwrap();
        resources
    };
    let first = make(&authorities, &Managed::default(), &resources("someone"));
    assert_eq!(first.issued.len(), 1);
    let there = managed(&first);
    let again = make(&authorities, &there, &resources("someone"));
    assert_eq!(again.issued, []);
    let hashes = |made: &Made| -> Vec<Hash> {
        let files = files(made).into_iter();
        files.map(|file| file.content.hash().clone()).collect()
    };
    assert_eq!(hashes(&first), hashes(&again));

    // Another subject, a file that somebody changed, one that is gone.
    assert_eq!(
        make(&authorities, &there, &resources("other")).issued.len(),
        1
    );
    for state in [Some(Hash::digest(b"x").as_str()), Some("absent"), None] {
        let mut changed = there.clone();
        changed.resources[1].state = state.map(str::to_owned);
        let made = make(&authorities, &changed, &resources("someone"));
        assert_eq!(made.issued.len(), 1, "{state:?}");
    }
}
