//! What the user should know of how it is done.

use crate::wanted::Wanted;

/// Images could be pinned in containerd instead, which old kubelets and other runtimes know nothing of.
pub(super) fn archived_images(wanted: &Wanted) -> Option<String> {
    let mut installations = wanted.installations.values();
    let archived = installations.any(|installation| !installation.images.is_empty());
    archived.then(|| {
        "images come from archives, and no registry brings them back: kubelets delete unused ones only when less than 5 % \
         of a disk is left; deploy loads again what is missing"
            .to_owned()
    })
}

/// Nodes become ready by way of the load balancer.
pub(super) fn missing_load_balancer(wanted: &Wanted) -> Option<String> {
    let name = &wanted.cluster.load_balancer()?.machine.name;
    let is_there = wanted.installations.contains_key(name);
    (!is_there).then(|| {
        format!("nodes and pods are not waited for: kubelets do not reach the API without the load balancer {name}")
    })
}
