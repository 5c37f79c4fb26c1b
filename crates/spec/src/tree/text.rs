//! From bytes to text that can be parsed, or the reason why not.

use std::borrow::Cow;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Input, SIZE_LIMIT, Source, Span};

/// The file's text, added to the sources; `None` if it is not valid UTF-8.
pub(super) fn decode(input: Input<'_>, diagnostics: &mut Diagnostics) -> (FileId, Option<String>) {
    let bytes = input
        .bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(input.bytes);
    if bytes.len() > SIZE_LIMIT {
        let file = diagnostics.add_source(Source::new(input.name, ""));
        let message = format!(
            "the file is {} MiB; a deploy file may be at most {} MiB",
            bytes.len() >> 20,
            SIZE_LIMIT >> 20
        );
        diagnostics.push(
            Diagnostic::error("file-too-big", start_of(file), message)
                .remedy("check that this is the right file"),
        );
        return (file, None);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let file = diagnostics.add_source(Source::new(input.name, text));
            let bad = text.char_indices().find(|(_, c)| is_unprintable(*c));
            if let Some((at, c)) = bad {
                let span = start_of(file).part(at, at + c.len_utf8());
                let message = format!("the character U+{:04X} is not allowed in YAML", c as u32);
                diagnostics.push(
                    Diagnostic::error("control-character", span, message)
                        .remedy("remove it; is this a text file?"),
                );
                return (file, None);
            }
            (file, Some(text.to_owned()))
        }
        Err(error) => {
            let shown = shown_bytes(bytes, error.valid_up_to());
            let at = error.valid_up_to();
            let file = diagnostics.add_source(Source::new(input.name, &shown));
            let utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
            let message = if utf16 {
                "the file is UTF-16, not UTF-8"
            } else {
                "the file is not UTF-8 text"
            };
            diagnostics.push(
                Diagnostic::error("not-utf8", start_of(file).part(at, at + 1), message)
                    .label("the first byte that is not UTF-8")
                    .remedy("save it as UTF-8 (iconv -t UTF-8)"),
            );
            (file, None)
        }
    }
}

pub(super) fn start_of(file: FileId) -> Span {
    Span {
        file,
        start: 0,
        end: 0,
    }
}

/// The text up to the first bad byte and the rest of that line.
fn shown_bytes(bytes: &[u8], bad: usize) -> Cow<'_, str> {
    let end = bytes[bad..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |length| bad + length);
    String::from_utf8_lossy(&bytes[..end])
}

/// What YAML does not allow in a file.
fn is_unprintable(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'))
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}
