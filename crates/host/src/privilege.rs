//! Begins a script as root, whether the login user is root or has sudo, with or without a
//! password.
//!
//! Three things share the command's input: sudo's password, the script's own payload, and
//! nothing else. sudo reads a password line only when it feels like it, so the line is sent
//! only when sudo asks; and because a question can be mistaken, the script begins only behind a
//! *go* line that a wrapper waits for: whatever stands before it never reaches the script.
//!
//! The command for the login shell holds no character that shells disagree about inside single
//! quotes, so that csh and fish do as well as sh.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use secrecy::SecretString;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf},
    time::timeout,
};

mod conversation;
mod refusal;
mod wording;

pub use refusal::Refusal;

use crate::transport::{Connection, Error, Running};
use conversation::Conversation;
use wording::Wording;

/// The time that sudo has to let us in.
pub const PROMPT_DEADLINE: Duration = Duration::from_secs(30);

/// The maximum output of a login shell before the script begins, in bytes.
const NOISE: usize = 64 * 1024;

/// How the login user becomes root.
#[derive(Clone, Debug)]
pub enum Privilege {
    /// It is root.
    Root,
    /// By sudo, for a login user that is not root.
    Sudo {
        /// For when sudo asks. Reaches the machine only as an answer.
        password: Option<SecretString>,
    },
}

/// Begins `sh -c SCRIPT` as root. `script` is a constant: one line without `!` and backslash.
/// When this returns, `input` belongs to the script alone.
pub async fn begin(
    connection: &dyn Connection,
    privilege: &Privilege,
    script: &str,
) -> Result<Running, Error> {
    begin_within(connection, privilege, script, PROMPT_DEADLINE).await
}

/// [`begin`], with another deadline for sudo.
pub async fn begin_within(
    connection: &dyn Connection,
    privilege: &Privilege,
    script: &str,
    deadline: Duration,
) -> Result<Running, Error> {
    let refuse = |source| Error::Privilege {
        host: connection.name().to_owned(),
        source,
    };
    let wording = Wording::new(script).map_err(refuse)?;
    let password = match privilege {
        Privilege::Root => {
            let running = connection.exec(&wording.as_root()).await?;
            return Ok(at_once(running, wording, None).await);
        }
        Privilege::Sudo { password } => password.as_ref(),
    };
    let free = connection.free_sudo();
    if let Some(free) = free.as_ref().filter(|free| free.load(Ordering::Relaxed)) {
        let running = connection.exec(&wording.with_free_sudo()).await?;
        return Ok(at_once(running, wording, Some(free.clone())).await);
    }
    let running = connection.exec(&wording.with_sudo()).await?;
    let conversation = Conversation::new(running, &wording, password);
    let let_in = match timeout(deadline, conversation.hold()).await {
        Ok(let_in) => let_in,
        Err(_) => Err(conversation::Failure::Refused(Refusal::Silent {
            after: deadline,
        })),
    };
    let (running, asked) = let_in.map_err(|failure| match failure {
        conversation::Failure::Refused(refusal) => refuse(refusal),
        conversation::Failure::Transport(error) => error,
    })?;
    if let Some(free) = free.filter(|_| !asked) {
        free.store(true, Ordering::Relaxed);
    }
    Ok(running)
}

/// Nothing can ask: the go line is sent without waiting, and what stands before the mark is
/// skipped when the output is read.
async fn at_once(mut running: Running, wording: Wording, free: Option<Arc<AtomicBool>>) -> Running {
    // A command that ended already says so by its output and exit.
    let _ = running.input.write_all(wording.go().as_bytes()).await;
    let _ = running.input.flush().await;
    running.output = Box::new(AfterMark {
        inner: running.output,
        mark: wording.mark().into_bytes(),
        seen: Vec::new(),
        found: false,
        free,
    });
    running
}

/// What the script prints, without what came before it.
struct AfterMark<R> {
    inner: R,
    mark: Vec<u8>,
    /// Before the mark is found what was read, afterwards what is to be given yet.
    seen: Vec<u8>,
    found: bool,
    /// Forgotten when sudo does ask after all.
    free: Option<Arc<AtomicBool>>,
}

impl<R: AsyncRead + Unpin> AfterMark<R> {
    fn poll_mark(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.found {
            let mut chunk = [0; 4096];
            let mut buffer = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                if let Some(free) = &self.free {
                    free.store(false, Ordering::Relaxed);
                }
                return Poll::Ready(Err(io::Error::other(
                    "the command ended before the script began",
                )));
            }
            self.seen.extend_from_slice(buffer.filled());
            if let Some(at) = find(&self.seen, &self.mark) {
                self.seen.drain(..at + self.mark.len());
                self.found = true;
            } else if self.seen.len() > NOISE {
                return Poll::Ready(Err(io::Error::other(
                    "the login shell prints without end before the script begins",
                )));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for AfterMark<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_mark(cx))?;
        if self.seen.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buffer);
        }
        let some = self.seen.len().min(buffer.remaining());
        buffer.put_slice(&self.seen[..some]);
        self.seen.drain(..some);
        Poll::Ready(Ok(()))
    }
}

/// Where `needle` begins.
fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len())
        .position(|window| window == needle)
}

/// Reads some more; nothing at the end.
async fn more(reader: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 4096];
    let count = reader.read(&mut chunk).await?;
    into.extend_from_slice(&chunk[..count]);
    Ok(count)
}
