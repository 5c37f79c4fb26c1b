//! The authorities as a store keeps them, and how far their making has come.

use hatchery_pki::{Authority, ServiceAccountKey};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};

use super::{
    Authorities, EncryptionKey, Error, Problem,
    error::{UnusableSnafu, told},
};
use crate::state::{self, Expected, Key, Lock, Revision, Store};

/// The keys of an authority's certificate and private key.
type Pair = (Key, Key);

const CLUSTER: Pair = (Key::new("pki/ca.crt"), Key::new("pki/ca.key"));
const FRONT_PROXY: Pair = (
    Key::new("pki/front-proxy-ca.crt"),
    Key::new("pki/front-proxy-ca.key"),
);
const ETCD: Pair = (Key::new("pki/etcd-ca.crt"), Key::new("pki/etcd-ca.key"));
const SERVICE_ACCOUNT: Pair = (Key::new("pki/sa.pub"), Key::new("pki/sa.key"));
const ENCRYPTION: Key = Key::new("pki/encryption.key");
const STAGE: Key = Key::new("pki/stage");

const MAKING: &[u8] = b"making\n";
const COMPLETE: &[u8] = b"complete\n";

/// How far the making of authorities has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// There is no mark: there are no authorities, or somebody put them there without it.
    Unmarked,
    /// The run that made them was killed; they have not been used.
    Making(Revision),
    /// They are in use.
    Complete(Revision),
}

impl Stage {
    pub(super) async fn read(store: &dyn Store) -> Result<Self, state::Error> {
        let Some(value) = store.read(STAGE).await? else {
            return Ok(Self::Unmarked);
        };
        match value.bytes.expose_secret() {
            MAKING => Ok(Self::Making(value.revision)),
            COMPLETE => Ok(Self::Complete(value.revision)),
            _ => Err(state::Error::Damaged {
                place: store.place(STAGE),
                problem: "it says neither \"making\" nor \"complete\"".to_owned(),
            }),
        }
    }

    /// From here on what is there is not in use.
    pub(super) async fn begin(self, store: &dyn Store, lock: &Lock) -> Result<Self, state::Error> {
        self.set(MAKING, store, lock).await.map(Self::Making)
    }

    /// From here on what is there is never made anew.
    pub(super) async fn complete(self, store: &dyn Store, lock: &Lock) -> Result<(), state::Error> {
        self.set(COMPLETE, store, lock).await.map(|_| ())
    }

    async fn set(
        self,
        content: &[u8],
        store: &dyn Store,
        _lock: &Lock,
    ) -> Result<Revision, state::Error> {
        let expected = match self {
            Self::Unmarked => Expected::Nothing,
            Self::Making(revision) | Self::Complete(revision) => Expected::Unchanged(revision),
        };
        store.write(STAGE, content.to_vec().into(), expected).await
    }
}

/// The authorities' certificates by name, of a cluster that is past making them. Those that cannot be read are left
/// to the caller that reads all.
pub(super) async fn certificates(store: &dyn Store) -> Option<Vec<(&'static str, String)>> {
    let read = async |key| {
        let value = store.read(key).await.ok()??;
        String::from_utf8(value.bytes.expose_secret().to_vec()).ok()
    };
    if read(STAGE).await?.as_bytes() != COMPLETE {
        return None;
    }
    let mut found = Vec::new();
    for (name, key) in [
        ("ca", CLUSTER.0),
        ("front-proxy-ca", FRONT_PROXY.0),
        ("etcd-ca", ETCD.0),
    ] {
        found.extend(read(key).await.map(|text| (name, text)));
    }
    Some(found)
}

/// Whether there is anything, whole or not.
pub(super) async fn any(store: &dyn Store) -> Result<bool, state::Error> {
    for (public, private) in [CLUSTER, FRONT_PROXY, ETCD, SERVICE_ACCOUNT] {
        if store.read(public).await?.is_some() || store.read(private).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(store.read(ENCRYPTION).await?.is_some())
}

pub(super) async fn write(store: &dyn Store, made: &Authorities) -> Result<(), state::Error> {
    let public = |text: &str| SecretSlice::from(text.as_bytes().to_vec());
    let secret = |text: &SecretString| public(text.expose_secret());
    let pair = |(public_key, private_key), authority: &Authority| {
        [
            (public_key, public(authority.cert_pem())),
            (private_key, secret(authority.key_pem())),
        ]
    };
    let authorities = [
        pair(CLUSTER, &made.cluster),
        pair(FRONT_PROXY, &made.front_proxy),
        pair(ETCD, &made.etcd),
    ];
    let others = [
        (SERVICE_ACCOUNT.0, public(made.service_account.public_pem())),
        (
            SERVICE_ACCOUNT.1,
            secret(made.service_account.private_pem()),
        ),
        (ENCRYPTION, secret(&made.encryption_key.to_text())),
    ];
    for (key, bytes) in authorities.into_iter().flatten().chain(others) {
        store.write(key, bytes, Expected::Anything).await?;
    }
    Ok(())
}

/// All of them, or all that is wrong.
pub(super) async fn read(store: &dyn Store) -> Result<Authorities, Error> {
    let mut reader = Reader {
        store,
        problems: Vec::new(),
    };
    let cluster = reader.authority(CLUSTER).await?;
    let front_proxy = reader.authority(FRONT_PROXY).await?;
    let etcd = reader.authority(ETCD).await?;
    let service_account = reader.service_account().await?;
    let encryption_key = reader.encryption_key().await?;
    match (cluster, front_proxy, etcd, service_account, encryption_key) {
        (
            Some(cluster),
            Some(front_proxy),
            Some(etcd),
            Some(service_account),
            Some(encryption_key),
        ) => Ok(Authorities {
            cluster,
            front_proxy,
            etcd,
            service_account,
            encryption_key,
        }),
        _ => UnusableSnafu {
            problems: reader.problems,
        }
        .fail(),
    }
}

struct Reader<'a> {
    store: &'a dyn Store,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    async fn authority(&mut self, (cert, key): Pair) -> Result<Option<Authority>, Error> {
        let (cert_pem, key_pem) = (self.text(cert).await?, self.text(key).await?);
        let Some((cert_pem, key_pem)) = cert_pem.zip(key_pem) else {
            return Ok(None);
        };
        let read = Authority::from_pem(cert_pem.expose_secret(), key_pem);
        Ok(read
            .map_err(|error| {
                let at_fault = match &error {
                    hatchery_pki::Error::Key { .. } | hatchery_pki::Error::KeyMismatch { .. } => {
                        key
                    }
                    _ => cert,
                };
                self.add(at_fault, told(&error));
            })
            .ok())
    }

    async fn service_account(&mut self) -> Result<Option<ServiceAccountKey>, Error> {
        let (public, private) = SERVICE_ACCOUNT;
        let Some(private_pem) = self.text(private).await? else {
            return Ok(None);
        };
        let key = match ServiceAccountKey::from_pem(private_pem) {
            Ok(key) => key,
            Err(error) => {
                self.add(private, told(&error));
                return Ok(None);
            }
        };
        // It follows from the private key, so that its loss is none; another one means that the private key is another.
        let kept = self.store.read(public).await;
        let kept = kept.map_err(|source| Error::Store { source })?;
        let differs =
            kept.is_some_and(|kept| kept.bytes.expose_secret() != key.public_pem().as_bytes());
        if differs {
            self.add(private, "it does not belong to sa.pub beside it".to_owned());
            return Ok(None);
        }
        Ok(Some(key))
    }

    async fn encryption_key(&mut self) -> Result<Option<EncryptionKey>, Error> {
        let Some(text) = self.text(ENCRYPTION).await? else {
            return Ok(None);
        };
        Ok(EncryptionKey::from_text(&text)
            .map_err(|reason| self.add(ENCRYPTION, reason.to_owned()))
            .ok())
    }

    async fn text(&mut self, key: Key) -> Result<Option<SecretString>, Error> {
        let value = self.store.read(key).await;
        let Some(value) = value.map_err(|source| Error::Store { source })? else {
            self.add(key, "it is missing".to_owned());
            return Ok(None);
        };
        match std::str::from_utf8(value.bytes.expose_secret()) {
            Ok(text) => Ok(Some(text.into())),
            Err(_) => {
                self.add(key, "it is damaged: not valid UTF-8".to_owned());
                Ok(None)
            }
        }
    }

    fn add(&mut self, key: Key, reason: String) {
        self.problems.push(Problem {
            file: self.store.place(key),
            reason,
            remedy: "restore it from a backup, or from a master; it is never made anew, since the cluster would no \
                     longer trust itself"
                .to_owned(),
        });
    }
}
