//! A machine as an entry of a deploy file.

use std::{fmt, net::IpAddr};

use crate::{
    Diagnostics, Input,
    cluster::Machine,
    tree::{Kind, Node, parse},
};

/// A machine as it is written into a deploy file: a YAML mapping on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    text: String,
    address: Option<IpAddr>,
    name: Option<String>,
}

impl Entry {
    /// From keys of the deploy file and their values; keys without a value are left out.
    pub fn new(values: &[(&str, Option<String>)]) -> Self {
        let value = |wanted: &str| {
            let found = values.iter().find(|(key, _)| *key == wanted);
            found.and_then(|(_, value)| value.clone())
        };
        let pairs = values.iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some(format!("{key}: {}", quoted(value)))
        });
        Self {
            text: format!("{{{}}}", pairs.collect::<Vec<_>>().join(", ")),
            address: value("ip").and_then(|text| text.parse().ok()),
            name: value("name"),
        }
    }

    pub(super) fn from_node(node: &Node) -> Self {
        let text = |key: &str| node.get(key).and_then(Node::text);
        Self {
            text: flow(node),
            address: text("ip").and_then(|text| text.parse().ok()),
            name: text("name").map(str::to_owned),
        }
    }

    /// The machines in a list of a file in eggo's format for `join`; empty when the file has no such list.
    pub fn from_list(text: &str, list: &str) -> Vec<Self> {
        let mut diagnostics = Diagnostics::default();
        let root = parse(Input::private("join", text.as_bytes()), &mut diagnostics);
        let list = root.as_ref().and_then(|root| root.get(list));
        let items = list.and_then(Node::items).unwrap_or_default();
        items.iter().map(Self::from_node).collect()
    }

    /// The machine in a section of such a file, such as `loadbalance`.
    pub fn from_section(text: &str, name: &str) -> Option<Self> {
        let mut diagnostics = Diagnostics::default();
        let root = parse(Input::private("join", text.as_bytes()), &mut diagnostics)?;
        let section = root.get(name)?;
        section.entries().map(|_| Self::from_node(section))
    }

    /// The machine's address; `None` when the entry has no valid one.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Whether it describes this machine: the same address and, if it has a name, the same name.
    pub(super) fn matches(&self, machine: &Machine) -> bool {
        let name = self.name.as_deref();
        self.address == Some(machine.address)
            && name.is_none_or(|name| name == machine.name.as_str())
    }

    /// Whether it has this machine's address or name.
    pub(super) fn names(&self, machine: &Machine) -> bool {
        self.address == Some(machine.address) || self.name.as_deref() == Some(machine.name.as_str())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A value in YAML's flow style, on one line.
fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar { text, .. } => quoted(text),
        Kind::Sequence(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Mapping(entries) => {
            let entries = entries.iter();
            let entries =
                entries.map(|(key, value)| format!("{}: {}", quoted(&key.text), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Plain where YAML cannot take it for anything else, otherwise as a JSON string, which is YAML too.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let first = text.chars().next();
    match first.is_some_and(|c| c.is_ascii_alphanumeric() || c == '/') && text.chars().all(plain) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}
