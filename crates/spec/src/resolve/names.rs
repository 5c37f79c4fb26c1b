//! Every machine has a name, and no two have the same.

use std::collections::HashMap;

use super::machines::{Fleet, duplicate};
use crate::cluster::Role;
use crate::diagnostic::Diagnostics;
use crate::draft::{Draft, Field};
use crate::source::Span;
use crate::value::{Bastion, Host, Name, Port};

/// The names of all machines; fewer than machines if some are wrong.
pub(super) fn assign(draft: &Draft, fleet: &Fleet, diagnostics: &mut Diagnostics) -> Vec<Name> {
    let mut taken: HashMap<Name, Span> = HashMap::new();
    let mut names = Vec::with_capacity(fleet.all.len());
    let mut numbers: HashMap<Role, usize> = HashMap::new();
    for merged in &fleet.all {
        let Some(role) = merged.roles.first() else {
            continue;
        };
        let number = numbers.entry(*role).or_default();
        *number += 1;
        let (name, span) = match &merged.host.name {
            Field::Given(name) => (name.value.clone(), name.span),
            Field::Absent => match fallback(draft, *role, *number - 1) {
                Some(name) => (name, merged.host.span),
                None => continue,
            },
            Field::Wrong => continue,
        };
        if let Some(first) = taken.get(&name) {
            let message = format!("two machines have the name {name}");
            let remedy =
                "give each machine its own name; entries for the same machine need the same ip";
            diagnostics.push(duplicate(
                "duplicate-name",
                message,
                span,
                Some(*first),
                remedy,
            ));
        } else {
            taken.insert(name.clone(), span);
            names.push(name);
        }
    }
    check_routes(fleet, diagnostics);
    names
}

/// The name of a machine that was given none: the cluster, the role and a number.
fn fallback(draft: &Draft, role: Role, number: usize) -> Option<Name> {
    let id = draft.id.value()?;
    let text = match role {
        Role::Master => format!("{id}-master-{number}"),
        Role::Worker => format!("{id}-worker-{number}"),
        Role::Etcd => format!("{id}-etcd-{number}"),
        Role::LoadBalancer => format!("{id}-loadbalance"),
    };
    Name::parse(&text).ok()
}

/// Two machines cannot be reached at the same place.
fn check_routes(fleet: &Fleet, diagnostics: &mut Diagnostics) {
    let mut ways: HashMap<(Host, Port, Vec<&Bastion>), Span> = HashMap::new();
    for merged in &fleet.all {
        let Some(host) = merged.host.ssh_host.given() else {
            continue;
        };
        let bastions = merged.host.access.bastions.value();
        let via = bastions
            .into_iter()
            .flatten()
            .map(|jump| &jump.bastion)
            .collect();
        let way = (host.value.clone(), merged.ssh_port(), via);
        if let Some(first) = ways.get(&way) {
            let message = format!("two machines are reached at {} port {}", way.0, way.1);
            let remedy = "correct one of the two";
            diagnostics.push(duplicate(
                "duplicate-ssh-host",
                message,
                host.span,
                Some(*first),
                remedy,
            ));
        } else {
            ways.insert(way, host.span);
        }
    }
}
