//! A YAML file as a tree whose every value knows its place.
//!
//! A scalar stays the text that was written: `123456`, `1.10` and `022` are not numbers here, and
//! whether they should be is decided by whoever asks for them.

mod build;
mod measure;
mod slash_comments;
mod syntax;
mod text;

pub use build::parse;

use std::fmt;

use crate::source::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Scalar {
        /// As written, without quotes and with escapes resolved.
        text: String,
        /// Whether it was in quotes or a block, and so is text whatever it looks like.
        quoted: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// Keys with values, in the order of the file; each key once.
    Mapping(Vec<(Key, Node)>),
}

/// Any text may be a password, so texts are not shown.
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

/// A mapping's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl Node {
    /// What it is, for "expected a list, found …".
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            _ if self.is_null() => "nothing",
            Kind::Scalar { .. } => "a single value",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a section with keys",
        }
    }

    /// Nothing was written, or `~`, or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, quoted: false }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text of a scalar that is not null.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// The values of a list.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The keys and values of a mapping.
    pub fn entries(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// A mapping's key with its place, and its value.
    pub fn entry(&self, key: &str) -> Option<&(Key, Node)> {
        self.entries()?.iter().find(|(one, _)| one.text == key)
    }
}
