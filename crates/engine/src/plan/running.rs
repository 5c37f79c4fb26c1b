//! What of a cluster runs already, as its machines' records tell.

use hatchery_host::machine::Managed;

/// The unit of an etcd member.
pub(super) const ETCD: &str = "etcd.service";
/// The unit of an API server.
pub(super) const API_SERVER: &str = "kube-apiserver.service";

/// Whether a unit of ours is active on a machine. One that is only starting is not: a new member of etcd is until
/// there are enough of them.
pub fn runs(managed: &Managed, unit: &str) -> bool {
    let mut resources = managed.resources.iter();
    resources.any(|resource| {
        let state = resource.state.as_deref().unwrap_or_default();
        resource.kind == "unit"
            && resource.name == unit
            && state.split(',').next() == Some("active")
    })
}
