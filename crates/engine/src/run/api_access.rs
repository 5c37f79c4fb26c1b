//! How a run comes to the cluster's API, also while a master is away.

use std::{sync::Arc, time::Duration};

use futures::future::select_ok;
use hatchery_host::path::Word;
use hatchery_spec::cluster::Role;
use time::OffsetDateTime;

use super::Run;
use crate::{
    api::{self, Access, Address, Api},
    components::control_plane,
    plan::ApiWork,
};

/// A master is asked so much later than the one before it, so that the first one answers where it can.
const HEAD_START: Duration = Duration::from_secs(2);

/// So many kubelets are asked what is wrong; it is mostly the same everywhere.
const KUBELETS: usize = 3;
/// Each has so long.
const ANSWER: Duration = Duration::from_secs(10);

impl Run<'_> {
    /// How many machines are left out whose nodes the cluster knows.
    pub(super) async fn absent_nodes(&self, api: &Api) -> Result<usize, api::Error> {
        if self.missing.is_empty() {
            return Ok(0);
        }
        let name = |place: &usize| self.cluster.machines()[*place].name.as_str();
        let missing: Vec<_> = self.missing.iter().map(name).collect();
        let nodes = api.nodes().await?;
        let absent = nodes
            .iter()
            .filter(|node| missing.contains(&node.name.as_str()));
        Ok(absent.count())
    }

    /// What kubelets have to say whose nodes were waited for in vain, a line each.
    pub(super) async fn kubelets(&self, work: &ApiWork, error: &api::Error) -> String {
        let (ApiWork::Nodes(nodes), api::Error::Deadline { last, .. }) = (work, error) else {
            return String::new();
        };
        let Ok(kubelet) = Word::new("kubelet.service") else {
            return String::new();
        };
        let mut told = String::new();
        let late = nodes
            .iter()
            .filter(|node| last.contains(&format!("{}: ", node.name)));
        for node in late.take(KUBELETS) {
            let mut machines = self.cluster.machines().iter();
            let place = machines.position(|machine| machine.name.as_str() == node.name);
            let Some(machine) = place.and_then(|place| self.machines.get(place)) else {
                continue;
            };
            let words = machine.last_words(&kubelet, ANSWER).await;
            for line in words.unwrap_or_default().lines() {
                told += &format!("\n  kubelet on {}: {line}", node.name);
            }
        }
        told
    }

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
                    self.api_by(place, step).await
                })
            });
            // Every cluster has a master.
            select_ok(tries).await.map(|(api, _)| api)
        };
        self.api.get_or_try_init(connect).await
    }

    async fn api_by(
        &self,
        place: usize,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Api, api::Error> {
        let leaf = self
            .authorities
            .cluster
            .issue(&control_plane::administrator(), OffsetDateTime::now_utc());
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
        api.ready(Duration::from_secs(120), step).await?;
        Ok(api)
    }
}
