//! The deploy files that a cluster was made from: the latest as it was given, and earlier ones for as long as they alone tell
//! how some machine is reached.

use hatchery_host::content::Hash;
use hatchery_spec::{
    Cluster, Input, Need, Reading,
    cluster::Machine,
    inventory::{self, Files},
    read_for,
};
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::{Deserialize, Serialize};

use super::{Claim, Error, Expected, Key, Store};

/// A deploy file as it was given. It may hold passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct DeployFile {
    /// What it says.
    pub text: Vec<u8>,
    /// What goes with it, where it is an inventory.
    pub variables: Option<Vec<u8>>,
}

impl DeployFile {
    /// The one that a cluster was last brought to, or was about to be.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn latest(store: &dyn Store) -> Result<Option<Self>, Error> {
        let read = async |key| {
            let value = store.read(key).await?;
            Ok(value.map(|value| value.bytes.expose_secret().to_vec()))
        };
        let Some(text) = read(Key::DEPLOY_FILE).await? else {
            return Ok(None);
        };
        // Empty variables are left where a file without came after one with.
        let variables = read(Key::VARIABLES).await?;
        let variables = variables.filter(|text| !text.is_empty());
        Ok(Some(Self { text, variables }))
    }

    /// What it says, as far as it is needed. `name` is what diagnostics call it.
    pub fn read(&self, name: &str, need: Need) -> Reading {
        let hosts = Input::private(name, &self.text);
        match &self.variables {
            None => read_for(hosts, need),
            Some(variables) => {
                let vars = Some(Input::private(name, variables));
                let id = None;
                inventory::read_for(Files { hosts, vars, id }, need)
            }
        }
    }

    /// A hash that is equal for two files with the same content, variables included.
    pub fn hash(&self) -> String {
        let variables = self.variables.as_deref().unwrap_or_default();
        let length = self.text.len().to_string();
        let all = [length.as_bytes(), b"\n", &self.text, variables].concat();
        Hash::digest(&all).as_str().to_owned()
    }

    /// The cluster and how its machines are reached; nothing when a later release finds it wrong.
    pub fn cluster(&self) -> Option<Cluster> {
        self.read("deploy.yaml", Need::Access).cluster
    }

    /// Keeps it with its cluster; the one before it too, when that is the only one to name a machine that is claimed.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn remember(
        &self,
        cluster: &Cluster,
        store: &dyn Store,
        claims: &[Claim],
    ) -> Result<(), Error> {
        let is_named = |claim: &Claim| names(cluster, claim);
        if !claims.iter().all(is_named)
            && let Some(last) = Self::latest(store).await?
            && last.text != self.text
        {
            let mut files = read_earlier(store).await?;
            files.insert(0, Earlier::from(&last));
            write_earlier(store, &needed(files, cluster, claims)).await?;
        }
        let write = |key, bytes: &[u8]| {
            let bytes = SecretSlice::from(bytes.to_vec());
            store.write(key, bytes, Expected::Anything)
        };
        write(Key::DEPLOY_FILE, &self.text).await?;
        if self.variables.is_some() || store.read(Key::VARIABLES).await?.is_some() {
            write(
                Key::VARIABLES,
                self.variables.as_deref().unwrap_or_default(),
            )
            .await?;
        }
        Ok(())
    }
}

/// The clusters of all files that are remembered, the latest first. A file that is no longer valid is left out.
///
/// # Errors
/// When the store cannot be read.
pub async fn clusters(store: &dyn Store) -> Result<Vec<Cluster>, Error> {
    let latest = DeployFile::latest(store).await?;
    let earlier = read_earlier(store).await?;
    let files = latest
        .into_iter()
        .chain(earlier.into_iter().map(Into::into));
    Ok(files
        .filter_map(|file: DeployFile| file.cluster())
        .collect())
}

/// Forgets earlier files once the latest, which is that of `cluster`, names every machine that is claimed.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn forget_earlier(
    cluster: &Cluster,
    store: &dyn Store,
    claims: &[Claim],
) -> Result<(), Error> {
    let is_named = |claim: &Claim| names(cluster, claim);
    if claims.iter().all(is_named) && !read_earlier(store).await?.is_empty() {
        write_earlier(store, &[]).await?;
    }
    Ok(())
}

/// How a claimed machine is reached, as the first of these files says that names it.
pub fn claimed_machine<'a>(claim: &Claim, files: &'a [Cluster]) -> Option<&'a Machine> {
    let mut machines = files.iter().flat_map(Cluster::machines);
    machines.find(|machine| claim.is_on(machine))
}

/// A file of an earlier run, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Earlier {
    file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vars: Option<String>,
}

impl From<&DeployFile> for Earlier {
    fn from(file: &DeployFile) -> Self {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Self {
            file: text(&file.text),
            vars: file.variables.as_ref().map(text),
        }
    }
}

impl From<Earlier> for DeployFile {
    fn from(earlier: Earlier) -> Self {
        Self {
            text: earlier.file.into_bytes(),
            variables: earlier.vars.map(String::into_bytes),
        }
    }
}

async fn read_earlier(store: &dyn Store) -> Result<Vec<Earlier>, Error> {
    let Some(value) = store.read(Key::EARLIER_FILES).await? else {
        return Ok(Vec::new());
    };
    serde_json::from_slice(value.bytes.expose_secret()).map_err(|error| Error::Damaged {
        place: store.place(Key::EARLIER_FILES),
        // Its words could repeat a password.
        problem: format!("line {}, column {}", error.line(), error.column()),
    })
}

async fn write_earlier(store: &dyn Store, files: &[Earlier]) -> Result<(), Error> {
    let bytes = serde_json::to_vec(files).map_err(|error| Error::Damaged {
        place: store.place(Key::EARLIER_FILES),
        problem: error.to_string(),
    })?;
    let bytes = SecretSlice::from(bytes);
    let written = store.write(Key::EARLIER_FILES, bytes, Expected::Anything);
    written.await.map(drop)
}

/// Of files, the latest first, those without which some machine is named by none.
fn needed(files: Vec<Earlier>, named: &Cluster, claims: &[Claim]) -> Vec<Earlier> {
    let mut unnamed: Vec<_> = claims.iter().filter(|claim| !names(named, claim)).collect();
    let mut kept = Vec::new();
    for file in files {
        let Some(cluster) = DeployFile::from(file.clone()).cluster() else {
            continue;
        };
        let count = unnamed.len();
        unnamed.retain(|claim| !names(&cluster, claim));
        if unnamed.len() < count {
            kept.push(file);
        }
    }
    kept
}

fn names(cluster: &Cluster, claim: &Claim) -> bool {
    let mut machines = cluster.machines().iter();
    machines.any(|machine| claim.is_on(machine))
}
