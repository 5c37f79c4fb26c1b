//! The deploy file that a command is about, read and found good, and the cluster that it describes, opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hatchery_engine::{
    confinement::Launcher,
    reach::{Environment, home_directory},
    session::Session,
    state::{DeployFile, Home, Key, Stores},
};
use hatchery_spec::{Cluster, Reading, edit, value::Name};

use crate::{
    confined,
    deploy_file::{self, Text},
    output::{Output, Refused},
    refusal,
};

/// A deploy file that is named on the command line, or a cluster that is remembered.
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
    pub(crate) file: DeployFile,
    /// Where it is, and where its variables are; nothing for one that is remembered.
    pub(crate) paths: Option<(PathBuf, Option<PathBuf>)>,
}

impl Given {
    /// A file at a known place.
    pub(crate) fn at(file: PathBuf, vars: Option<PathBuf>) -> Self {
        Self {
            file: Some(file),
            vars,
        }
    }

    /// Whether the user said which file.
    pub(crate) fn is_some(&self) -> bool {
        self.file.is_some()
    }

    /// Reads it and prints all there is to say. Nothing when it is not good.
    pub(crate) async fn read(
        &self,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        self.read_for(deploy_file::Use::Everything(home), home, output)
            .await
    }

    async fn read_for(
        &self,
        purpose: deploy_file::Use<'_>,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        let path = deploy_file::find(self.file.as_deref(), home, output)?;
        let file = Text::read(&path)?;
        let vars = self.vars.as_deref().map(Text::read).transpose()?;
        let reading = deploy_file::validate(&file, vars.as_ref(), purpose).await;
        let good = good(reading, file, vars, output);
        Ok(good.map(|good| GoodFile {
            paths: Some((path, self.vars.clone())),
            ..good
        }))
    }
}

impl Named {
    /// Whether the user said which cluster, rather than leaving it to the default file.
    pub(crate) fn is_given(&self) -> bool {
        self.id.is_some() || self.given.is_some()
    }

    /// Reads what is needed to reach the machines, and prints all there is to say. Nothing when that is not good.
    pub(crate) async fn read(
        &self,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        let access = deploy_file::Use::Access;
        let (Some(id), None) = (&self.id, &self.given.file) else {
            let read = self.given.read_for(access, home, output).await?;
            if let Some(file) = &read {
                self.agree(&file.cluster.id)?;
            }
            return Ok(read);
        };
        let Some((file, vars)) = remembered(stores(home)?.as_ref(), id).await? else {
            let refused = Refused::new(format!("cluster {id} is unknown"));
            return Err(refused
                .remedy("use the --home that it was made with, or name its deploy file with -f")
                .into());
        };
        let reading = deploy_file::validate(&file, vars.as_ref(), access).await;
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
        file: DeployFile {
            text: file.bytes,
            variables: vars.map(|vars| vars.bytes),
        },
        paths: None,
    })
}

/// The deploy file of a cluster as it was given, with its variables.
async fn remembered(
    stores: &dyn Stores,
    id: &Name,
) -> Result<Option<(Text, Option<Text>)>, Refused> {
    let store = stores.store(id);
    let latest = DeployFile::latest(store.as_ref()).await;
    let latest = latest.map_err(|error| refusal::state(&error))?;
    let text = |key, bytes: Vec<u8>| Text::remembered(store.place(key), &bytes);
    Ok(latest.map(|file| {
        let variables = file.variables.map(|bytes| text(Key::VARIABLES, bytes));
        (text(Key::DEPLOY_FILE, file.text), variables)
    }))
}

/// The deploy file that is remembered of a cluster, to be changed by a command.
pub(crate) struct Remembered {
    pub(crate) text: String,
    /// With the machines that an earlier run took out of the file and did not clean.
    pub(crate) cluster: Cluster,
    place: String,
}

impl Remembered {
    pub(crate) async fn read(home: Option<&Path>, id: &Name) -> Result<Self, Refused> {
        let stores = stores(home)?;
        let Some((file, vars)) = remembered(stores.as_ref(), id).await? else {
            let refused = Refused::new(format!("cluster {id} is unknown"));
            return Err(refused.remedy("use the --home that it was made with"));
        };
        if vars.is_some() {
            let error = edit::Error::Inventory;
            return Err(Refused::new(error.to_string()).remedy(error.remedy()));
        }
        let place = stores.store(id).place(Key::DEPLOY_FILE);
        let reading = deploy_file::validate(&file, None, deploy_file::Use::Access).await;
        let Some(cluster) = reading.cluster else {
            let refused = Refused::new(format!(
                "the remembered deploy file is no longer valid: {place}"
            ));
            return Err(refused.remedy(format!("correct it: check -f {place} shows what is wrong")));
        };
        let session = open(home, id).await?;
        let cluster = session.with_leaving(&cluster).await;
        let cluster = cluster.map_err(|error| refusal::state(&error))?;
        Ok(Self {
            text: String::from_utf8_lossy(&file.bytes).into_owned(),
            cluster,
            place,
        })
    }

    /// The same file with another text. Prints all there is to say; nothing when it is not good.
    pub(crate) async fn changed(
        &self,
        text: &str,
        home: Option<&Path>,
        output: &Output,
    ) -> Option<GoodFile> {
        let file = Text::remembered(self.place.clone(), text.as_bytes());
        let purpose = deploy_file::Use::Everything(home);
        let reading = deploy_file::validate(&file, None, purpose).await;
        good(reading, file, None, output)
    }
}

/// Where Hatchery keeps its files.
pub(crate) fn home(named: Option<&Path>) -> Result<PathBuf, Refused> {
    home_directory(named)
        .map_err(|error| Refused::new(error.to_string()).remedy("set HOME, or use --home DIR"))
}

/// All clusters that are remembered.
pub(crate) fn stores(named: Option<&Path>) -> Result<Arc<dyn Stores>, Refused> {
    Ok(Arc::new(Home::new(home(named)?)))
}

/// Opens a cluster. Programs of archives are run by this very program, confined.
pub(crate) async fn open(named: Option<&Path>, id: &Name) -> Result<Session, Refused> {
    let home = home(named)?;
    let launcher = Launcher::this_program(confined::WORD);
    let environment = Environment::of_process(&home).with_launcher(launcher);
    let stores = Arc::new(Home::new(home));
    let session = Session::open(stores, id, environment).await;
    let mut session = session.map_err(|error| refusal::state(&error))?;
    session.base = std::env::current_dir().map_err(|error| {
        Refused::new(format!("cannot determine the current directory: {error}"))
    })?;
    Ok(session)
}
