//! The clusters that are remembered on the control machine, below Hatchery's home.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt as _, future::BoxFuture};
use hatchery_spec::value::Name;
use snafu::ResultExt as _;
use time::OffsetDateTime;

use super::{Directory, Error, RunLog, Store, Stores, error::IoSnafu};

/// Hatchery's home: a directory for each cluster in `clusters`.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// The home at this place. Nothing is touched.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl Stores for Home {
    fn names(&self) -> BoxFuture<'_, Result<Vec<Name>, Error>> {
        let clusters = self.0.join("clusters");
        async move {
            let names = tokio::task::spawn_blocking(move || names(&clusters));
            names.await.unwrap_or(Err(Error::CutOff))
        }
        .boxed()
    }

    fn store(&self, name: &Name) -> Arc<dyn Store> {
        Arc::new(Directory::new(&self.0, name))
    }

    fn begin_log(&self, name: &Name, now: OffsetDateTime) -> Result<RunLog, Error> {
        RunLog::begin(&Directory::new(&self.0, name), now)
    }
}

fn names(clusters: &Path) -> Result<Vec<Name>, Error> {
    let context = IoSnafu {
        action: "read the directory",
        path: clusters,
    };
    let entries = match fs::read_dir(clusters) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.context(context)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.context(context)?;
        if !entry.file_type().context(context)?.is_file() {
            names.extend(Name::parse(&entry.file_name().to_string_lossy()).ok());
        }
    }
    names.sort();
    Ok(names)
}
