//! Entries of several lists become machines: one per address.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::RelatedTo;
use crate::cluster::{Access, Dialect, LoadBalancerIndex, Machine, MachineIndex, Role};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::{Draft, Field, HostDraft};
use crate::name_list::NameList;
use crate::source::Spanned;
use crate::value::{Arch, Host, Name, Port};

/// All machines, and who is what.
pub(super) struct Fleet {
    pub(super) all: Vec<Merged>,
    pub(super) masters: Vec<MachineIndex>,
    pub(super) workers: Vec<MachineIndex>,
    pub(super) etcds: Vec<MachineIndex>,
    pub(super) balancer: Option<MachineIndex>,
}

/// A machine put together from all its entries.
pub(super) struct Merged {
    pub(super) address: Spanned<IpAddr>,
    pub(super) roles: BTreeSet<Role>,
    pub(super) host: HostDraft,
}

pub(super) fn merge(draft: &Draft, diagnostics: &mut Diagnostics) -> Fleet {
    let mut fleet = Fleet {
        all: Vec::new(),
        masters: Vec::new(),
        workers: Vec::new(),
        etcds: Vec::new(),
        balancer: None,
    };
    let mut known: HashMap<IpAddr, usize> = HashMap::new();
    for (role, host) in draft.hosts() {
        let Some(address) = host.address.given() else {
            continue;
        };
        let index = *known.entry(address.value).or_insert_with(|| {
            fleet.all.push(Merged {
                address: *address,
                roles: BTreeSet::new(),
                host: host.clone(),
            });
            fleet.all.len() - 1
        });
        let machine = &mut fleet.all[index];
        if !machine.roles.insert(role) {
            report_duplicate_host(role, address, machine, diagnostics);
            continue;
        }
        machine.merge(host, diagnostics);
        let index = MachineIndex(index);
        match role {
            Role::Master => fleet.masters.push(index),
            Role::Worker => fleet.workers.push(index),
            Role::Etcd => fleet.etcds.push(index),
            Role::LoadBalancer => fleet.balancer = Some(index),
        }
    }
    if draft.etcds.is_empty() {
        fleet.etcds.clone_from(&fleet.masters);
        for index in &fleet.masters {
            fleet.all[index.0].roles.insert(Role::Etcd);
        }
    }
    fleet.check_roles(draft, diagnostics);
    fleet
}

fn report_duplicate_host(
    role: Role,
    address: &Spanned<IpAddr>,
    first: &Merged,
    diagnostics: &mut Diagnostics,
) {
    let message = format!("{} is listed twice as {}", address.value, role.as_str());
    diagnostics.push(
        Diagnostic::error("duplicate-host", address.span, message)
            .label("again here")
            .related(first.address.span, "first here")
            .remedy("keep one of the two entries, or correct the address"),
    );
}

impl Merged {
    /// Adds what another entry says of the same machine; both must agree.
    fn merge(&mut self, other: &HostDraft, diagnostics: &mut Diagnostics) {
        let address = self.address.value;
        let host = &mut self.host;
        let mut agree = Agreement {
            address,
            diagnostics,
        };
        agree.field("name", &mut host.name, &other.name);
        agree.field("SSH host", &mut host.ssh_host, &other.ssh_host);
        agree.field("port", &mut host.port, &other.port);
        agree.field("arch", &mut host.arch, &other.arch);
        agree.field("user", &mut host.access.user, &other.access.user);
        agree.field(
            "password",
            &mut host.access.password,
            &other.access.password,
        );
        agree.field(
            "sudo password",
            &mut host.access.sudo_password,
            &other.access.sudo_password,
        );
        agree.field(
            "private key",
            &mut host.access.private_key,
            &other.access.private_key,
        );
        agree.field("bastion", &mut host.access.bastions, &other.access.bastions);
        agree.field("host key", &mut host.host_key, &other.host_key);
        agree.field("set-hostname", &mut host.set_hostname, &other.set_hostname);
        agree.field("labels", &mut host.labels, &other.labels);
        agree.field("taints", &mut host.taints, &other.taints);
    }

    pub(super) fn arch(&self) -> Arch {
        self.host.arch.unwrap_or(Arch::Amd64)
    }

    pub(super) fn ssh_port(&self) -> Port {
        self.host.port.unwrap_or(Port::SSH)
    }
}

struct Agreement<'a> {
    address: IpAddr,
    diagnostics: &'a mut Diagnostics,
}

impl Agreement<'_> {
    fn field<T: Clone + PartialEq>(&mut self, what: &str, first: &mut Field<T>, other: &Field<T>) {
        match (first.given(), other.given()) {
            (Some(one), Some(two)) if one.value != two.value => {
                let message = format!(
                    "machine {} has two different values for {what}",
                    self.address
                );
                self.diagnostics.push(
                    Diagnostic::error("host-mismatch", two.span, message)
                        .label("differs here")
                        .related(one.span, "first set here")
                        .remedy("use the same value in every list that names this machine, or correct the address"),
                );
            }
            (None, Some(_)) if first.is_absent() => *first = other.clone(),
            _ => {}
        }
    }
}

impl Fleet {
    fn check_roles(&self, draft: &Draft, diagnostics: &mut Diagnostics) {
        if draft.hosts_incomplete {
            return;
        }
        if draft.masters.is_empty() {
            diagnostics.push(
                Diagnostic::error("missing-key", draft.file, "the cluster has no master")
                    .remedy("add masters with at least one machine"),
            );
            return;
        }
        self.warn_about_etcd_count(draft, diagnostics);
        self.warn_about_masters(diagnostics);
        for merged in &self.all {
            let nodes_only = [
                ("labels", merged.host.labels.span()),
                ("taints", merged.host.taints.span()),
            ];
            for (what, span) in nodes_only {
                if let (Some(span), false) = (span, merged.roles.contains(&Role::Worker)) {
                    let message = format!(
                        "{what} have no effect: {} is not a worker, so it has no Kubernetes node",
                        merged.address.value
                    );
                    diagnostics.push(
                        Diagnostic::warning("unused-key", span, message)
                            .remedy("list the machine in workers too, or remove them"),
                    );
                }
            }
        }
    }

    fn warn_about_etcd_count(&self, draft: &Draft, diagnostics: &mut Diagnostics) {
        let members = self.etcds.len();
        if members == 0 || members % 2 == 1 {
            return;
        }
        let last = draft.etcds.last().or(draft.masters.last());
        let span = last
            .and_then(|host| host.address.span())
            .unwrap_or(draft.file);
        let from = if draft.etcds.is_empty() {
            " (every master is one, since `etcds` is not given)"
        } else {
            ""
        };
        diagnostics.push(
            Diagnostic::warning("even-etcd", span, format!("etcd has {members} members{from}: an even number tolerates no more failures than one member fewer"))
                .remedy("use 1, 3 or 5 members"),
        );
    }

    fn warn_about_masters(&self, diagnostics: &mut Diagnostics) {
        let alone: Vec<&Merged> = self
            .masters
            .iter()
            .map(|index| &self.all[index.0])
            .filter(|master| !master.roles.contains(&Role::Worker))
            .collect();
        let Some(first) = alone.first() else {
            return;
        };
        if self.workers.is_empty() {
            diagnostics.push(
                Diagnostic::warning(
                    "no-workers",
                    first.address.span,
                    "the cluster has no worker, so no pod can run",
                )
                .remedy("list machines in workers; masters may be among them"),
            );
            return;
        }
        let names: Vec<_> = alone
            .iter()
            .filter_map(|master| master.host.name.value().map(Name::as_str))
            .collect();
        let message = match &names[..] {
            [name] => format!(
                "the master {name} is not a worker: pods and Services cannot be reached from it"
            ),
            _ => format!(
                "masters that are not workers: {}; pods and Services cannot be reached from them",
                NameList(&names)
            ),
        };
        diagnostics.push(
            Diagnostic::warning("master-not-worker", first.address.span, message).remedy(
                "list every master in workers too; Hatchery keeps other pods off it with a taint",
            ),
        );
    }

    pub(super) fn load_balancer(&self, bind_port: Option<Port>) -> Option<LoadBalancerIndex> {
        Some(LoadBalancerIndex {
            machine: self.balancer?,
            bind_port: bind_port?,
        })
    }

    /// The machines as they shall be.
    pub(super) fn machines(&self, draft: &Draft, names: Vec<Name>) -> Option<Vec<Machine>> {
        if names.len() != self.all.len() {
            return None;
        }
        let by_dialect = draft.dialect == Dialect::Classic;
        let machines = self.all.iter().zip(names).map(|(merged, name)| {
            let host = &merged.host;
            let one = &host.access;
            let every = &draft.access;
            Machine {
                name,
                set_hostname: host
                    .set_hostname
                    .unwrap_or(draft.set_hostname.unwrap_or(by_dialect)),
                address: merged.address.value,
                arch: merged.arch(),
                roles: merged.roles.clone(),
                access: Access {
                    host: host.ssh_host.unwrap_or(Host::Address(merged.address.value)),
                    port: merged.ssh_port(),
                    user: one.user.unwrap_or(every.user.unwrap_or("root".to_owned())),
                    password: one.password.value().or(every.password.value()).cloned(),
                    sudo_password: one
                        .sudo_password
                        .value()
                        .or(every.sudo_password.value())
                        .cloned(),
                    private_key: one
                        .private_key
                        .value()
                        .or(every.private_key.value())
                        .cloned(),
                    bastions: one.bastions.unwrap_or(every.bastions.unwrap_or(Vec::new())),
                    host_key: host.host_key.value().cloned(),
                    strict_host_keys: one
                        .strict_host_keys
                        .unwrap_or(every.strict_host_keys.unwrap_or(false)),
                },
                labels: host.labels.unwrap_or(Vec::new()),
                taints: host.taints.unwrap_or(Vec::new()),
            }
        });
        Some(machines.collect())
    }
}

/// Says that two machines share what only one can have.
pub(super) fn duplicate(
    code: &'static str,
    message: String,
    again: crate::source::Span,
    first: Option<crate::source::Span>,
    remedy: &str,
) -> Diagnostic {
    Diagnostic::error(code, again, message)
        .label("again here")
        .related_to(first, "first here")
        .remedy(remedy)
}
