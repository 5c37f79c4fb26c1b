//! Docker images of the machines' root file systems, imported once and removed when nobody
//! uses them any more.

use std::{io, path::PathBuf};

use snafu::{ResultExt as _, Snafu};

use crate::{docker, files, fixtures::Fixtures, progress::Progress, settings::System};

/// Marks images as ours.
const LABEL: &str = "hatchery.image";

/// What can go wrong with images.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("cannot import the root file system {}: {source}", path.display()))]
    Import {
        path: PathBuf,
        source: docker::Error,
    },
    #[snafu(display("cannot read the MANIFEST of the fixture {fixture}: {source}"))]
    Key {
        fixture: &'static str,
        source: io::Error,
    },
    #[snafu(transparent)]
    Lock { source: files::Error },
    #[snafu(transparent)]
    Docker { source: docker::Error },
    #[snafu(transparent)]
    NoCache { source: files::NoCache },
}

impl Error {
    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::Import { source, .. } | Self::Docker { source } => source.remedy(),
            Self::Lock { source } => source.remedy(),
            Self::Key { fixture, .. } => Some(format!(
                "run 'fixtures clean {fixture}', then run this again"
            )),
            Self::NoCache { .. } => Some("set HOME or HATCHERY_CACHE".into()),
        }
    }
}

fn lock_path() -> Result<PathBuf, Error> {
    Ok(files::cache_dir()?.join("locks/sandbox-images"))
}

/// Images that are not removed while this is held.
#[derive(Debug)]
pub struct Images {
    _held: files::Lock,
}

/// What `docker create` calls the image of a system's root file system.
pub fn tag(system: System, fixtures: &Fixtures) -> Result<String, Error> {
    let fixture = system.fixture();
    let key = fixtures.key(fixture).context(KeySnafu { fixture })?;
    let key = key.get(..12).unwrap_or(&key);
    Ok(format!("hatchery-sandbox-{system}:{key}"))
}

/// The images of these systems, imported where Docker does not have them. All under one lock:
/// a second one of the same process would wait for the first.
pub async fn ensure(
    systems: &[System],
    fixtures: &Fixtures,
    progress: &Progress,
) -> Result<Images, Error> {
    loop {
        let held = files::Lock::shared(&lock_path()?).await?;
        if missing(systems, fixtures).await?.is_empty() {
            return Ok(Images { _held: held });
        }
        drop(held);
        // Two imports at once would leave an image without a name behind.
        let _alone = files::Lock::exclusive(
            &lock_path()?,
            "another process that is using the images of the machines",
            progress,
        )
        .await?;
        for (system, tag) in missing(systems, fixtures).await? {
            let path = fixtures.path(system.fixture()).join("rootfs.tar");
            let label = format!("LABEL {LABEL}={system}");
            docker::run(&["import", "--change", &label, &path.to_string_lossy(), &tag])
                .await
                .context(ImportSnafu { path })?;
        }
    }
}

async fn missing(systems: &[System], fixtures: &Fixtures) -> Result<Vec<(System, String)>, Error> {
    let mut missing = Vec::new();
    for &system in systems {
        let tag = tag(system, fixtures)?;
        let found = docker::run(&["images", "--quiet", &tag]).await?;
        if found.trim().is_empty() {
            missing.push((system, tag));
        }
    }
    Ok(missing)
}

/// Removes images that no container uses. Leaves them all when a sandbox is being made.
pub async fn remove_unused() -> Result<(), Error> {
    let Some(_alone) = files::Lock::try_exclusive(&lock_path()?)? else {
        return Ok(());
    };
    let filter = format!("label={LABEL}");
    let images = docker::run(&["images", "--quiet", "--no-trunc", "--filter", &filter]).await?;
    for image in images.split_whitespace() {
        match docker::run(&["rmi", image]).await {
            Err(error) if !error.mentions("conflict") && !error.is_not_found() => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}
