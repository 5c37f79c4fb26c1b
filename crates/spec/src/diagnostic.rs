//! Diagnostics of deploy files. They are collected, so that all problems are reported at once.

mod json;
mod redact;
mod render;

use std::collections::HashSet;

use crate::source::{FileId, Position, Source, Span};

/// The maximum number of diagnostics that are stored; further ones are only counted.
const LIMIT: usize = 1000;

/// Whether a file can be used despite a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but probably not with the intended result.
    Warning,
}

/// The purpose for which a file is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need {
    /// To deploy the cluster: everything has to be valid.
    #[default]
    Everything,
    /// To identify the cluster and connect to its machines. Other problems are reported as warnings, since the rest may have
    /// been valid when the cluster was deployed.
    Access,
}

/// The subject of a part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The cluster's identity, its machines, and how they and the API are reached.
    #[default]
    Access,
    /// What is deployed: packages, versions, settings.
    Deployment,
}

/// A problem at a position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the file can be used nevertheless.
    pub severity: Severity,
    /// A stable name of the kind of mistake, in kebab-case.
    pub code: &'static str,
    /// What is wrong. Never contains a secret.
    pub message: String,
    /// The text that it refers to.
    pub span: Span,
    /// A short text shown under the span.
    pub label: Option<String>,
    /// Other positions that it refers to, each with a short text.
    pub related: Vec<(Span, String)>,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl Diagnostic {
    /// An error at a span.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: None,
            related: Vec::new(),
            remedy: None,
        }
    }

    /// A warning at a span.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, span, message)
        }
    }

    #[must_use]
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    #[must_use]
    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    /// What the user can do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// The file, line and column of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Its first character.
    pub start: Position,
    /// The character after the last.
    pub end: Position,
}

/// The diagnostics of files that are read together.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    sources: Vec<Source>,
    list: Vec<Diagnostic>,
    seen: HashSet<(&'static str, Span, String)>,
    omitted: usize,
    errors: usize,
    secrets: Vec<Span>,
    need: Need,
    topic: Topic,
}

impl Diagnostics {
    pub(crate) fn for_need(need: Need) -> Self {
        Self {
            need,
            ..Self::default()
        }
    }

    /// Sets the subject of the diagnostics that follow.
    pub(crate) fn set_topic(&mut self, topic: Topic) {
        self.topic = topic;
    }

    /// Adds a file that spans refer to.
    pub(crate) fn add_source(&mut self, source: Source) -> FileId {
        let id = FileId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        self.sources.push(source);
        id
    }

    /// Adds a diagnostic, unless it is a duplicate. An error in a part that is not needed becomes a warning.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        if (self.need, self.topic) == (Need::Access, Topic::Deployment) {
            diagnostic.severity = Severity::Warning;
        }
        let error = usize::from(diagnostic.severity == Severity::Error);
        if self.is_full() {
            self.errors += error;
            self.omitted += 1;
            return;
        }
        let cause = (diagnostic.code, diagnostic.span, diagnostic.message.clone());
        if !self.seen.insert(cause) {
            return;
        }
        self.errors += error;
        self.list.push(diagnostic);
    }

    /// Masks the text of this span wherever it would be shown.
    pub(crate) fn hide(&mut self, secret: Span) {
        self.secrets.push(secret);
    }

    /// Whether there are errors, so that the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.list.len() + self.omitted - self.errors
    }

    pub(crate) fn omitted(&self) -> usize {
        self.omitted
    }

    /// Whether further diagnostics are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= LIMIT
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// In the order of the files' text.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<_> = self.list.iter().collect();
        all.sort_by_key(|one| (one.span.file, one.span.start, one.severity, one.code));
        all
    }

    /// The position of a span; `None` for a file that is not known.
    pub fn place(&self, span: Span) -> Option<Place<'_>> {
        let source = self.source(span.file)?;
        Some(Place {
            file: source.name(),
            start: source.position(span.start),
            end: source.position(span.end.max(span.start)),
        })
    }

    /// Whether the span overlaps a secret.
    fn is_hidden(&self, span: Span) -> bool {
        self.secrets.iter().any(|secret| {
            secret.file == span.file && secret.start < span.end && span.start < secret.end
        })
    }

    pub(crate) fn source(&self, file: FileId) -> Option<&Source> {
        self.sources.get(file.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize) -> Span {
        Span {
            start,
            end: start + 1,
            ..Span::default()
        }
    }

    #[test]
    fn comes_in_the_order_of_the_text_and_once_per_cause() {
        let mut all = Diagnostics::default();
        all.add_source(Source::new("f", "a: 1\nb: 2\n"));
        all.push(Diagnostic::warning("w", at(5), "second"));
        all.push(Diagnostic::error("e", at(0), "first"));
        all.push(Diagnostic::error("e", at(0), "first"));
        let messages: Vec<_> = all.sorted().iter().map(|d| d.message.clone()).collect();
        assert_eq!(messages, ["first", "second"]);
        assert_eq!((all.errors(), all.warnings()), (1, 1));
        assert!(all.has_errors());
    }

    #[test]
    fn errors_of_parts_that_are_not_needed_are_warnings() {
        for (need, errors) in [(Need::Everything, 2), (Need::Access, 1)] {
            let mut all = Diagnostics::for_need(need);
            all.push(Diagnostic::error("e", at(0), "a machine"));
            all.set_topic(Topic::Deployment);
            all.push(Diagnostic::error("e", at(1), "a package"));
            assert_eq!((all.errors(), all.warnings()), (errors, 2 - errors));
        }
    }

    #[test]
    fn a_flood_is_counted_but_not_kept() {
        let mut all = Diagnostics::default();
        for start in 0..LIMIT + 7 {
            all.push(Diagnostic::error("e", at(start), "no"));
        }
        assert_eq!(all.errors(), LIMIT + 7);
        assert_eq!(all.omitted(), 7);
        assert_eq!(all.warnings(), 0);
    }
}
