//! Which cluster this is: a name that people chose, and an id that no other cluster has; and what was made of it so far.

use hatchery_host::{path::Word, script::Identity};
use hatchery_spec::{
    cluster::{Machine, Role},
    value::{Name, Version},
};
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{Claim, Error, Expected, Key, Lock, Store};
use crate::{package::Release, versions::Versions};

/// The form in which records are written. The first form had id, name and time of making only.
const FORMAT: u32 = 2;

/// Which cluster this is, and what was made of it so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    #[serde(default = "first_format")]
    format: u32,
    uid: Uid,
    name: Word,
    #[serde(with = "time::serde::rfc3339")]
    created: OffsetDateTime,
    /// Whether its control plane was ever begun. From then on etcd may have data.
    #[serde(default)]
    pub formed: bool,
    /// Whether its removal was begun, and machines are not clean yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
    /// What runs: the versions of the last run that ended with the control plane up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Brought>,
    /// What a later run began to bring, which did not end so: some machines may run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bringing: Option<Brought>,
    /// Every machine that may hold something of the cluster; `None` in a record of the first form.
    #[serde(default)]
    pub machines: Option<Vec<Claim>>,
}

fn first_format() -> u32 {
    1
}

/// Versions as they are remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brought {
    kubernetes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etcd: Option<String>,
}

impl Brought {
    /// What is about to be brought to machines that have `reached` one thing, and perhaps had another begun. What is not
    /// known of the new is still true of the old; of etcd the one that was begun, since its data does not go back.
    fn next(reached: Option<&Self>, begun: Option<&Self>, versions: &Versions) -> Self {
        let wanted = versions.kubernetes;
        let known = reached.or(begun).and_then(Self::kubernetes);
        let same = known.filter(|known| {
            wanted.patch.is_none() && (known.major, known.minor) == (wanted.major, wanted.minor)
        });
        let known = || begun.and_then(Self::etcd).or_else(|| reached?.etcd());
        let etcd = versions.etcd.or_else(known);
        Self {
            kubernetes: same.unwrap_or(wanted).to_string(),
            etcd: etcd.map(|release| release.to_string()),
        }
    }

    /// What an API server says of itself, such as `v1.37.0`.
    pub fn said(kubernetes: &str) -> Self {
        Self {
            kubernetes: kubernetes.to_owned(),
            etcd: None,
        }
    }

    /// That of Kubernetes, unless it cannot be read.
    pub fn kubernetes(&self) -> Option<Version> {
        // An API server of a distribution says v1.37.0+k3s1.
        let end = self.kubernetes.find(['+', '-']);
        Version::parse(&self.kubernetes[..end.unwrap_or(self.kubernetes.len())]).ok()
    }

    /// That of etcd, where it was known.
    pub fn etcd(&self) -> Option<Release> {
        Release::parse(self.etcd.as_deref()?).ok()
    }
}

/// 128 random bits in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Word", into = "Word")]
struct Uid(Word);

impl TryFrom<Word> for Uid {
    type Error = &'static str;

    fn try_from(word: Word) -> Result<Self, Self::Error> {
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if word.as_str().len() == 32 && word.as_str().bytes().all(hexadecimal) {
            Ok(Self(word))
        } else {
            Err("the uid is not of 32 hexadecimal digits")
        }
    }
}

impl From<Uid> for Word {
    fn from(uid: Uid) -> Self {
        uid.0
    }
}

impl Uid {
    fn random() -> Result<Self, Error> {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Error::Random)?;
        let text = hex::encode(bytes);
        let word = Word::new(text).map_err(|_| Error::Random)?;
        Ok(Self(word))
    }
}

impl Record {
    /// What a store says of the cluster of this name, if it knows it.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is of another cluster.
    pub async fn find(store: &dyn Store, name: &Name) -> Result<Option<Self>, Error> {
        let Some(value) = store.read(Key::CLUSTER).await? else {
            return Ok(None);
        };
        let place = || store.place(Key::CLUSTER);
        let record: Self =
            serde_json::from_slice(value.bytes.expose_secret()).map_err(|error| {
                Error::Damaged {
                    place: place(),
                    problem: error.to_string(),
                }
            })?;
        if record.format > FORMAT {
            return Err(Error::Newer { place: place() });
        }
        if record.name() != name.as_str() {
            return Err(Error::OtherCluster {
                place: place(),
                found: record.name().to_owned(),
                wanted: name.to_string(),
            });
        }
        Ok(Some(record))
    }

    /// The same, and made if there is none yet. From then on the cluster exists.
    ///
    /// # Errors
    /// When it can be neither read nor written.
    pub async fn find_or_make(
        store: &dyn Store,
        name: &Name,
        now: OffsetDateTime,
    ) -> Result<Self, Error> {
        if let Some(record) = Self::find(store, name).await? {
            return Ok(record);
        }
        let record = Self::new(name, now)?;
        match (record.keep(store).await, Self::find(store, name).await?) {
            (Ok(()), _) => Ok(record),
            // Somebody else was faster.
            (Err(Error::Conflict { .. }), Some(theirs)) => Ok(theirs),
            (Err(error), _) => Err(error),
        }
    }

    /// That of a new cluster, of which no store knows yet.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new(name: &Name, now: OffsetDateTime) -> Result<Self, Error> {
        Ok(Self {
            format: FORMAT,
            uid: Uid::random()?,
            name: nobody(name).cluster_name,
            created: now.truncate_to_second(),
            formed: false,
            removing: false,
            versions: None,
            bringing: None,
            machines: Some(Vec::new()),
        })
    }

    /// Writes it where none was. From then on the cluster exists.
    ///
    /// # Errors
    /// When it cannot be written, or there is one.
    pub async fn keep(&self, store: &dyn Store) -> Result<(), Error> {
        self.write(store, Expected::Nothing).await
    }

    /// Writes it in place of what was there, for whoever holds the cluster's lock. When it returns, it outlives a power
    /// cut.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn save(&self, store: &dyn Store, _lock: &Lock) -> Result<(), Error> {
        self.write(store, Expected::Anything).await
    }

    async fn write(&self, store: &dyn Store, expected: Expected) -> Result<(), Error> {
        let damaged = |error: serde_json::Error| Error::Damaged {
            place: store.place(Key::CLUSTER),
            problem: error.to_string(),
        };
        let current = Self {
            format: FORMAT,
            ..self.clone()
        };
        let mut bytes = serde_json::to_vec_pretty(&current).map_err(damaged)?;
        bytes.push(b'\n');
        store
            .write(Key::CLUSTER, SecretSlice::from(bytes), expected)
            .await
            .map(drop)
    }

    /// The id that no other cluster has.
    pub fn uid(&self) -> &str {
        self.uid.0.as_str()
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The time of its first deployment.
    pub fn created(&self) -> OffsetDateTime {
        self.created
    }

    /// The machines that may hold something of the cluster.
    pub fn claims(&self) -> &[Claim] {
        self.machines.as_deref().unwrap_or_default()
    }

    /// Fills in what a record of the first form does not say: machines as its deploy file names them, and whether its API
    /// ever answered.
    pub fn complete(&mut self, machines: Vec<Claim>, formed: bool) {
        if self.machines.is_none() {
            self.machines = Some(machines);
            self.formed |= formed;
        }
    }

    /// Claims machines, with their roles, beside those that are claimed already.
    pub fn claim<'a>(&mut self, machines: impl IntoIterator<Item = &'a Machine>) {
        self.format = FORMAT;
        let claims = self.machines.get_or_insert_default();
        for machine in machines {
            let claim = Claim::on(machine);
            match claims.iter_mut().find(|known| known.is_on(machine)) {
                Some(known) => *known = claim,
                None => claims.push(claim),
            }
        }
    }

    /// Gives up all claims but these. Without masters and etcd members there is no cluster any more that could be harmed.
    pub fn release(&mut self, is_left: impl Fn(&Claim) -> bool) {
        self.format = FORMAT;
        let claims = self.machines.get_or_insert_default();
        claims.retain(is_left);
        if !claims
            .iter()
            .any(|claim| claim.has(Role::Master) || claim.has(Role::Etcd))
        {
            (self.formed, self.removing) = (false, false);
            (self.versions, self.bringing) = (None, None);
        }
    }

    /// Notes that a run is about to bring these versions to machines.
    pub fn begin(&mut self, versions: &Versions) {
        // Whoever makes the cluster does not remove it any more.
        self.removing = false;
        let next = Brought::next(self.versions.as_ref(), self.bringing.as_ref(), versions);
        self.bringing = Some(next).filter(|next| self.versions.as_ref() != Some(next));
    }

    /// Notes that what was being brought runs: the control plane is up with it.
    pub fn reach(&mut self) {
        self.formed = true;
        self.versions = self.bringing.take().or(self.versions.take());
    }

    /// Notes that its machines are about to be cleaned: what is left of them is not to be taken for a cluster that lives.
    pub fn begin_removal(&mut self) {
        self.removing |= !self.claims().is_empty();
    }

    /// For whom machines are held.
    pub fn identity(&self) -> Identity {
        Identity {
            cluster: self.uid.0.clone(),
            cluster_name: self.name.clone(),
        }
    }
}

/// For whom machines are asked while a cluster does not exist: no machine is held by it, since no uid begins so.
#[expect(
    clippy::expect_used,
    reason = "names are words, and so is the constant"
)]
pub fn nobody(name: &Name) -> Identity {
    Identity {
        cluster: Word::new("_nobody").expect("letters that begin with _"),
        cluster_name: Word::new(name.as_str())
            .expect("a name is a word: 63 letters, digits, - and . at most"),
    }
}
