//! Insertion and removal of entries in the text of a deploy file.
//!
//! Positions come from the parsed tree. Everything around the changed entry stays byte for byte.

use super::{Entry, Error, parse_tree};
use crate::{
    source::Span,
    tree::{Key, Kind, Node},
};

/// Appends to the first of these lists that the file has; without any, adds the first of them at the end.
pub(super) fn add_to_list(text: &str, names: &[&str], entry: &Entry) -> Result<String, Error> {
    let root = parse_tree(text)?;
    let Some((key, node)) = names.iter().find_map(|name| root.entry(name)) else {
        let name = names[0];
        return Ok(format!(
            "{}{name}:\n  - {entry}\n",
            with_final_newline(text)
        ));
    };
    let items = match &node.kind {
        Kind::Sequence(items) => items.as_slice(),
        _ if node.is_null() => {
            let colon = after_colon(text, key)?;
            let rest = match text[node.span.start..].starts_with(['~', 'n', 'N']) {
                true => &text[node.span.end..],
                false => &text[colon..],
            };
            return Ok(format!("{} [{entry}]{rest}", &text[..colon]));
        }
        _ => return Err(Error::Unsupported),
    };
    if is_flow(text, node) {
        // Directly after the last item, or after the bracket: what follows may be a comment.
        let (end, comma) = match items.last() {
            Some(last) => (end_of_value(text, last), ", "),
            None => (node.span.start + 1, ""),
        };
        let (before, after) = text.split_at(end);
        return Ok(format!("{before}{comma}{entry}{after}"));
    }
    let last = items.last().ok_or(Error::Unsupported)?;
    let (start, end) = lines_of_item(text, last)?;
    let dash = text[start..].find('-').ok_or(Error::Unsupported)?;
    let indent = &text[start..start + dash];
    let before = with_final_newline(&text[..end]);
    Ok(format!("{before}{indent}- {entry}\n{}", &text[end..]))
}

/// Removes an item of a list; a block list that becomes empty is written as `[]`.
pub(super) fn remove_item(
    text: &str,
    key: &Key,
    node: &Node,
    index: usize,
) -> Result<String, Error> {
    let items = node.items().unwrap_or_default();
    let item = items.get(index).ok_or(Error::Unsupported)?;
    if is_flow(text, node) {
        // With the comma after it, or else the one before it.
        let (start, end) = match (items.get(index + 1), index.checked_sub(1)) {
            (Some(next), _) => (item.span.start, next.span.start),
            (None, Some(before)) => (end_of_value(text, &items[before]), end_of_value(text, item)),
            (None, None) => (item.span.start, end_of_value(text, item)),
        };
        return Ok(format!("{}{}", &text[..start], &text[end..]));
    }
    let (start, end) = lines_of_item(text, item)?;
    if items.len() > 1 {
        return Ok(format!("{}{}", &text[..start], &text[end..]));
    }
    let colon = after_colon(text, key)?;
    Ok(format!(
        "{} []{}{}",
        &text[..colon],
        &text[colon..start],
        &text[end..]
    ))
}

/// Removes the lines of a key and its value.
pub(super) fn remove_key(text: &str, key: &Key, node: &Node) -> String {
    let start = start_of_line(text, key.span.start);
    let end = end_of_line(text, end_of_value(text, node));
    format!("{}{}", &text[..start], &text[end..])
}

pub(super) fn with_final_newline(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

/// Whether a list or mapping is written in brackets. The span of a block collection may be that of its first element, which
/// may itself begin with a bracket.
fn is_flow(text: &str, node: &Node) -> bool {
    let first = match &node.kind {
        Kind::Sequence(items) => items.first().map(|item| item.span.start),
        Kind::Mapping(entries) => entries.first().map(|(key, _)| key.span.start),
        Kind::Scalar { .. } => return false,
    };
    first != Some(node.span.start) && text[node.span.start..].starts_with(['[', '{'])
}

fn after_colon(text: &str, key: &Key) -> Result<usize, Error> {
    let rest = &text[key.span.end..];
    let colon = rest
        .find(':')
        .filter(|at| rest[..*at].trim_matches(['"', '\'', ' ']).is_empty());
    colon
        .map(|at| key.span.end + at + 1)
        .ok_or(Error::Unsupported)
}

/// From the start of the line with an item's dash to the end of the item's last line.
fn lines_of_item(text: &str, item: &Node) -> Result<(usize, usize), Error> {
    let Span { start, .. } = item.span;
    let line = start_of_line(text, start);
    match text[line..start].trim() {
        "-" => Ok((line, end_of_line(text, end_of_value(text, item)))),
        _ => Err(Error::Unsupported),
    }
}

fn start_of_line(text: &str, position: usize) -> usize {
    text[..position].rfind('\n').map_or(0, |at| at + 1)
}

fn end_of_line(text: &str, position: usize) -> usize {
    text[position..]
        .find('\n')
        .map_or(text.len(), |at| position + at + 1)
}

/// Where a value ends, without the white space that the parser counts to a block collection.
fn end_of_value(text: &str, node: &Node) -> usize {
    match &node.kind {
        Kind::Sequence(items) if !is_flow(text, node) => items
            .last()
            .map_or(node.span.start, |item| end_of_value(text, item)),
        // The entries that a merge key adds are written elsewhere.
        Kind::Mapping(entries) if !is_flow(text, node) => entries
            .iter()
            .filter(|(key, _)| key.span.start >= node.span.start)
            .map(|(key, value)| end_of_value(text, value).max(key.span.end))
            .max()
            .unwrap_or(node.span.start),
        _ => {
            let span = &text[node.span.start..node.span.end.max(node.span.start)];
            node.span.start + span.trim_end().len()
        }
    }
}
