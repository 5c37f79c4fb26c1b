//! Everything about a machine that a later user could notice, for tests that compare before and after.
//!
//! Compared are all files of all file systems by kind, mode, owner, size, time and content (links by their target,
//! directories without their times, which any change below them moves), packages, users and groups, units, kernel
//! parameters and modules, mounts, processes, control groups, and of the network devices, addresses, routes and rules of
//! every table, namespaces, chains of both back ends of iptables, nft's tables, IPVS and ipsets. What may differ stands in
//! `snapshot/exceptions.rs`.

mod exceptions;
mod parse;

use std::collections::{BTreeMap, BTreeSet};

use crate::{docker, lab::Machine};

const WALK: &str = include_str!("snapshot/walk.sh");
/// The maximum number of differences shown.
const SHOWN: usize = 100;

/// What a machine was like at one moment: each thing by its section and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<String, String>);

impl Snapshot {
    /// Looks at a machine.
    ///
    /// # Errors
    /// When the machine does not run.
    pub async fn take(machine: &Machine) -> Result<Self, docker::Error> {
        let text = docker::run(&["exec", &machine.container(), "bash", "-c", WALK]).await?;
        Ok(Self(parse::entries(&text)))
    }

    /// What is not as it was, each with before and now; no more than one can read.
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let keys: BTreeSet<_> = self.0.keys().chain(before.0.keys()).collect();
        keys.into_iter()
            .filter(|key| self.0.get(*key) != before.0.get(*key))
            .take(SHOWN)
            .map(|key| {
                let shown =
                    |entry: Option<&String>| entry.map_or("not there", |value| value).to_owned();
                format!(
                    "{key}\n   before {}\n   now    {}",
                    shown(before.0.get(key)),
                    shown(self.0.get(key))
                )
            })
            .collect()
    }

    /// Nothing is otherwise than it was.
    ///
    /// # Panics
    /// When something is, or when the machine was not looked at to the end.
    pub fn assert_same(&self, before: &Self, when: &str) {
        for snapshot in [self, before] {
            let count = snapshot.0.len();
            assert!(count > 3000, "a machine has more than {count} entries");
            assert!(snapshot.0.contains_key("end"), "the look ended too early");
        }
        let differences = self.differences(before);
        assert!(
            differences.is_empty(),
            "{when}:\n{}",
            differences.join("\n")
        );
    }
}
