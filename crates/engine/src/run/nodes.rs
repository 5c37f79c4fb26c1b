//! Nodes and addons as the API sees them, one by one.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use hatchery_host::{machine::OneOff, path::Word};

use super::{Cause, Run, TaskError};
use crate::{
    api::{self, Api, Effect},
    observed::KUBELET,
    plan::{Node, Workload},
};

/// The number of kubelets that are asked what is wrong; it is mostly the same everywhere.
const KUBELETS: usize = 10;
/// The timeout for each of them.
const ANSWER: Duration = Duration::from_secs(10);
/// The time that a kubelet has to start.
const RESTART: Duration = Duration::from_secs(60);

impl Run<'_> {
    /// Waits for a node and gives it its labels and taints.
    pub(super) async fn node(
        &self,
        api: &Api,
        node: &Node,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<usize, TaskError> {
        let restarted = self.register_again(api, node, step).await?;
        let ready = self.context.settings.ready;
        let ready = api.node_ready(node.name.as_str(), ready, step).await;
        if let Err(error) = ready {
            let said = match &error {
                api::Error::Deadline { .. } => self.kubelet(node).await,
                _ => String::new(),
            };
            let remedy = error.remedy();
            let cause = Cause::new(format!("{error}{said}"), remedy);
            return Err(TaskError::Failed(cause));
        }
        let effect = api
            .label_and_taint(node.name.as_str(), &node.labels, &node.taints)
            .await;
        let effect = effect?;
        Ok(usize::from(restarted || effect != Effect::Unchanged))
    }

    /// A kubelet registers its node when it starts, and not again when somebody deletes that: one that ran before is started
    /// anew. Gives whether it was.
    async fn register_again(
        &self,
        api: &Api,
        node: &Node,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<bool, TaskError> {
        let name = node.name.as_str();
        if !self.context.observed.runs(&node.name, KUBELET) || api.has_node(name).await? {
            return Ok(false);
        }
        step("registering again: restarting the kubelet");
        let restart = OneOff {
            name: "kubelet".to_owned(),
            bytes: format!("exec systemctl restart {KUBELET}\n").into_bytes(),
        };
        let machine = self.machine(&node.name)?;
        let restarted = machine.run_once(&[restart], &[], RESTART).await;
        restarted
            .map_err(|error| TaskError::Failed(Cause::new(error.to_string(), error.remedy())))?;
        Ok(true)
    }

    /// Waits for all that an addon runs in pods.
    pub(super) async fn rolled_out(
        &self,
        api: &Api,
        workloads: &[Workload],
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(), TaskError> {
        let away = self.context.observed.silent(self.context.cluster);
        let away: Vec<_> = away.iter().map(|one| one.name.to_string()).collect();
        let begin = Instant::now();
        let mut late = Vec::new();
        let mut remedy = None;
        for one in workloads {
            let (namespace, name) = (&one.namespace, &one.name);
            // One deadline for all of it; who comes last is looked at once.
            let left = self.context.settings.ready.saturating_sub(begin.elapsed());
            let ready = api.rolled_out(one.kind, namespace, name, &away, left, step);
            if let Err(error) = ready.await {
                remedy = remedy.or(error.remedy());
                late.push(error.to_string());
            }
        }
        match late.is_empty() {
            true => Ok(()),
            false => Err(TaskError::Failed(Cause::new(late.join("\n  "), remedy))),
        }
    }

    /// What the kubelet of a node that does not become ready has to say, a line each.
    async fn kubelet(&self, node: &Node) -> String {
        let asked = self.kubelets_asked.fetch_add(1, Ordering::Relaxed);
        let (Ok(kubelet), true) = (Word::new(KUBELET), asked < KUBELETS) else {
            return String::new();
        };
        let Ok(machine) = self.machine(&node.name) else {
            return String::new();
        };
        let words = machine.last_words(&kubelet, ANSWER);
        let words = words.await.unwrap_or_default();
        words
            .lines()
            .map(|line| format!("\n  kubelet on {}: {line}", node.name))
            .collect()
    }
}
