//! Which value of a variable counts, by Ansible's rules: the variables file before the host's own,
//! these before a group's, a lower group's before a higher one's, `all` last.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::groups::{Entry, Groups, Vars};
use super::variables::{self, Treatment};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Kind, Node};

/// The variables of every host.
pub(super) struct Scope<'g, 't> {
    groups: &'g Groups<'t>,
    /// What was given beside the inventory.
    file: &'g Vars<'t>,
    /// What each host has from its groups; hosts of the same groups share it.
    inherited: Vec<Rc<Vars<'t>>>,
    /// The hosts that belong to the cluster.
    members: Vec<usize>,
}

impl<'g, 't> Scope<'g, 't> {
    /// Works out who inherits what; nothing if groups contain each other.
    pub(super) fn new(
        groups: &'g Groups<'t>,
        file: &'g Vars<'t>,
        members: Vec<usize>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let ancestors = ancestors(groups, diagnostics)?;
        let used: Vec<Vec<(&'t str, Entry<'t>)>> = groups
            .groups
            .iter()
            .map(|group| used(&group.vars))
            .collect();
        let mut shared: HashMap<&BTreeSet<usize>, Rc<Vars<'t>>> = HashMap::new();
        let inherited = groups
            .hosts
            .iter()
            .map(|host| {
                let make = || Rc::new(inherit(groups, &used, &ancestors, &host.groups));
                Rc::clone(shared.entry(&host.groups).or_insert_with(make))
            })
            .collect();
        Some(Self {
            groups,
            file,
            inherited,
            members,
        })
    }

    /// The value that a host sees.
    pub(super) fn host_value(&self, host: usize, name: &str) -> Option<Entry<'t>> {
        let found = self.file.get(name).copied();
        let found = found.or_else(|| self.entry_value(host, name));
        found.or_else(|| self.inherited[host].get(name).copied())
    }

    /// The value that this host sees and no other host of the cluster: its own, or that of a group of its own.
    pub(super) fn own_value(&self, host: usize, name: &str) -> Option<Entry<'t>> {
        let others = || self.members.iter().filter(|member| **member != host);
        self.entry_value(host, name).or_else(|| {
            let seen = self.host_value(host, name)?;
            let is_same = |other: Entry<'t>| std::ptr::eq(other.node, seen.node);
            let mut shared = others().filter_map(|other| self.host_value(*other, name));
            (!shared.any(is_same)).then_some(seen)
        })
    }

    /// The value that stands in the host's own entry.
    fn entry_value(&self, host: usize, name: &str) -> Option<Entry<'t>> {
        let mut places = self.groups.hosts[host].vars.iter().rev();
        places
            .find_map(|place| self.groups.host_vars[*place].get(name))
            .copied()
    }

    /// The value that the cluster's hosts see; they must agree.
    pub(super) fn cluster_value(
        &self,
        name: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Entry<'t>> {
        if let Some(entry) = self.file.get(name) {
            return Some(*entry);
        }
        let mut seen = self
            .members
            .iter()
            .filter_map(|host| self.host_value(*host, name));
        let first = seen.next()?;
        let other =
            seen.find(|one| !std::ptr::eq(one.node, first.node) && !same(one.node, first.node));
        if let Some(other) = other {
            let message =
                format!("`{name}` is for the whole cluster, but hosts have different values");
            diagnostics.push(
                Diagnostic::error("contradiction", other.key.span, message)
                    .label("another value here")
                    .related(first.key.span, "one value here")
                    .remedy("set it once, in the variables file or under all.vars"),
            );
        }
        Some(first)
    }

    /// The value that the first of the cluster's hosts to have one sees, others aside.
    pub(super) fn any_value(&self, name: &str) -> Option<Entry<'t>> {
        let mut seen = self
            .members
            .iter()
            .filter_map(|host| self.host_value(*host, name));
        self.file.get(name).copied().or_else(|| seen.next())
    }
}

impl<'t> Scope<'_, 't> {
    /// Every value that one of the cluster's hosts sees, each once.
    pub(super) fn all_values(&self, name: &str) -> Vec<Entry<'t>> {
        let mut seen = BTreeSet::new();
        let values = self
            .members
            .iter()
            .filter_map(|host| self.host_value(*host, name));
        let beside = self.file.get(name).copied();
        let values = beside.into_iter().chain(values);
        values.filter(|entry| seen.insert(entry.key.span)).collect()
    }
}

/// Whether two values are alike, wherever they stand.
fn same(one: &Node, two: &Node) -> bool {
    match (&one.kind, &two.kind) {
        (Kind::Scalar { text: one, .. }, Kind::Scalar { text: two, .. }) => one == two,
        (Kind::Sequence(one), Kind::Sequence(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Kind::Mapping(one), Kind::Mapping(two)) => {
            one.len() == two.len()
                && one
                    .iter()
                    .zip(two)
                    .all(|((key, one), (other, two))| key.text == other.text && same(one, two))
        }
        _ => false,
    }
}

/// How deep a group is below `all`, and which groups are above it.
struct Line {
    depth: usize,
    above: BTreeSet<usize>,
}

/// Groups before those below them; what is left over contains itself.
fn ancestors(groups: &Groups<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Line>> {
    let count = groups.groups.len();
    let mut parents: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for (index, group) in groups.groups.iter().enumerate() {
        for (child, _) in &group.children {
            parents[*child].insert(index);
        }
    }
    let mut open: Vec<usize> = parents.iter().map(BTreeSet::len).collect();
    let mut lines: Vec<Line> = (0..count)
        .map(|index| Line {
            depth: usize::from(index != 0),
            above: BTreeSet::from([0, index]),
        })
        .collect();
    let mut ready: Vec<usize> = (0..count).filter(|index| open[*index] == 0).collect();
    while let Some(index) = ready.pop() {
        let (depth, above) = (lines[index].depth + 1, lines[index].above.clone());
        let children: BTreeSet<usize> = groups.groups[index]
            .children
            .iter()
            .map(|(child, _)| *child)
            .collect();
        for child in children {
            lines[child].depth = lines[child].depth.max(depth);
            lines[child].above.extend(&above);
            open[child] -= 1;
            if open[child] == 0 {
                ready.push(child);
            }
        }
    }
    let left = (0..count).find(|index| open[*index] > 0);
    if let Some(start) = left {
        refuse_cycle(groups, &parents, &open, start, diagnostics);
        return None;
    }
    Some(lines)
}

/// Every group that is left over has a parent that is left over too: going up finds the circle.
fn refuse_cycle(
    groups: &Groups<'_>,
    parents: &[BTreeSet<usize>],
    open: &[usize],
    start: usize,
    diagnostics: &mut Diagnostics,
) {
    let mut way = vec![start];
    let mut at = start;
    let circle = loop {
        let Some(up) = parents[at].iter().copied().find(|up| open[*up] > 0) else {
            return;
        };
        if let Some(begin) = way.iter().position(|one| *one == up) {
            break way.split_off(begin);
        }
        way.push(up);
        at = up;
    };
    // The way goes up, so the last contains the first but one.
    let (Some(&child), Some(&parent)) = (circle.first(), circle.get(1).or(circle.first())) else {
        return;
    };
    let closing = groups.groups[parent].children.iter();
    let span = closing
        .filter(|(one, _)| *one == child)
        .map(|(_, span)| *span)
        .next()
        .unwrap_or(groups.groups[child].span);
    let mut names: Vec<&str> = circle
        .iter()
        .rev()
        .map(|one| groups.groups[*one].name)
        .collect();
    names.truncate(5);
    let message = if circle.len() == 1 {
        format!("the group {} contains itself", names.join(""))
    } else {
        format!("groups contain each other: {}", names.join(", "))
    };
    diagnostics.push(
        Diagnostic::error("group-cycle", span, message)
            .remedy("remove one of the `children` that lead back"),
    );
}

/// Those that are asked for at all.
fn used<'t>(vars: &Vars<'t>) -> Vec<(&'t str, Entry<'t>)> {
    let known = |name: &str| {
        variables::find(name).is_some_and(|info| info.treatment != Treatment::NoEffect)
    };
    vars.iter()
        .filter(|(name, _)| known(name))
        .map(|(name, entry)| (*name, *entry))
        .collect()
}

/// The variables of groups, higher ones first, so that lower ones replace them.
fn inherit<'t>(
    groups: &Groups<'t>,
    used: &[Vec<(&'t str, Entry<'t>)>],
    lines: &[Line],
    direct: &BTreeSet<usize>,
) -> Vars<'t> {
    let mut all: BTreeSet<usize> = BTreeSet::from([0]);
    for group in direct {
        all.extend(&lines[*group].above);
    }
    let mut order: Vec<usize> = all.into_iter().collect();
    order.sort_by_key(|index| {
        let group = &groups.groups[*index];
        (lines[*index].depth, priority(&group.vars), group.name)
    });
    order
        .into_iter()
        .flat_map(|index| used[index].iter().copied())
        .collect()
}

/// Among groups of the same depth the later in this order wins.
fn priority(vars: &Vars<'_>) -> i64 {
    let said = vars.get("ansible_group_priority");
    said.and_then(|entry| entry.node.text()?.parse().ok())
        .unwrap_or(1)
}
