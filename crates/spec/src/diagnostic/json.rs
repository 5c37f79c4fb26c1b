//! The same as data, for programs.

use serde::Serialize;
use serde::ser::SerializeSeq;

use super::{Diagnostic, Diagnostics, Severity};
use crate::source::{Position, Span};

/// A diagnostic as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiagnosticJson {
    /// `error` or `warning`.
    pub severity: Severity,
    /// The stable name of the kind of mistake.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    #[serde(flatten)]
    pub place: PlaceJson,
    /// A few words on the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Other places that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedJson>,
}

/// A place as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlaceJson {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character, from 1.
    pub column: usize,
    /// Where it ends.
    pub end: Position,
    /// The line's text, secrets blotted out.
    pub text: String,
}

/// A place that belongs to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelatedJson {
    /// A few words on the place.
    pub label: String,
    /// Where.
    #[serde(flatten)]
    pub place: PlaceJson,
}

impl Diagnostics {
    /// One of them as data.
    pub fn json(&self, diagnostic: &Diagnostic) -> DiagnosticJson {
        DiagnosticJson {
            severity: diagnostic.severity,
            code: diagnostic.code,
            message: diagnostic.message.clone(),
            place: self.place_json(diagnostic.span),
            label: diagnostic.label.clone(),
            remedy: diagnostic.remedy.clone(),
            related: diagnostic
                .related
                .iter()
                .map(|(span, label)| RelatedJson {
                    label: label.clone(),
                    place: self.place_json(*span),
                })
                .collect(),
        }
    }

    fn place_json(&self, span: Span) -> PlaceJson {
        let start = Position { line: 1, column: 1 };
        let (file, start, end) = self.place(span).map_or(("", start, start), |place| {
            (place.file, place.start, place.end)
        });
        // Where a secret ends would tell how long it is.
        let end = if self.is_hidden(span) { start } else { end };
        PlaceJson {
            file: file.to_owned(),
            line: start.line,
            column: start.column,
            end,
            text: self.shown_line(span.file, start.line).text,
        }
    }
}

impl Serialize for Diagnostics {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.sorted();
        let mut list = serializer.serialize_seq(Some(all.len()))?;
        for one in all {
            list.serialize_element(&self.json(one))?;
        }
        list.end()
    }
}
