//! The way to a machine: commands with their three streams, and streams to its addresses.
//!
//! [`ssh`] is the real thing. For tests there are `local`, the same for the machine we run on, `faulty`, which puts
//! faults between a caller and either of them, and `memory`, a machine without any process.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

mod ending;
mod error;
#[cfg(feature = "local")]
pub mod faulty;
#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "memory")]
pub mod memory;
pub mod ssh;

pub use error::{Error, Unreachable};

/// A stream in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What is read from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// What is written to.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A live connection to one machine.
pub trait Connection: Send + Sync {
    /// The machine's name, for messages.
    fn name(&self) -> &str {
        "the machine"
    }

    /// Begins a command; the words go to the login shell of the user as they are. Waits while
    /// the connection has as many commands as it may.
    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>>;

    /// A stream to an address as the machine sees it. What goes through may be read by the machine.
    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>>;

    /// Whether nothing can be done with it any more.
    fn is_closed(&self) -> bool;

    /// Ends it. Commands that run are not ended by it, only their streams are.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Where [`crate::privilege`] remembers that sudo asks for nothing here.
    fn free_sudo(&self) -> Option<Arc<AtomicBool>> {
        None
    }
}

/// A command that was begun.
///
/// `output` and `errors` each hold what comes up to 256 KiB; what is more waits on the machine
/// until it is read, and with it everything else on the same connection. Therefore both are to
/// be read, at the same time or in turns. One that is dropped is read and thrown away. A
/// command whose full stream is not read for long is given up as lost rather than stopping its
/// neighbours.
///
/// Dropping all of it closes the command's streams; it does not end the command.
pub struct Running {
    /// What the command reads. `shutdown` is its end, and so is dropping it.
    pub input: Writer,
    /// What it prints. Fails where the connection was lost: an end is an end only when the
    /// command made it.
    pub output: Reader,
    /// What it complains of.
    pub errors: Reader,
    /// How it ends. May be known before the last output is read, never without the output
    /// being read that fills its buffer.
    pub exit: BoxFuture<'static, Result<Exit, Error>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// Writes all `input`, reads all there is to read, and waits for the end. For small
    /// answers: everything is kept in memory.
    ///
    /// # Errors
    /// [`Error::TooLong`] when it prints more than 8 MiB; of what it complains of only the last
    /// 64 KiB are kept.
    pub async fn finish(self, input: &[u8]) -> Result<Finished, Error> {
        let Self {
            input: mut writer,
            mut output,
            mut errors,
            exit,
        } = self;
        let write = async move {
            // A command need not read what it is given.
            let _ = writer.write_all(input).await;
            let _ = writer.shutdown().await;
            Ok(())
        };
        let answer = all_up_to(&mut output, ANSWER_LIMIT);
        let complaint = async { Ok(last_of(&mut errors, COMPLAINT_LIMIT).await) };
        let ((), output, errors) = tokio::try_join!(write, answer, complaint)?;
        Ok(Finished {
            exit: exit.await?,
            output,
            errors,
        })
    }
}

/// More than any honest machine answers to a question or a task.
pub(crate) const ANSWER_LIMIT: usize = 8 * 1024 * 1024;

/// How much of the end of a command's error output is kept, in bytes.
const COMPLAINT_LIMIT: usize = 64 * 1024;

/// Reads to the end. A stream that fails does so for a reason that the exit names.
async fn all_up_to(reader: &mut Reader, limit: usize) -> Result<Vec<u8>, Error> {
    let mut all = Vec::new();
    let mut bounded = reader.take(limit as u64 + 1);
    let _ = bounded.read_to_end(&mut all).await;
    match all.len() > limit {
        true => Err(Error::TooLong { limit }),
        false => Ok(all),
    }
}

/// Reads to the end and gives the last bytes, however many there are.
pub(crate) async fn last_of(reader: &mut Reader, limit: usize) -> Vec<u8> {
    let (mut kept, mut piece) = (Vec::new(), vec![0; 4096]);
    while let Ok(length @ 1..) = reader.read(&mut piece).await {
        kept.extend_from_slice(&piece[..length]);
        // Not for each piece: what is kept would be moved each time.
        if kept.len() > 2 * limit {
            kept.drain(..kept.len() - limit);
        }
    }
    kept.drain(..kept.len().saturating_sub(limit));
    kept
}

/// A command that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// How the command ended.
    pub exit: Exit,
    /// All it printed.
    pub output: Vec<u8>,
    /// All it complained of.
    pub errors: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(u32),
    /// By a signal, named without `SIG`.
    Signal(String),
}

impl Default for Exit {
    fn default() -> Self {
        Self::Code(0)
    }
}

impl Exit {
    /// Whether it ended with 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(name) => write!(f, "signal {name}"),
        }
    }
}

/// How a machine is reached; connects anew each time.
pub trait Connector: Send + Sync {
    /// The machine's name, for messages.
    fn name(&self) -> &str;

    /// Opens a connection, or fails after the transport's own timeouts.
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>>;
}

/// How much of a stream is buffered for a slow reader, in bytes.
const BUFFER: usize = 256 * 1024;

/// Both directions of one thing, made of one for each.
struct Joined<R, W> {
    reader: R,
    writer: W,
}

impl<R: AsyncRead + Unpin, W: Unpin> AsyncRead for Joined<R, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buffer)
    }
}

impl<R: Unpin, W: AsyncWrite + Unpin> AsyncWrite for Joined<R, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}
