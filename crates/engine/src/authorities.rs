//! What the certificates and tokens of a cluster stand on: three authorities, the key of service accounts and the key
//! that Secrets are encrypted with.
//!
//! They are made, or taken from a directory of the user's, when a cluster is first deployed; from then on they are only
//! read. A cluster that has lost one cannot be given another: everything in it that trusts the old one would stop.

mod encryption;
mod error;
mod external;
mod kept;
#[cfg(test)]
mod tests;

use std::path::Path;

use hatchery_pki::{AUTHORITY_LIFETIME, Authority, ServiceAccountKey};
use snafu::{ResultExt as _, ensure};
use time::OffsetDateTime;

pub use self::{
    encryption::EncryptionKey,
    error::{Error, Problem},
};
use self::{
    error::{MakeServiceAccountSnafu, MakeSnafu, StoreSnafu, UnusableSnafu},
    external::External,
    kept::Stage,
};
use crate::state::{Lock, Store};

/// What a cluster's certificates and tokens stand on.
#[derive(Debug)]
pub struct Authorities {
    /// Vouches for the API server, for components, nodes and people.
    pub cluster: Authority,
    /// Vouches for the API server where it speaks for others, to extension API servers.
    pub front_proxy: Authority,
    /// Vouches for etcd's members and clients.
    pub etcd: Authority,
    /// Signs the tokens of service accounts.
    pub service_account: ServiceAccountKey,
    /// Encrypts Secrets in etcd.
    pub encryption_key: EncryptionKey,
}

impl Authorities {
    /// Those of a cluster that has them.
    ///
    /// # Errors
    /// Everything that is missing or damaged.
    pub async fn load(store: &dyn Store) -> Result<Option<Self>, Error> {
        match Stage::read(store).await.context(StoreSnafu)? {
            Stage::Complete(_) => kept::read(store).await.map(Some),
            // They were put here by hand, perhaps from a backup: all of them or they are none.
            Stage::Unmarked if kept::any(store).await.context(StoreSnafu)? => {
                kept::read(store).await.map(Some)
            }
            Stage::Unmarked | Stage::Making(_) => Ok(None),
        }
    }

    /// Those of a cluster, taken from the user's directory or made if it is new: one that is `formed` is not. The lock is
    /// the proof that nobody else makes them as well.
    ///
    /// # Errors
    /// Everything that is missing, damaged or unfit, here or in the user's directory.
    pub async fn load_or_create(
        store: &dyn Store,
        lock: &Lock,
        formed: bool,
        external: Option<&Path>,
        now: OffsetDateTime,
    ) -> Result<Self, Error> {
        let stage = Stage::read(store).await.context(StoreSnafu)?;
        if let Some(kept) = Self::load_agreeing(store, external).await? {
            if matches!(stage, Stage::Unmarked) {
                stage.complete(store, lock).await.context(StoreSnafu)?;
            }
            return Ok(kept);
        }
        if formed {
            return kept::read(store).await;
        }
        // Nothing leaves this function before it is marked as complete, so no machine has seen what may be there.
        let made = Self::take_or_make(external, now)?;
        let stage = stage.begin(store, lock).await.context(StoreSnafu)?;
        kept::write(store, &made).await.context(StoreSnafu)?;
        stage.complete(store, lock).await.context(StoreSnafu)?;
        Ok(made)
    }

    /// Those of a cluster, or for a new one such as [`Self::load_or_create`] would take or make. Nothing is written: these
    /// are never used.
    ///
    /// # Errors
    /// The same as for [`Self::load_or_create`].
    pub async fn load_or_imagine(
        store: &dyn Store,
        formed: bool,
        external: Option<&Path>,
        now: OffsetDateTime,
    ) -> Result<Foreseen, Error> {
        Ok(match Self::load_agreeing(store, external).await? {
            Some(kept) => Foreseen::Kept(kept),
            None if formed => Foreseen::Kept(kept::read(store).await?),
            None => Foreseen::Imagined(Self::take_or_make(external, now)?),
        })
    }

    /// Those of a cluster that has them, where the user's directory does not contradict them.
    async fn load_agreeing(
        store: &dyn Store,
        external: Option<&Path>,
    ) -> Result<Option<Self>, Error> {
        let Some(kept) = Self::load(store).await? else {
            return Ok(None);
        };
        let problems = external.map_or_else(Vec::new, |directory| {
            External::new(directory).differences(&[
                ("ca", kept.cluster.cert_pem()),
                ("front-proxy-ca", kept.front_proxy.cert_pem()),
                ("etcd-ca", kept.etcd.cert_pem()),
            ])
        });
        ensure!(problems.is_empty(), UnusableSnafu { problems });
        Ok(Some(kept))
    }

    fn take_or_make(external: Option<&Path>, now: OffsetDateTime) -> Result<Self, Error> {
        match external {
            Some(directory) => External::new(directory).read(now),
            None => Self::make(now),
        }
    }

    fn make(now: OffsetDateTime) -> Result<Self, Error> {
        Ok(Self {
            cluster: make_authority("kubernetes", now)?,
            front_proxy: make_authority("front-proxy-ca", now)?,
            etcd: make_authority("etcd-ca", now)?,
            service_account: ServiceAccountKey::generate().context(MakeServiceAccountSnafu)?,
            encryption_key: EncryptionKey::generate()?,
        })
    }
}

/// Authorities as a plan sees them.
#[derive(Debug)]
pub enum Foreseen {
    /// The cluster has them.
    Kept(Authorities),
    /// The cluster is new; it will have others, or its user's.
    Imagined(Authorities),
}

/// What is wrong with the authorities in the user's directory, by the rules of [`Authorities::load_or_create`]: for a
/// new cluster whatever makes them unfit; for one that has its authorities, that these are others.
pub async fn check_external(
    store: Option<&dyn Store>,
    external: &Path,
    now: OffsetDateTime,
) -> Vec<Problem> {
    let external = External::new(external);
    let kept = match store {
        Some(store) => kept::certificates(store).await,
        None => None,
    };
    match kept {
        Some(kept) => {
            let kept: Vec<_> = kept
                .iter()
                .map(|(name, text)| (*name, text.as_str()))
                .collect();
            external.differences(&kept)
        }
        None => match external.read(now) {
            Err(Error::Unusable { problems }) => problems,
            // What else may go wrong is told by whoever makes them.
            Ok(_) | Err(_) => Vec::new(),
        },
    }
}

fn make_authority(name: &str, now: OffsetDateTime) -> Result<Authority, Error> {
    Authority::new(name, AUTHORITY_LIFETIME, now).context(MakeSnafu)
}
