//! Parser events put together into a tree, within limits on depth, number and size.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};

use super::measure::{depth, size};
use super::syntax::remedy;
use super::{Key, Kind, Node, slash_comments, text};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Input, Span};

/// How deep values may be nested.
const DEPTH_LIMIT: usize = 64;
/// How many values a file may have, aliases counted as often as they are used.
const NODE_LIMIT: usize = 500_000;
/// How many bytes of text these may have.
const TEXT_LIMIT: usize = 64 << 20;

/// Reads a file into a tree. Whatever the bytes are, the answer is a tree or at least one error.
/// An empty file gives an empty mapping.
pub(crate) fn parse(input: Input<'_>, diagnostics: &mut Diagnostics) -> Option<Node> {
    let (file, text) = text::decode(input, diagnostics);
    let whole = text::start_of(file);
    let text = slash_comments::remove(text?, whole, diagnostics);
    let mut builder = Builder {
        file,
        text: &text,
        diagnostics,
        open: Vec::new(),
        root: None,
        documents: 0,
        anchors: HashMap::new(),
        nodes: 0,
        bytes: 0,
    };
    builder.run()?;
    let root = builder.root.take();
    Some(root.filter(|root| !root.is_null()).unwrap_or(Node {
        span: whole,
        kind: Kind::Mapping(Vec::new()),
    }))
}

/// A collection that is not closed yet.
struct Open {
    span: Span,
    anchor: usize,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<(Key, Node)>,
        /// The key whose value comes next; `Err` for one that cannot be a key.
        key: Option<Result<Key, ()>>,
    },
}

struct Builder<'a> {
    file: FileId,
    text: &'a str,
    diagnostics: &'a mut Diagnostics,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    bytes: usize,
}

impl Builder<'_> {
    fn run(&mut self) -> Option<()> {
        let text = self.text;
        let options =
            granit_parser::options! { emit_comments: false, emit_unresolved_aliases: true };
        let mut parser = Parser::new_from_str_with_options(text, options);
        while let Some(next) = parser.next_event() {
            match next {
                Ok((event, span)) => {
                    let span = self.span(span);
                    self.event(event, span)?;
                }
                Err(error) => {
                    self.syntax_error(&error);
                    return None;
                }
            }
        }
        Some(())
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.refuse(
                        Diagnostic::error(
                            "second-document",
                            span,
                            "a second YAML document starts here",
                        )
                        .remedy("keep one document in the file; put others in separate files"),
                    );
                    return None;
                }
            }
            Event::Scalar(value, style, anchor, tag) => {
                let quoted = style != ScalarStyle::Plain || self.tag(tag.as_deref(), span);
                let node = Node {
                    span: self.trimmed(span),
                    kind: Kind::Scalar {
                        text: value.into_owned(),
                        quoted,
                    },
                };
                self.count(&node)?;
                self.place(node, anchor);
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.begin(span, anchor, Content::Sequence(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.tag(tag.as_deref(), span);
                let content = Content::Mapping {
                    entries: Vec::new(),
                    key: None,
                };
                self.begin(span, anchor, content)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(id) => self.alias(id, span)?,
            Event::UnresolvedAlias(name) => {
                let message = format!("the anchor &{name} is not defined before this alias");
                self.refuse(
                    Diagnostic::error("unknown-anchor", span, message)
                        .remedy("put the text in quotes if no alias is meant"),
                );
                self.place(null(span), 0);
            }
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, span: Span, anchor: usize, content: Content) -> Option<()> {
        if self.open.len() >= DEPTH_LIMIT {
            self.too_deep(span);
            return None;
        }
        self.open.push(Open {
            span,
            anchor,
            content,
        });
        Some(())
    }

    fn end(&mut self, end: Span) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let kind = match open.content {
            Content::Sequence(items) => Kind::Sequence(items),
            Content::Mapping { entries, .. } => Kind::Mapping(self.distinct(entries)),
        };
        let span = self.trimmed(open.span.to(end));
        self.nodes += 1;
        self.place(Node { span, kind }, open.anchor);
    }

    /// Puts a finished value where it belongs.
    fn place(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        match &mut parent.content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping { entries, key } => match key.take() {
                Some(Ok(key)) => entries.push((key, node)),
                Some(Err(())) => {}
                None => match node.kind {
                    Kind::Scalar { text, .. } => {
                        *key = Some(Ok(Key {
                            text,
                            span: node.span,
                        }));
                    }
                    Kind::Sequence(_) | Kind::Mapping(_) => {
                        *key = Some(Err(()));
                        let found = node.kind_name();
                        self.refuse(
                            Diagnostic::error(
                                "bad-key",
                                node.span,
                                format!("a key must be text, not {found}"),
                            )
                            .remedy("put text that contains brackets or braces in quotes"),
                        );
                    }
                },
            },
        }
    }

    fn alias(&mut self, id: usize, span: Span) -> Option<()> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            self.refuse(
                Diagnostic::error(
                    "endless-alias",
                    span,
                    "this alias refers to a value that contains it",
                )
                .remedy("write the value out"),
            );
            self.place(null(span), 0);
            return Some(());
        };
        if self.open.len() + depth(&node) > DEPTH_LIMIT {
            self.too_deep(span);
            return None;
        }
        self.count(&node)?;
        self.place(node, 0);
        Some(())
    }

    /// Counts a value and all in it; too many are refused.
    fn count(&mut self, node: &Node) -> Option<()> {
        let (nodes, bytes) = size(node);
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes <= NODE_LIMIT && self.bytes <= TEXT_LIMIT {
            return Some(());
        }
        self.refuse(
            Diagnostic::error(
                "too-many-values",
                node.span,
                format!("the file has more than {NODE_LIMIT} values, or more text than any cluster needs"),
            )
            .remedy("look for aliases (*name) that multiply each other"),
        );
        None
    }

    /// Merges `<<` and reports keys that come twice.
    fn distinct(&mut self, entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
        let mut places: HashMap<String, Span> = HashMap::with_capacity(entries.len());
        let mut kept = Vec::with_capacity(entries.len());
        let mut merged = Vec::new();
        for (key, node) in entries {
            if key.text == "<<" {
                merged.push((key, node));
                continue;
            }
            match places.get(&key.text) {
                Some(first) => {
                    let message = format!("the key `{}` occurs twice in one section", key.text);
                    let diagnostic = Diagnostic::error("duplicate-key", key.span, message)
                        .label("again here")
                        .related(*first, "first here")
                        .remedy("keep one of the two");
                    self.refuse(diagnostic);
                }
                None => {
                    places.insert(key.text.clone(), key.span);
                    kept.push((key, node));
                }
            }
        }
        for (key, node) in merged {
            let maps = match node.kind {
                Kind::Sequence(items) => items,
                kind @ (Kind::Mapping(_) | Kind::Scalar { .. }) => vec![Node {
                    span: node.span,
                    kind,
                }],
            };
            for map in maps {
                let Kind::Mapping(entries) = map.kind else {
                    self.refuse(
                        Diagnostic::error(
                            "bad-merge",
                            key.span,
                            "`<<` merges sections with keys only",
                        )
                        .remedy("give it an alias of a section (<<: *name)"),
                    );
                    continue;
                };
                for (key, node) in entries {
                    if !places.contains_key(&key.text) {
                        places.insert(key.text.clone(), key.span);
                        kept.push((key, node));
                    }
                }
            }
        }
        kept
    }

    /// Whether the tag makes a scalar text; tags of other programs are refused.
    fn tag(&mut self, tag: Option<&Tag>, span: Span) -> bool {
        let Some(tag) = tag else {
            return false;
        };
        if tag.is_yaml_core_schema() {
            return tag.is_yaml_core_schema_tag("str");
        }
        if tag.original() == "!" {
            return true;
        }
        let message = format!("the tag {} is not supported", tag.original());
        self.refuse(
            Diagnostic::error("unknown-tag", span, message)
                .remedy("write the value itself, without a tag"),
        );
        true
    }

    fn too_deep(&mut self, span: Span) {
        let message = format!("values are nested more than {DEPTH_LIMIT} levels deep");
        self.refuse(Diagnostic::error("too-deep", span, message).remedy(
            "a deploy file needs fewer than ten levels; check that this is the right file",
        ));
    }

    fn syntax_error(&mut self, error: &ScanError) {
        let mark = error.marker();
        let start = mark.byte_offset().unwrap_or_default().min(self.text.len());
        let start = self.text.floor_char_boundary(start);
        let length = self
            .text
            .get(start..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        let span = Span {
            file: self.file,
            start,
            end: start + length,
        };
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            return self.too_deep(span);
        }
        let message = format!("this is not valid YAML: {}", error.info());
        self.refuse(
            Diagnostic::error("syntax", span, message)
                .remedy(remedy(error.kind(), self.lines_until(start))),
        );
    }

    /// The line of this place and the one above.
    fn lines_until(&self, at: usize) -> &str {
        let text = self.text;
        let end = text[at..]
            .find('\n')
            .map_or(text.len(), |length| at + length);
        let line = text[..at].rfind('\n').unwrap_or_default();
        let start = text[..line].rfind('\n').unwrap_or_default();
        &text[start..end]
    }

    fn refuse(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn span(&self, span: granit_parser::Span) -> Span {
        let range = span.byte_range().unwrap_or_default();
        Span {
            file: self.file,
            start: range.start.min(self.text.len()),
            end: range.end.min(self.text.len()),
        }
    }

    /// Without the white space at the end, which belongs to what follows.
    fn trimmed(&self, span: Span) -> Span {
        let text = self.text.get(span.start..span.end).unwrap_or_default();
        span.part(span.start, span.start + text.trim_end().len())
    }
}

fn null(span: Span) -> Node {
    Node {
        span,
        kind: Kind::Scalar {
            text: String::new(),
            quoted: false,
        },
    }
}

#[cfg(test)]
mod tests;
