//! What the user should know of how it is done.

use super::Basis;

/// Images could be pinned in containerd instead, which old kubelets and other runtimes know nothing of.
pub(super) fn archived_images(basis: &Basis<'_>) -> Option<String> {
    let mut sites = basis.sites.values();
    let archived = sites.any(|(_, installation)| !installation.images.is_empty());
    archived.then(|| {
        "images come from archives, and no registry brings them back: kubelets delete unused ones only when less than 5 % \
         of a disk is left; deploy loads again what is missing"
            .to_owned()
    })
}

/// Nodes become ready by way of the load balancer.
pub(super) fn missing_load_balancer(basis: &Basis<'_>) -> Option<String> {
    let balancer = basis.cluster.load_balancer()?.machine;
    let mut places = basis.sites.keys();
    let is_there = places.any(|place| basis.cluster.machine(*place).name == balancer.name);
    let name = &balancer.name;
    (!is_there).then(|| {
        format!("nodes and pods are not waited for: kubelets do not reach the API without the load balancer {name}")
    })
}
