//! Whether an edit changed nothing but what it was asked to change.

use crate::{Cluster, cluster::Machine};

pub(super) fn differs_only_in_roles(one: &Machine, other: &Machine) -> bool {
    let roles = one.roles.clone();
    *one == Machine {
        roles,
        ..other.clone()
    }
}

/// Whether all but the machines is equal. A load balancer that is added or removed may change the endpoint and the lists of
/// packages, which depend on it.
pub(super) fn differs_only_in_machines(before: &Cluster, after: &Cluster) -> bool {
    let load_balancer_changed = before.load_balancer.is_some() != after.load_balancer.is_some();
    let without_machines = |cluster: &Cluster| {
        let mut rest = cluster.clone();
        rest.machines.clear();
        for list in [&mut rest.masters, &mut rest.workers, &mut rest.etcds] {
            list.clear();
        }
        rest.load_balancer = None;
        if load_balancer_changed {
            rest.endpoint.clone_from(&before.endpoint);
            rest.packages.lists.clear();
        }
        rest
    };
    without_machines(before) == without_machines(after)
}
