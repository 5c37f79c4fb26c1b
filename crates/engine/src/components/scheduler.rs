//! kube-scheduler, on each master.

use hatchery_pki::Request;
use hatchery_spec::cluster::Component;

use super::{CA, LEADER_RETRY, PKI, Site, api_client};
use crate::{
    arguments::Flags,
    unit_file::Service,
    wish::{Error, Wishes},
};

const KUBECONFIG: &str = "/etc/kubernetes/scheduler.conf";
const USER: &str = "system:kube-scheduler";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    let base = format!("{PKI}/scheduler");
    let request = Request::client(USER);
    api_client(site, wishes, &site.own_api(), KUBECONFIG, &base, request)?;
    let unit = Service {
        description: "Kubernetes scheduler",
        notifies: false,
        after: &["kube-apiserver.service"],
        stamp: site.stamp(&["kube-scheduler"]),
        command: flags(site).command(&site.program("kube-scheduler")),
        lines: vec!["LimitNOFILE=65536".into()],
    };
    let leaf = format!("{base}.crt");
    wishes.service("kube-scheduler", unit.render(), &[KUBECONFIG, &leaf, CA])
}

pub(crate) fn flags(site: &Site<'_>) -> Flags {
    Flags::new([
        ("authentication-kubeconfig", KUBECONFIG),
        ("authorization-kubeconfig", KUBECONFIG),
        ("bind-address", "127.0.0.1"),
        ("kubeconfig", KUBECONFIG),
        ("leader-elect", "true"),
        ("leader-elect-retry-period", LEADER_RETRY),
        ("profiling", "false"),
    ])
    .overridden(site.extra(Component::KubeScheduler))
}
