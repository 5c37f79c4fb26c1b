//! Hosts of the inventory as machines: their addresses, the way to them, labels and taints.

use std::collections::HashMap;
use std::net::IpAddr;

use super::groups::Entry;
use super::roles::Roles;
use super::{Reader, jump, template};
use crate::cluster::{Jump, Password};
use crate::diagnostic::Diagnostic;
use crate::draft::{AccessDraft, Field, HostDraft};
use crate::source::{Span, Spanned};
use crate::tree::{Kind, Node};
use crate::value::{
    Arch, Bastion, Host, HostKey, Label, LocalPath, Name, Port, Secret, Taint, login,
    machine_address,
};
use crate::walk::{boolean, label, report_expected, report_mismatch, value, values};

const ADDRESS: [&str; 2] = ["ansible_host", "ansible_ssh_host"];
const PORT: [&str; 2] = ["ansible_port", "ansible_ssh_port"];
const USER: [&str; 2] = ["ansible_user", "ansible_ssh_user"];
const PASSWORD: [&str; 3] = [
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_ssh_password",
];
const SUDO: [&str; 3] = [
    "ansible_become_password",
    "ansible_become_pass",
    "ansible_sudo_pass",
];
const KEY: [&str; 2] = ["ansible_ssh_private_key_file", "ansible_private_key_file"];
const ARGUMENTS: [&str; 2] = ["ansible_ssh_extra_args", "ansible_ssh_common_args"];

impl<'t> Reader<'_, 't> {
    /// Every host once, into the list of each of its roles.
    pub(super) fn machines(&mut self, roles: &Roles) {
        self.draft.hosts_incomplete = roles.incomplete;
        // kubespray gives machines their names unless told not to.
        self.draft.set_hostname = self.default_field(true);
        let members: HashMap<usize, HostDraft> = roles
            .members()
            .into_iter()
            .map(|host| (host, self.host(host)))
            .collect();
        let pick = |hosts: &[usize]| {
            hosts
                .iter()
                .filter_map(|host| members.get(host).cloned())
                .collect()
        };
        self.draft.masters = pick(&roles.control_plane);
        self.draft.workers = pick(&roles.workers());
        self.draft.etcds = pick(&roles.etcd);
        self.bastion(roles);
    }

    fn host(&mut self, host: usize) -> HostDraft {
        let (name, span) = self.name(host);
        let mut draft = HostDraft {
            span,
            name: value(&name, "bad-name", Name::parse, self.diagnostics),
            port: self.host_field(host, &PORT, "bad-port", Port::parse),
            arch: self.host_field(host, &["hatchery_arch"], "bad-arch", Arch::parse),
            access: self.access(host),
            host_key: self.host_field(host, &["hatchery_host_key"], "bad-host-key", HostKey::parse),
            set_hostname: self.host_field(
                host,
                &["override_system_hostname"],
                "bad-boolean",
                boolean,
            ),
            labels: self.labels(host),
            taints: self.taints(host),
            ..HostDraft::default()
        };
        self.addresses(host, &name, &mut draft);
        draft
    }

    /// The name in the inventory, as if it were a value.
    fn name(&self, host: usize) -> (Node, Span) {
        let host = &self.groups.hosts[host];
        let kind = Kind::Scalar {
            text: host.name.clone(),
            quoted: true,
        };
        let span = host.span;
        (Node { span, kind }, span)
    }

    /// Where the other machines reach it, and where SSH does.
    fn addresses(&mut self, host: usize, name: &Node, draft: &mut HostDraft) {
        let own = self.host_field(host, &["ip"], "bad-address", machine_address);
        let access = self.host_field(host, &["access_ip"], "bad-address", machine_address);
        if let (Some(one), Some(two)) = (own.given(), access.given())
            && one.value != two.value
        {
            let message = format!(
                "`access_ip` is not supported: {} and {} would be two addresses of one machine",
                one.value, two.value
            );
            self.diagnostics.push(
                Diagnostic::error("unsupported", two.span, message)
                    .related(one.span, "the other address")
                    .remedy("give in ip the address by which the other machines reach it, and remove access_ip"),
            );
        }
        let said = self.host_field(host, &ADDRESS, "bad-address", Host::parse);
        // Without ansible_host the name in the inventory is where Ansible goes.
        let way = if said.is_absent() {
            value(name, "bad-name", Host::parse, self.diagnostics)
        } else {
            said
        };
        let by_way = match &way {
            Field::Given(Spanned {
                value: Host::Address(address),
                span,
            }) => self.reachable(*address, *span),
            Field::Wrong => Field::Wrong,
            Field::Given(_) | Field::Absent => Field::Absent,
        };
        draft.address = own.or(access).or(by_way);
        if draft.address.is_absent() {
            let message = format!("host {} has no address", self.groups.hosts[host].name);
            self.diagnostics.push(
                Diagnostic::error("missing-key", draft.span, message)
                    .remedy("add ip with the address by which the other machines reach it"),
            );
        }
        draft.ssh_host = way;
    }

    fn reachable(&mut self, address: IpAddr, span: Span) -> Field<IpAddr> {
        match machine_address(&address.to_string()) {
            Ok(address) => Field::Given(Spanned::new(address, span)),
            Err(wrong) => {
                report_mismatch(
                    &address.to_string(),
                    span,
                    "bad-address",
                    wrong,
                    self.diagnostics,
                );
                Field::Wrong
            }
        }
    }

    fn access(&mut self, host: usize) -> AccessDraft {
        let (bastions, strict_host_keys) = self.way(host);
        let access = AccessDraft {
            user: self.host_field(host, &USER, "bad-user", login),
            password: self.password(host, &PASSWORD),
            sudo_password: self.password(host, &SUDO),
            private_key: self.host_field(host, &KEY, "bad-path", LocalPath::parse),
            bastions,
            strict_host_keys,
        };
        if let Field::Given(Spanned { value: false, span }) =
            self.host_field(host, &["ansible_become"], "bad-boolean", boolean)
            && access.user.value().is_some_and(|user| user != "root")
        {
            self.diagnostics.push(
                Diagnostic::error(
                    "unsupported",
                    span,
                    "`ansible_become` cannot be false: root privileges are required",
                )
                .remedy("write true, and let the user use sudo; or log in as root"),
            );
        }
        access
    }

    /// A password is any text, and never part of a message.
    fn password(&mut self, host: usize, names: &[&str]) -> Field<Password> {
        let mut found = names.iter().map(|name| self.scope.host_value(host, name));
        match found.find_map(|entry| entry.filter(|entry| !entry.node.is_null())) {
            Some(entry) => self.read_password(host, entry),
            None => Field::Absent,
        }
    }

    /// One that is not the machines': they may trust each other with it, but not the host on the way.
    fn bastion_password(&mut self, host: usize) -> Field<Password> {
        let mut found = PASSWORD.iter().map(|name| self.scope.own_value(host, name));
        match found.find_map(|entry| entry.filter(|entry| !entry.node.is_null())) {
            Some(entry) => self.read_password(host, entry),
            None => Field::Absent,
        }
    }

    fn read_password(&mut self, host: usize, entry: Entry<'t>) -> Field<Password> {
        if let Some(password) = entry.node.text().and_then(template::password) {
            return Field::Given(Spanned::new(password, entry.node.span));
        }
        let Ok(node) = self.render(entry, Some(host)) else {
            return Field::Wrong;
        };
        let span = node.span;
        let problem = match node.text() {
            None => {
                report_expected("a single value", &node, self.diagnostics);
                return Field::Wrong;
            }
            Some("") => return Field::Absent,
            Some(text) if text.starts_with("$ANSIBLE_VAULT") => (
                "the password is encrypted by ansible-vault",
                "keep it out of the file instead: {{ lookup('env', 'NAME') }} or {{ lookup('file', '/path') }}",
            ),
            Some(text) if text.contains(['\n', '\r', '\0']) => (
                "the password has more than one line",
                "write it on one line, in quotes if necessary",
            ),
            Some(text) => {
                if self.readable.contains(&span.file) {
                    self.diagnostics.push(
                        Diagnostic::warning("readable-password", span, "the file contains a password and other users can read it")
                            .remedy("chmod 600 the file, or use ansible_ssh_private_key_file or {{ lookup('env', 'NAME') }}"),
                    );
                }
                return Field::Given(Spanned::new(Password::Text(Secret::new(text)), span));
            }
        };
        self.diagnostics
            .push(Diagnostic::error("bad-password", span, problem.0).remedy(problem.1));
        Field::Wrong
    }

    /// The hosts on the way and whether unknown host keys are refused, by the arguments for ssh.
    fn way(&mut self, host: usize) -> (Field<Vec<Jump>>, Field<bool>) {
        let mut way = Field::Absent;
        let mut strict = Field::Absent;
        for name in ARGUMENTS {
            let found = self.host_field(host, &[name], "bad-ssh-arguments", jump::parse);
            let Field::Given(found) = found else {
                way = way.or(if found.is_absent() {
                    Field::Absent
                } else {
                    Field::Wrong
                });
                continue;
            };
            if found.value.unchecked {
                self.diagnostics.push(
                    Diagnostic::warning(
                        "host-keys-checked",
                        found.span,
                        "host keys are checked regardless",
                    )
                    .remedy(
                        "remove StrictHostKeyChecking=no; an unknown key is recorded at first use",
                    ),
                );
            }
            if found.value.strict {
                strict = Field::Given(Spanned::new(true, found.span));
            }
            if let Some(bastions) = found.value.bastions {
                let bastions = bastions.into_iter().map(Jump::from).collect();
                way = way.or(Field::Given(Spanned::new(bastions, found.span)));
            }
        }
        (way, strict)
    }

    /// The host of the group `bastion` is on the way to all others.
    fn bastion(&mut self, roles: &Roles) {
        let Some(&host) = roles.bastions.first() else {
            return;
        };
        let (name, span) = self.name(host);
        if let Some(second) = roles.bastions.get(1) {
            let second = &self.groups.hosts[*second];
            let message = format!(
                "only the first host of the group bastion is used, not {}",
                second.name
            );
            self.diagnostics.push(
                Diagnostic::warning("second-bastion", second.span, message).remedy(
                    "to connect through several hosts, use ansible_ssh_common_args: -J first,second",
                ),
            );
        }
        let said = self.host_field(host, &ADDRESS, "bad-address", Host::parse);
        let way = if said.is_absent() {
            value(&name, "bad-name", Host::parse, self.diagnostics)
        } else {
            said
        };
        let port = self.host_field(host, &PORT, "bad-port", Port::parse);
        let user = self.host_field(host, &USER, "bad-user", login);
        let password = self.bastion_password(host);
        let private_key = self.host_field(host, &KEY, "bad-path", LocalPath::parse);
        let host_key =
            self.host_field(host, &["hatchery_host_key"], "bad-host-key", HostKey::parse);
        self.draft.access.bastions = match (way, &port, &user) {
            (
                Field::Given(way),
                Field::Absent | Field::Given(_),
                Field::Absent | Field::Given(_),
            ) => {
                let bastion = Bastion {
                    user: user.value().cloned(),
                    host: way.value,
                    port: port.unwrap_or(Port::SSH),
                };
                let jump = Jump {
                    bastion,
                    password: password.value().cloned(),
                    private_key: private_key.value().cloned(),
                    host_key: host_key.value().cloned(),
                };
                Field::Given(Spanned::new(vec![jump], span))
            }
            _ => Field::Wrong,
        };
        // Nobody goes through himself.
        let own = self.groups.hosts[host].name.as_str();
        let draft = &mut self.draft;
        let lists = [&mut draft.masters, &mut draft.workers, &mut draft.etcds];
        for entry in lists.into_iter().flatten() {
            let is_it = entry.name.value().is_some_and(|name| name.as_str() == own);
            if is_it && entry.access.bastions.is_absent() {
                entry.access.bastions = Field::Given(Spanned::new(Vec::new(), span));
            }
        }
    }

    fn labels(&mut self, host: usize) -> Field<Vec<Label>> {
        let Some(entry) = self.scope.host_value(host, "node_labels") else {
            return Field::Absent;
        };
        let Ok(node) = self.render(entry, Some(host)) else {
            return Field::Wrong;
        };
        if node.is_null() {
            return Field::Absent;
        }
        let Some(entries) = node.entries() else {
            report_expected("a section with keys", &node, self.diagnostics);
            return Field::Wrong;
        };
        let mut labels = Vec::new();
        for (key, node) in entries {
            let text = match node.text() {
                Some(text) => text,
                None if node.is_null() => "",
                None => {
                    report_expected("a single value", node, self.diagnostics);
                    continue;
                }
            };
            labels.extend(label(key, text, node, self.diagnostics));
        }
        Field::Given(Spanned::new(labels, node.span))
    }

    fn taints(&mut self, host: usize) -> Field<Vec<Taint>> {
        let Some(entry) = self.scope.host_value(host, "node_taints") else {
            return Field::Absent;
        };
        let Ok(node) = self.render(entry, Some(host)) else {
            return Field::Wrong;
        };
        if node.is_null() {
            return Field::Absent;
        }
        let taints = values(&node, "bad-taint", Taint::parse, self.diagnostics);
        let taints = taints.into_iter().map(|taint| taint.value).collect();
        Field::Given(Spanned::new(taints, node.span))
    }
}
