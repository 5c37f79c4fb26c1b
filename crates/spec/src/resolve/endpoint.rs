//! Where the API is reached: said, or the load balancer, or the first master.

use super::machines::Fleet;
use crate::cluster::Role;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::{Draft, Field};
use crate::source::Spanned;
use crate::value::{Endpoint, Host, Port};

pub(super) fn derive(
    draft: &Draft,
    fleet: &Fleet,
    bind_port: Option<Port>,
    diagnostics: &mut Diagnostics,
) -> Option<Endpoint> {
    let usual = usual(draft, fleet, bind_port);
    match &draft.endpoint {
        Field::Wrong => None,
        Field::Absent => usual,
        Field::Given(given) => {
            if let Some(usual) = usual {
                compare(draft, fleet, given, &usual, diagnostics);
            }
            Some(given.value.clone())
        }
    }
}

fn usual(draft: &Draft, fleet: &Fleet, bind_port: Option<Port>) -> Option<Endpoint> {
    let (machine, port) = if draft.load_balancer.is_some() {
        (fleet.balancer?, bind_port?)
    } else {
        (*fleet.masters.first()?, Port::API_SERVER)
    };
    Some(Endpoint {
        host: Host::Address(fleet.all[machine.0].address.value),
        port,
    })
}

/// An endpoint must belong to a machine: to the load balancer, or else to a master.
fn compare(
    draft: &Draft,
    fleet: &Fleet,
    given: &Spanned<Endpoint>,
    usual: &Endpoint,
    diagnostics: &mut Diagnostics,
) {
    let balanced = draft.load_balancer.is_some();
    let remedy = format!("write {usual}, or remove the line: it is derived from the machines");
    let error =
        |message: String| Diagnostic::error("endpoint", given.span, message).remedy(remedy.clone());
    let Endpoint { host, port } = &given.value;
    let owner = match host {
        Host::Address(address) => fleet
            .all
            .iter()
            .find(|merged| merged.address.value == *address),
        Host::Name(_) => None,
    };
    let diagnostic = match (host, owner) {
        (Host::Name(_), _) if balanced && *port != usual.port => error(format!(
            "the endpoint's port is {port}, but the load balancer listens on {}",
            usual.port
        )),
        (Host::Name(_), _) => return,
        (Host::Address(address), _) if balanced && given.value.host != usual.host => error(
            format!("the endpoint {address} is not the load balancer's address"),
        ),
        (Host::Address(address), Some(owner))
            if !balanced && !owner.roles.contains(&Role::Master) =>
        {
            error(format!(
                "the endpoint {address} is a machine that is neither a master nor a load balancer"
            ))
        }
        (Host::Address(_), Some(_)) if *port != usual.port => {
            let who = if balanced {
                "the load balancer"
            } else {
                "the API server"
            };
            error(format!(
                "the endpoint's port is {port}, but {who} listens on {}",
                usual.port
            ))
        }
        (Host::Address(address), None) => {
            let message = format!("no machine in this file has the endpoint's address {address}");
            Diagnostic::warning("endpoint", given.span, message)
                .remedy(format!("make sure that your own load balancer forwards it to port 6443 of the masters; without one, write {usual}"))
        }
        (Host::Address(_), Some(_)) => return,
    };
    let whose = draft
        .load_balancer
        .as_ref()
        .and_then(|balancer| balancer.host.address.span());
    diagnostics.push(super::RelatedTo::related_to(
        diagnostic,
        whose,
        "the load balancer",
    ));
}
