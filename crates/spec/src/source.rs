//! The text of an input file, and places in it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A file bigger than this is no deploy file.
pub const SIZE_LIMIT: usize = 16 << 20;

/// Which of the files read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// A range of bytes in one of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

impl Span {
    /// A part of this span's file.
    pub fn part(self, start: usize, end: usize) -> Self {
        Self { start, end, ..self }
    }

    /// From the beginning of this span to the end of the other.
    pub fn to(self, other: Self) -> Self {
        Self {
            end: other.end.max(self.end),
            ..self
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// A value at its place.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// Another value at the same place.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned {
            value: change(self.value),
            span: self.span,
        }
    }

    /// The same place with a borrowed value.
    pub fn as_ref(&self) -> Spanned<&T> {
        Spanned {
            value: &self.value,
            span: self.span,
        }
    }
}

/// An input file as the caller found it.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The name to show, usually the path as the user gave it.
    pub name: &'a str,
    /// What the file holds.
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

/// The text of a file, with its lines.
#[derive(Clone)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    lines: Arc<[usize]>,
}

/// A file may hold passwords, so its text is not shown.
impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// A file may hold passwords, so its text is not shown.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} lines)", self.name, self.lines.len())
    }
}

/// A position as people count: from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Source {
    /// A file's text.
    pub fn new(name: &str, text: &str) -> Self {
        let lines = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self {
            name: name.into(),
            text: text.into(),
            lines,
        }
    }

    /// The name to show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte is.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.line_index(offset);
        let start = self.lines[line];
        let end = self.boundary(offset).max(start);
        Position {
            line: line + 1,
            column: self.text[start..end].chars().count() + 1,
        }
    }

    /// The bytes of the line (counted from 1) without its line break.
    pub fn line(&self, number: usize) -> std::ops::Range<usize> {
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
