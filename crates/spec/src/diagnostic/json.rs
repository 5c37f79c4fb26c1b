//! Diagnostics as JSON.

use serde::Serialize;
use serde::ser::SerializeSeq;

use super::{Diagnostic, Diagnostics, Severity};
use crate::source::{Position, Span};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct DiagnosticJson {
    severity: Severity,
    /// The stable name of the kind of mistake.
    code: &'static str,
    message: String,
    #[serde(flatten)]
    place: PlaceJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<RelatedJson>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct PlaceJson {
    file: String,
    line: usize,
    column: usize,
    end: Position,
    /// The first line, with secrets masked.
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct RelatedJson {
    label: String,
    #[serde(flatten)]
    place: PlaceJson,
}

impl Diagnostics {
    fn json(&self, diagnostic: &Diagnostic) -> DiagnosticJson {
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
        // The end of a secret would reveal its length.
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
