//! A task's script understood without a shell: its values, its list and its call. Only our own code writes these
//! texts, and every value in them is one word made by [`crate::quote::quote`].

use std::collections::{BTreeSet, HashMap};

use super::tree::Looks;
use crate::script;

/// A script as the machine has to understand it.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) run: String,
    pub(super) cluster: String,
    pub(super) cluster_name: String,
    pub(super) owner: String,
    pub(super) lock_timeout: u64,
    pub(super) steps: Vec<Step>,
    /// The steps of each task that is only looked at.
    pub(super) looks: Vec<Vec<Step>>,
    pub(super) call: Call,
}

/// The last line of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Call {
    Apply,
    Look,
    Undo(Released),
    Outcome,
    #[default]
    Managed,
}

/// Resources that are restored, unless another owner needs them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Released {
    All,
    Owners(BTreeSet<String>),
    /// Keys, each with the owner who gives it up.
    Resources(BTreeSet<(String, String)>),
}

impl Released {
    fn has(&self, key: &str, owner: &str) -> bool {
        match self {
            Self::All => true,
            Self::Owners(owners) => owners.contains(owner),
            Self::Resources(pairs) => pairs.contains(&(key.to_owned(), owner.to_owned())),
        }
    }

    /// Whether no owner is left that needs it; the remaining owners stay recorded.
    pub(super) fn frees(&self, key: &str, owners: Option<&mut BTreeSet<String>>) -> bool {
        if *self == Self::All {
            return true;
        }
        let Some(owners) = owners else {
            return false;
        };
        if !owners.iter().any(|owner| self.has(key, owner)) {
            return false;
        }
        if owners.iter().all(|owner| self.has(key, owner)) {
            return true;
        }
        owners.retain(|owner| !self.has(key, owner));
        false
    }
}

/// One line of the list; its number is its place there.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) key: String,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Parent {
        path: String,
    },
    Directory {
        path: String,
        looks: Looks,
        ours: bool,
    },
    File {
        path: String,
        looks: Looks,
        size: u64,
        hash: String,
    },
    Link {
        path: String,
        target: String,
    },
    Absent {
        path: String,
    },
    Unit {
        name: String,
        enabled: Option<bool>,
        running: Option<bool>,
        triggers: Vec<usize>,
    },
    Sysctl {
        name: String,
        path: String,
        value: String,
    },
    Module {
        name: String,
    },
    HostsEntry {
        line: String,
        base: String,
    },
    Hostname {
        name: String,
    },
    Firewall {
        port: String,
        zone: String,
    },
    TrustedNetwork {
        network: String,
        zone: String,
    },
    User {
        name: String,
    },
    Package {
        name: String,
        version: Option<String>,
        from_file: bool,
    },
    Image {
        runtime: String,
        references: Vec<String>,
    },
    Script {
        name: String,
        check: String,
    },
}

impl Request {
    /// `None` when it is not a script of ours.
    pub(super) fn read(script: &str) -> Option<Self> {
        let lines = words_of_lines(&script::shown(script));
        let mut values: HashMap<&str, &str> = HashMap::new();
        let (mut steps, mut looks) = (Vec::new(), Vec::new());
        let mut in_list = false;
        for line in &lines {
            match line
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .as_slice()
            {
                ["ops()", "{"] => in_list = true,
                ["}"] => in_list = false,
                [":" | "("] => {}
                [")"] => looks.push(std::mem::take(&mut steps)),
                words if in_list => steps.push(Step::read(words)?),
                [word] => {
                    let (name, value) = word.split_once('=').unwrap_or((word, ""));
                    values.insert(name, value);
                }
                _ => {}
            }
        }
        let call = match lines
            .last()?
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            ["apply"] => Call::Apply,
            [")"] => Call::Look,
            ["undo", "*"] => Call::Undo(Released::All),
            ["undo", owners] => Call::Undo(Released::Owners(
                owners.split(' ').map(str::to_owned).collect(),
            )),
            ["release", pairs @ ..] => {
                let pairs = pairs.iter().map(|pair| pair.split_once('@'));
                let pairs = pairs.map(|pair| pair.map(|(key, owner)| (key.into(), owner.into())));
                Call::Undo(Released::Resources(pairs.collect::<Option<_>>()?))
            }
            ["outcome"] => Call::Outcome,
            ["managed"] => Call::Managed,
            _ => return None,
        };
        let value = |name| values.get(name).map(|value: &&str| (*value).to_owned());
        Some(Self {
            run: value("run")?,
            cluster: value("cluster")?,
            cluster_name: value("cluster_name")?,
            owner: value("owner")?,
            lock_timeout: value("lock_timeout")?.parse().ok()?,
            steps,
            looks,
            call,
        })
    }
}

impl Step {
    fn read(words: &[&str]) -> Option<Self> {
        let [verb, _, key, rest @ ..] = words else {
            return None;
        };
        let own = |text: &&str| (**text).to_owned();
        let what = match (*verb, rest) {
            ("parent", [path, _]) => What::Parent { path: own(path) },
            ("directory", [path, _, mode, user, group, content]) => What::Directory {
                path: own(path),
                looks: looks(mode, user, group)?,
                ours: *content == "ours",
            },
            ("file", [path, _, mode, user, group, size, hash]) => What::File {
                path: own(path),
                looks: looks(mode, user, group)?,
                size: size.parse().ok()?,
                hash: own(hash),
            },
            ("link", [path, _, target]) => What::Link {
                path: own(path),
                target: own(target),
            },
            ("absent", [path]) => What::Absent { path: own(path) },
            ("unit", [name, enabled, running, triggers]) => What::Unit {
                name: own(name),
                enabled: choice(enabled, "yes"),
                running: choice(running, "started"),
                triggers: triggers
                    .split_terminator(',')
                    .filter_map(|n| n.parse().ok())
                    .collect(),
            },
            ("sysctl", [name, path, value]) => What::Sysctl {
                name: own(name),
                path: own(path),
                value: own(value),
            },
            ("module", [name]) => What::Module { name: own(name) },
            ("hosts_entry", [line, base, _]) => What::HostsEntry {
                line: own(line),
                base: own(base),
            },
            ("hostname_is", [name, _]) => What::Hostname { name: own(name) },
            ("firewall", [port, protocol, zone, _]) => What::Firewall {
                port: format!("{port}/{protocol}"),
                zone: own(zone),
            },
            ("trusted_network", [network, zone]) => What::TrustedNetwork {
                network: own(network),
                zone: own(zone),
            },
            ("user", [name, _]) => What::User { name: own(name) },
            ("package", [name, _, version, from]) => What::Package {
                name: own(name),
                version: (*version != "*").then(|| own(version)),
                from_file: *from == "files",
            },
            ("image", [runtime, references, _, _, _]) => What::Image {
                runtime: own(runtime),
                references: references.split(' ').map(str::to_owned).collect(),
            },
            ("script", [name, _, check, _, _]) => What::Script {
                name: own(name),
                check: own(check),
            },
            _ => return None,
        };
        Some(Self {
            key: (*key).to_owned(),
            what,
        })
    }

    /// As [`crate::operation::Operation::title`] says it.
    pub(super) fn title(&self) -> String {
        match &self.what {
            What::Parent { path } | What::Directory { path, .. } => format!("directory {path}"),
            What::File { path, .. } => format!("file {path}"),
            What::Link { path, .. } => format!("link {path}"),
            What::Absent { path } => format!("no file {path}"),
            What::Unit { name, .. } => format!("unit {name}"),
            What::Sysctl { name, .. } => format!("sysctl {name}"),
            What::Module { name } => format!("module {name}"),
            What::HostsEntry { line, .. } => {
                format!("hosts entry {}", line.split(' ').next().unwrap_or_default())
            }
            What::Hostname { name } => format!("hostname {name}"),
            What::Firewall { port, .. } => format!("open port {port}"),
            What::TrustedNetwork { network, .. } => format!("trusted network {network}"),
            What::User { name } => format!("user {name}"),
            What::Package { name, .. } => format!("package {name}"),
            What::Image { references, .. } => format!("images {}", references.join(" ")),
            What::Script { name, .. } => format!("step {name}"),
        }
    }
}

fn looks(mode: &str, owner: &str, group: &str) -> Option<Looks> {
    Some(Looks {
        mode: u32::from_str_radix(mode, 8).ok()?,
        owner: owner.into(),
        group: group.into(),
    })
}

fn choice(word: &str, yes: &str) -> Option<bool> {
    (word != "-").then_some(word == yes)
}

/// Each line as its words, without their quotes. A line break inside quotes ends nothing.
fn words_of_lines(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '\'' => {
                let (quoted, after) = after.split_once('\'').unwrap_or((after, ""));
                word.get_or_insert_default().push_str(quoted);
                after
            }
            '\\' => {
                let mut characters = after.chars();
                word.get_or_insert_default().extend(characters.next());
                characters.as_str()
            }
            ' ' => {
                line.extend(word.take());
                after
            }
            '\n' => {
                line.extend(word.take());
                lines.push(std::mem::take(&mut line));
                after
            }
            _ => {
                let end = rest.find([' ', '\n', '\'', '\\']).unwrap_or(rest.len());
                word.get_or_insert_default().push_str(&rest[..end]);
                &rest[end..]
            }
        };
    }
    line.extend(word);
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quote::quote;

    proptest! {
        #[test]
        fn what_was_quoted_is_one_word(values in prop::collection::vec("[^\\x00]*", 1..8)) {
            let line: Vec<_> = values.iter().map(|value| quote(value)).collect();
            prop_assert_eq!(words_of_lines(&format!("{}\n", line.join(" "))), vec![values]);
        }
    }
}
