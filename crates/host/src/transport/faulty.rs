//! Faults on the way to a machine, for the tests of everything above it. The same faults at the
//! same byte each time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};

mod meter;
mod stream;

use super::{Connection, Connector, Error, Running, Stream, Unreachable, ending::Until};
use meter::Meter;
use stream::Faulty;

/// What goes wrong with one connection. Bytes are counted over all its commands and streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused.
    Refuse,
    /// It drops as soon as this number of bytes has been written.
    DropAfterWritten(u64),
    /// It drops as soon as this number of bytes has been read.
    DropAfterRead(u64),
    /// Both directions stall once this number of bytes has been written.
    HangAfterWritten(u64),
    /// Both directions stall once this number of bytes has been read.
    HangAfterRead(u64),
    /// The bytes per second in each direction of each stream; at least one.
    Slow(u64),
    /// The machine sees the end of each input after this number of bytes; the rest is lost.
    Truncate(u64),
    /// Every command prints this instead of what it prints.
    WrongAnswer(Vec<u8>),
}

/// A way to a machine whose connections have faults.
pub struct FaultyConnector {
    inner: Arc<dyn Connector>,
    faults: Vec<Option<Fault>>,
    connected: AtomicUsize,
}

impl FaultyConnector {
    /// The first connection has the first fault, and so on; those after the last have none.
    pub fn new(inner: Arc<dyn Connector>, faults: impl IntoIterator<Item = Option<Fault>>) -> Self {
        Self {
            inner,
            faults: faults.into_iter().collect(),
            connected: AtomicUsize::new(0),
        }
    }

    /// The number of connections that were asked for.
    pub fn connects(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }
}

impl Connector for FaultyConnector {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, Error>> {
        async move {
            let number = self.connected.fetch_add(1, Ordering::SeqCst);
            match self.faults.get(number).cloned().flatten() {
                None => self.inner.connect().await,
                Some(Fault::Refuse) => Err(Error::Unreachable {
                    host: self.name().into(),
                    address: "a faulty way".into(),
                    reason: Unreachable::Refused,
                }),
                Some(fault) => {
                    let inner = self.inner.connect().await?;
                    let connection = FaultyConnection {
                        meter: Arc::new(Meter::new(fault, inner.clone())),
                        inner,
                    };
                    Ok(Arc::new(connection) as Arc<dyn Connection>)
                }
            }
        }
        .boxed()
    }
}

struct FaultyConnection {
    inner: Arc<dyn Connection>,
    meter: Arc<Meter>,
}

impl FaultyConnection {
    fn wrap<S>(&self, stream: S) -> Until<Faulty<S>> {
        let ending = self.meter.ending.clone();
        Until::new(Faulty::new(stream, self.meter.clone()), ending)
    }

    async fn require_life(&self) -> Result<(), Error> {
        self.meter.until_it_moves().await;
        match self.meter.ending.has_come() {
            true => Err(self.meter.lost().await),
            false => Ok(()),
        }
    }

    async fn begin(&self, command: &str) -> Result<Running, Error> {
        self.require_life().await?;
        let mut running = self.inner.exec(command).await?;
        if let Fault::WrongAnswer(answer) = &self.meter.fault {
            let answer = std::io::Cursor::new(answer.clone());
            let mut real = std::mem::replace(&mut running.output, Box::new(answer));
            tokio::spawn(async move { tokio::io::copy(&mut real, &mut tokio::io::sink()).await });
        }
        let (meter, exit) = (self.meter.clone(), running.exit);
        let exit = async move {
            tokio::select! {
                biased;
                error = meter.lost() => Err(error),
                exit = exit => {
                    meter.until_it_moves().await;
                    exit
                }
            }
        };
        Ok(Running {
            input: Box::new(self.wrap(running.input)),
            output: Box::new(self.wrap(running.output)),
            errors: Box::new(self.wrap(running.errors)),
            exit: exit.boxed(),
        })
    }
}

impl Connection for FaultyConnection {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>> {
        self.begin(command).boxed()
    }

    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>> {
        async move {
            self.require_life().await?;
            let stream = self.inner.forward(host, port).await?;
            Ok(Box::new(self.wrap(stream)) as Box<dyn Stream>)
        }
        .boxed()
    }

    fn is_closed(&self) -> bool {
        self.meter.ending.has_come() || self.inner.is_closed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.meter.ending.come("it was closed");
            self.inner.close().await;
        }
        .boxed()
    }

    fn free_sudo(&self) -> Option<Arc<AtomicBool>> {
        self.inner.free_sudo()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::timeout,
    };

    use super::*;
    use crate::transport::{Exit, local::Local};

    async fn with(fault: Fault) -> Arc<dyn Connection> {
        let here = Arc::new(Local::new("here"));
        FaultyConnector::new(here, [Some(fault)])
            .connect()
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn refused_as_often_as_asked_for() {
        let here = Arc::new(Local::new("here"));
        let faulty = FaultyConnector::new(here, [Some(Fault::Refuse), Some(Fault::Refuse)]);
        for _ in 0..2 {
            let refused = faulty.connect().await.err().unwrap();
            assert!(matches!(refused, Error::Unreachable { .. }), "{refused}");
        }
        let connection = faulty.connect().await.unwrap();
        let running = connection.exec("echo hi").await.unwrap();
        assert_eq!(running.finish(b"").await.unwrap().output, b"hi\n");
        assert_eq!(faulty.connects(), 3);
    }

    #[tokio::test]
    async fn dropped_after_so_many_bytes_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let connection = with(Fault::DropAfterWritten(1000)).await;
        let command = format!("cat > {}", file.display());
        let mut running = connection.exec(&command).await.unwrap();
        assert!(running.input.write_all(&[7; 5000]).await.is_err());
        assert!(running.exit.await.unwrap_err().is_lost());
        assert!(connection.is_closed());
        assert!(connection.exec("true").await.unwrap_err().is_lost());
        let arrived = || std::fs::metadata(&file).map_or(0, |data| data.len());
        let begin = Instant::now();
        while arrived() < 1000 && begin.elapsed() < Duration::from_secs(5) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(arrived(), 1000);
    }

    #[tokio::test]
    async fn dropped_after_so_many_bytes_read() {
        let connection = with(Fault::DropAfterRead(1000)).await;
        let mut running = connection.exec("head -c 5000 /dev/zero").await.unwrap();
        let mut read = Vec::new();
        assert!(running.output.read_to_end(&mut read).await.is_err());
        assert_eq!(read.len(), 1000);
        assert!(running.exit.await.unwrap_err().is_lost());
    }

    #[tokio::test]
    async fn hung_in_both_directions() {
        let short = Duration::from_millis(200);
        for fault in [Fault::HangAfterWritten(10), Fault::HangAfterRead(10)] {
            let connection = with(fault.clone()).await;
            let mut running = connection.exec("cat").await.unwrap();
            let mut read = [0; 10];
            running.input.write_all(&[1; 10]).await.unwrap();
            if fault == Fault::HangAfterRead(10) {
                running.output.read_exact(&mut read).await.unwrap();
            }
            let write = running.input.write_all(&[1; 10]);
            assert!(timeout(short, write).await.is_err(), "{fault:?}");
            let read = running.output.read(&mut read);
            assert!(timeout(short, read).await.is_err(), "{fault:?}");
            assert!(timeout(short, running.exit).await.is_err(), "{fault:?}");
            let exec = connection.exec("true");
            assert!(timeout(short, exec).await.is_err(), "{fault:?}");
            assert!(!connection.is_closed());
        }
    }

    #[tokio::test]
    async fn slow() {
        let connection = with(Fault::Slow(10_000)).await;
        let running = connection.exec("head -c 5000 /dev/zero").await.unwrap();
        let begin = Instant::now();
        let finished = running.finish(b"").await.unwrap();
        let took = begin.elapsed();
        assert_eq!(finished.output.len(), 5000);
        let expected = Duration::from_millis(400)..Duration::from_secs(3);
        assert!(expected.contains(&took), "{took:?}");
    }

    #[tokio::test]
    async fn half_a_file() {
        let connection = with(Fault::Truncate(1000)).await;
        let running = connection.exec("wc -c").await.unwrap();
        let finished = running.finish(&[1; 5000]).await.unwrap();
        assert_eq!(finished.exit, Exit::Code(0));
        assert_eq!(String::from_utf8_lossy(&finished.output).trim(), "1000");
    }

    #[tokio::test]
    async fn a_wrong_answer() {
        let connection = with(Fault::WrongAnswer(b"\x1b[2J junk".to_vec())).await;
        let command = "echo right; echo aside >&2; exit 3";
        let running = connection.exec(command).await.unwrap();
        let finished = running.finish(b"").await.unwrap();
        assert_eq!(finished.output, b"\x1b[2J junk");
        assert_eq!(finished.errors, b"aside\n");
        assert_eq!(finished.exit, Exit::Code(3));
    }
}
