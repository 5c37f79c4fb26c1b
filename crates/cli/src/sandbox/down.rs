//! `sandbox down`: the machines go, and with them what is remembered of the cluster on them.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use hatchery_engine::state::{Directory, Holder, Record, Store as _};
use hatchery_sandbox::{lab, name::Name, progress::Progress};
use time::OffsetDateTime;

use crate::{cluster_file, refusal};

pub(super) async fn run(name: &Name, home: Option<PathBuf>) -> anyhow::Result<()> {
    let sandboxes = lab::list().await?;
    let machines: Vec<_> = sandboxes
        .into_iter()
        .filter(|sandbox| sandbox.name == name.as_str())
        .flat_map(|sandbox| sandbox.machines)
        .map(|machine| (machine.name, IpAddr::V4(machine.address)))
        .collect();
    lab::down(name, home.as_deref(), &Progress::stderr()).await?;
    eprintln!("sandbox {name} is removed");
    if forget(name, &machines, &cluster_file::home(home.as_deref())?).await? {
        eprintln!("cluster {name} was on these machines only and is forgotten");
    }
    Ok(())
}

/// Forgets the cluster that the sandbox's own deploy file names: a sandbox made later has the same names and addresses but
/// other host keys, and would be refused. A cluster that claims any other machine is kept.
async fn forget(name: &Name, machines: &[(String, IpAddr)], home: &Path) -> anyhow::Result<bool> {
    let Ok(id) = hatchery_spec::value::Name::parse(name.as_str()) else {
        return Ok(false);
    };
    let store = Directory::new(home, &id);
    if !store.path().exists() {
        return Ok(false);
    }
    let state = |error| refusal::state(&error);
    let record = Record::find(&store, &id).await.map_err(state)?;
    let claims = record.as_ref().map(Record::claims).unwrap_or_default();
    let is_here = |name: &str, address| {
        let mut all = machines.iter();
        all.any(|machine| machine.0 == name && machine.1 == address)
    };
    if !claims
        .iter()
        .all(|claim| is_here(&claim.name, claim.address))
    {
        return Ok(false);
    }
    let holder = Holder::this_process("sandbox down", OffsetDateTime::now_utc());
    let lock = store.lock(holder).await.map_err(state)?;
    store.remove(lock).await.map_err(state)?;
    Ok(record.is_some())
}
