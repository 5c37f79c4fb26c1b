//! A master: the three programs of the control plane, and the administrator's way in.

use hatchery_host::path::MachinePath;
use hatchery_pki::Request;

use super::{PKI, Site, api_server, authority, controller_manager, scheduler};
use crate::wish::{Error, Issuer, Kubeconfig, Wishes};

/// For `kubectl` on the masters.
pub(crate) const ADMIN: &str = "/etc/kubernetes/admin.conf";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    authority(site, wishes)?;
    let kubeconfig = Kubeconfig {
        path: MachinePath::new(ADMIN)?,
        user: "kubernetes-admin".into(),
        server: site.api(),
    };
    wishes.leaf_with(
        Issuer::Cluster,
        &format!("{PKI}/admin"),
        administrator(),
        Some(kubeconfig),
    )?;
    api_server::wishes(site, wishes)?;
    controller_manager::wishes(site, wishes)?;
    scheduler::wishes(site, wishes)
}

/// Who may do everything.
pub(crate) fn administrator() -> Request {
    Request::client("kubernetes-admin").in_group("system:masters")
}
