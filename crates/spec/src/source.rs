//! The text of an input file, and positions in it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// The maximum size of a deploy file, in bytes.
pub const SIZE_LIMIT: usize = 16 << 20;

/// One of the files that are read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u32);

/// A range of bytes in one of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub(crate) file: FileId,
    pub(crate) start: usize,
    /// The byte after the last.
    pub(crate) end: usize,
}

impl Span {
    /// Another range of the same file.
    pub(crate) fn part(self, start: usize, end: usize) -> Self {
        Self { start, end, ..self }
    }

    /// From the beginning of this span to the end of the other.
    pub(crate) fn to(self, other: Self) -> Self {
        Self {
            end: other.end.max(self.end),
            ..self
        }
    }
}

/// A value with its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> Spanned<T> {
    pub(crate) fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned {
            value: change(self.value),
            span: self.span,
        }
    }
}

/// An input file, read by the caller.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The name to show, usually the path as the user gave it.
    pub name: &'a str,
    /// The contents of the file.
    pub bytes: &'a [u8],
    /// Whether others than the owner may read the file.
    pub others_can_read: bool,
}

impl<'a> Input<'a> {
    /// A file that only its owner can read.
    pub fn private(name: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            name,
            bytes,
            others_can_read: false,
        }
    }
}

/// The text of a file and the offsets of its lines.
#[derive(Clone)]
pub(crate) struct Source {
    name: Arc<str>,
    text: Arc<str>,
    lines: Arc<[usize]>,
}

/// Omits the text, which may contain passwords.
impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// Omits the text, which may contain passwords.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} lines)", self.name, self.lines.len())
    }
}

/// A position for display, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let lines = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self {
            name: name.into(),
            text: text.into(),
            lines,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.line_index(offset);
        let start = self.lines[line];
        let end = self.boundary(offset).max(start);
        Position {
            line: line + 1,
            column: self.text[start..end].chars().count() + 1,
        }
    }

    /// The byte range of a line (counted from 1) without its line break.
    pub(crate) fn line(&self, number: usize) -> std::ops::Range<usize> {
        let Some(&start) = self.lines.get(number.wrapping_sub(1)) else {
            return self.text.len()..self.text.len();
        };
        let end = self
            .lines
            .get(number)
            .map_or(self.text.len(), |next| next - 1);
        let line = &self.text[start..end];
        start..start + line.strip_suffix('\r').unwrap_or(line).len()
    }

    fn line_index(&self, offset: usize) -> usize {
        self.lines
            .partition_point(|&start| start <= offset)
            .saturating_sub(1)
    }

    /// The nearest character boundary at or before the offset.
    pub(crate) fn boundary(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_characters_from_one() {
        let source = Source::new("f", "a: 1\r\n集群: b\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(14), Position { line: 2, column: 5 });
        assert_eq!(source.position(7), Position { line: 2, column: 1 });
        assert_eq!(&source.text()[source.line(1)], "a: 1");
        assert_eq!(&source.text()[source.line(2)], "集群: b");
        assert_eq!(&source.text()[source.line(3)], "");
        assert_eq!(source.position(900).line, 3);
        assert!(source.line(9).is_empty());
    }
}
