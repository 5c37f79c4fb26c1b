//! What would change through the cluster's API.

use super::{
    Change, Kind, Part,
    words::{self, applied},
};
use crate::{
    api::{self, Api},
    plan::{ApiWork, Manifest, Node, Task},
};

/// What one request would change.
pub(super) async fn ask(api: Option<&Api>, task: &Task, work: &ApiWork) -> Part {
    let mut part = Part {
        title: task.title.clone(),
        ..Part::default()
    };
    let asked = match (api, work) {
        (
            _,
            ApiWork::Ready
            | ApiWork::Node(_)
            | ApiWork::RolledOut { .. }
            | ApiWork::Drain(_)
            | ApiWork::ListAddons(_),
        )
        | (None, ApiWork::PruneAddons(_)) => return part,
        (Some(api), ApiWork::PruneAddons(wanted)) => {
            let gone = api.would_prune_addons(wanted).await;
            gone.map(|gone| gone.iter().map(words::pruned).collect())
        }
        (None, ApiWork::DeleteNode(node)) => {
            part.later = Some(format!("node {node} is drained and deleted"));
            return part;
        }
        (Some(api), ApiWork::DeleteNode(node)) => api.has_node(node.as_str()).await.map(|has| {
            let change = Change::new(Kind::Gone, format!("node {node}"), "drained and deleted");
            has.then_some(change).into_iter().collect()
        }),
        (None, ApiWork::Apply(manifests)) => {
            let count: usize = manifests.iter().map(|one| one.objects.len()).sum();
            part.later = Some(format!(
                "{count} objects are applied after the masters are up"
            ));
            return part;
        }
        (Some(api), ApiWork::Apply(manifests)) => ask_api(api, manifests).await,
    };
    match asked {
        Ok(changes) => part.changes = changes,
        Err(error) => part.later = Some(format!("cannot ask the API: {error}")),
    }
    part
}

async fn ask_api(api: &Api, manifests: &[Manifest]) -> Result<Vec<Change>, api::Error> {
    let mut changes = Vec::new();
    for manifest in manifests {
        let would = api.would_apply(&manifest.objects, true).await?;
        changes.extend(would.iter().filter_map(|one| {
            let name = match &one.namespace {
                Some(namespace) => format!("{} {namespace}/{}", one.kind, one.name),
                None => format!("{} {}", one.kind, one.name),
            };
            applied(name, &one.effect)
        }));
    }
    Ok(changes)
}

/// What would change of these nodes, in one part.
pub(super) async fn ask_nodes(api: Option<&Api>, nodes: &[&Node]) -> Part {
    let mut part = Part {
        title: "nodes ready".to_owned(),
        ..Part::default()
    };
    let Some(api) = api else {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        part.later = Some(format!(
            "labelled after the masters are up: {}",
            names.join(", ")
        ));
        return part;
    };
    for node in nodes {
        let would = api.would_label_and_taint(node.name.as_str(), &node.labels, &node.taints);
        match would.await {
            Ok(effect) => part
                .changes
                .extend(applied(format!("node {}", node.name), &effect)),
            Err(error) => {
                part.later = Some(format!("cannot ask the API: {error}"));
                break;
            }
        }
    }
    part
}
