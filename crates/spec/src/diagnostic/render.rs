//! Diagnostics as text: the underlined line and the remedy.

use annotate_snippets::{Annotation, AnnotationKind, Level, Renderer, Snippet};

use super::redact::ShownLine;
use super::{Diagnostic, Diagnostics, Severity};
use crate::source::Span;

/// A span, the text under it, and whether it is the primary one.
type Mark<'a> = (Span, Option<&'a str>, AnnotationKind);

impl Diagnostics {
    /// All diagnostics as text, in the order of the files, followed by their number.
    pub fn render(&self, colour: bool) -> String {
        let mut text: String = self
            .sorted()
            .into_iter()
            .map(|one| self.render_one(one, colour) + "\n\n")
            .collect();
        if !self.is_empty() {
            text.push_str(&self.summary());
            text.push('\n');
        }
        text
    }

    fn summary(&self) -> String {
        let count = |number: usize, word: &str| match number {
            1 => format!("1 {word}"),
            _ => format!("{number} {word}s"),
        };
        let mut text = match (self.errors(), self.warnings()) {
            (errors, 0) => count(errors, "error"),
            (0, warnings) => count(warnings, "warning"),
            (errors, warnings) => {
                format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
            }
        };
        if self.omitted() > 0 {
            text.push_str(&format!(" ({} not shown)", self.omitted()));
        }
        text
    }

    fn render_one(&self, diagnostic: &Diagnostic, colour: bool) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let main: Mark<'_> = (
            diagnostic.span,
            diagnostic.label.as_deref(),
            AnnotationKind::Primary,
        );
        let others = diagnostic
            .related
            .iter()
            .map(|(span, label)| (*span, Some(label.as_str()), AnnotationKind::Context));
        let mut lines: Vec<(&str, ShownLine, Vec<Mark<'_>>)> = Vec::new();
        for mark in std::iter::once(main).chain(others) {
            let Some(place) = self.place(mark.0) else {
                continue;
            };
            let number = place.start.line;
            match lines
                .iter_mut()
                .find(|(file, line, _)| *file == place.file && line.number == number)
            {
                Some((_, _, marks)) => marks.push(mark),
                None => lines.push((place.file, self.shown_line(mark.0.file, number), vec![mark])),
            }
        }
        let snippets = lines.iter().map(|(file, line, marks)| {
            Snippet::source(line.text.as_str())
                .path(*file)
                .line_start(line.number)
                .annotations(marks.iter().map(|mark| annotation(line, mark)))
        });
        let mut group = level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code)
            .elements(snippets);
        if let Some(remedy) = &diagnostic.remedy {
            let remedy = annotate_snippets::normalize_untrusted_str(remedy);
            group = group.element(Level::HELP.message(remedy));
        }
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

fn annotation<'a>(line: &ShownLine, (span, label, kind): &Mark<'a>) -> Annotation<'a> {
    let start = line.offset(span.start, false).min(line.text.len());
    // A span of several lines is shown by its first.
    let end = line.offset(span.end, true).clamp(start, line.text.len());
    kind.span(start..end).label(*label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn shows_the_line_and_never_a_secret() {
        let mut all = Diagnostics::default();
        let file = all.add_source(Source::new(
            "deploy.yaml",
            "cluster-id: a_b\npassword: hunter2\nusername: x\n",
        ));
        let span = |start, end| Span { file, start, end };
        all.push(
            Diagnostic::error("bad-name", span(12, 15), "\"a_b\" is not a name")
                .label("no underscores")
                .related(span(43, 44), "the user")
                .remedy("write a-b"),
        );
        all.hide(span(26, 33));
        all.push(Diagnostic::warning("w", span(26, 33), "a password"));
        insta::assert_snapshot!(all.render(false));
        assert!(!all.render(true).contains("hunter2"));
        let json = serde_json::to_string_pretty(&all).unwrap();
        assert!(!json.contains("hunter2"));
        insta::assert_snapshot!(json);
    }
}
