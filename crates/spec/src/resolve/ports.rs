//! Ports that two things want.

use std::collections::{BTreeMap, HashSet};

use super::machines::Fleet;
use crate::cluster::{OpenPort, Role};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::{Draft, Field};
use crate::value::Port;

/// What the cluster itself listens on, per role.
const OWN: [(Role, u16, &str); 11] = [
    (Role::Master, 6443, "the API server"),
    (Role::Master, 10257, "the controller manager"),
    (Role::Master, 10259, "the scheduler"),
    (Role::Worker, 10248, "the kubelet"),
    (Role::Worker, 10249, "kube-proxy"),
    (Role::Worker, 10250, "the kubelet"),
    (Role::Worker, 10256, "kube-proxy"),
    (Role::Etcd, 2379, "etcd"),
    (Role::Etcd, 2380, "etcd"),
    (Role::Etcd, 2381, "etcd"),
    (Role::Worker, 10255, "the kubelet"),
];

/// Where the load balancer listens unless said.
const BIND_PORT: &str = "8443";

/// The load balancer's port, if there is one.
pub(super) fn check(draft: &Draft, fleet: &Fleet, diagnostics: &mut Diagnostics) -> Option<Port> {
    warn_about_repeats(draft, diagnostics);
    let balancer = draft.load_balancer.as_ref()?;
    let port = match &balancer.bind_port {
        Field::Given(port) => port.value,
        Field::Absent => Port::parse(BIND_PORT).ok()?,
        Field::Wrong => return None,
    };
    let machine = &fleet.all[fleet.balancer?.0];
    let span = balancer.bind_port.span().unwrap_or(balancer.host.span);
    let other = OWN
        .iter()
        .find(|(role, own, _)| *own == port.number() && machine.roles.contains(role))
        .map(|(_, _, who)| *who)
        .or((port == machine.ssh_port()).then_some("SSH"));
    if let Some(who) = other {
        let message =
            format!("the load balancer cannot listen on {port}: {who} uses it on the same machine");
        diagnostics.push(
            Diagnostic::error("port-conflict", span, message)
                .remedy(format!("use another bind-port, such as {BIND_PORT}")),
        );
    }
    Some(port)
}

fn warn_about_repeats(draft: &Draft, diagnostics: &mut Diagnostics) {
    let mut seen = HashSet::new();
    for (role, open) in &draft.open_ports {
        if !seen.insert((*role, open.value)) {
            let message = format!(
                "port {} is listed twice for the role {}",
                open.value.port,
                role.as_str()
            );
            diagnostics.push(
                Diagnostic::warning("duplicate-port", open.span, message)
                    .remedy("remove one of the two"),
            );
        }
    }
}

/// Ports to open, each once.
pub(super) fn open(draft: &Draft) -> BTreeMap<Role, Vec<OpenPort>> {
    let mut all: BTreeMap<Role, Vec<OpenPort>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (role, open) in &draft.open_ports {
        if seen.insert((*role, open.value)) {
            all.entry(*role).or_default().push(open.value);
        }
    }
    all
}
