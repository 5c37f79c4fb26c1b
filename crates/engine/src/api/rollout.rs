//! Whether a workload runs everywhere as it was applied last, judged from what its controller and its pods say.

use std::fmt;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{DaemonSet, Deployment, StatefulSet},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
    jiff::{SignedDuration, Timestamp},
};
use kube::{Resource, api::ListParams, core::Selector};
use serde::de::DeserializeOwned;

use super::{
    Api,
    discovery::path_segment,
    error::{Error, Operation, if_found},
};

/// How long a container that ended before has to run until it is taken for good.
const SETTLED: SignedDuration = SignedDuration::from_secs(10);

/// A kind of workload that is rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Some pods, anywhere.
    Deployment,
    /// One pod on each node.
    DaemonSet,
    /// Some pods with names.
    StatefulSet,
}

impl Workload {
    /// The one of this kind.
    pub fn of_kind(kind: &str) -> Option<Self> {
        let all = [Self::Deployment, Self::DaemonSet, Self::StatefulSet];
        all.into_iter().find(|one| one.to_string() == kind)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What a workload's controller says of its pods.
#[derive(Default)]
struct Rollout {
    metadata: ObjectMeta,
    selector: LabelSelector,
    observed_generation: i64,
    /// Pods as they were applied last, and how many of them there have to be.
    updated: (i32, i32),
    /// Pods as they were before.
    old: i32,
    /// Pods that serve, and how many of them there have to be.
    serving: (i32, i32),
    /// How the controller calls those.
    serving_word: &'static str,
    /// Whether each node has its pod, so that one on a node that is away may be an old one.
    is_per_node: bool,
    /// Why the controller does not go on.
    problem: Option<String>,
}

impl Rollout {
    /// What is missing, if anything. Not waited for are `away` pods, on nodes that are not there, and the `unsettled` do
    /// not count as serving.
    fn check(&self, away: i32, unsettled: i32) -> Result<(), String> {
        if self.observed_generation < self.metadata.generation.unwrap_or(0) {
            return Err("its controller has not seen it yet".into());
        }
        let at_least = |have: i32, want: i32, what: &str| match have >= want {
            true => Ok(()),
            false => Err(format!("{have} of {want} pods are {what}")),
        };
        let ((updated, all), (serving, wanted)) = (self.updated, self.serving);
        let all = if self.is_per_node { all - away } else { all };
        at_least(updated, all, "new")
            .and_then(|()| match self.old {
                ..=0 => Ok(()),
                old => Err(format!("{old} old pods are still there")),
            })
            .and_then(|()| {
                let serving = (serving - unsettled).max(0);
                at_least(serving, (wanted - away).max(0), self.serving_word)
            })
            .map_err(|missing| match &self.problem {
                Some(problem) => format!("{missing}; {problem}"),
                None => missing,
            })
    }
}

impl From<Deployment> for Rollout {
    fn from(deployment: Deployment) -> Self {
        let spec = deployment.spec;
        let status = deployment.status.unwrap_or_default();
        let wanted = spec.replicas.unwrap_or(1);
        let updated = status.updated_replicas.unwrap_or(0);
        let mut conditions = status.conditions.into_iter().flatten();
        let bad = conditions.find(|one| {
            let said = (one.type_.as_deref(), one.status.as_deref());
            matches!(
                said,
                (Some("ReplicaFailure"), Some("True")) | (Some("Progressing"), Some("False"))
            )
        });
        Self {
            metadata: deployment.metadata,
            selector: spec.selector,
            observed_generation: status.observed_generation.unwrap_or(0),
            updated: (updated, wanted),
            old: status.replicas.unwrap_or(0) - updated,
            serving: (status.available_replicas.unwrap_or(0), wanted),
            serving_word: "available",
            problem: bad.and_then(|condition| condition.message),
            ..Self::default()
        }
    }
}

impl From<DaemonSet> for Rollout {
    fn from(daemon_set: DaemonSet) -> Self {
        let spec = daemon_set.spec;
        let status = daemon_set.status.unwrap_or_default();
        let wanted = status.desired_number_scheduled;
        let strategy = spec.update_strategy.unwrap_or_default();
        let updated = match strategy.type_.as_deref() {
            // One that is updated by hand may stay old.
            Some("OnDelete") => (0, 0),
            _ => (status.updated_number_scheduled.unwrap_or(0), wanted),
        };
        Self {
            metadata: daemon_set.metadata,
            selector: spec.selector,
            observed_generation: status.observed_generation.unwrap_or(0),
            updated,
            serving: (status.number_available.unwrap_or(0), wanted),
            serving_word: "available",
            is_per_node: true,
            ..Self::default()
        }
    }
}

impl From<StatefulSet> for Rollout {
    fn from(set: StatefulSet) -> Self {
        let spec = set.spec;
        let status = set.status.unwrap_or_default();
        let wanted = spec.replicas.unwrap_or(1);
        let strategy = spec.update_strategy.unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let kept = rolling.partition.unwrap_or(0);
        let is_new = status.update_revision == status.current_revision;
        let updated = match strategy.type_.as_deref() {
            Some("OnDelete") => (0, 0),
            _ if kept == 0 && is_new => (0, 0),
            _ => (status.updated_replicas.unwrap_or(0), (wanted - kept).max(0)),
        };
        Self {
            metadata: set.metadata,
            selector: spec.selector,
            observed_generation: status.observed_generation.unwrap_or(0),
            updated,
            serving: (status.ready_replicas.unwrap_or(0), wanted),
            serving_word: "ready",
            ..Self::default()
        }
    }
}

impl Api {
    /// Asks once: what is missing until a workload runs everywhere as it was applied last, if anything.
    pub(super) async fn not_rolled_out(
        &self,
        workload: Workload,
        namespace: &str,
        name: &str,
        away: &[String],
    ) -> Result<Option<String>, Error> {
        let found = match workload {
            Workload::Deployment => self.rollout::<Deployment>(namespace, name).await,
            Workload::DaemonSet => self.rollout::<DaemonSet>(namespace, name).await,
            Workload::StatefulSet => self.rollout::<StatefulSet>(namespace, name).await,
        };
        let Some(rollout) = if_found(found)? else {
            return Ok(Some(format!("{workload} {namespace}/{name} is not there")));
        };
        let (mut checked, mut pods_away) = (rollout.check(0, 0), 0);
        if checked.is_err() {
            pods_away = self.pods_away(&rollout, away).await?;
            checked = rollout.check(pods_away, 0);
        }
        if checked.is_ok() {
            // One that ends again and again counts as available each time that it begins.
            let pods = self.pods_of(&rollout).await?;
            checked = rollout.check(pods_away, unsettled(&pods, Timestamp::now()));
        }
        let missing = checked.err();
        Ok(missing.map(|missing| format!("{workload} {namespace}/{name}: {missing}")))
    }

    async fn rollout<K>(&self, namespace: &str, name: &str) -> Result<Rollout, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Into<Rollout>,
    {
        let operation = Operation::on("get", &K::kind(&()), Some(namespace), name);
        let workloads = kube::Api::<K>::namespaced(self.client(), &path_segment(namespace));
        let name = path_segment(name);
        let workload = self.request_once(&operation, workloads.get(&name));
        workload.await.map(Into::into)
    }

    /// How many pods of a workload are on nodes that are not ready or known to be away.
    async fn pods_away(&self, rollout: &Rollout, away: &[String]) -> Result<i32, Error> {
        let nodes = self.recent_nodes().await?;
        let lost: Vec<&str> = nodes
            .iter()
            .filter(|node| !node.is_ready() || away.contains(&node.name))
            .map(|node| node.name.as_str())
            .collect();
        if lost.is_empty() {
            return Ok(0);
        }
        Ok(pods_on(&self.pods_of(rollout).await?, &lost))
    }

    async fn pods_of(&self, rollout: &Rollout) -> Result<Vec<Pod>, Error> {
        let operation = Operation::new("list", "Pod");
        let selector = Selector::try_from(rollout.selector.clone());
        let selector = selector.map_err(|error| Error::invalid(&operation, error.to_string()))?;
        let namespace = rollout.metadata.namespace.as_deref();
        let pods = kube::Api::<Pod>::namespaced(self.client(), namespace.unwrap_or("default"));
        let parameters = ListParams::default().labels_from(&selector);
        let listed = self.request_once(&operation, pods.list(&parameters));
        Ok(listed.await?.items)
    }
}

fn count(pods: &[Pod], counts: impl Fn(&Pod) -> bool) -> i32 {
    let number = pods.iter().filter(|pod| counts(pod)).count();
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// How many of the pods are on these nodes. Those that are to go are not counted by their controllers either.
fn pods_on(pods: &[Pod], nodes: &[&str]) -> i32 {
    count(pods, |pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        pod.metadata.deletion_timestamp.is_none() && node.is_some_and(|node| nodes.contains(&node))
    })
}

/// How many of the pods have a container that was started again a moment ago. Clocks may differ a little.
fn unsettled(pods: &[Pod], now: Timestamp) -> i32 {
    count(pods, |pod| {
        let containers = pod
            .status
            .iter()
            .flat_map(|status| &status.container_statuses);
        containers.flatten().any(|container| {
            let running = container
                .state
                .as_ref()
                .and_then(|state| state.running.as_ref());
            let started = running.and_then(|running| running.started_at.as_ref());
            container.restart_count > 0
                && started.is_some_and(|started| now.duration_since(started.0).abs() < SETTLED)
        })
    })
}

#[cfg(test)]
mod tests;
