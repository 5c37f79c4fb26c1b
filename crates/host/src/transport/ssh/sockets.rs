//! No more connections at once than the process may have files open.
//!
//! An idle connection makes room for one that is wanted; its machine is connected again on the
//! next use.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::sleep,
};

use super::connection::SshConnection;
use crate::transport::Connection as _;

/// Files that are not connections to machines: archives, state, logs, the API, programs that are run.
const OTHERS: usize = 128;
/// Fewer connections than this are of no use.
const FEWEST: usize = 4;
/// The interval at which a waiting connection looks for room.
const PAUSE: Duration = Duration::from_millis(20);

/// Raises the limit of open files to what the system lets this process have.
///
/// # Errors
/// When the system refuses.
pub fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )?;
    Ok(())
}

/// How many connections the limit of open files leaves room for.
fn room() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    limit.saturating_sub(OTHERS.max(limit / 8)).max(FEWEST)
}

/// All connections that have a socket of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets {
    open: Arc<Mutex<Open>>,
    /// Instead of what the system allows.
    room: Option<usize>,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    connections: Vec<Weak<SshConnection>>,
}

/// The limit of the whole process.
static ALL: Mutex<Option<Sockets>> = Mutex::new(None);

impl Sockets {
    /// Those of the process, which share its limit.
    pub(super) fn of_process() -> Self {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_or_insert_default().clone()
    }

    /// This limit, whatever the system allows.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            room: Some(room.max(1)),
            ..Self::default()
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more.
    pub(super) async fn place(&self) -> Place {
        loop {
            {
                let mut open = self.open();
                if open.count < self.room.unwrap_or_else(room) {
                    open.count += 1;
                    return Place(Arc::clone(&self.open));
                }
            }
            if let Some(connection) = self.idle() {
                connection.close().await;
            }
            sleep(PAUSE).await;
        }
    }

    /// A connection that may have to make room later.
    pub(super) fn add(&self, connection: &Arc<SshConnection>) {
        let mut open = self.open();
        open.connections
            .retain(|one| one.upgrade().is_some_and(|one| !one.is_ended()));
        open.connections.push(Arc::downgrade(connection));
    }

    /// The connection that was idle for longest, if there is one; it cannot be used any more.
    fn idle(&self) -> Option<Arc<SshConnection>> {
        let mut all: Vec<_> = {
            let open = self.open();
            let all = open.connections.iter().filter_map(Weak::upgrade);
            all.filter_map(|one| Some((one.idle_since()?, one)))
                .collect()
        };
        all.sort_by_key(|(since, _)| *since);
        all.into_iter()
            .map(|(_, one)| one)
            .find(|one| one.end_if_idle())
    }
}

/// The right to have a socket.
#[derive(Debug)]
pub(super) struct Place(Arc<Mutex<Open>>);

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.count = open.count.saturating_sub(1);
    }
}

/// A socket with its place, which is free again when the socket is gone.
pub(super) struct Placed {
    stream: TcpStream,
    _place: Place,
}

impl Placed {
    pub(super) fn new(stream: TcpStream, place: Place) -> Self {
        Self {
            stream,
            _place: place,
        }
    }
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Placed {
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
