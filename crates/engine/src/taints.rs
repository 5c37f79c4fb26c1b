//! Labels and taints of nodes: the usual ones of masters, and the user's.

use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role},
    value::{Effect, Label, Taint},
};

use crate::versions::{Feature, Versions};

/// The taints of a node. Masters keep pods away only where there are other workers.
pub(crate) fn for_node(cluster: &Cluster, versions: &Versions, node: &Machine) -> Vec<Taint> {
    let mut taints = node.taints.clone();
    let others = cluster.workers().any(|worker| !worker.is(Role::Master));
    if node.is(Role::Master) && others {
        for label in roles(versions) {
            let taint = Taint {
                label,
                effect: Effect::NoSchedule,
            };
            if !taints.contains(&taint) {
                taints.push(taint);
            }
        }
    }
    taints
}

/// The labels of a node beside those that the kubelet gives itself.
pub(crate) fn labels(versions: &Versions, node: &Machine) -> Vec<Label> {
    let mut labels = node.labels.clone();
    if node.is(Role::Master) {
        labels.extend(roles(versions));
        // Older ones have only the taint called so.
        let label = control_plane();
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

fn roles(versions: &Versions) -> Vec<Label> {
    let mut roles = Vec::new();
    if versions.has(Feature::ControlPlaneTaint) {
        roles.push(control_plane());
    }
    if versions.has(Feature::MasterTaint) {
        roles.push(role("master"));
    }
    roles
}

fn control_plane() -> Label {
    role("control-plane")
}

fn role(name: &str) -> Label {
    Label {
        key: format!("node-role.kubernetes.io/{name}"),
        value: String::new(),
    }
}
