//! Passwords that others may know.

use super::machines::Fleet;
use crate::cluster::Password;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::Draft;
use crate::source::Span;

/// The manual's example, which too many machines really have.
const EXAMPLE: &str = "123456";

pub(super) fn check(draft: &Draft, fleet: &Fleet, diagnostics: &mut Diagnostics) {
    let every = [&draft.access.password, &draft.access.sudo_password];
    let single = fleet.all.iter().flat_map(|merged| {
        [
            &merged.host.access.password,
            &merged.host.access.sudo_password,
        ]
    });
    let machines = every.into_iter().chain(single);
    let machines = machines.filter_map(|field| Some((&field.given()?.value, field.span()?)));
    let accesses = fleet.all.iter().map(|merged| &merged.host.access);
    let ways = std::iter::once(&draft.access).chain(accesses);
    let bastions = ways.filter_map(|access| access.bastions.given());
    let bastions = bastions.flat_map(|way| {
        let passwords = way.value.iter().filter_map(|jump| jump.password.as_ref());
        passwords.map(|password| (password, way.span))
    });
    let mut readable: Option<Span> = None;
    for (password, span) in machines.chain(bastions) {
        let Password::Text(secret) = password else {
            continue;
        };
        if secret.expose() == EXAMPLE {
            diagnostics.push(
                Diagnostic::warning(
                    "example-password",
                    span,
                    "this is the manual's example password",
                )
                .remedy("change it on the machines; anyone who has read the manual can log in"),
            );
        }
        readable.get_or_insert(span);
    }
    if let (Some(span), true) = (readable, draft.others_can_read) {
        diagnostics.push(
            Diagnostic::warning(
                "readable-password",
                span,
                "the file contains a password and other users can read it",
            )
            .remedy("chmod 600 the file, or use password-env, password-file or private-key-path"),
        );
    }
}
