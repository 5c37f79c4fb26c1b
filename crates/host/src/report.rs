//! What a machine answers, line by line. Its words are not trusted: they are bounded and may be wrong.

use std::collections::BTreeMap;

use crate::transport::ANSWER_LIMIT;

/// How one step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The script began; the run it belongs to.
    Begin(String),
    /// A step is being done.
    Start(usize),
    /// A step changed something.
    Changed(usize),
    /// A step found everything as it should be.
    Unchanged(usize),
    /// A step would change something, and why.
    Would(usize, String),
    /// A step needs bytes that did not come.
    Wanting(usize),
    /// What a step printed last that went well.
    Said(usize, String),
    /// A step failed, with what it printed last.
    Failed(usize, String),
    /// Applying would do more than the steps say.
    Unsettled,
    /// Another run has the machine; this one waits.
    Waiting(String),
    /// Another run has the machine and its control process is connected.
    Busy(String),
    /// A run whose connection was gone was ended.
    Fenced(String),
    /// Another cluster has the machine: its id and its name.
    Held(String, String),
    /// A program that is needed is not there.
    Needs(String),
    /// Nothing could be begun.
    Stopped(String),
    /// Undo: a resource was put back.
    Undone(String),
    /// Undo: a directory of ours holds other people's files, and stays.
    Kept(String),
    /// Undo: a resource could not be put back.
    Left(String),
    /// Why the resource of the line before was left.
    Why(String),
    /// The script ended, and how.
    End(String),
}

/// Reads lines out of pieces of any size. What a machine can make it hold is bounded by [`LONGEST`], [`MOST_LINES`] and
/// [`ANSWER_LIMIT`].
#[derive(Debug, Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    text: Option<(Vec<String>, usize)>,
    /// Bytes of the buffer that are known to hold no line break.
    searched: usize,
    /// Bytes and lines of the answer so far.
    bytes: usize,
    lines: usize,
}

/// More than any honest line has.
const LONGEST: usize = 64 * 1024;

/// More lines than any honest answer has: one for each resource of a machine.
const MOST_LINES: usize = 100_000;

/// An answer that is none of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The beginning of a line that is not part of the protocol.
    Garbled(String),
    /// It goes on and on.
    TooLong,
}

impl Reader {
    /// Takes a piece of output and gives the lines that are complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Line>, Unreadable> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > ANSWER_LIMIT {
            return Err(Unreadable::TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        let (mut lines, mut start) = (Vec::new(), 0);
        loop {
            let rest = &self.buffer[start..];
            if let Some((words, length)) = &self.text {
                // The text, and the line break after it.
                let Some(text) = rest.get(..*length).filter(|_| rest.len() > *length) else {
                    break;
                };
                lines.push(with_text(words, readable(text))?);
                start += length + 1;
                self.text = None;
                continue;
            }
            let unsearched = self.searched.min(rest.len());
            let found = rest[unsearched..].iter().position(|byte| *byte == b'\n');
            let Some(end) = found.map(|at| unsearched + at) else {
                if rest.len() > LONGEST {
                    return Err(garbled(rest));
                }
                self.searched = rest.len();
                break;
            };
            self.searched = 0;
            self.lines += 1;
            if self.lines > MOST_LINES {
                return Err(Unreadable::TooLong);
            }
            let line = readable(&rest[..end]);
            start += end + 1;
            match plain(&line) {
                Some(line) => lines.push(line),
                None => self.text = Some(announced(&line)?),
            }
        }
        // Once for each piece, not for each line: an answer of many lines may come in one.
        self.buffer.drain(..start);
        Ok(lines)
    }
}

fn garbled(bytes: &[u8]) -> Unreadable {
    Unreadable::Garbled(readable(&bytes[..bytes.len().min(200)]))
}

/// Without what would move a terminal's cursor or colour it.
pub(crate) fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

fn plain(line: &str) -> Option<Line> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let number = || rest.parse().ok();
    Some(match verb {
        "hatchery" => Line::Begin(rest.strip_prefix("1 ")?.to_owned()),
        "start" => Line::Start(number()?),
        "changed" => Line::Changed(number()?),
        "unchanged" => Line::Unchanged(number()?),
        "wanting" => Line::Wanting(number()?),
        "would" => {
            let (number, reason) = rest.split_once(' ')?;
            Line::Would(number.parse().ok()?, reason.to_owned())
        }
        "unsettled" => Line::Unsettled,
        "waiting" => Line::Waiting(rest.to_owned()),
        "busy" => Line::Busy(rest.to_owned()),
        "fenced" => Line::Fenced(rest.to_owned()),
        "held" => {
            let (id, name) = rest.split_once(' ').unwrap_or((rest, ""));
            Line::Held(id.to_owned(), name.to_owned())
        }
        "needs" => Line::Needs(rest.to_owned()),
        "stopped" => Line::Stopped(rest.to_owned()),
        "undone" => Line::Undone(rest.to_owned()),
        "kept" => Line::Kept(rest.to_owned()),
        "left" => Line::Left(rest.to_owned()),
        "end" => Line::End(rest.to_owned()),
        _ => return None,
    })
}

/// A line whose last word is the length of the text that follows.
fn announced(line: &str) -> Result<(Vec<String>, usize), Unreadable> {
    let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    let length = words.last().and_then(|word| word.parse().ok());
    match (words.first().map(String::as_str), length) {
        (Some("failed" | "said" | "why"), Some(length)) if length <= LONGEST => Ok((words, length)),
        _ => Err(garbled(line.as_bytes())),
    }
}

fn with_text(words: &[String], text: String) -> Result<Line, Unreadable> {
    match words {
        [verb, number, _] if verb != "why" => number
            .parse()
            .map(|number| match verb.as_str() {
                "said" => Line::Said(number, text),
                _ => Line::Failed(number, text),
            })
            .map_err(|_| garbled(words.join(" ").as_bytes())),
        _ => Ok(Line::Why(text)),
    }
}

/// The answer to a task, put together from its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// What each step that was reached said last.
    pub(crate) steps: BTreeMap<usize, Line>,
    /// The lines that concern the run as a whole.
    pub(crate) others: Vec<Line>,
    /// How it ended; an answer without this is not complete.
    pub(crate) end: Option<String>,
}

impl Answer {
    pub(crate) fn take(&mut self, line: Line) {
        match line {
            Line::Start(n)
            | Line::Changed(n)
            | Line::Unchanged(n)
            | Line::Wanting(n)
            | Line::Would(n, _)
            | Line::Failed(n, _) => {
                self.steps.insert(n, line);
            }
            Line::End(how) => self.end = Some(how),
            other => self.others.push(other),
        }
    }

    /// The step that was being done when nothing more came.
    pub(crate) fn underway(&self) -> Option<usize> {
        self.steps
            .iter()
            .find(|(_, line)| matches!(line, Line::Start(_)))
            .map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_come_out_of_pieces_of_any_size() {
        let whole = b"hatchery 1 r1\nsaid 1 2\nhi\nstart 0\nfailed 0 9\nfirst\nend\nend failed\n";
        let mut reader = Reader::default();
        let lines: Vec<_> = whole
            .iter()
            .flat_map(|byte| reader.push(&[*byte]).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                Line::Begin("r1".into()),
                Line::Said(1, "hi".into()),
                Line::Start(0),
                Line::Failed(0, "first\nend".into()),
                Line::End("failed".into()),
            ]
        );
        assert_eq!(Reader::default().push(whole).unwrap(), lines);
    }

    #[test]
    fn what_is_not_ours_is_shown_without_its_escapes() {
        let error = Reader::default()
            .push(b"\x1b[31mWelcome\x07 to\n")
            .unwrap_err();
        assert_eq!(error, Unreadable::Garbled("[31mWelcome to".into()));
        assert!(Reader::default().push(b"failed 0 99999999999\n").is_err());
    }

    /// Gives how many bytes were taken before it was refused.
    fn refused_after(piece: &[u8]) -> (usize, Unreadable) {
        let mut reader = Reader::default();
        for taken in (0..).step_by(piece.len()) {
            if let Err(why) = reader.push(piece) {
                return (taken, why);
            }
            assert!(taken < 2 * ANSWER_LIMIT, "it reads without end");
        }
        unreachable!("the loop has no end of its own")
    }

    #[test]
    fn an_answer_without_end_is_refused() {
        let (taken, why) = refused_after(&[b'x'; 1000]);
        assert!(taken <= LONGEST && matches!(why, Unreadable::Garbled(text) if text.len() == 200));
        let (taken, why) = refused_after(b"undone file /x\n");
        assert!(taken <= MOST_LINES * 15 && why == Unreadable::TooLong);
        let text = [
            b"said 1 60000\n".to_vec(),
            vec![b'x'; 60_000],
            b"\n".to_vec(),
        ]
        .concat();
        let (taken, why) = refused_after(&text);
        assert!(taken <= ANSWER_LIMIT && why == Unreadable::TooLong);
    }

    /// Byte by byte a long line would be searched again and again, and one long answer moved again and again.
    #[test]
    fn the_time_that_an_answer_takes_follows_its_length() {
        let start = std::time::Instant::now();
        let mut reader = Reader::default();
        let line = [
            b"stopped ".to_vec(),
            vec![b'x'; LONGEST - 10],
            b"\n".to_vec(),
        ]
        .concat();
        for byte in line.iter().cycle().take(2 * line.len()) {
            reader.push(&[*byte]).unwrap();
        }
        let many = b"changed 7\n".repeat(MOST_LINES - 10);
        assert_eq!(
            Reader::default().push(&many).unwrap().len(),
            MOST_LINES - 10
        );
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000), cut in 1usize..50) {
            let mut reader = Reader::default();
            for piece in bytes.chunks(cut) {
                if reader.push(piece).is_err() {
                    break;
                }
            }
        }
    }
}
