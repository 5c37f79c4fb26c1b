//! The comments of the manual's samples: `//`, which YAML does not know.
//!
//! They are recognised in the text, before parsing, so that one explanation stands for thirty
//! errors and what else is wrong in the file is still found.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// Replaces `//` comments by spaces, so that all places stay, and explains them once.
pub(super) fn remove(text: String, file: Span, diagnostics: &mut Diagnostics) -> String {
    let found = find(&text);
    let Some(first) = found.first() else {
        return text;
    };
    let message = match found.len() {
        1 => "`//` does not start a comment in YAML".to_owned(),
        lines => format!("`//` does not start a comment in YAML; {lines} lines contain one"),
    };
    diagnostics.push(
        Diagnostic::error("slash-comment", file.part(first.start, first.end), message)
            .label("read as part of the value")
            .remedy("write `#` instead: sed -E -i 's,(^|[[:space:]])//,\\1#,' FILE; if it belongs to the value, put the value in quotes"),
    );
    let mut bytes = text.into_bytes();
    for comment in &found {
        bytes[comment.clone()].fill(b' ');
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Where the text is, line after line.
enum State {
    Plain,
    Quoted(char),
    /// In a block scalar that belongs to a line indented so far.
    Block(usize),
}

fn find(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    if !text.contains("//") {
        return found;
    }
    let mut state = State::Plain;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start().len();
        if let State::Block(owner) = state {
            if indent > owner || content.trim().is_empty() {
                start += line.len();
                continue;
            }
            state = State::Plain;
        }
        let (comment, next) = scan(content, indent, state);
        if let Some(at) = comment {
            found.push(start + at..start + content.len());
        }
        state = next;
        start += line.len();
    }
    found
}

/// The comment in a line, and the state behind it.
fn scan(line: &str, indent: usize, mut state: State) -> (Option<usize>, State) {
    let mut before = ' ';
    let mut escaped = false;
    // Where a new value may begin, and so a quotation.
    let mut fresh = true;
    for (at, c) in line.char_indices() {
        match state {
            State::Quoted(quote) => {
                if c == quote && !escaped {
                    state = State::Plain;
                    fresh = false;
                }
                escaped = quote == '"' && c == '\\' && !escaped;
            }
            _ if before.is_whitespace() && c == '#' => {
                return (None, block_or(state, &line[..at], indent));
            }
            _ if before.is_whitespace() && line[at..].starts_with("//") => {
                return (Some(at), block_or(state, &line[..at], indent));
            }
            _ if fresh && (c == '"' || c == '\'') => state = State::Quoted(c),
            _ => {
                fresh = "[{,".contains(c)
                    || (c.is_whitespace() && (fresh || ":-,?".contains(before)))
                    || (fresh && c == '-');
            }
        }
        before = c;
    }
    let end = block_or(state, line, indent);
    (None, end)
}

/// A line that ends in a block scalar's header opens one.
fn block_or(state: State, line: &str, indent: usize) -> State {
    if !matches!(state, State::Plain) {
        return state;
    }
    let header = line
        .trim_end()
        .trim_end_matches(|c: char| c.is_ascii_digit() || "+-".contains(c));
    let opens = header
        .strip_suffix(['|', '>'])
        .is_some_and(|owner| owner.ends_with(": ") || owner.ends_with("- "));
    if opens {
        State::Block(indent)
    } else {
        State::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn finds_comments_and_nothing_else() {
        assert_eq!(
            comments("a: b   // c \"d\n// e\r\nf: 1 // g"),
            ["// c \"d", "// e", "// g"]
        );
        for text in [
            "mirror: https://x",
            "a: \"x // y\"",
            "a: 'x // y'",
            "a: [\"x // y\", 'z // w']",
            "a: b # c // d",
            "a: |\n  x // y\n\n  z // w\n",
            "- >-\n   x // y\n",
            "a: \"x\n  // y\"",
            "a: \"x\\\" // y\"",
        ] {
            assert_eq!(comments(text), Vec::<&str>::new(), "{text}");
        }
        assert_eq!(comments("a: it's // b"), ["// b"]);
        assert_eq!(comments("a: |\n  x // y\nb: 1 // c"), ["// c"]);
        assert_eq!(comments("a: 'x' // b"), ["// b"]);
    }

    #[test]
    fn places_stay_the_same() {
        let mut all = Diagnostics::default();
        let text = remove("a: 1 // 集群\nb: 2\n".to_owned(), Span::default(), &mut all);
        assert_eq!(text, "a: 1          \nb: 2\n");
        assert_eq!(all.errors(), 1);
    }
}
