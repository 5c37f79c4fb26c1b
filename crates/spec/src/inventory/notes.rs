//! What is said of variables that take no effect, are not known, or cannot be had.

use std::collections::{BTreeMap, BTreeSet};

use super::Reader;
use super::groups::{Groups, Vars};
use super::variables::{self, Treatment, VARIABLES};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::name_list::NameList;
use crate::source::Span;
use crate::tree::{Kind, Node};
use crate::walk::boolean;

/// One note for all that mean nothing here, and one for each that is not known.
pub(super) fn report(groups: &Groups<'_>, file: &Vars<'_>, diagnostics: &mut Diagnostics) {
    let mut without_effect: BTreeMap<&str, Span> = BTreeMap::new();
    let mut unknown: BTreeMap<&str, BTreeSet<Span>> = BTreeMap::new();
    let all = groups.groups.iter().map(|group| &group.vars);
    for vars in all.chain(&groups.host_vars).chain([file]) {
        for (name, entry) in vars {
            if may_be_secret(name) {
                diagnostics.hide(entry.node.span);
            }
            let span = entry.key.span;
            match variables::find(name).map(|info| info.treatment) {
                None => {
                    unknown.entry(name).or_default().insert(span);
                }
                Some(Treatment::NoEffect) => {
                    let first = without_effect.entry(name).or_insert(span);
                    *first = (*first).min(span);
                }
                Some(Treatment::Honoured(_) | Treatment::Only(_)) => {}
            }
        }
    }
    report_unknown(&unknown, diagnostics);
    report_without_effect(&without_effect, diagnostics);
}

/// Names behind which logins are kept, beside those that everyone's lines are cleaned of.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "secret", "token", "auth", "credential", "_key"]
        .iter()
        .any(|word| name.contains(word))
        && !name.ends_with("_file")
}

fn report_unknown(unknown: &BTreeMap<&str, BTreeSet<Span>>, diagnostics: &mut Diagnostics) {
    for (name, places) in unknown {
        let Some(first) = places.first() else {
            continue;
        };
        let shown: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
        let elsewhere = match places.len() {
            1 => String::new(),
            2 => " (and in another place)".to_owned(),
            more => format!(" (and in {} other places)", more - 1),
        };
        let message = format!("the variable `{shown}` is unknown and has no effect{elsewhere}");
        let remedy = match variables::near(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it, or make sure that the cluster does not need it".to_owned(),
        };
        diagnostics.push(Diagnostic::warning("unknown-variable", *first, message).remedy(remedy));
    }
}

fn report_without_effect(without_effect: &BTreeMap<&str, Span>, diagnostics: &mut Diagnostics) {
    let Some(first) = without_effect.values().min() else {
        return;
    };
    let names: Vec<&str> = without_effect.keys().copied().collect();
    let message = format!(
        "variables that have no effect in Hatchery: {}",
        NameList(&names)
    );
    diagnostics.push(
        Diagnostic::warning("no-effect", *first, message)
            .remedy("keep them if kubespray still needs them"),
    );
}

impl Reader<'_, '_> {
    /// Refuses every value that cannot be had.
    pub(super) fn only(&mut self) {
        for info in VARIABLES {
            let Treatment::Only(values) = info.treatment else {
                continue;
            };
            for entry in self.scope.all_values(info.name) {
                let Ok(node) = self.render(entry, None) else {
                    continue;
                };
                if !is_one_of(&node, values) {
                    let reason = info.doc.trim_end_matches('.');
                    let message =
                        format!("this value of `{}` is not supported: {reason}", info.name);
                    let remedy = match values {
                        [] => "remove the line".to_owned(),
                        [usual, ..] => format!("write {usual}, or remove the line"),
                    };
                    self.diagnostics.push(
                        Diagnostic::error("unsupported", entry.key.span, message).remedy(remedy),
                    );
                }
            }
        }
    }
}

fn is_one_of(node: &Node, values: &[&str]) -> bool {
    let is = |text: &str, value: &str| {
        text.eq_ignore_ascii_case(value)
            || boolean(value).is_ok_and(|value| boolean(text) == Ok(value))
    };
    match &node.kind {
        Kind::Sequence(items) => items.is_empty(),
        Kind::Mapping(entries) => entries.is_empty(),
        Kind::Scalar { text, .. } => {
            let text = text.trim();
            node.is_null() || text.is_empty() || values.iter().any(|value| is(text, value))
        }
    }
}
