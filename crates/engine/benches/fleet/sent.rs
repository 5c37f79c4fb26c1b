//! What is written to a machine, questions included, which no event tells.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use futures::{FutureExt as _, future::BoxFuture};
use hatchery_host::transport::{
    Connection, Connector, Error, Running, Stream, Writer, local::Local,
};
use tokio::io::AsyncWrite;

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    bytes: AtomicU64,
    commands: AtomicU64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    pub(crate) bytes: u64,
    pub(crate) commands: u64,
}

impl Sent {
    pub(crate) fn total(&self) -> Total {
        Total {
            bytes: self.bytes.load(Ordering::Relaxed),
            commands: self.commands.load(Ordering::Relaxed),
        }
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Total {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            commands: self.commands - before.commands,
        }
    }
}

/// The way to a machine, counted.
pub(crate) struct Counted {
    way: Local,
    sent: Arc<Sent>,
}

impl Counted {
    pub(crate) fn new(way: Local, sent: Arc<Sent>) -> Self {
        Self { way, sent }
    }
}

impl Connector for Counted {
    fn name(&self) -> &str {
        self.way.name()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        async {
            let connection = self.way.connect().await?;
            let sent = Arc::clone(&self.sent);
            Ok(Arc::new(CountedConnection { connection, sent }) as Arc<dyn Connection>)
        }
        .boxed()
    }
}

struct CountedConnection {
    connection: Arc<dyn Connection>,
    sent: Arc<Sent>,
}

impl Connection for CountedConnection {
    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>> {
        async {
            self.sent.commands.fetch_add(1, Ordering::Relaxed);
            self.sent.add(command.len());
            let running = self.connection.exec(command).await?;
            let input = CountedWriter {
                writer: running.input,
                sent: Arc::clone(&self.sent),
            };
            Ok(Running {
                input: Box::new(input),
                ..running
            })
        }
        .boxed()
    }

    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>> {
        self.connection.forward(host, port)
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.connection.close()
    }
}

struct CountedWriter {
    writer: Writer,
    sent: Arc<Sent>,
}

impl AsyncWrite for CountedWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.writer).poll_write(context, bytes))?;
        self.sent.add(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}
