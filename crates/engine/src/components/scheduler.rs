//! kube-scheduler, on each master.

use hatchery_pki::Request;
use hatchery_spec::cluster::Component;

use super::{CA, PKI, Site, kubeconfig};
use crate::{
    arguments::Flags,
    unit_file::Service,
    wish::{Error, Issuer, Wishes},
};

const KUBECONFIG: &str = "/etc/kubernetes/scheduler.conf";
const USER: &str = "system:kube-scheduler";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    let base = format!("{PKI}/scheduler");
    wishes.leaf(Issuer::Cluster, &base, Request::client(USER))?;
    let id = site.cluster.id.as_str();
    wishes.file(
        KUBECONFIG,
        0o600,
        kubeconfig(id, &site.own_api(), USER, &base),
    )?;
    let unit = Service {
        description: "Kubernetes scheduler",
        notifies: false,
        after: &["kube-apiserver.service"],
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
        ("profiling", "false"),
    ])
    .overridden(site.extra(Component::KubeScheduler))
}
