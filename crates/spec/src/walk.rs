//! Typed access to the values of the tree; values that are not as expected are reported in a uniform way.

use strsim::osa_distance;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::Field;
use crate::source::{Span, Spanned};
use crate::tree::{Key, Node};
use crate::value::{Label, Mismatch};

/// Parses a scalar. Null is [`Field::Absent`], and so is an empty text, since eggo does not distinguish the two.
pub(crate) fn value<T>(
    node: &Node,
    code: &'static str,
    parse: impl FnOnce(&str) -> Result<T, Mismatch>,
    diagnostics: &mut Diagnostics,
) -> Field<T> {
    if node.is_null() {
        return Field::Absent;
    }
    let Some(text) = node.text() else {
        report_expected("a single value", node, diagnostics);
        return Field::Wrong;
    };
    if text.trim().is_empty() {
        return Field::Absent;
    }
    match parse(text.trim()) {
        Ok(value) => Field::Given(Spanned::new(value, node.span)),
        Err(wrong) => {
            report_mismatch(text, node.span, code, wrong, diagnostics);
            Field::Wrong
        }
    }
}

/// Reports a text that could not be parsed. Credentials in it are masked.
pub(crate) fn report_mismatch(
    text: &str,
    span: Span,
    code: &'static str,
    wrong: Mismatch,
    diagnostics: &mut Diagnostics,
) {
    let shown = if has_credentials(text) {
        diagnostics.hide(span);
        "the value".to_owned()
    } else {
        quoted(text)
    };
    let message = format!("{shown} is {}", wrong.problem);
    let mut remedy = wrong.remedy;
    if text.contains("//") && !text.contains("://") {
        remedy.push_str("; for a comment, write a space and # instead of //");
    }
    diagnostics.push(Diagnostic::error(code, span, message).remedy(remedy));
}

/// Whether it contains a password before an `@`, as in `https://user:password@host`.
pub(crate) fn has_credentials(text: &str) -> bool {
    text.split_once('@').is_some_and(|(before, _)| {
        let user = before.rsplit('/').next().unwrap_or_default();
        user.contains(':')
    })
}

/// A text in quotes on one line, shortened when long.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{:?}…", &text[..cut]),
        None => format!("{text:?}"),
    }
}

/// Reports a value of the wrong kind.
pub(crate) fn report_expected(what: &str, node: &Node, diagnostics: &mut Diagnostics) {
    let message = format!("expected {what}, found {}", node.kind_name());
    let remedy = match what {
        "a list" => "write each item on its own line, beginning with a dash: `- item`",
        "a section with keys" => "write each key on its own line, indented and followed by a colon",
        _ => "write one value after the colon",
    };
    diagnostics.push(Diagnostic::error("wrong-kind", node.span, message).remedy(remedy));
}

/// The items of a list; none for null. Other kinds of values are reported.
pub(crate) fn list<'t>(node: &'t Node, diagnostics: &mut Diagnostics) -> Option<&'t [Node]> {
    if node.is_null() {
        return Some(&[]);
    }
    let items = node.items();
    if items.is_none() {
        report_expected("a list", node, diagnostics);
    }
    items
}

/// The entries of a mapping; none for null. Other kinds of values are reported.
pub(crate) fn section<'t>(
    node: &'t Node,
    diagnostics: &mut Diagnostics,
) -> Option<&'t [(Key, Node)]> {
    if node.is_null() {
        return Some(&[]);
    }
    let entries = node.entries();
    if entries.is_none() {
        report_expected("a section with keys", node, diagnostics);
    }
    entries
}

/// Parses every scalar of a list, or a single one. Invalid ones are reported and left out.
pub(crate) fn values<T>(
    node: &Node,
    code: &'static str,
    parse: impl Fn(&str) -> Result<T, Mismatch>,
    diagnostics: &mut Diagnostics,
) -> Vec<Spanned<T>> {
    let single = node.text().is_some();
    let items = if single {
        std::slice::from_ref(node)
    } else {
        list(node, diagnostics).unwrap_or_default()
    };
    items
        .iter()
        .filter_map(|item| {
            if item.is_null() {
                report_expected("a single value", item, diagnostics);
            }
            match value(item, code, &parse, diagnostics) {
                Field::Given(value) => Some(value),
                Field::Absent | Field::Wrong => None,
            }
        })
        .collect()
}

/// The label that a key and its value make.
pub(crate) fn label(
    key: &Key,
    text: &str,
    node: &Node,
    diagnostics: &mut Diagnostics,
) -> Option<Label> {
    let label = Label::new(&key.text, text);
    label
        .map_err(|wrong| {
            let whole = format!("{}={text}", key.text);
            let span = key.span.to(node.span);
            report_mismatch(&whole, span, "bad-label", wrong, diagnostics);
        })
        .ok()
}

/// `true` or `false`, as YAML 1.1 and 1.2 write them.
pub(crate) fn boolean(text: &str) -> Result<bool, Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(Mismatch::new(
            "neither true nor false",
            "write true or false",
        )),
    }
}

/// A text that is not empty and has no control characters.
pub(crate) fn word(text: &str) -> Result<String, Mismatch> {
    if text.trim().is_empty() {
        return Err(Mismatch::new("empty", "write a value, or remove the key"));
    }
    if text.chars().any(char::is_control) {
        return Err(Mismatch::new(
            "not a single line of text",
            "write it on one line",
        ));
    }
    Ok(text.trim().to_owned())
}

/// The candidate most similar to the text, for "did you mean".
pub(crate) fn nearest<'c>(
    text: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let text = fold(text);
    if text.chars().count() > 100 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&text, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Ignores case and separators.
fn fold(text: &str) -> String {
    text.to_lowercase().replace(['_', ' '], "-")
}

/// `a, b or c`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_word() {
        let known = ["masters", "workers", "etcds", "pause-image", "packages"];
        assert_eq!(nearest("mastres", known), Some("masters"));
        assert_eq!(nearest("worker", known), Some("workers"));
        assert_eq!(nearest("pause_image", known), Some("pause-image"));
        assert_eq!(nearest("pacakges", known), Some("packages"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1000), known), None);
    }

    #[test]
    fn booleans_and_words() {
        assert_eq!((boolean("Yes"), boolean("off")), (Ok(true), Ok(false)));
        assert!(boolean("1").is_err() && boolean("").is_err());
        assert_eq!(word(" a ").unwrap(), "a");
        assert!(word(" ").is_err() && word("a\nb").is_err());
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        assert!(quoted(&"a".repeat(100)).ends_with('…'));
        assert!(has_credentials("https://u:p@h/x") && has_credentials("u:p@h"));
        assert!(!has_credentials("u@h:22") && !has_credentials("https://h:1/x@y"));
    }
}
