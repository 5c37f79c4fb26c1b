//! What is done to both machines.

use proptest::prelude::*;

use super::super::{directory, file, known, link, path, unit, word};
use crate::{
    operation::{HostsEntry, Operation, Sysctl},
    task::Task,
};

/// Files and links: there, not there, in directories that are not there, behind a link, below what is not a directory,
/// and where a directory is.
const LEAVES: [&str; 12] = [
    "/etc/there.conf",
    "/etc/unwanted",
    "/etc/new/leaf.crt",
    "/etc/was-a-link",
    "/etc/link",
    "/etc/to-directory",
    "/etc/new/deep/file",
    "/etc/new/other",
    "/var/lib/data/own",
    "/etc/fixed/inside",
    "/etc/mode.conf/below",
    "/etc/elsewhere",
];

/// What somebody else writes.
const EDITED: [&str; 10] = [
    LEAVES[0],
    LEAVES[1],
    LEAVES[2],
    LEAVES[3],
    LEAVES[4],
    LEAVES[5],
    LEAVES[6],
    LEAVES[7],
    LEAVES[8],
    "/etc/hosts",
];

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

/// The last one is a file.
const DIRECTORIES: [&str; 5] = [
    "/var/lib/data",
    "/opt/empty",
    "/etc/new",
    "/etc/new/deep",
    "/etc/mode.conf",
];

pub(super) const UNITS: [&str; 2] = ["ours.service", "theirs.service"];

pub(super) const SYSCTLS: [&str; 3] = [
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.nothing",
];

const OWNERS: [&str; 2] = ["etcd", "worker"];

#[derive(Clone, Debug)]
pub(super) enum Act {
    Apply(&'static str, Vec<Operation>),
    /// What an owner has beside these operations is released.
    Release(&'static str, Vec<Operation>),
    /// Of one owner, or of all.
    Undo(Option<&'static str>),
    /// Somebody else writes a file.
    Edit(&'static str),
}

fn operation() -> impl Strategy<Value = Operation> {
    let leaf = || prop::sample::select(&LEAVES[..]);
    let mode = || prop::sample::select(&[0o600_u16, 0o644][..]);
    let text = || prop::sample::select(&["one\n", "two\n", "as it was\n", "", CERTIFICATE][..]);
    let target =
        prop::sample::select(&["there.conf", "old-target", "elsewhere", "../opt", "a b'c"][..]);
    let entry = (1_u8..4).prop_map(|number| {
        Operation::HostsEntry(HostsEntry {
            address: format!("10.0.0.{number}").parse().unwrap(),
            names: vec![word(&format!("m{number}"))],
        })
    });
    let sysctl = (
        prop::sample::select(&SYSCTLS[..]),
        prop::sample::select(&["0", "1", "1024 65535"][..]),
    );
    let unit_file = (prop::sample::select(&UNITS[..]), text())
        .prop_map(|(name, text)| file(&format!("/etc/systemd/system/{name}"), text, 0o644));
    prop_oneof![
        5 => (leaf(), text(), mode()).prop_map(|(at, text, mode)| file(at, text, mode)),
        2 => (leaf(), text(), mode()).prop_map(|(at, text, mode)| known(at, text, mode)),
        3 => (leaf(), target).prop_map(|(at, target)| link(at, target)),
        3 => leaf().prop_map(|at| Operation::Absent(path(at))),
        3 => (prop::sample::select(&DIRECTORIES[..]), any::<bool>(), prop::sample::select(&[0o700_u16, 0o755][..]))
            .prop_map(|(at, ours, mode)| directory(at, mode, ours)),
        2 => sysctl.prop_map(|(name, value)| Operation::Sysctl(Sysctl::new(name, value).unwrap())),
        2 => entry,
        2 => unit_file,
        2 => prop::sample::select(&UNITS[..])
            .prop_map(|name| unit(name, &[&format!("/etc/systemd/system/{name}")])),
        1 => prop::sample::select(&["m1", "before"][..]).prop_map(|name| Operation::Hostname(word(name))),
        1 => Just(Operation::Module(word("br_netfilter"))),
    ]
}

/// A task has each resource once.
fn operations(least: usize) -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), least..8).prop_map(|wanted| {
        let mut operations: Vec<Operation> = Vec::new();
        for operation in wanted {
            operations.push(operation);
            if Task::new(word(OWNERS[0]), operations.clone()).is_err() {
                operations.pop();
            }
        }
        operations
    })
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let owner = || prop::sample::select(&OWNERS[..]);
    prop_oneof![
        6 => (owner(), operations(1)).prop_map(|(owner, operations)| Act::Apply(owner, operations)),
        3 => (owner(), operations(0)).prop_map(|(owner, operations)| Act::Release(owner, operations)),
        3 => prop::option::of(owner()).prop_map(Act::Undo),
        1 => prop::sample::select(&EDITED[..]).prop_map(Act::Edit),
    ]
}
