//! What is remembered of a cluster, also where an earlier release wrote it down.

use std::time::Duration;

use hatchery_host::transport::ssh::Timeouts;
use hatchery_spec::{Cluster, value::Name};

use crate::{
    authorities::Authorities,
    reach::{self, Environment},
    state::{Brought, Claim, DeployFile, Error, Key, Record, Store},
    status,
};

/// The time that the API of a cluster has to answer.
const DEADLINE: Duration = Duration::from_secs(8);

/// What is known of a cluster, if anything is. Nothing is written: a record that an earlier release wrote is completed by
/// its deploy file and by what its API says.
pub(super) async fn record(
    id: &Name,
    store: &dyn Store,
    environment: &Environment,
) -> Result<Option<Record>, Error> {
    let mut record = match Record::find(store, id).await? {
        Some(record) if record.machines.is_none() => record,
        record => return Ok(record),
    };
    // Where no file is remembered, no machine was touched.
    let Some(file) = DeployFile::latest(store).await? else {
        record.complete(Vec::new(), false);
        return Ok(Some(record));
    };
    let cluster = file.cluster().ok_or_else(|| Error::DeployFile {
        place: store.place(Key::DEPLOY_FILE),
    })?;
    let was_up = store.read(Key::ADMIN_CONF).await?.is_some();
    record.complete(Claim::on_all(&cluster), was_up);
    record.versions = version(&cluster, &record, store, environment).await;
    Ok(Some(record))
}

/// Which Kubernetes runs, as its API says, or else the file that it was made from.
async fn version(
    cluster: &Cluster,
    record: &Record,
    store: &dyn Store,
    environment: &Environment,
) -> Option<Brought> {
    let authorities = Authorities::load(store).await.ok().flatten();
    let identity = record.identity();
    let timeouts = Timeouts::default();
    let machines = cluster.machines();
    let said = match reach::machines(machines, store, &identity, environment, &timeouts) {
        Ok(machines) => {
            let status = status::look(cluster, &machines, authorities.as_ref(), DEADLINE).await;
            status.kubernetes
        }
        Err(_) => None,
    };
    let written = || cluster.kubernetes_version.map(|one| one.to_string());
    said.or_else(written).map(|version| Brought::said(&version))
}
