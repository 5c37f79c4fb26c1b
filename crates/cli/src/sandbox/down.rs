//! `sandbox down`: the machines go, and with them what is remembered of the cluster on them.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use hatchery_engine::{
    authorities::Authorities,
    state::{Claim, Holder, Record},
};
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
    let home = cluster_file::home(home.as_deref())?;
    lab::down(name, &home, &Progress::stderr()).await?;
    eprintln!("sandbox {name} is removed");
    if forget(name, &machines, &home).await? {
        eprintln!("cluster {name} was on these machines only and is forgotten");
    }
    Ok(())
}

/// Forgets the cluster that the sandbox's own deploy file names: a sandbox made later has the same names and addresses but
/// other host keys, and would be refused.
async fn forget(name: &Name, machines: &[(String, IpAddr)], home: &Path) -> anyhow::Result<bool> {
    let Ok(id) = hatchery_spec::value::Name::parse(name.as_str()) else {
        return Ok(false);
    };
    let store = cluster_file::stores(Some(home))?.store(&id);
    let store = store.as_ref();
    let state = |error| refusal::state(&error);
    if !store.exists().await.map_err(state)? {
        return Ok(false);
    }
    let record = Record::find(store, &id).await.map_err(state)?;
    // What cannot be read is there.
    let has_authorities = !matches!(Authorities::load(store).await, Ok(None));
    if !is_forgettable(record.as_ref(), has_authorities, machines) {
        return Ok(false);
    }
    let holder = Holder::this_process("sandbox down", OffsetDateTime::now_utc());
    let lock = store.lock(holder).await.map_err(state)?;
    store.remove(lock).await.map_err(state)?;
    Ok(record.is_some())
}

/// Whether a cluster was on these machines only. Where that is unknown it is kept: its authorities may be all that is
/// left to reach it with.
fn is_forgettable(
    record: Option<&Record>,
    has_authorities: bool,
    machines: &[(String, IpAddr)],
) -> bool {
    let Some(record) = record else {
        return !has_authorities;
    };
    let is_here = |claim: &Claim| {
        let mut all = machines.iter();
        all.any(|(name, address)| *name == claim.name && *address == claim.address)
    };
    // An earlier release did not write its machines down.
    let claims = record.machines.as_deref();
    claims.is_some_and(|claims| claims.iter().all(is_here))
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    #[test]
    fn only_a_cluster_that_was_on_these_machines_is_forgotten() {
        let text = "cluster-id: lab\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: w0, ip: 10.0.0.2}]\n";
        let cluster = read(Input::private("x", text.as_bytes())).cluster.unwrap();
        let all = cluster.machines().iter();
        let all: Vec<_> = all
            .map(|machine| (machine.name.to_string(), machine.address))
            .collect();
        let mut record = Record::new(&cluster.id, OffsetDateTime::UNIX_EPOCH).unwrap();
        // Nothing was touched yet.
        assert!(is_forgettable(Some(&record), true, &all));
        record.claim(cluster.machines());
        assert!(is_forgettable(Some(&record), true, &all));
        assert!(!is_forgettable(Some(&record), true, &all[..1]));
        let mut moved = all.clone();
        moved[1].1 = IpAddr::from([10, 0, 0, 9]);
        assert!(!is_forgettable(Some(&record), true, &moved));
        // A record of the previous release does not say where the cluster is.
        record.machines = None;
        assert!(!is_forgettable(Some(&record), true, &all));
        assert!(!is_forgettable(Some(&record), false, &all));
        // The record was lost, and the authorities were not.
        assert!(!is_forgettable(None, true, &all));
        assert!(is_forgettable(None, false, &all));
    }
}
