//! The deploy file that a command is about, read and found good.

use std::path::{Path, PathBuf};

use hatchery_engine::{
    confinement::Launcher,
    reach::Environment,
    state::{Directory, Error, Expected, Key, Store},
};
use hatchery_sandbox::files;
use hatchery_spec::{Cluster, Reading, value::Name};
use secrecy::{ExposeSecret as _, SecretSlice};

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

fn name(text: &str) -> Result<Name, String> {
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

impl GoodFile {
    /// Keeps it with the cluster.
    pub(crate) async fn remember(&self, store: &dyn Store) -> Result<(), Error> {
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

/// Where Hatchery keeps its files.
pub(crate) fn home(named: Option<&Path>) -> Result<PathBuf, Refused> {
    match named {
        Some(home) => Ok(std::path::absolute(home).unwrap_or_else(|_| PathBuf::from(home))),
        None => files::home_dir().map_err(|error| Refused::new(error.to_string())),
    }
}
