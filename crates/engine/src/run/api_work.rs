//! What is asked of the cluster's API.

use super::{Cause, Run, TaskError};
use crate::{
    api::{self, Drain, Effect},
    plan::ApiWork,
};

impl Run<'_> {
    /// Gives the number of changes.
    pub(super) async fn ask(
        &self,
        work: &ApiWork,
        step: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<usize, TaskError> {
        let api = self.api(step).await?;
        match work {
            ApiWork::Ready => {
                self.up.send_replace(true);
                Ok(0)
            }
            ApiWork::Apply(manifests) => {
                let mut changes = 0;
                for manifest in manifests {
                    let applied = api.apply(&manifest.objects, true).await?;
                    let changed = applied.iter().filter(|one| one.effect != Effect::Unchanged);
                    changes += changed.count();
                }
                Ok(changes)
            }
            ApiWork::Node(node) => self.node(api, node, step).await,
            ApiWork::ListAddons(objects) => {
                api.list_addon_objects(objects).await?;
                Ok(0)
            }
            ApiWork::PruneAddons(wanted) => Ok(api.prune_addons(wanted).await?.len()),
            ApiWork::Drain(node) => {
                let settings = self.context.settings;
                let mut named = settings.named.iter().flatten();
                let is_meant = settings.named.is_none() || named.any(|name| name == node);
                let drain = Drain {
                    force: settings.drain.force && is_meant,
                    skip: settings.drain.skip && is_meant,
                    is_silent: self.context.observed.is_silent(node),
                    ..settings.drain
                };
                let drained = api.drain(node.as_str(), drain, step).await;
                drained.map_err(|error| not_drained(&error))
            }
            ApiWork::DeleteNode(node) => Ok(usize::from(api.delete_node(node.as_str()).await?)),
            ApiWork::RolledOut { workloads, .. } => {
                self.rolled_out(api, workloads, step).await?;
                Ok(0)
            }
        }
    }
}

/// The node is kept from new pods, and nothing else has happened.
fn not_drained(error: &api::Error) -> TaskError {
    let remedy = match error {
        api::Error::Deadline { .. } => Some(
            "change what keeps the pods, such as a PodDisruptionBudget, and run again, or delete the machine with --force"
                .to_owned(),
        ),
        error => error.remedy(),
    };
    TaskError::Failed(Cause::new(error.to_string(), remedy))
}
