//! The deploy file that a command is about, read and found good.

use std::path::{Path, PathBuf};

use hatchery_sandbox::files;
use hatchery_spec::Cluster;

use crate::{
    deploy_file,
    output::{Output, Refused},
};

/// Which file.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// The deploy file [default: ~/.hatchery/deploy.yaml, then ~/.eggo/deploy.yaml]
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// The variables that go with an inventory, such as group_vars.yml
    #[arg(long, value_name = "FILE", requires = "file")]
    vars: Option<PathBuf>,
}

/// A good one.
pub(crate) struct GoodFile {
    pub(crate) cluster: Cluster,
    pub(crate) text: String,
}

impl Given {
    /// Reads it and prints all there is to say. Nothing when it is not good.
    pub(crate) fn read(
        &self,
        home: Option<&Path>,
        output: &Output,
    ) -> anyhow::Result<Option<GoodFile>> {
        let file = deploy_file::find(self.file.as_deref(), home)?;
        let reading = deploy_file::look(&file, self.vars.as_deref())?;
        eprint!("{}", reading.diagnostics.render(output.colours()));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Ok(reading.cluster.map(|cluster| GoodFile { cluster, text }))
    }
}

/// Where Hatchery keeps its files.
pub(crate) fn home(named: Option<&Path>) -> Result<PathBuf, Refused> {
    match named {
        Some(home) => Ok(std::path::absolute(home).unwrap_or_else(|_| PathBuf::from(home))),
        None => files::home_dir().map_err(|error| Refused::new(error.to_string())),
    }
}
