//! Every key of a deploy file: its kind, default, meaning, and the place in the
//! [`Cluster`](crate::cluster::Cluster) that it changes. Suggestions for unknown keys, the
//! documentation and the tests go by this table.

mod table;

pub use table::KEYS;

use std::borrow::Cow;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::runtimes;
use crate::tree::Key;
use crate::walk::{nearest, one_of};

/// The versions of eggo that have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Only the manual's version.
    Classic,
    /// Only later versions.
    Current,
    /// All versions of the dialect.
    Both,
    /// None: it is Hatchery's own.
    New,
}

/// A key of deploy files.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// The section that contains it: a path, or `<host>`, `<bastion>` and `<item>` for entries of several lists.
    pub section: &'static str,
    /// The key as written in a deploy file.
    pub key: &'static str,
    /// The versions of eggo that have it.
    pub origin: Origin,
    /// The kind of its value, for people; `schema` interprets it too.
    pub kind: &'static str,
    /// The default, for people; empty if it is required or has none.
    pub default: &'static str,
    /// Its meaning, shown in the reference and in templates.
    pub doc: &'static str,
    /// The place in the serialised cluster that it changes, as a JSON pointer; `!` for a value
    /// that is only checked.
    pub effect: &'static str,
}

/// Stands for the names of the container runtimes in the table.
pub(crate) const RUNTIME: &str = "container runtime";
/// Stands for the packages of the container runtimes in the table.
const RUNTIME_PACKAGES: &str = "packages of the container runtime";

impl KeyInfo {
    /// The kind of its value for users, with the names of the runtimes filled in.
    pub fn kind_in_words(&self) -> Cow<'static, str> {
        in_words(self.kind)
    }

    /// Its default for users, with the packages of the runtimes filled in.
    pub fn default_in_words(&self) -> Cow<'static, str> {
        in_words(self.default)
    }
}

fn in_words(text: &'static str) -> Cow<'static, str> {
    match text {
        RUNTIME => one_of(&runtimes::names()).into(),
        RUNTIME_PACKAGES => {
            let packages = runtimes::ALL.iter().flat_map(|kind| kind.packages);
            let packages: Vec<_> = packages.copied().collect();
            format!("{}, depending on runtime", one_of(&packages)).into()
        }
        text => text.into(),
    }
}

/// The keys of a section.
pub fn for_section(section: &str) -> impl Iterator<Item = &'static KeyInfo> {
    KEYS.iter().filter(move |info| info.section == section)
}

/// Reports an unknown key, with a suggestion.
pub(crate) fn report_unknown(key: &Key, sections: &[&str], diagnostics: &mut Diagnostics) {
    let known = || {
        sections
            .iter()
            .flat_map(|section| for_section(section))
            .map(|info| info.key)
    };
    let place = match sections {
        [""] => "a deploy file".to_owned(),
        ["<host>"] | ["<host>", "loadbalance"] => "a machine".to_owned(),
        ["<bastion>"] => "a bastion".to_owned(),
        ["<item>"] => "a package".to_owned(),
        [section, ..] => format!("`{section}`"),
        [] => String::new(),
    };
    let message = format!("{place} has no key `{}`", shown(&key.text));
    // Nobody will read it, and looking for the nearest key takes time.
    if diagnostics.is_full() {
        diagnostics.push(Diagnostic::error("unknown-key", key.span, message));
        return;
    }
    let remedy = if let Some(known) = nearest(&key.text, known()) {
        format!("did you mean `{known}`?")
    } else if let Some(elsewhere) = elsewhere(&key.text, sections) {
        format!("`{}` belongs {elsewhere}", key.text)
    } else if known().count() > 20 {
        "remove it, or correct its indentation if it belongs to a section above".to_owned()
    } else {
        let mut all: Vec<_> = known().collect();
        all.sort_unstable();
        all.dedup();
        format!("valid keys: {}", all.join(", "))
    };
    diagnostics.push(Diagnostic::error("unknown-key", key.span, message).remedy(remedy));
}

/// In which section a misplaced key would be right.
fn elsewhere(key: &str, here: &[&str]) -> Option<String> {
    let info = KEYS
        .iter()
        .find(|info| info.key == key && !here.contains(&info.section))?;
    Some(match info.section {
        "" => "at the top of the file, without indentation".to_owned(),
        "<host>" => "to a machine in masters, workers or etcds".to_owned(),
        "<bastion>" => "to a bastion".to_owned(),
        "<item>" => "to a package".to_owned(),
        section => format!("into `{section}`"),
    })
}

fn shown(key: &str) -> String {
    key.chars().take(60).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_described_once() {
        let mut seen = std::collections::HashSet::new();
        for info in KEYS {
            assert!(seen.insert((info.section, info.key)), "{info:?}");
            assert!(info.doc.ends_with('.'), "{info:?}");
            assert!(!info.kind.is_empty() && !info.effect.is_empty(), "{info:?}");
        }
    }

    #[test]
    fn suggestions_name_the_near_key_or_the_right_section() {
        let remedy = |key: &str, sections: &[&str]| {
            let mut all = Diagnostics::default();
            let key = Key {
                text: key.to_owned(),
                span: crate::source::Span::default(),
            };
            report_unknown(&key, sections, &mut all);
            all.sorted()[0].remedy.clone().unwrap()
        };
        assert_eq!(remedy("mastres", &[""]), "did you mean `masters`?");
        assert_eq!(remedy("podcidr", &[""]), "`podcidr` belongs into `network`");
        assert!(remedy("colour", &["service"]).starts_with("valid keys: cidr, dns,"));
    }
}
