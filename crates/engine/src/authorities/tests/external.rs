//! Authorities that the user brings.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use time::Duration;

use super::*;

impl Place {
    fn put(&self, name: &str, text: &str) {
        let path = self.0.path().join("external").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn put_authority(&self, name: &str, authority: &Authority) {
        self.put(&format!("{name}.crt"), authority.cert_pem());
        self.put(&format!("{name}.key"), authority.key_pem().expose_secret());
    }

    /// What is told, without the directory.
    async fn told(&self) -> Vec<String> {
        let prefix = format!("{}/", self.0.path().join("external").display());
        let problems = self.problems(true).await;
        assert!(problems.iter().all(|one| !one.remedy.is_empty()));
        assert!(!self.file("ca.crt").exists() && !self.file("stage").exists());
        problems
            .iter()
            .map(|one| one.to_string().replace(&prefix, ""))
            .collect()
    }
}

fn authority(name: &str, lifetime: Duration) -> Authority {
    Authority::new(name, lifetime, now()).unwrap()
}

/// One that may have authorities below it, as ours may not.
fn root() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "root");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key).unwrap().pem();
    Authority::from_pem(&cert, key.serialize_pem().into()).unwrap()
}

/// An authority that `root` vouches for; its file holds both or only its own certificate.
fn below(root: &Authority, name: &str, with_root: bool) -> Authority {
    let key = KeyPair::from_pem(root.key_pem().expose_secret()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(root.cert_pem(), key).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let key = KeyPair::generate().unwrap();
    let mut text = params.signed_by(&key, &issuer).unwrap().pem();
    if with_root {
        text += root.cert_pem();
    }
    Authority::from_pem(&text, key.serialize_pem().into()).unwrap()
}

#[tokio::test]
async fn what_is_there_is_taken_and_the_rest_is_made() {
    let place = Place::new();
    let ca = authority("company", AUTHORITY_LIFETIME);
    place.put_authority("ca", &ca);
    let made = place.get(true).await.unwrap();
    assert_eq!(made.cluster.cert_pem(), ca.cert_pem());
    assert_eq!(made.front_proxy.common_name(), "front-proxy-ca");
    assert_eq!(made.etcd.common_name(), "etcd-ca");

    // It was copied: the directory is needed no more.
    fs::remove_dir_all(place.0.path().join("external")).unwrap();
    assert_eq!(texts(&place.get(true).await.unwrap()), texts(&made));
}

#[tokio::test]
async fn everything_can_be_brought_and_etcd_in_two_ways() {
    for etcd_name in ["etcd/ca", "etcd-ca"] {
        let place = Place::new();
        let [ca, proxy, etcd] = ["a", "b", "c"].map(|name| authority(name, AUTHORITY_LIFETIME));
        let sa = ServiceAccountKey::generate().unwrap();
        place.put_authority("ca", &ca);
        place.put_authority("front-proxy-ca", &proxy);
        place.put_authority(etcd_name, &etcd);
        place.put("sa.key", sa.private_pem().expose_secret());
        let made = place.get(true).await.unwrap();
        let names = [&made.cluster, &made.front_proxy, &made.etcd].map(Authority::common_name);
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(made.service_account.public_pem(), sa.public_pem());
    }
}

#[tokio::test]
async fn an_intermediate_keeps_its_chain() {
    let place = Place::new();
    let root = root();
    let ca = below(&root, "company", true);
    place.put_authority("ca", &ca);
    place.get(true).await.unwrap();
    let kept = place.get(true).await.unwrap().cluster;
    assert_eq!(kept.cert_pem(), ca.cert_pem());
    let leaf = kept.issue(&Request::client("admin"), now()).unwrap();
    assert_eq!(leaf.cert_pem.matches("BEGIN CERTIFICATE").count(), 2);
}

#[tokio::test]
async fn all_that_is_wrong_with_it_is_told_at_once_and_nothing_is_kept() {
    let place = Place::new();
    let [told] = &place.problems(true).await[..] else {
        panic!("not one problem")
    };
    assert_eq!(told.reason, "there is no such directory");
    fs::create_dir(place.0.path().join("external")).unwrap();
    assert_eq!(
        place.told().await,
        [
            "ca.crt: there is no such file",
            "ca.key: there is no such file"
        ]
    );
    let ca = authority("company", AUTHORITY_LIFETIME);
    let leaf = ca.issue(&Request::client("admin"), now()).unwrap();
    place.put("ca.crt", &leaf.cert_pem);
    place.put("ca.key", leaf.key_pem.expose_secret());
    place.put("front-proxy-ca.crt", ca.cert_pem());
    place.put("etcd/ca.crt", ca.cert_pem());
    place.put("etcd/ca.key", leaf.key_pem.expose_secret());
    place.put(
        "sa.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let told = place.told().await;
    let [is_leaf, half, other, sa] = &told[..] else {
        panic!("{told:?}")
    };
    assert!(
        is_leaf.starts_with("ca.crt: ") && is_leaf.contains("is not a certificate authority"),
        "{told:?}"
    );
    assert_eq!(half, "front-proxy-ca.key: there is no such file");
    assert!(
        other.starts_with("etcd/ca.key: ") && other.contains("does not belong to the certificate"),
        "{told:?}"
    );
    assert!(
        sa.starts_with("sa.key: ") && sa.contains("unencrypted"),
        "{told:?}"
    );

    place.put("ca.crt", &"x".repeat(2 << 20));
    assert!(place.told().await[0].contains("ca.crt: it is far too long"));
    fs::remove_file(place.0.path().join("external/ca.crt")).unwrap();
    fs::create_dir(place.0.path().join("external/ca.crt")).unwrap();
    assert!(place.told().await[0].starts_with("ca.crt: "));
}

#[tokio::test]
async fn it_has_to_outlive_what_it_issues() {
    let place = Place::new();
    let year = LEAF_LIFETIME;
    place.put_authority("ca", &authority("short", year - Duration::SECOND));
    place.put_authority(
        "front-proxy-ca",
        &Authority::new("old", year, now() - year * 2).unwrap(),
    );
    place.put_authority(
        "etcd/ca",
        &Authority::new("early", year * 3, now() + Duration::DAY).unwrap(),
    );
    assert_eq!(
        place.told().await,
        [
            "ca.crt: it ends at 2028-01-15T07:59:59Z, sooner than what it issues, which lasts 365 days",
            "front-proxy-ca.crt: it expired at 2026-01-15T08:00:00Z",
            "etcd/ca.crt: it is valid only from 2027-01-16T07:55:00Z on",
        ]
    );
    let place = Place::new();
    place.put_authority("ca", &authority("just enough", year));
    place.get(true).await.unwrap();
}

#[tokio::test]
async fn etcd_must_not_trust_the_nodes() {
    let root = root();
    let ca = below(&root, "company", true);
    for (etcd, fits) in [
        (&ca, false),
        (&root, false),
        (&below(&root, "with the shared root", true), false),
        (&below(&root, "without the shared root", false), true),
    ] {
        let place = Place::new();
        place.put_authority("ca", &ca);
        place.put_authority("etcd-ca", etcd);
        place.put_authority("front-proxy-ca", etcd);
        if fits {
            place.get(true).await.unwrap();
        } else {
            let told = place.told().await;
            assert_eq!(told.len(), 2, "{told:?}");
            assert!(
                told[1].starts_with("etcd-ca.crt: who trusts it"),
                "{told:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_check_of_a_file_follows_the_same_rules() {
    let place = Place::new();
    let directory = place.0.path().join("external");
    let check = |store| check_external(store, &directory, now());
    let store = place.store();
    assert_eq!(check(Some(&store)).await, place.problems(true).await);
    // Half of what may be left out, and what is not an authority.
    let ca = authority("company", AUTHORITY_LIFETIME);
    place.put_authority("ca", &ca);
    place.put("front-proxy-ca.crt", ca.cert_pem());
    place.put("etcd/ca.key", "no key");
    assert_eq!(check(Some(&store)).await, place.problems(true).await);
    assert_eq!(check(Some(&store)).await.len(), 2);
    fs::remove_file(directory.join("front-proxy-ca.crt")).unwrap();
    fs::remove_file(directory.join("etcd/ca.key")).unwrap();
    assert_eq!(
        check(Some(&store)).await,
        [],
        "what its remedies led to is good"
    );
    assert_eq!(check(None).await, []);

    place.get(true).await.unwrap();
    place.put_authority("ca", &authority("another", AUTHORITY_LIFETIME));
    assert_eq!(check(Some(&store)).await, place.problems(true).await);
    assert_eq!(check(Some(&store)).await.len(), 1);
    assert_eq!(check(None).await, [], "it would do for another cluster");
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(
        check(Some(&store)).await,
        [],
        "a living cluster has its copy"
    );
}

#[tokio::test]
async fn what_is_only_imagined_is_written_nowhere() {
    let place = Place::new();
    let ca = authority("company", AUTHORITY_LIFETIME);
    place.put_authority("ca", &ca);
    let directory = place.0.path().join("external");
    let (store, directory) = (place.store(), Some(&*directory));
    let foreseen = Authorities::load_or_imagine(&store, false, directory, now()).await;
    let Ok(Foreseen::Imagined(imagined)) = foreseen else {
        panic!("{foreseen:?}")
    };
    assert_eq!(imagined.cluster.cert_pem(), ca.cert_pem());
    assert!(!store.exists().await.unwrap());
    place.get(true).await.unwrap();
    let foreseen = Authorities::load_or_imagine(&store, false, directory, now()).await;
    assert!(matches!(foreseen, Ok(Foreseen::Kept(_))), "{foreseen:?}");
    place.put_authority("ca", &authority("another", AUTHORITY_LIFETIME));
    let refused = Authorities::load_or_imagine(&store, false, directory, now()).await;
    assert!(
        matches!(refused, Err(Error::Unusable { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_living_cluster_does_not_change_its_authorities() {
    let place = Place::new();
    let first = texts(&place.get(false).await.unwrap());
    place.put_authority("ca", &authority("company", AUTHORITY_LIFETIME));
    let problems = place.problems(true).await;
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].file.ends_with("external/ca.crt"),
        "{problems:?}"
    );
    assert!(
        problems[0].reason.contains("another certificate"),
        "{problems:?}"
    );
    assert_eq!(texts(&place.get(false).await.unwrap()), first);
}
