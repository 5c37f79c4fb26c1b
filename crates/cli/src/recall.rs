//! What is remembered of a cluster, also where an earlier release wrote it down.

use std::{path::Path, time::Duration};

use hatchery_engine::{
    authorities::Authorities,
    deployment,
    state::{Brought, Claim, Directory, Key, Record, Store as _},
    status,
};
use hatchery_spec::{Cluster, value::Name};

use crate::{cluster_file, deploy_file, output::Refused, refusal};

/// The API of a cluster has so long to say its version.
const DEADLINE: Duration = Duration::from_secs(8);

/// What is known of a cluster, if anything is. Nothing is written: a record that an earlier release wrote is completed by
/// its deploy file and by what its API says.
pub(crate) async fn record(home: &Path, id: &Name) -> Result<Option<Record>, Refused> {
    let store = Directory::new(home, id);
    let state = |error| refusal::state(&error);
    let mut record = match Record::find(&store, id).await.map_err(state)? {
        Some(record) if record.machines.is_none() => record,
        record => return Ok(record),
    };
    // Where no file is remembered, no machine was touched.
    let Some(cluster) = cluster(&store).await? else {
        record.complete(Vec::new(), false);
        return Ok(Some(record));
    };
    let was_up = store.read(Key::ADMIN_CONF).await.map_err(state)?.is_some();
    record.complete(Claim::on_all(&cluster), was_up);
    record.versions = version(home, &store, &cluster, &record).await;
    Ok(Some(record))
}

/// The cluster of the remembered deploy file.
pub(crate) async fn cluster(store: &Directory) -> Result<Option<Cluster>, Refused> {
    let Some((file, vars)) = cluster_file::remembered(store).await? else {
        return Ok(None);
    };
    let reading = deploy_file::validate(&file, vars.as_ref(), deploy_file::Use::Access);
    let place = store.place(Key::DEPLOY_FILE);
    match reading.cluster {
        Some(cluster) => Ok(Some(cluster)),
        None => Err(Refused::new(format!(
            "the deploy file that is remembered is not good any more: {place}"
        ))
        .remedy(format!("correct it: check -f {place} says what is wrong"))),
    }
}

/// The cluster of a file with the machines that leave it: those that it has and the file does not name.
pub(crate) async fn with_leaving(
    cluster: &Cluster,
    store: &Directory,
    record: Option<&Record>,
) -> Result<Cluster, Refused> {
    let claims = record.map(Record::claims).unwrap_or_default();
    let earlier = clusters(store).await?;
    let leaving = deployment::leaving(cluster, claims, &earlier);
    Ok(cluster.clone().with_leaving(leaving))
}

/// The clusters of all files that are remembered, the latest first: together they tell how every claimed machine is reached.
/// One that is not good any more tells nothing.
pub(crate) async fn clusters(store: &Directory) -> Result<Vec<Cluster>, Refused> {
    let latest = cluster_file::remembered(store).await?;
    let earlier = cluster_file::earlier(store).await?;
    let files = latest.into_iter().chain(earlier);
    let clusters = files.filter_map(|(file, vars)| {
        deploy_file::validate(&file, vars.as_ref(), deploy_file::Use::Access).cluster
    });
    Ok(clusters.collect())
}

/// Which Kubernetes runs, as its API says, or else the file that it was made from.
async fn version(
    home: &Path,
    store: &Directory,
    cluster: &Cluster,
    record: &Record,
) -> Option<Brought> {
    let authorities = Authorities::load(store).await.ok().flatten();
    let environment = cluster_file::environment(home.to_owned());
    let identity = record.identity();
    let looking = status::look(
        cluster,
        &identity,
        authorities.as_ref(),
        &environment,
        DEADLINE,
    );
    let said = looking.await.ok().and_then(|status| status.kubernetes);
    let written = || cluster.kubernetes_version.map(|one| one.to_string());
    said.or_else(written).map(|version| Brought::said(&version))
}
