//! Masks secrets in the lines that are shown, and adjusts positions accordingly.

use super::Diagnostics;
use crate::source::{FileId, Source};

/// Replaces a secret, whatever its length.
const MASK: &str = "********";

/// The maximum length of a line that is shown, in bytes.
const LONGEST: usize = 1000;

/// A line without secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShownLine {
    /// The line's number, from 1.
    pub(super) number: usize,
    /// Its text without secrets.
    pub(super) text: String,
    start: usize,
    /// Replaced parts: where in the file, and how many bytes the replacement begins in `text`.
    masks: Vec<(std::ops::Range<usize>, usize)>,
}

impl ShownLine {
    /// The position in `text` of a byte of the file.
    pub(super) fn offset(&self, byte: usize, end: bool) -> usize {
        let mut at = byte.saturating_sub(self.start);
        for (hidden, shown) in &self.masks {
            if byte >= hidden.end {
                at = shown + MASK.len() + (byte - hidden.end);
            } else if byte > hidden.start || (byte == hidden.start && !end) {
                return if end { shown + MASK.len() } else { *shown };
            }
        }
        self.text.floor_char_boundary(at)
    }
}

impl Diagnostics {
    /// A line of a file, with secrets masked.
    pub(super) fn shown_line(&self, file: FileId, number: usize) -> ShownLine {
        let Some(source) = self.source(file) else {
            return masked("", 0, number, Vec::new());
        };
        let range = source.line(number);
        let mut hidden: Vec<_> = self
            .secrets
            .iter()
            .filter(|secret| secret.file == file)
            .map(|secret| secret.start.max(range.start)..secret.end.min(range.end))
            .filter(|part| part.start < part.end)
            .collect();
        hidden.extend(
            secrets_by_name(source, number)
                .into_iter()
                .map(|part| part.start + range.start..part.end + range.start),
        );
        masked(&source.text()[range.clone()], range.start, number, hidden)
    }
}

fn masked(
    line: &str,
    start: usize,
    number: usize,
    mut hidden: Vec<std::ops::Range<usize>>,
) -> ShownLine {
    hidden.sort_by_key(|part| (part.start, std::cmp::Reverse(part.end)));
    let mut text = String::new();
    let mut masks: Vec<(std::ops::Range<usize>, usize)> = Vec::new();
    let mut copied = start;
    for part in hidden {
        if part.start < copied {
            // Overlaps the one before: lengthen that one.
            if let Some((last, _)) = masks.last_mut()
                && part.end > last.end
            {
                last.end = part.end;
                copied = part.end;
            }
            continue;
        }
        text.push_str(
            line.get(copied - start..part.start - start)
                .unwrap_or_default(),
        );
        masks.push((part.clone(), text.len()));
        text.push_str(MASK);
        copied = part.end;
    }
    text.push_str(line.get(copied - start..).unwrap_or_default());
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    ShownLine {
        number,
        text,
        start,
        masks,
    }
}

/// Parts of the line that look like a secret's value by the name before it. A file that cannot be
/// read as YAML, or a misspelt key, has no tree that says where its secrets are.
fn secrets_by_name(source: &Source, number: usize) -> Vec<std::ops::Range<usize>> {
    let line = &source.text()[source.line(number)];
    let mut parts = Vec::new();
    let lower = line.to_ascii_lowercase();
    let mut from = 0;
    while let Some(found) = ["pass", "secret"]
        .iter()
        .filter_map(|word| lower[from..].find(word))
        .min()
    {
        let word = from + found;
        let name_end = line[word..]
            .find(|c: char| !(c.is_alphanumeric() || "-_".contains(c)))
            .map_or(line.len(), |length| word + length);
        let name = &lower[word..name_end];
        from = name_end;
        let rest = line[name_end..].trim_start_matches(['"', '\'', ' ', '\t']);
        let Some(value) = rest.strip_prefix([':', '=']) else {
            continue;
        };
        if name.ends_with("-env") || name.ends_with("-file") || name.ends_with("_file") {
            continue;
        }
        let begin = line.len() - value.trim_start().len();
        let end = begin + value_length(&line[begin..], line[..word].contains('{'));
        if begin < end {
            parts.push(begin..end);
        }
        from = end.max(from);
    }
    if parts.is_empty() && number > 1 && precedes_secret(source, number - 1) {
        let begin = line.len() - line.trim_start().len();
        if begin < line.len() {
            parts.push(begin..line.len());
        }
    }
    parts
}

/// How far a value reaches that begins here.
fn value_length(value: &str, in_braces: bool) -> usize {
    if let Some(quote) = value.chars().next().filter(|c| "\"'".contains(*c)) {
        return value[1..].rfind(quote).map_or(value.len(), |at| at + 2);
    }
    if in_braces && let Some(at) = value.find([',', '}']) {
        return at;
    }
    value.trim_end().len()
}

/// Whether the line ends with the name of a secret and its value must be on the next.
fn precedes_secret(source: &Source, number: usize) -> bool {
    let line = source.text()[source.line(number)]
        .trim()
        .to_ascii_lowercase();
    let line = line.trim_end_matches(['|', '>', '-', '+', ' ']);
    line.strip_suffix(':').is_some_and(|name| {
        (name.contains("pass") || name.contains("secret"))
            && !name.ends_with("-env")
            && !name.ends_with("file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;

    fn shown(text: &str, line: usize, hide: Option<std::ops::Range<usize>>) -> String {
        let mut all = Diagnostics::default();
        let file = all.add_source(Source::new("f", text));
        if let Some(part) = hide {
            all.hide(Span {
                file,
                start: part.start,
                end: part.end,
            });
        }
        all.shown_line(file, line).text
    }

    #[test]
    fn hides_marked_places_and_named_values() {
        assert_eq!(
            shown("key: hunter2 # x", 1, Some(5..12)),
            "key: ******** # x"
        );
        assert_eq!(
            shown("a: 1\npassword: hunter2", 2, None),
            "password: ********"
        );
        assert_eq!(shown("passwrd:hunter2", 1, None), "passwrd:********");
        assert_eq!(
            shown("- {ip: 1, password: 'a, b', port: 2}", 1, None),
            "- {ip: 1, password: ********, port: 2}"
        );
        assert_eq!(
            shown("- {ansible_ssh_pass: ab, port: 2}", 1, None),
            "- {ansible_ssh_pass: ********, port: 2}"
        );
        assert_eq!(shown("password:\n  hunter2", 2, None), "  ********");
        assert_eq!(shown("password: |\n  hunter2", 2, None), "  ********");
        assert_eq!(shown("password-file: /a/b", 1, None), "password-file: /a/b");
        assert_eq!(shown("name: compass", 1, None), "name: compass");
    }

    #[test]
    fn a_long_line_is_shown_in_part() {
        let line = shown(&"集".repeat(4000), 1, None);
        assert!(line.ends_with('…') && line.len() < 1010);
    }

    #[test]
    fn positions_move_with_the_text() {
        let mut all = Diagnostics::default();
        let file = all.add_source(Source::new("f", "{password: a, port: x}"));
        let line = all.shown_line(file, 1);
        assert_eq!(line.text, "{password: ********, port: x}");
        assert_eq!(
            &line.text[line.offset(20, false)..line.offset(21, true)],
            "x"
        );
        assert_eq!(
            &line.text[line.offset(11, false)..line.offset(12, true)],
            MASK
        );
        assert_eq!(
            &line.text[line.offset(1, false)..line.offset(9, true)],
            "password"
        );
    }
}
