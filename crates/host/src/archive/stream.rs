//! The unpacked stream, counted and bounded: no read goes beyond the budget.

use std::io::{self, Read};

use super::{compression::NotAFrame, flaw::Flaw, header::BLOCK};

/// Reads an archive's unpacked bytes in order.
pub(super) struct Stream<R> {
    inner: R,
    position: u64,
    budget: u64,
    packed: u64,
    /// The last entry that was read whole, for messages.
    last: Option<String>,
}

impl<R: Read> Stream<R> {
    /// `packed` is the size of the archive itself, `budget` how far it may unpack.
    pub(super) fn new(inner: R, packed: u64, budget: u64) -> Self {
        Self {
            inner,
            position: 0,
            budget,
            packed,
            last: None,
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn passed(&mut self, entry: String) {
        self.last = Some(entry);
    }

    /// Some bytes, or none at the end.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> Result<usize, Flaw> {
        let count = loop {
            match self.inner.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| self.broken(error))?,
            }
        };
        self.position += count as u64;
        if self.position > self.budget {
            return Err(self.bomb());
        }
        Ok(count)
    }

    /// As many bytes as there are, up to the length of `buf`.
    pub(super) fn fill(&mut self, buf: &mut [u8]) -> Result<usize, Flaw> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.read(&mut buf[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// The next `size` bytes, piece by piece, in a buffer of the caller.
    pub(super) fn each_piece(
        &mut self,
        size: u64,
        buffer: &mut [u8],
        mut piece: impl FnMut(&[u8]),
    ) -> Result<(), Flaw> {
        // A size beyond the budget is refused before its bytes are unpacked.
        if size > self.budget.saturating_sub(self.position) {
            return Err(self.bomb());
        }
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            match self.read(&mut buffer[..most])? {
                0 => return Err(self.truncated()),
                count => {
                    piece(&buffer[..count]);
                    left -= count as u64;
                }
            }
        }
        Ok(())
    }

    /// Passes over what fills an entry's last block.
    pub(super) fn skip_padding(&mut self) -> Result<(), Flaw> {
        let over = self.position % BLOCK as u64;
        let padding = (BLOCK as u64 - over) % BLOCK as u64;
        self.each_piece(padding, &mut [0; BLOCK], |_| {})
    }

    pub(super) fn truncated(&self) -> Flaw {
        let after = self.last.clone();
        Flaw::Truncated { after }
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Flaw {
        Flaw::Damaged {
            after: self.last.clone(),
            what: what.into(),
        }
    }

    fn bomb(&self) -> Flaw {
        Flaw::Bomb {
            most: self.budget,
            packed: self.packed,
        }
    }

    fn broken(&self, error: io::Error) -> Flaw {
        if error.raw_os_error().is_some() {
            return Flaw::Unreadable { source: error };
        }
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return self.truncated();
        }
        match error.get_ref() {
            Some(inner) if inner.is::<NotAFrame>() => Flaw::Trailing,
            _ => self.damaged(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_stops_at_its_budget() {
        let mut stream = Stream::new(io::repeat(0), 7, 1000);
        let mut buffer = [0; 64];
        assert!(stream.each_piece(1000, &mut buffer, |_| {}).is_ok());
        let bomb = stream.read(&mut buffer);
        assert!(matches!(
            bomb,
            Err(Flaw::Bomb {
                most: 1000,
                packed: 7
            })
        ));
    }

    #[test]
    fn a_size_beyond_the_budget_is_refused_unread() {
        let mut stream = Stream::new(io::repeat(0), 7, 1000);
        let bomb = stream.each_piece(u64::MAX, &mut [0; 64], |_| panic!("was read"));
        assert!(matches!(bomb, Err(Flaw::Bomb { .. })));
        assert_eq!(stream.position(), 0);
    }

    #[test]
    fn an_early_end_names_the_last_whole_entry() {
        let mut stream = Stream::new(&[0; 10][..], 10, 1000);
        stream.passed("\"a\"".into());
        let flaw = stream.each_piece(11, &mut [0; 64], |_| {}).unwrap_err();
        assert_eq!(flaw.to_string(), "it ends too early, after \"a\"");
    }
}
