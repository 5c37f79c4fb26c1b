//! A deploy file with machines more or fewer. All else stays as the user wrote it, comments included.
//!
//! What comes out is read again and compared: an edit gives a file that says the same but for the machines that it was
//! asked for, or an error.

use std::{collections::BTreeSet, net::IpAddr};

use snafu::Snafu;

use crate::{
    Cluster, Diagnostics, Input,
    cluster::{Dialect, Machine},
    read,
    source::Span,
    tree::{Key, Kind, Node, parse},
    value::Name,
};

/// Why a file is not edited.
#[derive(Debug, PartialEq, Eq, Snafu)]
pub enum Error {
    /// An inventory has its hosts in several groups.
    #[snafu(display("the cluster was made from an inventory, which is not edited here"))]
    Inventory,
    /// With a machine more it is not a good file.
    #[snafu(display("with this change the deploy file is not good:\n{told}"))]
    Refused {
        /// What is wrong.
        told: String,
    },
    /// The file is written in a way that cannot be changed safely.
    #[snafu(display("the deploy file is written in a way that this change would break"))]
    Unsafe,
}

impl Error {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Inventory => "change hosts.yml and run deploy -f with it",
            Self::Refused { .. } => "correct what was asked for",
            Self::Unsafe => "change the file by hand and run deploy -f with it",
        }
    }
}

/// A machine as it is written into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    text: String,
    address: Option<IpAddr>,
    name: Option<String>,
}

impl Entry {
    /// From keys of the file and their values. What is not given is left out.
    pub fn new(values: &[(&str, Option<String>)]) -> Self {
        let value = |wanted: &str| {
            let found = values.iter().find(|(key, _)| *key == wanted);
            found.and_then(|(_, value)| value.clone())
        };
        let written = values.iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some(format!("{key}: {}", quoted(value)))
        });
        Self {
            text: format!("{{{}}}", written.collect::<Vec<_>>().join(", ")),
            address: value("ip").and_then(|text| text.parse().ok()),
            name: value("name"),
        }
    }

    fn of(node: &Node) -> Self {
        let text = |key: &str| node.get(key).and_then(Node::text);
        Self {
            text: flow(node),
            address: text("ip").and_then(|text| text.parse().ok()),
            name: text("name").map(str::to_owned),
        }
    }

    /// Where the machine is, if that can be read.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn is(&self, machine: &Machine) -> bool {
        let mut name = self.name.iter();
        self.address == Some(machine.address) && name.all(|name| name == machine.name.as_str())
    }

    /// The machines of a list of eggo's file for joining; none where the file has no such list.
    pub fn of_list(text: &str, list: &str) -> Vec<Self> {
        let mut diagnostics = Diagnostics::default();
        let root = parse(Input::private("join", text.as_bytes()), &mut diagnostics);
        let list = root.as_ref().and_then(|root| root.get(list));
        let items = list.and_then(Node::items).unwrap_or_default();
        items.iter().map(Self::of).collect()
    }
}

impl Entry {
    /// A section of such a file, if it has it.
    pub fn of_section(text: &str, name: &str) -> Option<Self> {
        let mut diagnostics = Diagnostics::default();
        let root = parse(Input::private("join", text.as_bytes()), &mut diagnostics)?;
        let section = root.get(name)?;
        section.entries().map(|_| Self::of(section))
    }
}

/// The file with workers more. One that is there already is left as it is, so that a command may be repeated.
///
/// # Errors
/// When the machines cannot be the cluster's, or the file cannot be changed.
pub fn add_workers(text: &str, entries: &[Entry]) -> Result<String, Error> {
    edited(text, |text| {
        let before = cluster(text)?;
        let is_there = |entry: &&Entry| before.workers().any(|one| entry.is(one));
        let new: Vec<_> = entries.iter().filter(|entry| !is_there(entry)).collect();
        let mut edited = text.to_owned();
        for entry in &new {
            edited = add_to_list(&edited, &["workers", "nodes"], entry)?;
        }
        let after = reread(&edited)?;
        let added = after.workers().len() == before.workers().len() + new.len();
        let stays = before.machines().iter().all(|one| {
            let mut machines = after.machines().iter();
            machines
                .any(|other| same_but_for_roles(one, other) && one.roles.is_subset(&other.roles))
        });
        match added && stays && same_but_for_machines(&before, &after) {
            true => Ok(edited),
            false => Err(Error::Unsafe),
        }
    })
}

/// The file with a load balancer.
///
/// # Errors
/// As [`add_workers`].
pub fn add_load_balancer(text: &str, entry: &Entry) -> Result<String, Error> {
    edited(text, |text| {
        let before = cluster(text)?;
        match before.load_balancer() {
            Some(there) if entry.is(there.machine) => return Ok(text.to_owned()),
            Some(_) => {
                let told = "it names a load balancer already\n".to_owned();
                return Err(Error::Refused { told });
            }
            None if tree(text)?.entry("loadbalance").is_some() => return Err(Error::Unsafe),
            None => {}
        }
        let edited = format!("{}loadbalance: {}\n", ended(text), entry.text);
        let after = reread(&edited)?;
        match after.load_balancer().is_some() && same_but_for_machines(&before, &after) {
            true => Ok(edited),
            false => Err(Error::Unsafe),
        }
    })
}

/// The file without some machines, whatever their roles are.
///
/// # Errors
/// As [`add_workers`].
pub fn remove(text: &str, names: &BTreeSet<Name>) -> Result<String, Error> {
    edited(text, |text| {
        let before = cluster(text)?;
        let edited = without(text, &before, names)?;
        let after = reread(&edited)?;
        let left = before.machines().iter();
        let left = left.filter(|one| !names.contains(&one.name));
        let same = left.clone().count() == after.machines().len()
            && left.zip(after.machines()).all(|(one, other)| one == other);
        match same && same_but_for_machines(&before, &after) {
            true => Ok(edited),
            false => Err(Error::Unsafe),
        }
    })
}

fn without(text: &str, before: &Cluster, names: &BTreeSet<Name>) -> Result<String, Error> {
    let goes = |node: &Node| {
        let entry = Entry::of(node);
        let mut machines = before.machines().iter();
        machines.any(|one| {
            names.contains(&one.name)
                && (entry.address == Some(one.address)
                    || entry.name.as_deref() == Some(one.name.as_str()))
        })
    };
    let mut edited = text.to_owned();
    for list in ["masters", "workers", "nodes", "etcds"] {
        loop {
            let root = tree(&edited)?;
            let Some((key, node)) = root.entry(list) else {
                break;
            };
            let items = node.items().unwrap_or_default();
            let Some(place) = items.iter().position(&goes) else {
                break;
            };
            let shorter = without_item(&edited, key, node, place)?;
            let left = tree(&shorter)?;
            let left = left.get(list).and_then(Node::items).unwrap_or_default();
            if left.len() + 1 != items.len() {
                return Err(Error::Unsafe);
            }
            edited = shorter;
        }
    }
    let root = tree(&edited)?;
    match root.entry("loadbalance") {
        Some((key, node)) if goes(node) => Ok(without_key(&edited, key, node)),
        _ => Ok(edited),
    }
}

/// Works on what follows a byte order mark, from which places are counted.
fn edited(text: &str, edit: impl FnOnce(&str) -> Result<String, Error>) -> Result<String, Error> {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => edit(rest).map(|text| format!("\u{feff}{text}")),
        None => edit(text),
    }
}

/// What an edit made. One that is not YAML any more was not the user's mistake.
fn reread(text: &str) -> Result<Cluster, Error> {
    tree(text)?;
    cluster(text)
}

fn cluster(text: &str) -> Result<Cluster, Error> {
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    match reading.cluster {
        Some(cluster) if cluster.dialect == Dialect::Inventory => Err(Error::Inventory),
        Some(cluster) => Ok(cluster),
        None => Err(Error::Refused {
            told: reading.diagnostics.render(false),
        }),
    }
}

fn tree(text: &str) -> Result<Node, Error> {
    let mut diagnostics = Diagnostics::default();
    let root = parse(
        Input::private("deploy.yaml", text.as_bytes()),
        &mut diagnostics,
    );
    root.ok_or(Error::Unsafe)
}

fn same_but_for_roles(one: &Machine, other: &Machine) -> bool {
    let roles = one.roles.clone();
    *one == Machine {
        roles,
        ..other.clone()
    }
}

/// Whether all is the same but for who belongs to it. With the load balancer come its endpoint and what is installed for it.
fn same_but_for_machines(before: &Cluster, after: &Cluster) -> bool {
    let follows = before.load_balancer.is_some() != after.load_balancer.is_some();
    let rest = |cluster: &Cluster| {
        let mut rest = cluster.clone();
        rest.machines.clear();
        for list in [&mut rest.masters, &mut rest.workers, &mut rest.etcds] {
            list.clear();
        }
        rest.load_balancer = None;
        if follows {
            rest.endpoint.clone_from(&before.endpoint);
            rest.packages.lists.clear();
        }
        rest
    };
    rest(before) == rest(after)
}

fn add_to_list(text: &str, names: &[&str], entry: &Entry) -> Result<String, Error> {
    let root = tree(text)?;
    let Some((key, node)) = names.iter().find_map(|name| root.entry(name)) else {
        let name = names[0];
        return Ok(format!("{}{name}:\n  - {}\n", ended(text), entry.text));
    };
    let items = match &node.kind {
        Kind::Sequence(items) => items.as_slice(),
        _ if node.is_null() => {
            let colon = colon_behind(text, key)?;
            let rest = match text[node.span.start..].starts_with(['~', 'n', 'N']) {
                true => &text[node.span.end..],
                false => &text[colon..],
            };
            return Ok(format!("{} [{}]{rest}", &text[..colon], entry.text));
        }
        _ => return Err(Error::Unsafe),
    };
    if is_flow(text, node) {
        // Right behind the last one, or the bracket: what follows may be a comment.
        let (end, comma) = match items.last() {
            Some(last) => (last_byte(text, last), ", "),
            None => (node.span.start + 1, ""),
        };
        let (before, behind) = text.split_at(end);
        return Ok(format!("{before}{comma}{}{behind}", entry.text));
    }
    let last = items.last().ok_or(Error::Unsafe)?;
    let (start, end) = lines_of_item(text, last)?;
    let indent = &text[start..start + text[start..].find('-').ok_or(Error::Unsafe)?];
    let mut before = text[..end].to_owned();
    if !before.ends_with('\n') {
        before.push('\n');
    }
    Ok(format!(
        "{before}{indent}- {}\n{}",
        entry.text,
        &text[end..]
    ))
}

fn without_item(text: &str, key: &Key, node: &Node, place: usize) -> Result<String, Error> {
    let items = node.items().unwrap_or_default();
    let item = items.get(place).ok_or(Error::Unsafe)?;
    if is_flow(text, node) {
        // With the comma behind it, or else the one before it.
        let (start, end) = match (items.get(place + 1), place.checked_sub(1)) {
            (Some(next), _) => (item.span.start, next.span.start),
            (None, Some(before)) => (last_byte(text, &items[before]), last_byte(text, item)),
            (None, None) => (item.span.start, last_byte(text, item)),
        };
        return Ok(format!("{}{}", &text[..start], &text[end..]));
    }
    let (start, end) = lines_of_item(text, item)?;
    if items.len() > 1 {
        return Ok(format!("{}{}", &text[..start], &text[end..]));
    }
    let colon = colon_behind(text, key)?;
    Ok(format!(
        "{} []{}{}",
        &text[..colon],
        &text[colon..start],
        &text[end..]
    ))
}

fn without_key(text: &str, key: &Key, node: &Node) -> String {
    let start = text[..key.span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = end_of_line(text, last_byte(text, node));
    format!("{}{}", &text[..start], &text[end..])
}

fn ended(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

/// Whether a list or section is in brackets. The place of one that is not can be that of the first thing in it.
fn is_flow(text: &str, node: &Node) -> bool {
    let first = match &node.kind {
        Kind::Sequence(items) => items.first().map(|item| item.span.start),
        Kind::Mapping(entries) => entries.first().map(|(key, _)| key.span.start),
        Kind::Scalar { .. } => return false,
    };
    first != Some(node.span.start) && text[node.span.start..].starts_with(['[', '{'])
}

/// The byte behind a key's colon.
fn colon_behind(text: &str, key: &Key) -> Result<usize, Error> {
    let rest = &text[key.span.end..];
    let colon = rest
        .find(':')
        .filter(|at| rest[..*at].trim_matches(['"', '\'', ' ']).is_empty());
    colon.map(|at| key.span.end + at + 1).ok_or(Error::Unsafe)
}

/// From the beginning of the line with an item's dash to the end of its last line.
fn lines_of_item(text: &str, item: &Node) -> Result<(usize, usize), Error> {
    let Span { start, .. } = item.span;
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let before = text[line..start].trim();
    match before {
        "-" => Ok((line, end_of_line(text, last_byte(text, item)))),
        _ => Err(Error::Unsafe),
    }
}

fn end_of_line(text: &str, from: usize) -> usize {
    text[from..]
        .find('\n')
        .map_or(text.len(), |at| from + at + 1)
}

/// The byte behind the last one of a value; that of a block is the last one of what is in it.
fn last_byte(text: &str, node: &Node) -> usize {
    let within = |end: usize| {
        let span = &text[node.span.start..end.max(node.span.start)];
        node.span.start + span.trim_end().len()
    };
    match &node.kind {
        Kind::Sequence(items) if !is_flow(text, node) => items
            .last()
            .map_or(node.span.start, |item| last_byte(text, item)),
        // What a merge key brings stands elsewhere.
        Kind::Mapping(entries) if !is_flow(text, node) => entries
            .iter()
            .filter(|(key, _)| key.span.start >= node.span.start)
            .map(|(key, value)| last_byte(text, value).max(key.span.end))
            .max()
            .unwrap_or(node.span.start),
        _ => within(node.span.end),
    }
}

/// A value on one line.
fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar { text, .. } => quoted(text),
        Kind::Sequence(items) => {
            format!(
                "[{}]",
                items.iter().map(flow).collect::<Vec<_>>().join(", ")
            )
        }
        Kind::Mapping(entries) => {
            let entries = entries.iter();
            let entries =
                entries.map(|(key, value)| format!("{}: {}", quoted(&key.text), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Plain where nobody could take it for something else.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let first = text.chars().next();
    match first.is_some_and(|c| c.is_ascii_alphanumeric() || c == '/') && text.chars().all(plain) {
        true => text.to_owned(),
        // JSON is YAML.
        false => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "# mine
cluster-id: demo
masters: [{name: m0, ip: 10.0.0.1}]
workers:   # all of them
  - name: w0   # the first
    ip: 10.0.0.2
    labels: {a: b}
  # the second
  - {name: w1, ip: 10.0.0.3} # behind
service:
  cidr: 10.32.0.0/16
";

    fn entry(name: &str, ip: &str) -> Entry {
        Entry::new(&[
            ("name", Some(name.into())),
            ("ip", Some(ip.into())),
            ("port", None),
        ])
    }

    fn added(text: &str) -> String {
        add_workers(text, &[entry("w9", "10.0.0.9")]).unwrap()
    }

    fn removed(text: &str, names: &[&str]) -> Result<String, Error> {
        let names = names.iter().map(|name| Name::parse(name).unwrap());
        remove(text, &names.collect())
    }

    #[test]
    fn a_worker_is_added_behind_the_others() {
        let line = "  - {name: w1, ip: 10.0.0.3} # behind\n";
        let expected = BLOCK.replace(line, &format!("{line}  - {{name: w9, ip: 10.0.0.9}}\n"));
        assert_eq!(added(BLOCK), expected);
        let base = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\n";
        for (written, expected) in [
            (
                "workers: [{name: w0, ip: 10.0.0.2}]\n",
                "workers: [{name: w0, ip: 10.0.0.2}, {name: w9, ip: 10.0.0.9}]\n",
            ),
            ("nodes: []\n", "nodes: [{name: w9, ip: 10.0.0.9}]\n"),
            ("workers:\n", "workers: [{name: w9, ip: 10.0.0.9}]\n"),
            (
                "workers: ~ # none\n",
                "workers: [{name: w9, ip: 10.0.0.9}] # none\n",
            ),
            ("", "workers:\n  - {name: w9, ip: 10.0.0.9}\n"),
            (
                "workers:\n- name: w0\n  ip: 10.0.0.2",
                "workers:\n- name: w0\n  ip: 10.0.0.2\n- {name: w9, ip: 10.0.0.9}\n",
            ),
        ] {
            let text = format!("{base}{written}");
            assert_eq!(added(&text), format!("{base}{expected}"), "{written}");
        }
        assert!(matches!(
            add_workers(BLOCK, &[entry("w9", "10.0.0.3")]),
            Err(Error::Refused { .. })
        ));
    }

    #[test]
    fn machines_go_with_their_lines() {
        let without = BLOCK.replace("  - {name: w1, ip: 10.0.0.3} # behind\n", "");
        assert_eq!(removed(BLOCK, &["w1"]).unwrap(), without);
        let first = "  - name: w0   # the first\n    ip: 10.0.0.2\n    labels: {a: b}\n";
        assert_eq!(removed(BLOCK, &["w0"]).unwrap(), BLOCK.replace(first, ""));
        let none = removed(BLOCK, &["w0", "w1"]).unwrap();
        assert!(none.contains("workers: []   # all of them\n"), "{none}");
        let flow = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: m0, ip: 10.0.0.1}, {name: w1, ip: 10.0.0.3}]\n\
            loadbalance:\n  name: lb\n  ip: 10.0.0.8\n  bind-port: 8443\nruntime: containerd\n";
        let left = removed(flow, &["w1", "lb"]).unwrap();
        assert_eq!(
            left,
            "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: m0, ip: 10.0.0.1}]\nruntime: containerd\n"
        );
        // A cluster without a master is no cluster.
        assert!(matches!(removed(flow, &["m0"]), Err(Error::Refused { .. })));
    }

    #[test]
    fn a_repeated_edit_changes_nothing() {
        let once = added(BLOCK);
        assert_eq!(added(&once), once);
        let other = add_workers(&once, &[entry("w8", "10.0.0.9")]);
        assert!(matches!(other, Err(Error::Refused { .. })), "{other:?}");
        assert_eq!(
            removed(&removed(&once, &["w9"]).unwrap(), &["w9"]).unwrap(),
            BLOCK
        );
    }

    #[test]
    fn what_stands_around_is_left_alone() {
        let base = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\n";
        let several = format!("{base}workers: [\n  {{name: w0, ip: 10.0.0.2}} # first\n]\n");
        assert_eq!(
            added(&several),
            several.replace("0.2}", "0.2}, {name: w9, ip: 10.0.0.9}")
        );
        let comma = format!("{base}workers: [{{name: w0, ip: 10.0.0.2}}, ]\n");
        assert_eq!(added(&comma).matches("name: w").count(), 2);
        assert_eq!(removed(&comma, &["w0"]), Err(Error::Unsafe));
        let marked = format!(
            "\u{feff}# 负载均衡\n{base}# 负载均衡\nloadbalance: {{name: lb, ip: 10.0.0.8}}\n"
        );
        assert_eq!(
            removed(&marked, &["lb"]).unwrap(),
            format!("\u{feff}# 负载均衡\n{base}# 负载均衡\n")
        );
        let merged = format!(
            "{base}workers:\n- &w\n  name: w0\n  ip: 10.0.0.2\n  port: 2222\n- <<: *w\n  name: w1\n  ip: 10.0.0.3\n- <<: *w\n  name: w2\n  ip: 10.0.0.4\n"
        );
        let left = removed(&merged, &["w1"]).unwrap();
        assert_eq!(
            left,
            merged.replace("- <<: *w\n  name: w1\n  ip: 10.0.0.3\n", "")
        );
        // Others are like it.
        assert_eq!(removed(&merged, &["w0"]), Err(Error::Unsafe));
    }

    #[test]
    fn a_load_balancer_is_added_once() {
        let lb = Entry::new(&[("name", Some("lb".into())), ("ip", Some("10.0.0.8".into()))]);
        let text = add_load_balancer(BLOCK, &lb).unwrap();
        assert_eq!(
            text,
            format!("{BLOCK}loadbalance: {{name: lb, ip: 10.0.0.8}}\n")
        );
        assert!(matches!(
            add_load_balancer(&text, &entry("lb", "10.0.0.7")),
            Err(Error::Refused { .. })
        ));
    }

    #[test]
    fn machines_of_a_file_for_joining_keep_their_keys() {
        let text = "masters: []\nworkers:\n- name: w9\n  ip: 10.0.0.9\n  labels: {rack: 'a-1'}\n- {ip: 10.0.0.10}\n";
        let entries = Entry::of_list(text, "workers");
        assert_eq!(entries.len(), 2);
        assert_eq!(
            entries[0].text,
            "{name: w9, ip: 10.0.0.9, labels: {rack: a-1}}"
        );
        let text = add_workers(BLOCK, &entries).unwrap();
        let cluster = cluster(&text).unwrap();
        assert_eq!(cluster.workers().len(), 4);
        assert_eq!(Entry::of_list(text.as_str(), "etcds"), []);
    }

    #[test]
    fn every_example_can_be_edited() {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut edited = 0;
        for file in std::fs::read_dir(examples).unwrap() {
            let path = file.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            let Ok(before) = cluster(&text) else {
                continue;
            };
            let arch = before.machines()[0].arch.to_string();
            let values = [("name", "w-new"), ("ip", "192.168.255.9"), ("arch", &arch)];
            let new = Entry::new(&values.map(|(key, value)| (key, Some(value.to_owned()))));
            let more = add_workers(&text, &[new]);
            let more = more.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(
                cluster(&more).unwrap().workers().len(),
                before.workers().len() + 1
            );
            let less = removed(&more, &["w-new"]).unwrap();
            assert_eq!(cluster(&less).unwrap(), before, "{}", path.display());
            edited += 1;
        }
        assert!(edited > 1, "{edited}");
    }

    proptest::proptest! {
        /// However it is written, what comes out says what it said, with the change.
        #[test]
        fn an_edit_changes_what_it_is_asked_for(
            is_block in proptest::prelude::any::<bool>(),
            count in 0_usize..4,
            indent in 0_usize..4,
            comment in "(  # [a-z:,\\[\\]{} -]{0,12})?",
            gap in "(\n|  \n|# [a-z -]{0,8}\n){0,2}",
        ) {
            let pad = " ".repeat(indent);
            let mut text = format!("cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\n{gap}");
            let items: Vec<_> = (0..count).map(|n| format!("{{name: w{n}, ip: 10.0.1.{n}}}")).collect();
            if is_block && count > 0 {
                text += &format!("workers:{comment}\n");
                for item in &items {
                    text += &format!("{pad}- {item}{comment}\n{gap}");
                }
            } else {
                text += &format!("workers: [{}]{comment}\n", items.join(", "));
            }
            text += "runtime: containerd\n";
            let before = cluster(&text).unwrap();
            let more = added(&text);
            let after = cluster(&more).unwrap();
            proptest::prop_assert_eq!(after.workers().len(), count + 1);
            proptest::prop_assert_eq!(cluster(&removed(&more, &["w9"]).unwrap()).unwrap(), before);
            if count > 0 {
                let less = cluster(&removed(&text, &["w0"]).unwrap()).unwrap();
                proptest::prop_assert_eq!(less.workers().len(), count - 1);
            }
        }
    }
}
