//! One stream of a faulty connection.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::{
    Fault,
    meter::{Meter, Pass},
};

pub(super) struct Faulty<S> {
    stream: S,
    meter: Arc<Meter>,
    /// Until when a slow stream rests, one for each direction.
    reading: Rest,
    writing: Rest,
    /// What a truncated input has let through, and whether its end was signalled.
    let_through: u64,
    ended: bool,
}

impl<S> Faulty<S> {
    pub(super) fn new(stream: S, meter: Arc<Meter>) -> Self {
        Self {
            stream,
            meter,
            reading: Rest(None),
            writing: Rest(None),
            let_through: 0,
            ended: false,
        }
    }

    /// The bytes of a slow stream that move at once: a twentieth of a second's.
    fn portion(&self) -> usize {
        match self.meter.fault {
            Fault::Slow(rate) => usize::try_from(rate / 20).unwrap_or(usize::MAX).max(1),
            _ => usize::MAX,
        }
    }
}

/// A pause of a slow stream.
struct Rest(Option<Pin<Box<Sleep>>>);

impl Rest {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(rest) = self.0.as_mut() {
            ready!(rest.as_mut().poll(cx));
            self.0 = None;
        }
        Poll::Ready(())
    }

    fn after(&mut self, count: usize, fault: &Fault) {
        if let Fault::Slow(rate) = fault {
            let micros = (count as u64).saturating_mul(1_000_000) / (*rate).max(1);
            self.0 = Some(Box::pin(sleep(Duration::from_micros(micros))));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Faulty<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.reading.poll(cx));
        let wanted = buffer.remaining().min(self.portion());
        let Pass::Some(wanted) = self.meter.may_read(wanted) else {
            return Poll::Pending;
        };
        let mut bytes = vec![0; wanted];
        let mut some = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut some))?;
        let filled = some.filled();
        // What came while nothing moves any more is not seen.
        if matches!(self.meter.may_read(filled.len()), Pass::Nothing) {
            return Poll::Pending;
        }
        buffer.put_slice(filled);
        let count = filled.len();
        self.meter.has_read(count);
        let meter = self.meter.clone();
        self.reading.after(count, &meter.fault);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Faulty<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.writing.poll(cx));
        let wanted = bytes.len().min(self.portion());
        let Pass::Some(mut wanted) = self.meter.may_write(wanted) else {
            return Poll::Pending;
        };
        if let Fault::Truncate(limit) = self.meter.fault {
            let left = limit - self.let_through;
            if left == 0 {
                ready!(self.poll_shutdown(cx))?;
                return Poll::Ready(Ok(bytes.len()));
            }
            wanted = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        let stream = Pin::new(&mut self.stream);
        let count = ready!(stream.poll_write(cx, &bytes[..wanted]))?;
        self.let_through += count as u64;
        self.meter.wrote(count);
        let meter = self.meter.clone();
        self.writing.after(count, &meter.fault);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        if matches!(self.meter.may_write(1), Pass::Nothing) {
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        self.ended = true;
        Poll::Ready(Ok(()))
    }
}
