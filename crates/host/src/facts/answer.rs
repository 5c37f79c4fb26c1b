//! The script's answer taken apart into sections of safe lines.

use std::collections::BTreeMap;

use snafu::{OptionExt as _, Snafu, ensure};

/// The longest answer that is read; a usual one has 10 kB.
pub const MAX_ANSWER: usize = 4 << 20;

/// The longest line kept of a section, in characters.
const MAX_LINE: usize = 4096;

/// The most lines kept of a section, so that no reader has to fear what grows with their square.
const MAX_LINES: usize = 4096;

const GREETING: &[u8] = b"hatchery-facts ";
const VERSION: &str = "1";

/// Why an answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum Error {
    /// Something else answered.
    #[snafu(display("the machine did not send its facts; it said {said:?}"))]
    NoAnswer {
        /// The beginning of what it said.
        said: String,
    },
    /// Another version of the script answered.
    #[snafu(display("the machine sent its facts in version {found:?} instead of {VERSION:?}"))]
    Version {
        /// What it named.
        found: String,
    },
    /// The script found no random source for its boundary, so nothing it says can be trusted.
    #[snafu(display(
        "the machine has no /proc/sys/kernel/random/uuid, so its facts cannot be read safely"
    ))]
    NoBoundary,
    /// The connection or the script ended early.
    #[snafu(display("the machine's facts were truncated in the section {last:?}"))]
    CutShort {
        /// The last section that began.
        last: String,
    },
    /// The maximum size of an answer.
    #[snafu(display("the machine's facts have {bytes} bytes, more than {MAX_ANSWER}"))]
    TooLong {
        /// How many came.
        bytes: usize,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NoAnswer { .. } => Some(
                "log in by hand and see that the login shell is a POSIX shell and lets commands run".into(),
            ),
            Self::NoBoundary => Some("mount /proc on the machine".into()),
            Self::CutShort { .. } => Some("run it again; the connection may have been lost".into()),
            Self::Version { .. } | Self::TooLong { .. } => None,
        }
    }
}

/// Sections by name, each as lines without anything that a terminal would obey.
#[derive(Debug)]
pub(super) struct Answer {
    sections: BTreeMap<String, Vec<String>>,
    values: BTreeMap<String, String>,
}

impl Answer {
    /// What a login shell says before or after the answer is passed over.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        ensure!(
            bytes.len() <= MAX_ANSWER,
            TooLongSnafu { bytes: bytes.len() }
        );
        let (greeting, rest) = greeting(bytes).with_context(|| NoAnswerSnafu {
            said: safe(&bytes[..bytes.len().min(200)]),
        })?;
        let greeting = safe(greeting);
        let (version, boundary) = greeting.split_once(' ').unwrap_or((&greeting, ""));
        ensure!(version == VERSION, VersionSnafu { found: version });
        ensure!(is_uuid(boundary), NoBoundarySnafu);

        let mark = format!("\n{boundary} ").into_bytes();
        let mut sections = BTreeMap::new();
        let mut last = String::new();
        // What stands before the first mark belongs to no section.
        for section in split(rest, &mark).skip(1) {
            let (name, body) = split_line(section);
            last = safe(name);
            if last == "end" && section.contains(&b'\n') {
                let values = values(&sections);
                return Ok(Self { sections, values });
            }
            sections.insert(last.clone(), lines(body));
        }
        CutShortSnafu { last }.fail()
    }

    /// The lines of a section, without empty ones; `None` when the answer lacks the section.
    pub(super) fn lines(&self, section: &str) -> Option<&[String]> {
        self.sections.get(section).map(Vec::as_slice)
    }

    /// Every line of a section, none when there is no such section.
    pub(super) fn each<'a>(&'a self, section: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.lines(section)
            .unwrap_or_default()
            .iter()
            .map(String::as_str)
    }

    /// One of the single values.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    /// Whether a path that was looked for is there.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.each("paths").any(|line| line == path)
    }
}

/// The first line that begins as an answer does, without that beginning, and what follows it.
/// The newline stays with what follows.
fn greeting(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut begin = 0;
    loop {
        let line = bytes.get(begin..)?;
        let end = line.iter().position(|&byte| byte == b'\n')?;
        if let Some(greeting) = line[..end].strip_prefix(GREETING) {
            return Some((greeting, &line[end..]));
        }
        begin += end + 1;
    }
}

/// What stands between the marks, which begin with a line's end.
fn split<'a>(rest: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(rest);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let ends = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
        let at = ends
            .map(|(at, _)| at)
            .find(|&at| bytes[at..].starts_with(mark));
        rest = at.map(|at| &bytes[at + mark.len()..]);
        Some(at.map_or(bytes, |at| &bytes[..at]))
    })
}

fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    end.map_or((bytes, &[]), |end| (&bytes[..end], &bytes[end + 1..]))
}

fn lines(body: &[u8]) -> Vec<String> {
    let lines = body.split(|&byte| byte == b'\n').map(safe);
    let told = lines.filter(|line| !line.is_empty());
    told.take(MAX_LINES).collect()
}

fn values(sections: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, String> {
    let lines = sections.get("values").into_iter().flatten();
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// Text without what a terminal would obey: control characters and changes of direction. A tab
/// becomes a space.
fn safe(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MAX_LINE)]);
    let safe = text
        .trim_end_matches('\r')
        .chars()
        .take(MAX_LINE)
        .map(|c| match c {
            '\t' => ' ',
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        });
    safe.collect()
}

/// Eight, four, four, four and twelve hexadecimal digits.
pub(super) fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups
            .iter()
            .all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// An answer of the given sections, for the tests of those that read it.
#[cfg(test)]
pub(super) fn with_sections(sections: &[(&str, &str)]) -> Answer {
    let boundary = "00000000-0000-0000-0000-000000000000";
    let mut text = format!("hatchery-facts {VERSION} {boundary}\n");
    for (name, body) in sections.iter().chain(&[("end", "")]) {
        text += &format!("\n{boundary} {name}\n{body}");
    }
    Answer::read(text.as_bytes()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDARY: &str = "0f0e0d0c-1111-2222-3333-444455556666";

    fn read(text: &str) -> Result<Answer, Error> {
        Answer::read(text.replace('@', BOUNDARY).as_bytes())
    }

    #[test]
    fn sections_hold_what_stands_between_boundaries() {
        let answer =
            read("hatchery-facts 1 @\n\n@ values\na b c\n\n@ none\n\n@ two\nx\n y \n\n@ end\n")
                .unwrap();
        assert_eq!(answer.value("a").as_deref(), Some("b c"));
        assert_eq!(answer.lines("none"), Some(&[][..]));
        assert_eq!(answer.lines("two").unwrap(), ["x", " y "]);
        assert_eq!(answer.lines("three"), None);
    }

    #[test]
    fn a_login_shell_may_talk() {
        let answer = read("Welcome!\nhatchery-facts are told\n").err();
        assert!(matches!(answer, Some(Error::Version { .. })), "{answer:?}");
        let answer = read("Welcome!\n\nhatchery-facts 1 @\n\n@ a\nb\n\n@ end\nGoodbye\n").unwrap();
        assert_eq!(answer.lines("a").unwrap(), ["b"]);
    }

    #[test]
    fn nobody_can_pretend_to_be_a_section() {
        let other = BOUNDARY.replace('0', "1");
        let text = format!(
            "hatchery-facts 1 @\n\n@ a\n\n{other} values\nkernel evil\n@\nx @ values\n\n@ end\n"
        );
        let answer = read(&text).unwrap();
        assert_eq!(answer.value("kernel"), None);
        assert_eq!(answer.lines("a").unwrap().len(), 4);
    }

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        let answer =
            read("hatchery-facts 1 @\n\n@ a\n\u{1b}[2Jx\u{202e}y\tz\r\n\n@ end\n").unwrap();
        assert_eq!(answer.lines("a").unwrap(), ["\u{fffd}[2Jx\u{fffd}y z"]);
    }

    #[test]
    fn long_lines_are_cut() {
        let junk = "ä".repeat(1 << 20);
        let answer = read(&format!("hatchery-facts 1 @\n\n@ a\n{junk}\n\n@ end\n")).unwrap();
        assert_eq!(answer.lines("a").unwrap()[0].chars().count(), MAX_LINE);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert!(said("This account is not available.\n").contains("not available"));
        assert!(said("").contains("did not send"));
        assert!(said("hatchery-facts 2 @\n\n@ end\n").contains("version \"2\""));
        assert!(said("hatchery-facts 1 \n\n end\n").contains("random/uuid"));
        assert!(
            said("hatchery-facts 1 @\n\n@ values\nx y")
                .contains("truncated in the section \"values\"")
        );
        assert!(said("hatchery-facts 1 @\n\n@ values\nx y\n@ en").contains("truncated"));
        assert!(said("hatchery-facts 1 @\n\n@ end").contains("truncated"));
        let long = vec![b'x'; MAX_ANSWER + 1];
        assert!(matches!(Answer::read(&long), Err(Error::TooLong { .. })));
    }
}
