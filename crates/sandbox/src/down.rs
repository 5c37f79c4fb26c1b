//! Removes a sandbox: containers with their volumes, network, files, and images that nobody
//! uses any more.

use std::{path::Path, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::{Instant, sleep};

use crate::{
    docker, engine, error::Error, files, image, inventory::Inventory, lab, name::Name,
    progress::Progress,
};

const AT_ONCE: usize = 8;
const DEADLINE: Duration = Duration::from_secs(60);

/// Removes a sandbox and whatever is left of one, or refuses when there is nothing of it.
pub async fn down(name: &Name, home: &Path, progress: &Progress) -> Result<(), Error> {
    engine::require().await?;
    let directory = lab::directory(home, name);
    let all = Inventory::read(None).await?;
    if all.for_sandbox(name.as_str()).is_empty() && !directory.path().exists() {
        return Err(lab::unknown(name, &all));
    }
    let held_by = format!("another process working on sandbox {name}");
    let lock = files::Lock::exclusive(&lab::lock_path(home, name), &held_by, progress).await?;
    remove_from_docker(name.as_str()).await?;
    image::remove_unused().await?;
    files::remove_dir(directory.path())?;
    lock.release_and_remove();
    // Gone too when this was the last sandbox; a directory with something in it stays.
    let _ = std::fs::remove_dir(home.join("sandbox"));
    Ok(())
}

/// Containers first: while one is left, the network that remembers the settings is too.
pub(crate) async fn remove_from_docker(name: &str) -> Result<(), docker::Error> {
    let own = Inventory::read(Some(name)).await?;
    let removals = own.containers.iter().map(|container| {
        let arguments = ["rm", "--force", "--volumes", &container.id].map(str::to_owned);
        gone(arguments)
    });
    stream::iter(removals)
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    for network in &own.networks {
        gone(["network", "rm", &network.id].map(str::to_owned)).await?;
    }
    Ok(())
}

/// Another process may be removing the same thing, as after a kill: then it is waited for.
async fn gone(arguments: impl AsRef<[String]>) -> Result<(), docker::Error> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match docker::run(arguments.as_ref()).await {
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error)
                if Instant::now() < deadline
                    && (error.mentions("is already in progress")
                        || error.mentions("has active endpoints")) =>
            {
                sleep(Duration::from_millis(200)).await;
            }
            result => return result.map(drop),
        }
    }
}
