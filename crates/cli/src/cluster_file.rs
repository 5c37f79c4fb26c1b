//! The deploy file that a command is about, read and found good.

use std::path::{Path, PathBuf};

use hatchery_engine::{
    confinement::Launcher,
    reach::{Environment, home_directory},
    state::{Claim, Directory, Error, Expected, Key, Store},
};
use hatchery_spec::{Cluster, Reading, edit, value::Name};
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::{Deserialize, Serialize};

use crate::{
    confined,
    deploy_file::{self, Text},
    output::{Output, Refused},
    refusal,
};

/// This machine, for a command that opens archives: their programs are run by this very program, confined.
pub(crate) fn environment(home: PathBuf) -> Environment {
    Environment::of_process(home).with_launcher(Launcher::this_program(confined::WORD))
}

/// Which file.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// The deploy file [default: ~/.hatchery/deploy.yaml, then ~/.eggo/deploy.yaml; as eggo the other way round]
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// The variables that go with an inventory, such as group_vars.yml
    #[arg(long, value_name = "FILE", requires = "file")]
    vars: Option<PathBuf>,
}

/// Which cluster: one that is known, or that of a file.
#[derive(clap::Args)]
pub(crate) struct Named {
    /// The cluster's id; its deploy file is remembered
    #[arg(long, value_parser = name)]
    id: Option<Name>,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(|wrong| format!("it is {}; {}", wrong.problem, wrong.remedy))
}

/// A good one.
pub(crate) struct GoodFile {
    pub(crate) cluster: Cluster,
    file: Vec<u8>,
    vars: Option<Vec<u8>>,
}

impl Given {
    /// Reads it and prints all there is to say. Nothing when it is not good.
    pub(crate) fn read(
        &self,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        self.read_for(deploy_file::Use::Everything(home), home, output)
    }

    fn read_for(
        &self,
        purpose: deploy_file::Use<'_>,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        let path = deploy_file::find(self.file.as_deref(), home, output)?;
        let file = Text::read(&path)?;
        let vars = self.vars.as_deref().map(Text::read).transpose()?;
        let reading = deploy_file::validate(&file, vars.as_ref(), purpose);
        Ok(good(reading, file, vars, output))
    }
}

impl Named {
    /// Whether the user said which cluster, rather than leaving it to the default file.
    pub(crate) fn is_given(&self) -> bool {
        self.id.is_some() || self.given.file.is_some()
    }

    /// Reads what is needed to reach the machines, and prints all there is to say. Nothing when that is not good.
    pub(crate) async fn read(
        &self,
        home: &Path,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        let (Some(id), None) = (&self.id, &self.given.file) else {
            let read = self
                .given
                .read_for(deploy_file::Use::Access, Some(home), output)?;
            if let Some(file) = &read {
                self.agree(&file.cluster.id)?;
            }
            return Ok(read);
        };
        let store = Directory::new(home, id);
        let Some((file, vars)) = remembered(&store).await? else {
            let refused = Refused::new(format!("nothing is known of a cluster {id}"));
            return Err(refused
                .remedy("use the --home that it was made with, or name its deploy file with -f")
                .into());
        };
        let reading = deploy_file::validate(&file, vars.as_ref(), deploy_file::Use::Access);
        Ok(good(reading, file, vars, output))
    }

    /// Where both a file and an id are given, they are about one cluster.
    fn agree(&self, described: &Name) -> Result<(), Refused> {
        match &self.id {
            Some(id) if id != described => Err(Refused::new(format!(
                "the deploy file describes cluster {described}, not {id}"
            ))
            .remedy(format!(
                "leave out -f for the cluster {id} that is remembered, or --id for that of the file"
            ))),
            _ => Ok(()),
        }
    }
}

fn good(reading: Reading, file: Text, vars: Option<Text>, output: &Output) -> Option<GoodFile> {
    eprint!("{}", reading.diagnostics.render(output.colours()));
    reading.cluster.map(|cluster| GoodFile {
        cluster,
        file: file.bytes,
        vars: vars.map(|vars| vars.bytes),
    })
}

/// The deploy file of a cluster as it was given, with its variables.
pub(crate) async fn remembered(store: &dyn Store) -> Result<Option<(Text, Option<Text>)>, Refused> {
    let read = async |key| {
        let value = store
            .read(key)
            .await
            .map_err(|error| refusal::state(&error))?;
        Ok(value.map(|value| Text::remembered(store.place(key), value.bytes.expose_secret())))
    };
    let Some(file) = read(Key::DEPLOY_FILE).await? else {
        return Ok(None);
    };
    // An empty one is left where a file without variables came after one with.
    let vars = read(Key::VARIABLES).await?;
    Ok(Some((file, vars.filter(|vars| !vars.bytes.is_empty()))))
}

/// The deploy file that is remembered of a cluster, to be changed by a command.
pub(crate) struct Remembered {
    pub(crate) text: String,
    pub(crate) cluster: Cluster,
    place: String,
}

impl Remembered {
    pub(crate) async fn read(home: &Path, id: &Name) -> Result<Self, Refused> {
        let store = Directory::new(home, id);
        let Some((file, vars)) = remembered(&store).await? else {
            let refused = Refused::new(format!("nothing is known of a cluster {id}"));
            return Err(refused.remedy("use the --home that it was made with"));
        };
        if vars.is_some() {
            let error = edit::Error::Inventory;
            return Err(Refused::new(error.to_string()).remedy(error.remedy()));
        }
        let place = store.place(Key::DEPLOY_FILE);
        let reading = deploy_file::validate(&file, None, deploy_file::Use::Access);
        let Some(cluster) = reading.cluster else {
            let refused = Refused::new(format!(
                "the deploy file that is remembered is not good any more: {place}"
            ));
            return Err(refused.remedy(format!("correct it: check -f {place} says what is wrong")));
        };
        Ok(Self {
            text: String::from_utf8_lossy(&file.bytes).into_owned(),
            cluster,
            place,
        })
    }

    /// The same file with another text. Prints all there is to say; nothing when it is not good.
    pub(crate) fn changed(
        &self,
        text: &str,
        home: Option<&Path>,
        output: &Output,
    ) -> Option<GoodFile> {
        let file = Text::remembered(self.place.clone(), text.as_bytes());
        let reading = deploy_file::validate(&file, None, deploy_file::Use::Everything(home));
        good(reading, file, None, output)
    }
}

/// A file of an earlier run, with its variables.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Earlier {
    file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vars: Option<String>,
}

/// The deploy files of earlier runs that still tell how some machine is reached, the latest first.
pub(crate) async fn earlier(store: &dyn Store) -> Result<Vec<(Text, Option<Text>)>, Refused> {
    let state = |error| refusal::state(&error);
    let files = read_earlier(store).await.map_err(state)?.into_iter();
    let text = |text: String| Text::remembered(store.place(Key::EARLIER_FILES), text.as_bytes());
    Ok(files
        .map(|one| (text(one.file), one.vars.map(text)))
        .collect())
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
fn needed(files: Vec<Earlier>, named: &Cluster, claims: &[Claim], place: &str) -> Vec<Earlier> {
    let mut unnamed: Vec<_> = claims.iter().filter(|claim| !names(named, claim)).collect();
    let mut kept = Vec::new();
    for file in files {
        let text = |text: &String| Text::remembered(place.to_owned(), text.as_bytes());
        let (text, vars) = (text(&file.file), file.vars.as_ref().map(text));
        let reading = deploy_file::validate(&text, vars.as_ref(), deploy_file::Use::Access);
        let Some(cluster) = reading.cluster else {
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

impl GoodFile {
    /// Keeps it with the cluster; the one before it too, when that is the only one to name a machine that is claimed.
    pub(crate) async fn remember(&self, store: &dyn Store, claims: &[Claim]) -> Result<(), Error> {
        let is_named = |claim: &Claim| names(&self.cluster, claim);
        if !claims.iter().all(is_named)
            && let Some(file) = store.read(Key::DEPLOY_FILE).await?
            && file.bytes.expose_secret() != self.file
        {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let vars = store.read(Key::VARIABLES).await?;
            let vars = vars.map(|vars| text(vars.bytes.expose_secret()));
            let last = Earlier {
                file: text(file.bytes.expose_secret()),
                vars: vars.filter(|vars| !vars.is_empty()),
            };
            let mut files = read_earlier(store).await?;
            files.insert(0, last);
            let place = store.place(Key::EARLIER_FILES);
            let files = needed(files, &self.cluster, claims, &place);
            write_earlier(store, &files).await?;
        }
        let write = |key, bytes: &[u8]| {
            let bytes = SecretSlice::from(bytes.to_vec());
            store.write(key, bytes, Expected::Anything)
        };
        write(Key::DEPLOY_FILE, &self.file).await?;
        let had = store.read(Key::VARIABLES).await?.is_some();
        if had || self.vars.is_some() {
            write(Key::VARIABLES, self.vars.as_deref().unwrap_or_default()).await?;
        }
        Ok(())
    }
}

/// Forgets earlier files once the latest names every machine that is claimed.
pub(crate) async fn forget_earlier(
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

/// Where Hatchery keeps its files.
pub(crate) fn home(named: Option<&Path>) -> Result<PathBuf, Refused> {
    home_directory(named)
        .map_err(|error| Refused::new(error.to_string()).remedy("set HOME, or use --home DIR"))
}
