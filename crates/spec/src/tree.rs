//! A YAML file as a tree of values with their spans.
//!
//! A scalar keeps the text that was written: `123456`, `1.10` and `022` are not numbers here; the
//! caller decides how to parse them.

mod build;
mod measure;
mod slash_comments;
mod syntax;
mod text;

pub(crate) use build::parse;

use std::fmt;

use crate::source::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar {
        /// As written, without quotes and with escapes resolved.
        text: String,
        /// Whether it was in quotes or a block scalar, and so is text whatever it looks like.
        quoted: bool,
    },
    Sequence(Vec<Node>),
    /// In the order of the file; each key once.
    Mapping(Vec<(Key, Node)>),
}

/// Omits texts, since any of them may be a password.
impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar { text, .. } => write!(f, "Scalar({} bytes)", text.len()),
            Self::Sequence(items) => f.debug_list().entries(items).finish(),
            Self::Mapping(entries) => f
                .debug_map()
                .entries(entries.iter().map(|(key, value)| (&key.text, value)))
                .finish(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Node {
    /// For "expected a list, found …".
    pub(crate) fn kind_name(&self) -> &'static str {
        match &self.kind {
            _ if self.is_null() => "nothing",
            Kind::Scalar { .. } => "a single value",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a section with keys",
        }
    }

    /// Whether it is empty, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, quoted: false }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text of a scalar that is not null.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&(Key, Node)> {
        self.entries()?.iter().find(|(one, _)| one.text == key)
    }
}
