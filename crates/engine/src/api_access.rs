//! The way to a cluster's API, also while a master is away.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::select_ok;
use hatchery_host::machine::Machine;
use hatchery_spec::{Cluster, cluster::Role, value::Name};
use time::OffsetDateTime;

use crate::{
    api::{self, Access, Address, Api},
    authorities::Authorities,
    components::control_plane,
    observed::Observed,
};

/// The machines of a cluster, by name. Nothing need be connected yet.
pub type Machines = BTreeMap<Name, Arc<Machine>>;

/// The delay before the next master is asked, so that the first one answers where it can.
const HEAD_START: Duration = Duration::from_secs(2);

/// The time that an API server has to become ready.
const READY: Duration = Duration::from_secs(120);

/// A certificate for one session need not outlast the longest run.
const SESSION: time::Duration = time::Duration::hours(12);

/// What is needed to reach the API through the masters' own SSH connections.
#[derive(Clone, Copy)]
pub struct ApiAccess<'a> {
    /// The cluster whose API it is.
    pub cluster: &'a Cluster,
    /// The machines of that cluster.
    pub machines: &'a Machines,
    /// How they answered: a silent master is tried last.
    pub observed: &'a Observed,
    /// Who signs the certificate of the session.
    pub authorities: &'a Authorities,
}

impl ApiAccess<'_> {
    /// The API by way of the first master that leads there. `step` is called with what is waited for.
    ///
    /// # Errors
    /// When it is reached through none, or not ready within two minutes.
    pub async fn connect(&self, step: &(dyn Fn(&str) + Send + Sync)) -> Result<Api, api::Error> {
        let machines = self.cluster.machines().iter();
        let mut masters: Vec<_> = machines.filter(|node| node.is(Role::Master)).collect();
        masters.sort_by_key(|node| self.observed.is_silent(&node.name));
        let tries = (0..).zip(masters).map(|(turn, node)| {
            Box::pin(async move {
                tokio::time::sleep(HEAD_START * turn).await;
                self.by(&node.name, READY, step).await
            })
        });
        // Every cluster has a master.
        select_ok(tries).await.map(|(api, _)| api)
    }

    /// The API of one master, when it answers within this time.
    pub(crate) async fn by(
        &self,
        master: &Name,
        deadline: Duration,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Api, api::Error> {
        let unusable = |what, reason| api::Error::Credentials { what, reason };
        let machine = self.machines.get(master);
        let machine =
            machine.ok_or_else(|| unusable("the master", format!("{master} is not known")))?;
        let administrator = control_plane::administrator().with_lifetime(SESSION);
        let leaf = self
            .authorities
            .cluster
            .issue(&administrator, OffsetDateTime::now_utc());
        let leaf = leaf.map_err(|error| unusable("the cluster's authority", error.to_string()))?;
        let api = Api::connect(Access {
            machine: Arc::clone(machine),
            server: Address::new("127.0.0.1", 6443),
            authority_pem: self.authorities.cluster.cert_pem().to_owned(),
            admin: leaf,
        })?;
        api.ready(deadline, step).await?;
        Ok(api)
    }
}
