//! How deep and how big a value is.

use super::{Kind, Node};

/// The deepest nesting in the value, which the builder limits.
pub(super) fn depth(node: &Node) -> usize {
    match &node.kind {
        Kind::Scalar { .. } => 0,
        Kind::Sequence(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Kind::Mapping(entries) => {
            1 + entries
                .iter()
                .map(|(_, value)| depth(value))
                .max()
                .unwrap_or_default()
        }
    }
}

/// How many values, and bytes of text, there are in a value.
pub(super) fn size(node: &Node) -> (usize, usize) {
    let sum = |(nodes, bytes), (more_nodes, more_bytes)| (nodes + more_nodes, bytes + more_bytes);
    match &node.kind {
        Kind::Scalar { text, .. } => (1, text.len()),
        Kind::Sequence(items) => items.iter().map(size).fold((1, 0), sum),
        Kind::Mapping(entries) => entries
            .iter()
            .map(|(key, value)| sum((1, key.text.len()), size(value)))
            .fold((1, 0), sum),
    }
}
