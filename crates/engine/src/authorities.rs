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

use hatchery_pki::{AUTHORITY_LIFETIME, Authority, ServiceAccountKey};
use hatchery_spec::cluster::Certificates;
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
        match Stage::of(store).await.context(StoreSnafu)? {
            Stage::Complete(_) => kept::read(store).await.map(Some),
            // They were put here by hand, perhaps from a backup: all of them or they are none.
            Stage::Unmarked if kept::any(store).await.context(StoreSnafu)? => {
                kept::read(store).await.map(Some)
            }
            Stage::Unmarked | Stage::Making(_) => Ok(None),
        }
    }

    /// Those of a cluster, taken or made if it is new. The lock is the proof that nobody else makes them as well.
    ///
    /// # Errors
    /// Everything that is missing, damaged or unfit, here or in the user's directory.
    pub async fn load_or_create(
        store: &dyn Store,
        lock: &Lock,
        certificates: &Certificates,
        now: OffsetDateTime,
    ) -> Result<Self, Error> {
        let external = certificates
            .external_ca
            .as_ref()
            .map(|directory| External::new(directory.as_str()));
        let stage = Stage::of(store).await.context(StoreSnafu)?;
        if let Some(kept) = Self::load(store).await? {
            let others = external.map_or_else(Vec::new, |external| external.differences(&kept));
            ensure!(others.is_empty(), UnusableSnafu { problems: others });
            if matches!(stage, Stage::Unmarked) {
                stage.complete(store, lock).await.context(StoreSnafu)?;
            }
            return Ok(kept);
        }
        // Nothing leaves this function before it is marked as complete, so no machine has seen what may be there.
        let made = match external {
            Some(external) => external.read(now)?,
            None => Self::make(now)?,
        };
        let stage = stage.begin(store, lock).await.context(StoreSnafu)?;
        kept::write(store, &made).await.context(StoreSnafu)?;
        stage.complete(store, lock).await.context(StoreSnafu)?;
        Ok(made)
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

fn make_authority(name: &str, now: OffsetDateTime) -> Result<Authority, Error> {
    Authority::new(name, AUTHORITY_LIFETIME, now).context(MakeSnafu)
}
