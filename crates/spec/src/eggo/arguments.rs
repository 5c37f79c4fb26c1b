//! Extra arguments, and ports.

use super::Reader;
use crate::cluster::{Component, OpenPort, Protocol, Role};
use crate::diagnostic::Diagnostic;
use crate::draft::Field;
use crate::keys::report_unknown;
use crate::source::Spanned;
use crate::tree::Node;
use crate::value::{Mismatch, Port};
use crate::walk::{list, nearest, quoted, report_expected, section, value};

impl Reader<'_> {
    pub(super) fn extra_args(&mut self, node: &Node) {
        let mut seen: Vec<(Component, crate::source::Span)> = Vec::new();
        for item in list(node, self.diagnostics).unwrap_or_default() {
            let Some(entries) = section(item, self.diagnostics) else {
                continue;
            };
            let mut name = Field::Absent;
            let mut arguments = None;
            for (key, node) in entries {
                match key.text.as_str() {
                    "name" => name = value(node, "bad-component", component, self.diagnostics),
                    "extra-args" => arguments = Some(node),
                    _ => report_unknown(key, &["config-extra-args"], self.diagnostics),
                }
            }
            match name {
                Field::Given(name) => {
                    if let Some((_, first)) = seen.iter().find(|(one, _)| *one == name.value) {
                        let message =
                            format!("the arguments of {} are given twice", name.value.as_str());
                        self.diagnostics.push(
                            Diagnostic::error("said-twice", name.span, message)
                                .related(*first, "first here")
                                .remedy("merge them into one entry"),
                        );
                        continue;
                    }
                    seen.push((name.value, name.span));
                    if let Some(node) = arguments {
                        self.arguments(name.value, node);
                    }
                }
                Field::Absent => self.diagnostics.push(
                    Diagnostic::error("missing-key", item.span, "the entry has no `name`")
                        .remedy("add the name of the component, such as kubelet"),
                ),
                Field::Wrong => {}
            }
        }
    }

    fn arguments(&mut self, component: Component, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let name = &key.text;
            let valid = name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            let remedy = if component == Component::Etcd {
                let bare = name
                    .trim_start_matches('-')
                    .replace('-', "_")
                    .to_ascii_uppercase();
                let is_variable = valid
                    && !name.contains(['-', '.'])
                    && !name.starts_with(|c: char| c.is_ascii_digit());
                (!is_variable).then(|| {
                    format!(
                        "etcd takes environment variables: write ETCD_{}",
                        bare.trim_start_matches("ETCD_")
                    )
                })
            } else {
                let dashed = valid && name.starts_with('-') && name.len() > 1;
                (!dashed).then(|| {
                    format!(
                        "write it with its leading dashes: --{}",
                        name.trim_start_matches('-')
                    )
                })
            };
            if let Some(remedy) = remedy {
                let message = format!(
                    "{} is not an argument of {}",
                    quoted(name),
                    component.as_str()
                );
                self.diagnostics
                    .push(Diagnostic::error("bad-argument", key.span, message).remedy(remedy));
                continue;
            }
            if node.items().is_some() || node.entries().is_some() {
                report_expected("a single value", node, self.diagnostics);
                continue;
            }
            let text = node.text().unwrap_or_default();
            if text.contains(['\n', '\r']) {
                self.diagnostics.push(
                    Diagnostic::error(
                        "bad-argument",
                        node.span,
                        "the argument has more than one line",
                    )
                    .remedy("write it on one line"),
                );
                continue;
            }
            let name = Spanned::new(name.clone(), key.span);
            self.draft
                .extra_args
                .push((component, name, text.to_owned()));
        }
    }

    pub(super) fn open_ports(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let role = match key.text.as_str() {
                "master" => Role::Master,
                "worker" | "node" => {
                    if !self.given_once("the list of the workers' ports", key) {
                        continue;
                    }
                    Role::Worker
                }
                "etcd" => Role::Etcd,
                "loadbalance" => Role::LoadBalancer,
                _ => {
                    report_unknown(key, &["open-ports"], self.diagnostics);
                    continue;
                }
            };
            for item in list(node, self.diagnostics).unwrap_or_default() {
                self.open_port(role, item);
            }
        }
    }

    fn open_port(&mut self, role: Role, node: &Node) {
        let Some(entries) = section(node, self.diagnostics) else {
            return;
        };
        let (mut port, mut protocol) = (Field::Absent, Field::Absent);
        for (key, node) in entries {
            match key.text.as_str() {
                "port" => port = value(node, "bad-port", Port::parse, self.diagnostics),
                "protocol" => {
                    protocol = value(node, "bad-protocol", transport, self.diagnostics);
                }
                _ => report_unknown(key, &["open-ports[]"], self.diagnostics),
            }
        }
        match port {
            Field::Given(port) => {
                let protocol = protocol.unwrap_or(Protocol::Tcp);
                let open = OpenPort {
                    port: port.value,
                    protocol,
                };
                self.draft
                    .open_ports
                    .push((role, Spanned::new(open, port.span)));
            }
            Field::Absent => self.diagnostics.push(
                Diagnostic::error("missing-key", node.span, "the entry has no `port`")
                    .remedy("add the port, such as port: 179"),
            ),
            Field::Wrong => {}
        }
    }
}

fn component(text: &str) -> Result<Component, Mismatch> {
    let names = Component::ALL.map(Component::as_str);
    Component::ALL
        .into_iter()
        .find(|one| one.as_str() == text)
        .ok_or_else(|| {
            let remedy = match nearest(text, names) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("use one of {}", names.join(", ")),
            };
            Mismatch::new("not a component that takes arguments", remedy)
        })
}

fn transport(text: &str) -> Result<Protocol, Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => Err(Mismatch::new("not a protocol", "use tcp or udp")),
    }
}
