//! A channel of a connection as streams: what arrives is carried into bounded buffers by a task
//! of its own, which also learns how the channel ends.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use futures::FutureExt as _;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig, client::Msg};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex},
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::connection::{Fate, Use};
use crate::transport::{
    BUFFER, Error, Exit, Joined, Running, Stream,
    ending::{Ending, Until},
};

/// Held by each stream of a channel; when all are dropped, the channel is closed.
type Interest = mpsc::Sender<Infallible>;

/// What a channel's task needs.
pub(super) struct Carrier {
    pub(super) channel: russh::Channel<Msg>,
    /// The fate of the connection that carries it.
    pub(super) fate: Fate,
    /// The connection's use, with a place among its commands.
    pub(super) place: Use,
    /// See [`super::Timeouts::unread`].
    pub(super) unread: Duration,
}

impl Carrier {
    /// As a command.
    pub(super) fn command(self) -> Running {
        let (exit_sender, exit) = oneshot::channel();
        let fate = self.fate.clone();
        let (input, output, errors) = self.carry(Some(exit_sender));
        let interest = output.interest.clone();
        let exit = async move {
            let _interest = interest;
            exit.await.unwrap_or_else(|_| Err(fate.lost()))
        };
        Running {
            input: Box::new(input),
            output: Box::new(output),
            errors: Box::new(errors),
            exit: exit.boxed(),
        }
    }

    /// As a stream in both directions.
    pub(super) fn stream(self) -> impl Stream + 'static {
        let (writer, reader, _errors) = self.carry(None);
        Joined { reader, writer }
    }

    fn carry(self, exit: Option<oneshot::Sender<Result<Exit, Error>>>) -> (Input, Output, Output) {
        let (reads, writes) = self.channel.split();
        let ending = Ending::new();
        let (interest, nobody) = mpsc::channel(1);
        let verdict: Verdict = Arc::default();
        let output = |pipe| Output {
            pipe,
            verdict: verdict.clone(),
            interest: interest.clone(),
        };
        let (to_output, from_output) = duplex(BUFFER);
        let (to_errors, from_errors) = duplex(BUFFER);
        let streams = (
            Input {
                writer: Some(Box::pin(Until::new(
                    Box::pin(writes.make_writer()),
                    ending.clone(),
                ))),
                _interest: interest.clone(),
            },
            output(from_output),
            output(from_errors),
        );
        let task = Task {
            reads,
            writes,
            nobody,
            output: Some(to_output),
            errors: Some(to_errors),
            exit,
            fate: self.fate,
            verdict,
            unread: self.unread,
            place: self.place,
            complete: false,
        };
        tokio::spawn(async move {
            task.run().await;
            ending.come("the command has ended");
        });
        streams
    }
}

/// Set, before the buffers end, when the channel did not end as it should.
type Verdict = Arc<OnceLock<String>>;

struct Task {
    reads: ChannelReadHalf,
    writes: ChannelWriteHalf<Msg>,
    nobody: mpsc::Receiver<Infallible>,
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
    exit: Option<oneshot::Sender<Result<Exit, Error>>>,
    fate: Fate,
    verdict: Verdict,
    unread: Duration,
    place: Use,
    /// All that was printed has arrived.
    complete: bool,
}

enum End {
    /// As it should.
    Closed,
    /// All its streams were dropped.
    Abandoned,
    /// Its buffer is full and not read.
    Unread,
    /// The command was refused.
    Refused,
    /// With the connection.
    Lost,
}

impl Task {
    async fn run(mut self) {
        let end = self.carry().await;
        let seen_exit = self.exit.is_none();
        let error = match end {
            End::Closed if seen_exit => None,
            End::Closed => Some(
                self.fate
                    .lost_because("the command ended without saying how"),
            ),
            End::Abandoned => Some(self.fate.lost_because("its streams were dropped")),
            End::Unread => Some(self.fate.lost_because(&format!(
                "the command's output was not read for {} s",
                self.unread.as_secs()
            ))),
            End::Refused => Some(self.fate.refused("the server refuses to run it")),
            End::Lost => Some(self.fate.lost()),
        };
        if let Some(error) = error {
            if !self.complete {
                let _ = self.verdict.set(error.to_string());
            }
            if let Some(exit) = self.exit.take() {
                let _ = exit.send(Err(error));
            }
        }
        self.output = None;
        self.errors = None;
        if !matches!(end, End::Closed | End::Lost) {
            // sshd's answer is not told to us. It may keep its own place for longer, until the
            // command has ended.
            let _ = self.writes.close().await;
        }
        drop(self.place);
    }

    async fn carry(&mut self) -> End {
        loop {
            let message = tokio::select! {
                biased;
                _ = self.nobody.recv() => return End::Abandoned,
                message = self.reads.wait() => message,
            };
            let fits = match message {
                Some(ChannelMsg::Data { data }) => pour(&mut self.output, &data, self.unread).await,
                Some(ChannelMsg::ExtendedData { data, ext: 1 }) => {
                    pour(&mut self.errors, &data, self.unread).await
                }
                Some(ChannelMsg::Eof) => {
                    self.output = None;
                    self.errors = None;
                    self.complete = true;
                    true
                }
                Some(ChannelMsg::ExitStatus { exit_status }) => {
                    self.exited(Exit::Code(exit_status));
                    true
                }
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                    self.exited(Exit::Signal(match signal_name {
                        Sig::Custom(name) => name,
                        known => format!("{known:?}"),
                    }));
                    true
                }
                Some(ChannelMsg::Failure) => return End::Refused,
                Some(ChannelMsg::Close) => return End::Closed,
                Some(_) => true,
                None => return End::Lost,
            };
            if !fits {
                return End::Unread;
            }
        }
    }

    fn exited(&mut self, exit: Exit) {
        if let Some(sender) = self.exit.take() {
            let _ = sender.send(Ok(exit));
        }
    }
}

/// Into a buffer, or nowhere when the output is not wanted. Whether it was taken in time.
async fn pour(buffer: &mut Option<DuplexStream>, mut data: &[u8], unread: Duration) -> bool {
    while let Some(pipe) = buffer.as_mut().filter(|_| !data.is_empty()) {
        match timeout(unread, pipe.write(data)).await {
            Ok(Ok(count)) => data = &data[count..],
            Ok(Err(_)) => *buffer = None,
            Err(_) => return false,
        }
    }
    true
}

/// What the command reads.
struct Input {
    writer: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    _interest: Interest,
}

impl Input {
    fn writer(&mut self) -> io::Result<Pin<&mut (dyn AsyncWrite + Send + 'static)>> {
        let writer = self.writer.as_mut().map(Pin::as_mut);
        writer.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.writer()?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Ok(writer) = self.writer() else {
            return Poll::Ready(Ok(()));
        };
        let result = std::task::ready!(writer.poll_shutdown(cx));
        self.writer = None;
        Poll::Ready(result)
    }
}

impl Drop for Input {
    /// A writer that is gone is the end of the input, as with any pipe.
    fn drop(&mut self) {
        if let (Some(mut writer), Ok(runtime)) =
            (self.writer.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move { writer.shutdown().await });
        }
    }
}

/// What the command prints.
struct Output {
    pipe: DuplexStream,
    verdict: Verdict,
    interest: Interest,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let wanted = buffer.remaining() > 0;
        std::task::ready!(Pin::new(&mut self.pipe).poll_read(cx, buffer))?;
        match self.verdict.get() {
            Some(error) if wanted && buffer.filled().len() == before => Poll::Ready(Err(
                io::Error::new(io::ErrorKind::ConnectionReset, error.clone()),
            )),
            _ => Poll::Ready(Ok(())),
        }
    }
}
