//! Which cluster this is: a name that people chose, and an id that no other cluster has.

use hatchery_host::{path::Word, script::Identity};
use hatchery_spec::value::Name;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{Error, Expected, Key, Store};

/// Which cluster this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    uid: Uid,
    name: Word,
    #[serde(with = "time::serde::rfc3339")]
    created: OffsetDateTime,
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
        let text = format!("{:032x}", u128::from_be_bytes(bytes));
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
            uid: Uid::random()?,
            name: nobody(name).cluster_name,
            created: now.truncate_to_second(),
        })
    }

    /// Writes it where none was. From then on the cluster exists.
    ///
    /// # Errors
    /// When it cannot be written, or there is one.
    pub async fn keep(&self, store: &dyn Store) -> Result<(), Error> {
        let damaged = |error: serde_json::Error| Error::Damaged {
            place: store.place(Key::CLUSTER),
            problem: error.to_string(),
        };
        let mut bytes = serde_json::to_vec_pretty(self).map_err(damaged)?;
        bytes.push(b'\n');
        store
            .write(Key::CLUSTER, SecretSlice::from(bytes), Expected::Nothing)
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

    /// When it was first heard of.
    pub fn created(&self) -> OffsetDateTime {
        self.created
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
