//! Passwords that others may know.

use super::machines::Fleet;
use crate::cluster::Password;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::{Draft, Field};
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
    let mut readable: Option<Span> = None;
    for field in every.into_iter().chain(single) {
        let Field::Given(password) = field else {
            continue;
        };
        let Password::Text(secret) = &password.value else {
            continue;
        };
        if secret.expose() == EXAMPLE {
            diagnostics.push(
                Diagnostic::warning(
                    "example-password",
                    password.span,
                    "this is the manual's example password",
                )
                .remedy("change it on the machines; anyone who read the manual can log in"),
            );
        }
        readable.get_or_insert(password.span);
    }
    if let (Some(span), true) = (readable, draft.others_can_read) {
        diagnostics.push(
            Diagnostic::warning(
                "readable-password",
                span,
                "a password stands in a file that others can read",
            )
            .remedy("chmod 600 the file, or use password-env, password-file or private-key-path"),
        );
    }
}
