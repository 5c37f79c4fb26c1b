//! A kubespray inventory (`hosts.yml`) with its variables (`group_vars.yml`).
//!
//! Groups become roles. Each variable has the value that Ansible would use, and a table says how it
//! is treated.

mod arguments;
mod groups;
mod hosts;
pub(crate) mod ini;
mod jump;
mod networks;
mod notes;
mod ranges;
mod roles;
mod runtime;
mod scope;
mod settings;
mod template;
mod variables;

use std::borrow::Cow;

pub use variables::{Treatment, VARIABLES, VariableInfo, find};

use self::groups::{Entry, Groups, Vars, vars};
use self::roles::Roles;
use self::scope::Scope;
use crate::cluster::Dialect;
use crate::diagnostic::{Diagnostic, Diagnostics, Need, Topic};
use crate::draft::{Draft, Field};
use crate::keys;
use crate::reading::{Reading, finish};
use crate::source::{FileId, Input, Spanned};
use crate::tree::{Node, parse};
use crate::value::{Mismatch, Name};
use crate::walk::{report_expected, value};

/// An inventory and its variables.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// The inventory itself, `hosts.yml`.
    pub hosts: Input<'a>,
    /// Variables that take precedence over those of the inventory, as with `--extra-vars`.
    pub vars: Option<Input<'a>>,
    /// The cluster's name, which overrides the variables.
    pub id: Option<&'a Name>,
}

/// Reads an inventory with its variables.
pub fn read(files: Files<'_>) -> Reading {
    read_for(files, Need::Everything)
}

/// Reads an inventory for a purpose; see [`crate::read_for`].
pub fn read_for(files: Files<'_>, need: Need) -> Reading {
    let mut diagnostics = Diagnostics::for_need(need);
    if ini::refuse(files.hosts, &mut diagnostics) {
        return Reading::refused(diagnostics);
    }
    let root = parse(files.hosts, &mut diagnostics);
    let beside = files
        .vars
        .map(|input| (input, parse(input, &mut diagnostics)));
    let (Some(root), None | Some((_, Some(_)))) = (&root, &beside) else {
        return Reading::refused(diagnostics);
    };
    for node in [
        Some(root),
        beside.as_ref().and_then(|(_, node)| node.as_ref()),
    ] {
        if let Some(node) = node.filter(|node| node.entries().is_none()) {
            report_expected("a section with keys", node, &mut diagnostics);
            return Reading::refused(diagnostics);
        }
    }
    if !is_inventory(root) {
        let start = root.span.part(root.span.start, root.span.start);
        diagnostics.push(
            Diagnostic::error("no-inventory", start, "this is not an inventory")
                .remedy("start it with all:, and put hosts and children below it; variables can be given only with an inventory"),
        );
        return Reading::refused(diagnostics);
    }
    let vars = beside
        .as_ref()
        .and_then(|(input, node)| Some((*input, node.as_ref()?)));
    finish_with(root, files.hosts, vars, files.id, diagnostics)
}

/// Reads an inventory that came alone.
pub(crate) fn read_alone(root: &Node, input: Input<'_>, diagnostics: Diagnostics) -> Reading {
    finish_with(root, input, None, None, diagnostics)
}

/// Whether a file is an inventory: it has the group `all`, or nothing but groups.
pub(crate) fn is_inventory(root: &Node) -> bool {
    let is_group = |node: &Node| {
        ["hosts", "children", "vars"]
            .iter()
            .any(|key| node.get(key).is_some())
    };
    let entries = root.entries().unwrap_or_default();
    let is_eggo_key = |key: &str| keys::for_section("").any(|info| info.key == key);
    let has_eggo = entries
        .iter()
        .any(|(key, node)| is_eggo_key(&key.text) && !is_group(node));
    match root.get("all") {
        Some(all) if is_group(all) => true,
        Some(_) => !has_eggo,
        None => !has_eggo && entries.iter().any(|(_, node)| is_group(node)),
    }
}

fn finish_with(
    root: &Node,
    hosts: Input<'_>,
    beside: Option<(Input<'_>, &Node)>,
    id: Option<&Name>,
    mut diagnostics: Diagnostics,
) -> Reading {
    let draft = draft(root, hosts, beside, id, &mut diagnostics);
    finish(&draft, diagnostics)
}

fn draft(
    root: &Node,
    hosts: Input<'_>,
    beside: Option<(Input<'_>, &Node)>,
    id: Option<&Name>,
    diagnostics: &mut Diagnostics,
) -> Draft {
    let start = root.span.part(root.span.start, root.span.start);
    let mut draft = Draft::new(Dialect::Inventory, start, false);
    let groups = Groups::read(root, diagnostics);
    let file = beside.map_or_else(Vars::new, |(_, node)| {
        vars(node.entries().unwrap_or_default())
    });
    let roles = Roles::from_groups(&groups, diagnostics);
    let Some(scope) = Scope::new(&groups, &file, roles.members(), diagnostics) else {
        draft.hosts_incomplete = true;
        draft.id = Field::Wrong;
        return draft;
    };
    let readable = [
        (root.span.file, hosts.others_can_read),
        beside.map_or((root.span.file, false), |(input, node)| {
            (node.span.file, input.others_can_read)
        }),
    ];
    let mut reader = Reader {
        groups: &groups,
        scope,
        draft,
        diagnostics,
        readable: readable
            .into_iter()
            .filter_map(|(file, readable)| readable.then_some(file))
            .collect(),
    };
    notes::report(&groups, &file, reader.diagnostics);
    reader.only();
    reader.id(id);
    reader.machines(&roles);
    reader.networks();
    reader.endpoint();
    reader.diagnostics.set_topic(Topic::Deployment);
    reader.runtime();
    reader.settings();
    reader.arguments();
    reader.draft
}

struct Reader<'r, 't> {
    groups: &'r Groups<'t>,
    scope: Scope<'r, 't>,
    draft: Draft,
    diagnostics: &'r mut Diagnostics,
    /// Files that others than their owner can read.
    readable: Vec<FileId>,
}

impl<'t> Reader<'_, 't> {
    /// The value without templates, for one host or the cluster; `Err` after telling of a template
    /// that is not understood.
    fn render(&mut self, entry: Entry<'t>, host: Option<usize>) -> Result<Cow<'t, Node>, ()> {
        let scope = &self.scope;
        let variable = |name: &str| {
            let found = match host {
                Some(host) => scope.host_value(host, name),
                None => scope.any_value(name),
            };
            found.map(|entry| entry.node)
        };
        template::render(entry.node, &variable).map_err(|span| {
            let message = format!("the value of `{}` is a template", entry.key.text);
            self.diagnostics.push(
                Diagnostic::error("template", span, message)
                    .label("only Ansible can evaluate this")
                    .remedy("write the value itself"),
            );
        })
    }

    /// What a host has under the first of these names.
    fn host_field<T>(
        &mut self,
        host: usize,
        names: &[&str],
        code: &'static str,
        parse: impl Fn(&str) -> Result<T, Mismatch>,
    ) -> Field<T> {
        for name in names {
            let Some(entry) = self.scope.host_value(host, name) else {
                continue;
            };
            let Ok(node) = self.render(entry, Some(host)) else {
                return Field::Wrong;
            };
            let field = value(&node, code, &parse, self.diagnostics);
            if !field.is_absent() {
                return field;
            }
        }
        Field::Absent
    }

    /// What the cluster has under the first of these names.
    fn cluster_field<T>(
        &mut self,
        names: &[&str],
        code: &'static str,
        parse: impl Fn(&str) -> Result<T, Mismatch>,
    ) -> Field<T> {
        for name in names {
            match self.node(name) {
                Err(()) => return Field::Wrong,
                Ok(None) => {}
                Ok(Some(node)) => {
                    let field = value(&node, code, &parse, self.diagnostics);
                    if !field.is_absent() {
                        return field;
                    }
                }
            }
        }
        Field::Absent
    }

    /// What the cluster has under a name, whatever its kind.
    fn node(&mut self, name: &str) -> Result<Option<Cow<'t, Node>>, ()> {
        match self.scope.cluster_value(name, self.diagnostics) {
            None => Ok(None),
            Some(entry) => self.render(entry, None).map(Some),
        }
    }

    /// A value that holds where nothing was said.
    fn default_field<T>(&self, value: T) -> Field<T> {
        Field::Given(Spanned::new(value, self.draft.file))
    }
}
