//! A master: the three programs of the control plane, and the administrator's way in.

use hatchery_host::path::MachinePath;
use hatchery_pki::Request;

use super::{NodeContext, PKI, api_server, authority, controller_manager, scheduler};
use crate::resource::{Error, Issuer, Kubeconfig, Resources};

/// For `kubectl` on the masters.
pub(crate) const ADMIN: &str = "/etc/kubernetes/admin.conf";
/// The address of the API in that file.
const ADMIN_SERVER: &str = "/etc/kubernetes/pki/admin.server";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    authority(node_context, resources)?;
    let server = node_context.api();
    resources.file(ADMIN_SERVER, 0o600, server.clone())?;
    let kubeconfig = Kubeconfig {
        path: MachinePath::new(ADMIN)?,
        user: "kubernetes-admin".into(),
        server,
        server_file: MachinePath::new(ADMIN_SERVER)?,
    };
    resources.leaf_with(
        Issuer::Cluster,
        &format!("{PKI}/admin"),
        administrator(),
        Some(kubeconfig),
    )?;
    api_server::resources(node_context, resources)?;
    controller_manager::resources(node_context, resources)?;
    scheduler::resources(node_context, resources)
}

/// Who may do everything.
pub(crate) fn administrator() -> Request {
    Request::client("kubernetes-admin").in_group("system:masters")
}
