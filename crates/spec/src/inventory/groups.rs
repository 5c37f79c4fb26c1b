//! The groups of an inventory, the hosts in them, and the variables that stand with either.

use std::collections::{BTreeSet, HashMap};

use super::ranges;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::tree::{Key, Node};
use crate::walk::{nearest, report_mismatch, section};

/// No cluster is bigger.
pub(super) const HOST_LIMIT: usize = 5000;
const GROUP_LIMIT: usize = 1000;
/// How many times hosts may be named in groups, ranges counted by what they stand for.
const MENTION_LIMIT: usize = 100_000;

/// A variable where it is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t Key,
    pub(super) node: &'t Node,
}

/// Variables by name; of one set twice the later counts.
pub(super) type Vars<'t> = HashMap<&'t str, Entry<'t>>;

pub(super) struct Group<'t> {
    pub(super) name: &'t str,
    /// Where it is first named.
    pub(super) span: Span,
    pub(super) vars: Vars<'t>,
    pub(super) hosts: Vec<usize>,
    pub(super) children: Vec<(usize, Span)>,
}

pub(super) struct Host {
    pub(super) name: String,
    /// Where it is named with variables, else where it is first named.
    pub(super) span: Span,
    /// Where its own variables are among those of all hosts; the later ones count.
    pub(super) vars: Vec<usize>,
    pub(super) groups: BTreeSet<usize>,
}

/// The variables of a section.
pub(super) fn vars(entries: &[(Key, Node)]) -> Vars<'_> {
    entries
        .iter()
        .map(|(key, node)| (key.text.as_str(), Entry { key, node }))
        .collect()
}

/// What an inventory holds.
#[derive(Default)]
pub(super) struct Groups<'t> {
    /// The first is `all`.
    pub(super) groups: Vec<Group<'t>>,
    pub(super) hosts: Vec<Host>,
    /// What stands with hosts; the hosts of a range share it.
    pub(super) host_vars: Vec<Vars<'t>>,
    /// A part could not be read, so missing groups and hosts are not reported.
    pub(super) incomplete: bool,
    group_index: HashMap<&'t str, usize>,
    host_index: HashMap<String, usize>,
    mentions: usize,
}

impl<'t> Groups<'t> {
    /// Reads all groups of a file.
    pub(super) fn read(root: &'t Node, diagnostics: &mut Diagnostics) -> Self {
        let mut all = Self::default();
        all.group("all", root.span);
        for (key, node) in root.entries().unwrap_or_default() {
            let Some(index) = all.known_group(&key.text, key.span, diagnostics) else {
                break;
            };
            if index != 0 {
                all.groups[0].children.push((index, key.span));
            }
            all.fill(index, node, diagnostics);
        }
        all
    }

    /// A group by its name.
    pub(super) fn find(&self, name: &str) -> Option<&Group<'t>> {
        self.group_index.get(name).map(|index| &self.groups[*index])
    }

    /// The hosts of a group and of those below it, each once.
    pub(super) fn members(&self, name: &str) -> Vec<usize> {
        let mut seen_groups = BTreeSet::new();
        let mut seen_hosts = BTreeSet::new();
        let mut members = Vec::new();
        let mut waiting: Vec<usize> = self.group_index.get(name).copied().into_iter().collect();
        while let Some(index) = waiting.pop() {
            if !seen_groups.insert(index) {
                continue;
            }
            let group = &self.groups[index];
            let new = group.hosts.iter().filter(|host| seen_hosts.insert(**host));
            members.extend(new.copied());
            waiting.extend(group.children.iter().rev().map(|(child, _)| *child));
        }
        members
    }

    fn group(&mut self, name: &'t str, span: Span) -> usize {
        *self.group_index.entry(name).or_insert_with(|| {
            self.groups.push(Group {
                name,
                span,
                vars: Vars::new(),
                hosts: Vec::new(),
                children: Vec::new(),
            });
            self.groups.len() - 1
        })
    }

    fn known_group(
        &mut self,
        name: &'t str,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<usize> {
        if self.groups.len() >= GROUP_LIMIT && !self.group_index.contains_key(name) {
            self.incomplete = true;
            let message = format!("the inventory has more than {GROUP_LIMIT} groups");
            diagnostics.push(
                Diagnostic::error("too-many-groups", span, message)
                    .remedy("remove the groups that the cluster does not need"),
            );
            return None;
        }
        Some(self.group(name, span))
    }

    /// Ansible reads variables first, then children, then hosts, whatever their order.
    fn fill(&mut self, index: usize, node: &'t Node, diagnostics: &mut Diagnostics) {
        let Some(entries) = section(node, diagnostics) else {
            self.incomplete = true;
            return;
        };
        for (key, _) in entries {
            if !matches!(key.text.as_str(), "vars" | "children" | "hosts") {
                self.unknown(key, diagnostics);
            }
        }
        if let Some(node) = node.get("vars") {
            let entries = section(node, diagnostics).unwrap_or_default();
            self.groups[index].vars.extend(vars(entries));
        }
        if let Some(node) = node.get("children") {
            for (name, span, node) in self.names(node, diagnostics) {
                let Some(child) = self.known_group(name, span, diagnostics) else {
                    return;
                };
                self.groups[index].children.push((child, span));
                if let Some(node) = node {
                    self.fill(child, node, diagnostics);
                }
            }
        }
        if let Some(node) = node.get("hosts") {
            for (name, span, node) in self.names(node, diagnostics) {
                self.host(index, name, span, node, diagnostics);
            }
        }
    }

    /// Names with what stands behind them; a single name may stand alone.
    fn names(
        &mut self,
        node: &'t Node,
        diagnostics: &mut Diagnostics,
    ) -> Vec<(&'t str, Span, Option<&'t Node>)> {
        if let Some(text) = node.text() {
            return vec![(text, node.span, None)];
        }
        let Some(entries) = section(node, diagnostics) else {
            self.incomplete = true;
            return Vec::new();
        };
        entries
            .iter()
            .map(|(key, node)| (key.text.as_str(), key.span, Some(node)))
            .collect()
    }

    fn host(
        &mut self,
        group: usize,
        pattern: &str,
        span: Span,
        node: Option<&'t Node>,
        diagnostics: &mut Diagnostics,
    ) {
        let names = match ranges::expand(pattern.trim(), HOST_LIMIT) {
            Ok(names) => names,
            Err(wrong) => {
                self.incomplete = true;
                report_mismatch(pattern, span, "bad-range", wrong, diagnostics);
                return;
            }
        };
        self.mentions += names.len();
        if self.mentions > MENTION_LIMIT {
            self.incomplete = true;
            let message = format!("hosts are named more than {MENTION_LIMIT} times in groups");
            diagnostics.push(
                Diagnostic::error("too-many-hosts", span, message)
                    .remedy("name each host only in the groups that the cluster needs"),
            );
            return;
        }
        let entries = match node.map(|node| (node, section(node, diagnostics))) {
            Some((_, None)) => {
                self.incomplete = true;
                return;
            }
            Some((_, Some(entries))) => entries,
            None => &[],
        };
        let vars = (!entries.is_empty()).then(|| {
            self.host_vars.push(vars(entries));
            self.host_vars.len() - 1
        });
        for name in names {
            let Some(index) = self.known_host(name, span, diagnostics) else {
                return;
            };
            let host = &mut self.hosts[index];
            if let Some(vars) = vars {
                host.span = span;
                host.vars.push(vars);
            }
            if host.groups.insert(group) {
                self.groups[group].hosts.push(index);
            }
        }
    }

    fn known_host(
        &mut self,
        name: String,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<usize> {
        if let Some(index) = self.host_index.get(&name) {
            return Some(*index);
        }
        if self.hosts.len() >= HOST_LIMIT {
            self.incomplete = true;
            let message = format!("the inventory has more than {HOST_LIMIT} hosts");
            diagnostics.push(
                Diagnostic::error("too-many-hosts", span, message)
                    .remedy("divide the machines among several clusters"),
            );
            return None;
        }
        self.host_index.insert(name.clone(), self.hosts.len());
        self.hosts.push(Host {
            name,
            span,
            vars: Vec::new(),
            groups: BTreeSet::new(),
        });
        Some(self.hosts.len() - 1)
    }

    fn unknown(&mut self, key: &Key, diagnostics: &mut Diagnostics) {
        self.incomplete = true;
        let shown: String = key
            .text
            .chars()
            .filter(|c| !c.is_control())
            .take(60)
            .collect();
        let message = format!("a group has no key `{shown}`");
        let remedy = match nearest(&key.text, ["hosts", "children", "vars"]) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!(
                "put groups under `children:`, hosts under `hosts:`, variables under `vars:`; is `{shown}` one of these?"
            ),
        };
        diagnostics.push(Diagnostic::error("unknown-key", key.span, message).remedy(remedy));
    }
}
