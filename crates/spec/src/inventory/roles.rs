//! Which host is what, by the groups of kubespray.

use std::collections::BTreeSet;

use super::groups::Groups;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::name_list::NameList;
use crate::source::Span;
use crate::walk::nearest;

const CONTROL_PLANE: &str = "kube_control_plane";
const NODE: &str = "kube_node";
const ETCD: &str = "etcd";
const BASTION: &str = "bastion";

/// Names that groups had before kubespray 2.16.
const OLD: [(&str, &str); 6] = [
    ("kube-master", CONTROL_PLANE),
    ("kube_master", CONTROL_PLANE),
    ("kube-node", NODE),
    ("k8s-cluster", "k8s_cluster"),
    ("calico-rr", "calico_rr"),
    ("no-floating", "no_floating"),
];

/// The hosts of each role, in the inventory's order.
pub(super) struct Roles {
    pub(super) control_plane: Vec<usize>,
    pub(super) nodes: Vec<usize>,
    pub(super) etcd: Vec<usize>,
    pub(super) bastions: Vec<usize>,
    /// Hosts are missing because of an error that was reported.
    pub(super) incomplete: bool,
}

impl Roles {
    pub(super) fn from_groups(groups: &Groups<'_>, diagnostics: &mut Diagnostics) -> Self {
        warn_about_old_names(groups, diagnostics);
        let mut roles = Self {
            control_plane: members(groups, CONTROL_PLANE),
            nodes: members(groups, NODE),
            etcd: members(groups, ETCD),
            bastions: members(groups, BASTION),
            incomplete: groups.incomplete,
        };
        if !roles.incomplete && roles.control_plane.is_empty() {
            roles.incomplete = true;
            refuse_empty(groups, diagnostics);
        } else if !roles.incomplete && roles.nodes.is_empty() {
            diagnostics.push(
                Diagnostic::warning(
                    "no-workers",
                    start(groups),
                    "no host is in the group kube_node, so only the cluster's own pods can run",
                )
                .remedy(
                    "list hosts under kube_node; hosts of kube_control_plane may be among them",
                ),
            );
        }
        roles.warn_about_idle(groups, diagnostics);
        roles
    }

    /// Every host of the cluster once.
    pub(super) fn members(&self) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let all = [&self.control_plane, &self.nodes, &self.etcd];
        let all = all.into_iter().flatten().copied();
        all.filter(|host| seen.insert(*host)).collect()
    }

    /// kubespray makes every host of the control plane a node; those not in `kube_node` only
    /// keep other pods away.
    pub(super) fn workers(&self) -> Vec<usize> {
        let listed: BTreeSet<usize> = self.nodes.iter().copied().collect();
        let rest = self
            .control_plane
            .iter()
            .filter(|host| !listed.contains(host));
        self.nodes.iter().chain(rest).copied().collect()
    }

    /// Hosts that no group with a meaning has.
    fn warn_about_idle(&self, groups: &Groups<'_>, diagnostics: &mut Diagnostics) {
        if self.incomplete {
            return;
        }
        let mut busy: BTreeSet<usize> = self.members().into_iter().collect();
        busy.extend(&self.bastions);
        let idle: Vec<_> = groups
            .hosts
            .iter()
            .enumerate()
            .filter(|(index, _)| !busy.contains(index))
            .map(|(_, host)| host)
            .collect();
        let Some(first) = idle.first() else {
            return;
        };
        let names: Vec<&str> = idle.iter().map(|host| host.name.as_str()).collect();
        let message = format!("hosts without a role are left alone: {}", NameList(&names));
        diagnostics.push(
            Diagnostic::warning("host-without-role", first.span, message)
                .remedy("list them under kube_control_plane, kube_node or etcd, or remove them"),
        );
    }
}

/// The hosts of a group, under its present and its former names.
fn members(groups: &Groups<'_>, name: &str) -> Vec<usize> {
    let old = OLD
        .iter()
        .filter(|(_, new)| *new == name)
        .map(|(old, _)| *old);
    let mut seen = BTreeSet::new();
    std::iter::once(name)
        .chain(old)
        .flat_map(|name| groups.members(name))
        .filter(|host| seen.insert(*host))
        .collect()
}

fn start(groups: &Groups<'_>) -> Span {
    groups.groups.first().map_or_else(Span::default, |all| {
        all.span.part(all.span.start, all.span.start)
    })
}

fn warn_about_old_names(groups: &Groups<'_>, diagnostics: &mut Diagnostics) {
    for (old, new) in OLD {
        if let Some(group) = groups.find(old) {
            let message = format!("the group {old} has been called {new} since kubespray 2.16");
            diagnostics.push(
                Diagnostic::warning("old-group", group.span, message)
                    .remedy(format!("write {new}")),
            );
        }
    }
}

/// A group whose name is nearly right and that has hosts is the likeliest mistake.
fn refuse_empty(groups: &Groups<'_>, diagnostics: &mut Diagnostics) {
    let near = groups.groups.iter().find(|group| {
        let is_near = group.name != CONTROL_PLANE && nearest(group.name, [CONTROL_PLANE]).is_some();
        is_near && !group.hosts.is_empty()
    });
    let (span, remedy) = match (near, groups.find(CONTROL_PLANE)) {
        (Some(group), _) => (group.span, format!("did you mean {CONTROL_PLANE}?")),
        (None, Some(group)) => (
            group.span,
            "list at least one host under its hosts:".to_owned(),
        ),
        (None, None) => (
            start(groups),
            format!("add {CONTROL_PLANE} with at least one host under all.children"),
        ),
    };
    let message = format!("no host is in the group {CONTROL_PLANE}");
    diagnostics.push(Diagnostic::error("no-control-plane", span, message).remedy(remedy));
}
