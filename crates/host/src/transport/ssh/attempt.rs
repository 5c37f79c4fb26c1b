//! A stream that ends when the attempt to connect over it is given up.
//!
//! The library goes on in a task of its own when its caller has gone, and while keys are exchanged it listens
//! to nothing but the other side: one that falls silent there would keep the socket for ever.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

/// Ends the stream when it is dropped, unless the attempt succeeded.
pub(super) struct Attempt(oneshot::Sender<()>);

impl Attempt {
    pub(super) fn begin<S>(stream: S) -> (Self, Attempted<S>) {
        let (sender, outcome) = oneshot::channel();
        let outcome = Some(outcome);
        (Self(sender), Attempted { stream, outcome })
    }

    /// From here on the stream lives as long as its owner.
    pub(super) fn succeed(self) {
        // Nobody listens when the stream is gone already.
        let _ = self.0.send(());
    }
}

pub(super) struct Attempted<S> {
    stream: S,
    /// `None` once the attempt succeeded.
    outcome: Option<oneshot::Receiver<()>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Attempted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(outcome) = &mut self.outcome {
            match Pin::new(outcome).poll(cx) {
                Poll::Ready(Ok(())) => self.outcome = None,
                Poll::Ready(Err(_)) => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                Poll::Pending => {}
            }
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Attempted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::timeout,
    };

    use super::*;

    #[tokio::test]
    async fn a_stream_ends_with_an_attempt_that_is_given_up() {
        let (near, _far) = tokio::io::duplex(8);
        let (attempt, mut near) = Attempt::begin(near);
        let reading = tokio::spawn(async move { near.read(&mut [0]).await });
        tokio::task::yield_now().await;
        drop(attempt);
        let read = timeout(Duration::from_secs(10), reading).await.unwrap();
        let error = read.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_stream_outlives_an_attempt_that_succeeded() {
        let (near, mut far) = tokio::io::duplex(8);
        let (attempt, mut near) = Attempt::begin(near);
        attempt.succeed();
        far.write_all(b"x").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'x');
        drop(far);
        assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
    }
}
