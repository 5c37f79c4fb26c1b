//! How machines are reached, for the whole cluster or for one machine.

use crate::cluster::{Jump, Password};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::{AccessDraft, Field};
use crate::keys::report_unknown;
use crate::source::Spanned;
use crate::tree::{Key, Node};
use crate::value::{Bastion, Host, HostKey, LocalPath, Mismatch, Port, Secret, login};
use crate::walk::{list, report_expected, section, value};

/// Reads one of the keys that say how machines are reached.
pub(super) fn key(key: &Key, node: &Node, access: &mut AccessDraft, diagnostics: &mut Diagnostics) {
    match key.text.as_str() {
        "username" | "user" => access.user = value(node, "bad-user", login, diagnostics),
        "password" => {
            diagnostics.hide(node.span);
            let field = password(node, diagnostics);
            set_password(field, key, access, diagnostics);
        }
        "password-env" => {
            let field = value(node, "bad-variable", variable, diagnostics);
            set_password(field, key, access, diagnostics);
        }
        "password-file" => {
            let parse = |text: &str| LocalPath::parse(text).map(Password::File);
            let field = value(node, "bad-path", parse, diagnostics);
            set_password(field, key, access, diagnostics);
        }
        "private-key-path" => {
            access.private_key = value(node, "bad-path", LocalPath::parse, diagnostics);
        }
        _ => access.bastions = bastions(node, diagnostics),
    }
}

/// A password is any text, and never part of a message.
fn password(node: &Node, diagnostics: &mut Diagnostics) -> Field<Password> {
    if node.is_null() {
        return Field::Absent;
    }
    match node.text() {
        Some("") => Field::Absent,
        Some(text) if text.contains(['\n', '\r', '\0']) => {
            diagnostics.push(
                Diagnostic::error(
                    "bad-password",
                    node.span,
                    "the password has more than one line",
                )
                .remedy("write it on one line, in quotes if necessary"),
            );
            Field::Wrong
        }
        Some(text) => Field::Given(Spanned::new(Password::Text(Secret::new(text)), node.span)),
        None => {
            report_expected("a single value", node, diagnostics);
            Field::Wrong
        }
    }
}

/// A password has one source.
fn set_password(
    field: Field<Password>,
    key: &Key,
    access: &mut AccessDraft,
    diagnostics: &mut Diagnostics,
) {
    if let (Some(first), false) = (access.password.span(), field.is_absent()) {
        diagnostics.push(
            Diagnostic::error("said-twice", key.span, "the password is given twice")
                .label("again here")
                .related(first, "first here")
                .remedy("keep one of password, password-env and password-file"),
        );
        return;
    }
    if !field.is_absent() {
        access.password = field;
    }
}

fn variable(text: &str) -> Result<Password, Mismatch> {
    let name = text.strip_prefix('$').unwrap_or(text);
    let valid = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if valid {
        Ok(Password::Environment(name.to_owned()))
    } else {
        Err(Mismatch::new(
            "not the name of an environment variable",
            "use letters, digits and '_', such as SSH_PASSWORD",
        ))
    }
}

/// Whether host keys that are not known are refused.
pub(super) fn strictness(text: &str) -> Result<bool, Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "strict" => Ok(true),
        "accept-new" => Ok(false),
        _ => Err(Mismatch::new(
            "not a host key checking mode",
            "use strict or accept-new",
        )),
    }
}

/// One, several with commas between, or a list; an empty list means none.
fn bastions(node: &Node, diagnostics: &mut Diagnostics) -> Field<Vec<Jump>> {
    let several = |text: &str| {
        text.split(',')
            .map(|one| Bastion::parse(one.trim()).map(Jump::from))
            .collect()
    };
    if node.text().is_some() || node.is_null() {
        return value(node, "bad-bastion", several, diagnostics);
    }
    if node.entries().is_some() {
        return match jump(node, diagnostics) {
            Some(jump) => Field::Given(Spanned::new(vec![jump], node.span)),
            None => Field::Wrong,
        };
    }
    let Some(items) = list(node, diagnostics) else {
        return Field::Wrong;
    };
    let mut all = Vec::new();
    for item in items {
        if item.entries().is_some() {
            let Some(jump) = jump(item, diagnostics) else {
                return Field::Wrong;
            };
            all.push(jump);
            continue;
        }
        match value(item, "bad-bastion", Bastion::parse, diagnostics) {
            Field::Given(bastion) => all.push(bastion.value.into()),
            Field::Absent => report_expected("a bastion", item, diagnostics),
            Field::Wrong => return Field::Wrong,
        }
    }
    Field::Given(Spanned::new(all, node.span))
}

/// A bastion with credentials or a host key of its own.
fn jump(node: &Node, diagnostics: &mut Diagnostics) -> Option<Jump> {
    let mut access = AccessDraft::default();
    let (mut host, mut port, mut host_key) = (Field::Absent, Field::Absent, Field::Absent);
    for (key, node) in section(node, diagnostics)? {
        match key.text.as_str() {
            "host" => host = value(node, "bad-bastion", Host::parse, diagnostics),
            "port" => port = value(node, "bad-port", Port::parse, diagnostics),
            "host-key" => host_key = value(node, "bad-host-key", HostKey::parse, diagnostics),
            "user" | "password" | "password-env" | "password-file" | "private-key-path" => {
                self::key(key, node, &mut access, diagnostics);
            }
            _ => report_unknown(key, &["<bastion>"], diagnostics),
        }
    }
    if host.is_absent() {
        diagnostics.push(
            Diagnostic::error("missing-key", node.span, "the bastion has no `host`")
                .remedy("add host with its address or name"),
        );
    }
    Some(Jump {
        bastion: Bastion {
            user: access.user.value().cloned(),
            host: host.value()?.clone(),
            port: port.unwrap_or(Port::SSH),
        },
        password: access.password.value().cloned(),
        private_key: access.private_key.value().cloned(),
        host_key: host_key.value().cloned(),
    })
}
