//! The one end that all streams of a connection share.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

/// Comes once, with a reason, and is seen by everyone who holds a clone.
#[derive(Clone)]
pub(super) struct Ending {
    trigger: Arc<Mutex<Option<oneshot::Sender<Arc<str>>>>>,
    comes: Shared<BoxFuture<'static, Arc<str>>>,
}

impl Ending {
    pub(super) fn new() -> Self {
        let (trigger, comes) = oneshot::channel();
        // The trigger lives as long as anyone who could wait for it.
        let comes = async { comes.await.unwrap_or_else(|_| "closed".into()) };
        Self {
            trigger: Arc::new(Mutex::new(Some(trigger))),
            comes: comes.boxed().shared(),
        }
    }

    /// Ends it, unless it has ended already.
    pub(super) fn come(&self, reason: &str) {
        let mut trigger = self.trigger.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trigger) = trigger.take() {
            let _ = trigger.send(reason.into());
        }
    }
}

#[cfg(any(feature = "local", feature = "memory"))]
impl Ending {
    pub(super) fn has_come(&self) -> bool {
        let trigger = self.trigger.lock().unwrap_or_else(PoisonError::into_inner);
        trigger.is_none()
    }

    /// Waits for it; the reason.
    pub(super) async fn comes(&self) -> Arc<str> {
        self.comes.clone().await
    }
}

/// A stream that fails once the end has come.
pub(super) struct Until<S> {
    /// Dropped at the end, so that the other side sees it.
    stream: Option<S>,
    ending: Ending,
    reason: Option<Arc<str>>,
}

impl<S> Until<S> {
    pub(super) fn new(stream: S, ending: Ending) -> Self {
        Self {
            stream: Some(stream),
            ending,
            reason: None,
        }
    }

    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Result<(), io::Error> {
        if self.reason.is_none()
            && let Poll::Ready(reason) = self.ending.comes.poll_unpin(cx)
        {
            self.reason = Some(reason);
            self.stream = None;
        }
        match &self.reason {
            Some(reason) => Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                reason.to_string(),
            )),
            None => Ok(()),
        }
    }

    fn stream(&mut self) -> Result<&mut S, io::Error> {
        self.stream
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Until<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_ending(cx)?;
        Pin::new(self.stream()?).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Until<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_ending(cx)?;
        Pin::new(self.stream()?).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ending(cx)?;
        Pin::new(self.stream()?).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ending(cx)?;
        Pin::new(self.stream()?).poll_shutdown(cx)
    }
}
