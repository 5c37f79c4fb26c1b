//! Lists of machines.

use super::{Reader, access};
use crate::diagnostic::Diagnostic;
use crate::draft::{Field, HostDraft, LoadBalancerDraft};
use crate::keys::report_unknown;
use crate::source::Spanned;
use crate::tree::{Key, Node};
use crate::value::{Arch, HostKey, Label, Name, Port, Taint, machine_address};
use crate::walk::{boolean, label, list, section, value, values};

impl Reader<'_> {
    pub(super) fn hosts(&mut self, node: &Node) -> Vec<HostDraft> {
        let Some(items) = list(node, self.diagnostics) else {
            self.draft.hosts_incomplete = true;
            return Vec::new();
        };
        items.iter().filter_map(|item| self.host(item)).collect()
    }

    fn host(&mut self, node: &Node) -> Option<HostDraft> {
        let Some(entries) = section(node, self.diagnostics) else {
            self.draft.hosts_incomplete = true;
            return None;
        };
        let mut host = HostDraft {
            span: node.span,
            ..HostDraft::default()
        };
        for (key, node) in entries {
            if !self.host_key(key, node, &mut host) {
                report_unknown(key, &["<host>"], self.diagnostics);
            }
        }
        self.require_address(&host);
        Some(host)
    }

    pub(super) fn load_balancer(&mut self, node: &Node) {
        let Some(entries) = section(node, self.diagnostics) else {
            self.draft.hosts_incomplete = true;
            return;
        };
        // A section in which nothing is filled in says that there is none.
        let blank = entries.iter().all(|(_, node)| {
            node.is_null()
                || node
                    .text()
                    .is_some_and(|text| text.is_empty() || text == "0")
        });
        if blank {
            return;
        }
        let mut balancer = LoadBalancerDraft {
            host: HostDraft {
                span: node.span,
                ..HostDraft::default()
            },
            bind_port: Field::Absent,
        };
        for (key, node) in entries {
            if key.text == "bind-port" {
                balancer.bind_port = value(node, "bad-port", Port::parse, self.diagnostics);
            } else if !self.host_key(key, node, &mut balancer.host) {
                report_unknown(key, &["<host>", "loadbalance"], self.diagnostics);
            }
        }
        self.require_address(&balancer.host);
        self.draft.load_balancer = Some(balancer);
    }

    fn require_address(&mut self, host: &HostDraft) {
        if host.address.is_absent() {
            let whose = host
                .name
                .value()
                .map_or("the machine".to_owned(), |name| format!("machine {name}"));
            let span = host.name.span().unwrap_or(host.span);
            self.diagnostics.push(
                Diagnostic::error("missing-key", span, format!("{whose} has no `ip`"))
                    .remedy("add ip with the address by which the other machines reach it"),
            );
        }
    }

    /// Reads one key of a machine; false if machines have none of that name.
    fn host_key(&mut self, key: &Key, node: &Node, host: &mut HostDraft) -> bool {
        let d = &mut *self.diagnostics;
        match key.text.as_str() {
            "name" => host.name = value(node, "bad-name", Name::parse, d),
            "ip" => host.address = value(node, "bad-address", machine_address, d),
            "port" => host.port = value(node, "bad-port", Port::parse, d),
            "arch" => host.arch = value(node, "bad-arch", Arch::parse, d),
            "user" | "password" | "password-env" | "password-file" | "private-key-path"
            | "bastion" => access::key(key, node, &mut host.access, d),
            "host-key" => host.host_key = value(node, "bad-host-key", HostKey::parse, d),
            "labels" => host.labels = self.labels(node),
            "taints" => {
                let taints = values(node, "bad-taint", Taint::parse, d);
                let taints = taints.into_iter().map(|taint| taint.value).collect();
                host.taints = Field::Given(Spanned::new(taints, node.span));
            }
            "set-hostname" => host.set_hostname = value(node, "bad-boolean", boolean, d),
            _ => return false,
        }
        true
    }

    /// Keys with values, or a list of `key=value`.
    fn labels(&mut self, node: &Node) -> Field<Vec<Label>> {
        if node.is_null() {
            return Field::Absent;
        }
        let Some(entries) = node.entries() else {
            let labels = values(node, "bad-label", Label::parse, self.diagnostics);
            let labels = labels.into_iter().map(|label| label.value).collect();
            return Field::Given(Spanned::new(labels, node.span));
        };
        let mut labels = Vec::new();
        for (key, node) in entries {
            let text = node.text().unwrap_or_default();
            if node.items().is_some() || node.entries().is_some() {
                crate::walk::report_expected("a single value", node, self.diagnostics);
                continue;
            }
            labels.extend(label(key, text, node, self.diagnostics));
        }
        Field::Given(Spanned::new(labels, node.span))
    }
}
