//! How a run comes to the cluster's API, also while a master is away.

use std::{sync::Arc, time::Duration};

use futures::future::select_ok;
use hatchery_spec::cluster::Role;
use time::OffsetDateTime;

use super::Run;
use crate::{
    api::{self, Access, Address, Api},
    components::control_plane,
};

/// A master is asked so much later than the one before it, so that the first one answers where it can.
const HEAD_START: Duration = Duration::from_secs(2);

/// An API server has so long to be ready.
const READY: Duration = Duration::from_secs(120);

/// A certificate for one session need not outlast the longest run.
const SESSION: time::Duration = time::Duration::hours(12);

impl Run<'_> {
    /// The cluster's API, by way of the first master that leads there.
    ///
    /// # Errors
    /// When it is reached through none, or not ready within two minutes.
    pub async fn api(&self, step: &(dyn Fn(&str) + Send + Sync)) -> Result<&Api, api::Error> {
        let connect = || async {
            let machines = self.cluster.machines().iter().enumerate();
            let mut masters: Vec<_> = machines.filter(|(_, node)| node.is(Role::Master)).collect();
            masters.sort_by_key(|(place, _)| self.missing.contains(place));
            let tries = (0..).zip(masters).map(|(turn, (place, _))| {
                Box::pin(async move {
                    tokio::time::sleep(HEAD_START * turn).await;
                    self.api_by(place, READY, step).await
                })
            });
            // Every cluster has a master.
            select_ok(tries).await.map(|(api, _)| api)
        };
        self.api.get_or_try_init(connect).await
    }

    /// The API of one master, when it answers within this time.
    pub(super) async fn api_by(
        &self,
        place: usize,
        deadline: Duration,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Api, api::Error> {
        let administrator = control_plane::administrator().with_lifetime(SESSION);
        let leaf = self
            .authorities
            .cluster
            .issue(&administrator, OffsetDateTime::now_utc());
        let leaf = leaf.map_err(|error| api::Error::Credentials {
            what: "the cluster's authority",
            reason: error.to_string(),
        })?;
        let api = Api::connect(Access {
            machine: Arc::clone(&self.machines[place]),
            server: Address::new("127.0.0.1", 6443),
            authority_pem: self.authorities.cluster.cert_pem().to_owned(),
            admin: leaf,
        })?;
        api.ready(deadline, step).await?;
        Ok(api)
    }
}
