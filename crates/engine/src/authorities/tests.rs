//! Made once, kept for good; what is lost, damaged or unfit is told.

mod external;

use std::{fs, path::PathBuf};

use hatchery_pki::{LEAF_LIFETIME, Request, check_certificate};
use hatchery_spec::value::Name;
use secrecy::{ExposeSecret as _, SecretString};
use tempfile::TempDir;

use super::*;
use crate::state::{Directory, Expected, Holder, Key};

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn store(&self) -> Directory {
        Directory::new(&self.0.path().join("home"), &Name::parse("demo").unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("home/clusters/demo/pki").join(name)
    }

    async fn get(&self, external: bool) -> Result<Authorities, Error> {
        self.get_for(false, external).await
    }

    async fn get_for(&self, formed: bool, external: bool) -> Result<Authorities, Error> {
        let store = self.store();
        let lock = store.lock(Holder::this_process("deploy", now())).await;
        let directory = self.0.path().join("external");
        let directory = external.then_some(&*directory);
        Authorities::load_or_create(&store, &lock.unwrap(), formed, directory, now()).await
    }

    async fn problems(&self, external: bool) -> Vec<Problem> {
        match self.get(external).await {
            Err(Error::Unusable { problems }) => problems,
            other => panic!("{other:?}"),
        }
    }
}

/// All of it, to compare.
fn texts(authorities: &Authorities) -> Vec<String> {
    let pair = |one: &Authority| {
        [
            one.cert_pem().to_owned(),
            one.key_pem().expose_secret().to_owned(),
        ]
    };
    let mut all = Vec::new();
    for one in [
        &authorities.cluster,
        &authorities.front_proxy,
        &authorities.etcd,
    ] {
        all.extend(pair(one));
    }
    all.push(
        authorities
            .service_account
            .private_pem()
            .expose_secret()
            .to_owned(),
    );
    all.push(
        authorities
            .encryption_key
            .configuration()
            .expose_secret()
            .to_owned(),
    );
    all
}

const FILES: [&str; 9] = [
    "ca.crt",
    "ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "etcd-ca.crt",
    "etcd-ca.key",
    "sa.pub",
    "sa.key",
    "encryption.key",
];

#[tokio::test]
async fn they_are_made_once_and_stay() {
    let place = Place::new();
    assert!(Authorities::load(&place.store()).await.unwrap().is_none());
    let made = place.get(false).await.unwrap();
    for file in FILES {
        assert!(place.file(file).exists(), "{file}");
    }
    assert_eq!(texts(&place.get(false).await.unwrap()), texts(&made));
    let loaded = Authorities::load(&place.store()).await.unwrap().unwrap();
    assert_eq!(texts(&loaded), texts(&made));
    let mut different = texts(&made);
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 8);

    assert_eq!(made.cluster.common_name(), "kubernetes");
    assert_eq!(made.etcd.not_after(), now() + AUTHORITY_LIFETIME);
    let request = Request::client("kubernetes-admin").in_group("system:masters");
    let leaf = loaded.cluster.issue(&request, now()).unwrap();
    assert_eq!(
        check_certificate(&leaf.cert_pem, &request, &made.cluster, now()),
        Ok(())
    );

    let other = Place::new().get(false).await.unwrap();
    assert!(
        texts(&other)
            .iter()
            .all(|text| !texts(&made).contains(text))
    );
}

#[tokio::test]
async fn who_was_killed_while_making_them_begins_anew() {
    let place = Place::new();
    let first = texts(&place.get(false).await.unwrap());
    // As it is after so many of the writes.
    for written in 0..=FILES.len() {
        fs::write(place.file("stage"), "making\n").unwrap();
        for file in &FILES[written..] {
            let _ = fs::remove_file(place.file(file));
        }
        assert!(Authorities::load(&place.store()).await.unwrap().is_none());
        let again = place.get(false).await.unwrap();
        assert!(texts(&again).iter().all(|text| !first.contains(text)));
        assert_eq!(texts(&place.get(false).await.unwrap()), texts(&again));
    }
}

#[tokio::test]
async fn what_a_living_cluster_lost_is_never_made_anew() {
    for marked in [true, false] {
        for file in FILES {
            for damage in [None, Some("damaged"), Some("")] {
                let place = Place::new();
                let made = texts(&place.get(false).await.unwrap());
                let path = place.file(file);
                match damage {
                    None => fs::remove_file(&path).unwrap(),
                    Some(text) => fs::write(&path, text).unwrap(),
                }
                // A restored backup may lack the mark; it is no new cluster for that.
                if !marked {
                    fs::remove_file(place.file("stage")).unwrap();
                }
                if (file, damage) == ("sa.pub", None) {
                    assert_eq!(texts(&place.get(false).await.unwrap()), made);
                    continue;
                }
                let problems = place.problems(false).await;
                let [problem] = &problems[..] else {
                    panic!("{problems:?}")
                };
                let blamed = if file == "sa.pub" { "sa.key" } else { file };
                assert!(problem.file.ends_with(blamed), "{problem:?}");
                assert!(
                    problem
                        .remedy
                        .contains("restore it from a backup, or from a master")
                );
                assert_eq!(place.problems(false).await, problems, "nothing was changed");
            }
        }
    }
}

/// A backup without the keys was restored.
#[tokio::test]
async fn a_cluster_that_was_up_gets_no_other_authorities() {
    let place = Place::new();
    for external in [false, true] {
        let refused = place.get_for(true, external).await;
        let Err(Error::Unusable { problems }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(problems.len(), FILES.len() - 1, "{problems:?}");
        assert!(problems[0].remedy.contains("restore it from a backup"));
    }
    let (store, now) = (place.store(), now());
    let foreseen = Authorities::load_or_imagine(&store, true, None, now).await;
    assert!(
        matches!(foreseen, Err(Error::Unusable { .. })),
        "{foreseen:?}"
    );
    assert!(!place.file("ca.crt").exists());
    // One that is new has none yet, and one that has them keeps them.
    let made = texts(&place.get(false).await.unwrap());
    assert_eq!(texts(&place.get_for(true, false).await.unwrap()), made);
}

#[tokio::test]
async fn all_that_is_wrong_is_told_at_once() {
    let place = Place::new();
    let made = place.get(false).await.unwrap();
    fs::remove_file(place.file("ca.key")).unwrap();
    fs::write(
        place.file("etcd-ca.key"),
        made.cluster.key_pem().expose_secret(),
    )
    .unwrap();
    fs::write(place.file("encryption.key"), "c2hvcnQ=").unwrap();
    let problems = place.problems(false).await;
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].ends_with("pki/ca.key: it is missing"), "{told:?}");
    assert!(
        told[1].contains("etcd-ca.key: ") && told[1].contains("does not belong to the certificate"),
        "{told:?}"
    );
    assert!(
        told[2].contains("encryption.key: it is not base64 of 32 bytes"),
        "{told:?}"
    );
    assert!(!told.concat().contains("c2hvcnQ"));
}

#[tokio::test]
async fn what_a_user_restored_is_taken_as_it_is() {
    let place = Place::new();
    let made = texts(&place.get(false).await.unwrap());
    fs::remove_file(place.file("stage")).unwrap();
    assert_eq!(texts(&place.get(false).await.unwrap()), made);
    assert_eq!(
        fs::read_to_string(place.file("stage")).unwrap(),
        "complete\n"
    );
    fs::write(place.file("stage"), "nonsense").unwrap();
    let error = place.get(false).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error}");
}

#[tokio::test]
async fn nothing_secret_is_shown_by_accident() {
    let place = Place::new();
    let made = place.get(false).await.unwrap();
    let shown = format!("{made:?} {:?}", made.encryption_key.configuration());
    let key = made.encryption_key.to_text();
    let key = SecretString::from(key.expose_secret().trim_start_matches("secretbox:"));
    assert!(
        !shown.contains("PRIVATE KEY") && !shown.contains(key.expose_secret()),
        "{shown}"
    );
    // Damaged in the middle, so that readers come far.
    let text = made.cluster.key_pem().expose_secret().replacen('M', "N", 1);
    let store = place.store();
    let bytes = text.clone().into_bytes().into();
    store
        .write(Key::new("pki/ca.key"), bytes, Expected::Anything)
        .await
        .unwrap();
    let error = place.get(false).await.unwrap_err();
    let line = text.lines().nth(1).unwrap();
    assert!(!format!("{error} {error:?}").contains(line), "{error:?}");
}

#[tokio::test]
async fn the_encryption_configuration_is_what_the_api_server_reads() {
    let place = Place::new();
    let key = place.get(false).await.unwrap().encryption_key;
    let text = key.configuration();
    assert_eq!(text.expose_secret(), key.configuration().expose_secret());
    let read: serde_json::Value = serde_saphyr::from_str(text.expose_secret()).unwrap();
    let kept = fs::read_to_string(place.file("encryption.key")).unwrap();
    let secret = kept.strip_prefix("secretbox:").unwrap();
    assert_eq!(secret.len(), 44);
    let wanted = serde_json::json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": ["secrets"],
            "providers": [
                {"secretbox": {"keys": [{"name": "key1", "secret": secret}]}},
                {"identity": {}},
            ],
        }],
    });
    assert_eq!(read, wanted);
}

/// What is in etcd was written with it, and masters that restart one after another have to read each other's Secrets.
#[tokio::test]
async fn a_cluster_of_an_earlier_release_keeps_its_provider() {
    let place = Place::new();
    place.get(false).await.unwrap();
    let secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    fs::write(place.file("encryption.key"), secret).unwrap();
    let key = place.get(false).await.unwrap().encryption_key;
    assert_eq!(
        key.configuration().expose_secret(),
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources:\n  \
             - secrets\n  providers:\n  - aescbc:\n      keys:\n      - name: key1\n        secret: {secret}\n  \
             - identity: {{}}\n"
        )
    );
    let kept = fs::read_to_string(place.file("encryption.key")).unwrap();
    assert_eq!(kept, secret);
}
