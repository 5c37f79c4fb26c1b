//! kube-scheduler, on each master.

use hatchery_pki::Request;
use hatchery_spec::cluster::Component;

use super::{CA, LEADER_RETRY, NodeContext, PKI, api_client};
use crate::{
    arguments::Flags,
    resource::{Error, Resources},
    unit_file::Service,
};

const KUBECONFIG: &str = "/etc/kubernetes/scheduler.conf";
const USER: &str = "system:kube-scheduler";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let base = format!("{PKI}/scheduler");
    let request = Request::client(USER);
    api_client(
        node_context,
        resources,
        &node_context.own_api(),
        KUBECONFIG,
        &base,
        request,
    )?;
    let unit = Service {
        description: "Kubernetes scheduler",
        notifies: false,
        after: &["kube-apiserver.service"],
        stamp: node_context.stamp(&["kube-scheduler"]),
        command: flags(node_context).command(&node_context.program("kube-scheduler")),
        lines: vec!["LimitNOFILE=65536".into()],
    };
    let leaf = format!("{base}.crt");
    resources.service("kube-scheduler", unit.render(), &[KUBECONFIG, &leaf, CA])
}

pub(crate) fn flags(node_context: &NodeContext<'_>) -> Flags {
    Flags::new([
        ("authentication-kubeconfig", KUBECONFIG),
        ("authorization-kubeconfig", KUBECONFIG),
        ("bind-address", "127.0.0.1"),
        ("kubeconfig", KUBECONFIG),
        ("leader-elect", "true"),
        ("leader-elect-retry-period", LEADER_RETRY),
        ("profiling", "false"),
    ])
    .overridden(node_context.extra(Component::KubeScheduler))
}
