//! Adds machines to a deploy file and removes them. All else stays as the user wrote it, comments included.
//!
//! The edited text is parsed again and compared with the original: the result describes the same cluster except for the
//! machines named, or it is an error.

mod comparison;
mod entry;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;

use snafu::Snafu;

pub use self::entry::Entry;
use self::{
    comparison::{differs_only_in_machines, differs_only_in_roles},
    text::{add_to_list, remove_item, remove_key, with_final_newline},
};
use crate::{
    Cluster, Diagnostics, Input,
    cluster::Dialect,
    read,
    tree::{Node, parse},
    value::Name,
};

/// Why a file is not edited.
#[derive(Debug, PartialEq, Eq, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display(
        "the cluster was created from an inventory, which cannot be edited automatically"
    ))]
    Inventory,
    #[snafu(display("with this change the deploy file is not valid:\n{diagnostics}"))]
    Invalid { diagnostics: String },
    #[snafu(display("the deploy file is written in a way that cannot be edited automatically"))]
    Unsupported,
}

impl Error {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Inventory => "change hosts.yml and run deploy -f with it",
            Self::Invalid { .. } => "correct the machines named in the command",
            Self::Unsupported => "change the file by hand and run deploy -f with it",
        }
    }
}

/// Adds workers. One that is a worker already is left as it is, so that a command may be repeated.
///
/// # Errors
/// When the machines cannot belong to the cluster, or the file cannot be edited.
pub fn add_workers(text: &str, entries: &[Entry]) -> Result<String, Error> {
    preserving_bom(text, |text| {
        let before = parse_cluster(text)?;
        let is_worker = |entry: &&Entry| before.workers().any(|worker| entry.matches(worker));
        let new: Vec<_> = entries.iter().filter(|entry| !is_worker(entry)).collect();
        let mut edited = text.to_owned();
        for entry in &new {
            edited = add_to_list(&edited, &["workers", "nodes"], entry)?;
        }
        let after = parse_edited(&edited)?;
        let added = after.workers().len() == before.workers().len() + new.len();
        let others_kept = before.machines().iter().all(|one| {
            let mut machines = after.machines().iter();
            machines
                .any(|other| differs_only_in_roles(one, other) && one.roles.is_subset(&other.roles))
        });
        match added && others_kept && differs_only_in_machines(&before, &after) {
            true => Ok(edited),
            false => Err(Error::Unsupported),
        }
    })
}

/// Adds the load balancer, unless the file names this machine as load balancer already.
///
/// # Errors
/// As [`add_workers`]; also when the file names another load balancer.
pub fn add_load_balancer(text: &str, entry: &Entry) -> Result<String, Error> {
    preserving_bom(text, |text| {
        let before = parse_cluster(text)?;
        match before.load_balancer() {
            Some(existing) if entry.matches(existing.machine) => return Ok(text.to_owned()),
            Some(_) => {
                let diagnostics = "it already has a load balancer\n".to_owned();
                return Err(Error::Invalid { diagnostics });
            }
            None if parse_tree(text)?.entry("loadbalance").is_some() => {
                return Err(Error::Unsupported);
            }
            None => {}
        }
        let edited = format!("{}loadbalance: {entry}\n", with_final_newline(text));
        let after = parse_edited(&edited)?;
        match after.load_balancer().is_some() && differs_only_in_machines(&before, &after) {
            true => Ok(edited),
            false => Err(Error::Unsupported),
        }
    })
}

/// Removes machines from every list that names them.
///
/// # Errors
/// As [`add_workers`].
pub fn remove(text: &str, names: &BTreeSet<Name>) -> Result<String, Error> {
    preserving_bom(text, |text| {
        let before = parse_cluster(text)?;
        let edited = remove_entries(text, &before, names)?;
        let after = parse_edited(&edited)?;
        let remaining = before.machines().iter();
        let remaining = remaining.filter(|machine| !names.contains(&machine.name));
        let unchanged = remaining.clone().count() == after.machines().len()
            && remaining
                .zip(after.machines())
                .all(|(one, other)| one == other);
        match unchanged && differs_only_in_machines(&before, &after) {
            true => Ok(edited),
            false => Err(Error::Unsupported),
        }
    })
}

fn remove_entries(text: &str, before: &Cluster, names: &BTreeSet<Name>) -> Result<String, Error> {
    let is_removed = |node: &Node| {
        let entry = Entry::from_node(node);
        let mut machines = before.machines().iter();
        machines.any(|machine| names.contains(&machine.name) && entry.names(machine))
    };
    let mut edited = text.to_owned();
    for list in ["masters", "workers", "nodes", "etcds"] {
        loop {
            let root = parse_tree(&edited)?;
            let Some((key, node)) = root.entry(list) else {
                break;
            };
            let items = node.items().unwrap_or_default();
            let Some(index) = items.iter().position(&is_removed) else {
                break;
            };
            let shorter = remove_item(&edited, key, node, index)?;
            let remaining = parse_tree(&shorter)?;
            let remaining = remaining.get(list).and_then(Node::items);
            if remaining.unwrap_or_default().len() + 1 != items.len() {
                return Err(Error::Unsupported);
            }
            edited = shorter;
        }
    }
    let root = parse_tree(&edited)?;
    match root.entry("loadbalance") {
        Some((key, node)) if is_removed(node) => Ok(remove_key(&edited, key, node)),
        _ => Ok(edited),
    }
}

/// Edits what follows a byte order mark, since the parser counts positions from there.
fn preserving_bom(
    text: &str,
    edit: impl FnOnce(&str) -> Result<String, Error>,
) -> Result<String, Error> {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => edit(rest).map(|text| format!("\u{feff}{text}")),
        None => edit(text),
    }
}

/// Edited text that is not YAML is our failure, not the user's: the tree is parsed first to distinguish the two.
fn parse_edited(text: &str) -> Result<Cluster, Error> {
    parse_tree(text)?;
    parse_cluster(text)
}

fn parse_cluster(text: &str) -> Result<Cluster, Error> {
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    match reading.cluster {
        Some(cluster) if cluster.dialect == Dialect::Inventory => Err(Error::Inventory),
        Some(cluster) => Ok(cluster),
        None => Err(Error::Invalid {
            diagnostics: reading.diagnostics.render(false),
        }),
    }
}

fn parse_tree(text: &str) -> Result<Node, Error> {
    let mut diagnostics = Diagnostics::default();
    let input = Input::private("deploy.yaml", text.as_bytes());
    parse(input, &mut diagnostics).ok_or(Error::Unsupported)
}
