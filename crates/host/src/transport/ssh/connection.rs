//! A live SSH connection: commands and streams on it, and why it ended.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};
use russh::{Channel, ChannelOpenFailure, Disconnect, client::Handle, client::Msg};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use super::{
    Hop, Timeouts, authentication,
    channel::Carrier,
    handshake::{self, Guard, seed},
    relay,
    sockets::Sockets,
    timeouts::pause,
};
use crate::transport::{Connection, Error, Running, Stream};

/// Why a connection ended, for everyone on it.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    host: Arc<str>,
    reason: Arc<OnceLock<String>>,
    silence: Duration,
}

impl Fate {
    pub(super) fn new(host: &str, timeouts: &Timeouts) -> Self {
        Self {
            host: host.into(),
            reason: Arc::default(),
            silence: timeouts.silence(),
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The first reason is the one.
    pub(super) fn seal(&self, reason: &str) {
        let _ = self.reason.set(reason.into());
    }

    fn is_sealed(&self) -> bool {
        self.reason.get().is_some()
    }

    pub(super) fn lost(&self) -> Error {
        let reason = self.reason.get().map(String::as_str);
        self.lost_because(reason.unwrap_or("the other side closed it"))
    }

    pub(super) fn lost_because(&self, reason: &str) -> Error {
        Error::Lost {
            host: self.host().into(),
            reason: reason.into(),
        }
    }

    pub(super) fn refused(&self, reason: &str) -> Error {
        Error::ChannelRefused {
            host: self.host().into(),
            reason: reason.into(),
        }
    }

    /// The library's errors in words for users.
    pub(super) fn words(&self, error: &russh::Error) -> String {
        use russh::Error as E;
        match error {
            E::KeepaliveTimeout => format!("it did not answer for {} s", self.silence.as_secs()),
            E::Disconnect | E::HUP | E::SendError | E::RecvError => {
                "the other side closed it".into()
            }
            E::IO(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the other side closed it".into()
            }
            E::Version => "what answers there does not speak SSH".into(),
            other => handshake::printable(&other.to_string()),
        }
    }
}

/// A connection that was asked for within this time is about to be used.
const GRACE: Duration = Duration::from_millis(300);

/// Who uses a connection.
#[derive(Debug)]
struct Activity {
    uses: usize,
    since: Instant,
    /// New uses are refused.
    ended: bool,
}

impl Activity {
    fn is_idle(&self) -> bool {
        self.uses == 0 && !self.ended && self.since.elapsed() > GRACE
    }
}

/// A use of a connection, with a place among its commands where it is one.
pub(super) struct Use {
    activity: Arc<Mutex<Activity>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut activity = self.activity.lock().unwrap_or_else(PoisonError::into_inner);
        activity.uses = activity.uses.saturating_sub(1);
        activity.since = Instant::now();
    }
}

/// A connection to one machine.
pub(super) struct SshConnection {
    handle: Arc<Handle<Guard>>,
    pub(super) fate: Fate,
    places: Arc<Semaphore>,
    timeouts: Timeouts,
    free_sudo: Arc<AtomicBool>,
    activity: Arc<Mutex<Activity>>,
    /// The way here, kept open as long as we are.
    _via: Option<Arc<SshConnection>>,
}

impl fmt::Debug for SshConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SshConnection")
            .field(&self.fate.host)
            .finish()
    }
}

impl SshConnection {
    /// Connects and logs in.
    pub(super) async fn establish(
        name: &str,
        hop: &Hop,
        via: Option<Arc<Self>>,
        timeouts: &Timeouts,
        sockets: &Sockets,
    ) -> Result<Arc<Self>, Error> {
        let session = handshake::session(name, hop, via.as_deref(), timeouts, sockets);
        let (mut handle, fate, attempt) = session.await?;
        let logged_in = authentication::log_in(&mut handle, hop, &fate);
        let late = |_| Error::Deadline {
            host: name.into(),
            step: "logging in",
            after: timeouts.authentication,
        };
        timeout(timeouts.authentication, logged_in)
            .await
            .map_err(late)??;
        attempt.succeed();
        Ok(Arc::new(Self {
            handle: Arc::new(handle),
            fate,
            places: Arc::new(Semaphore::new(timeouts.sessions)),
            timeouts: timeouts.clone(),
            free_sudo: Arc::default(),
            activity: Arc::new(Mutex::new(Activity {
                uses: 0,
                since: Instant::now(),
                ended: false,
            })),
            _via: via,
        }))
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_use(&self, place: Option<OwnedSemaphorePermit>) -> Result<Use, Error> {
        let mut activity = self.activity();
        if activity.ended {
            return Err(self.fate.lost());
        }
        activity.uses += 1;
        Ok(Use {
            activity: Arc::clone(&self.activity),
            _place: place,
        })
    }

    /// Since when it is idle; `None` while it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let activity = self.activity();
        activity.is_idle().then_some(activity.since)
    }

    /// Ends it unless it is in use; returns whether it did.
    pub(super) fn end_if_idle(&self) -> bool {
        let mut activity = self.activity();
        let idle = activity.is_idle();
        activity.ended |= idle;
        idle
    }

    pub(super) fn is_ended(&self) -> bool {
        self.activity().ended || self.fate.is_sealed() || self.handle.is_closed()
    }

    /// Opens a channel. In a task of its own: an open channel whose caller has gone is
    /// closed, not leaked.
    async fn open<F>(
        &self,
        what: &'static str,
        opens: F,
    ) -> Result<Result<Channel<Msg>, ChannelOpenFailure>, Error>
    where
        F: Future<Output = Result<Channel<Msg>, russh::Error>> + Send + 'static,
    {
        let (sender, opened) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            if let Err(Ok(channel)) = sender.send(opens.await) {
                let _ = channel.close().await;
            }
        });
        match timeout(self.timeouts.channel, opened).await {
            Ok(Ok(Ok(channel))) => Ok(Ok(channel)),
            Ok(Ok(Err(russh::Error::ChannelOpenFailure(failure)))) => Ok(Err(failure)),
            Ok(_) => Err(self.fate.lost()),
            Err(_) => Err(Error::Deadline {
                host: self.fate.host().into(),
                step: what,
                after: self.timeouts.channel,
            }),
        }
    }

    /// A channel with a command. sshd may have no place for a moment, since it counts commands
    /// whose streams we have closed and that still run.
    async fn open_session(&self, command: &str) -> Result<(Channel<Msg>, Use), Error> {
        let place = self.places.clone().acquire_owned().await;
        let place = place.map_err(|_closed| self.fate.lost())?;
        let place = self.begin_use(Some(place))?;
        let begin = Instant::now();
        for attempt in 0.. {
            let handle = self.handle.clone();
            let command = command.to_owned();
            let opens = async move {
                let channel = handle.channel_open_session().await?;
                // The answer is awaited by the channel's task: one round trip less.
                channel.exec(true, command).await?;
                Ok(channel)
            };
            match self.open("beginning a command", opens).await? {
                Ok(channel) => return Ok((channel, place)),
                Err(failure) if begin.elapsed() > self.timeouts.channel => {
                    let reason = failure.description().to_lowercase();
                    return Err(self.fate.refused(&reason));
                }
                Err(_) => sleep(pause(attempt, seed(self.fate.host(), attempt))).await,
            }
        }
        Err(self.fate.lost())
    }

    /// The timeout for opening a channel.
    pub(super) fn channel_timeout(&self) -> Duration {
        self.timeouts.channel
    }

    fn carrier(&self, channel: Channel<Msg>, place: Use, unread: Duration) -> Carrier {
        Carrier {
            channel,
            fate: self.fate.clone(),
            place,
            unread,
        }
    }

    async fn open_forward(&self, host: &str, port: u16) -> Result<Channel<Msg>, Error> {
        let (handle, to) = (self.handle.clone(), host.to_owned());
        let opens = async move {
            let from = ("127.0.0.1", 0);
            handle
                .channel_open_direct_tcpip(to, port.into(), from.0, from.1)
                .await
        };
        let opened = self.open("opening a stream", opens).await?;
        opened.map_err(|failure| Error::ForwardRefused {
            host: self.fate.host().into(),
            to: format!("{host}:{port}"),
            forbidden: failure == ChannelOpenFailure::AdministrativelyProhibited,
            reason: match failure {
                ChannelOpenFailure::AdministrativelyProhibited => {
                    "its sshd forbids forwarding".into()
                }
                ChannelOpenFailure::ConnectFailed => "nothing answers there".into(),
                other => other.description().to_lowercase(),
            },
        })
    }

    /// The way to a machine behind this one. Given up later than a command there, so that the
    /// one that nobody reads ends, and not all of that machine's.
    pub(super) async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        let used = self.begin_use(None)?;
        let channel = self.open_forward(host, port).await?;
        let unread = self.timeouts.unread + Duration::from_secs(30);
        Ok(Box::new(self.carrier(channel, used, unread).stream()))
    }
}

impl Connection for SshConnection {
    fn name(&self) -> &str {
        self.fate.host()
    }

    fn exec<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<Running, Error>> {
        async move {
            if self.is_closed() {
                return Err(self.fate.lost());
            }
            let (channel, place) = self.open_session(command).await?;
            Ok(self.carrier(channel, place, self.timeouts.unread).command())
        }
        .boxed()
    }

    fn forward<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, Error>> {
        async move {
            let used = self.begin_use(None)?;
            let channel = match self.open_forward(host, port).await {
                Err(Error::ForwardRefused {
                    forbidden: true, ..
                }) => return relay::stream(self, host, port).await,
                opened => opened?,
            };
            let carrier = self.carrier(channel, used, self.timeouts.unread);
            Ok(Box::new(carrier.stream()) as Box<dyn Stream>)
        }
        .boxed()
    }

    fn is_closed(&self) -> bool {
        let closed = self.is_ended();
        if !closed {
            // Who asks is about to use it.
            self.activity().since = Instant::now();
        }
        closed
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.fate.seal("we closed it");
            self.activity().ended = true;
            let _ = self
                .handle
                .disconnect(Disconnect::ByApplication, "", "")
                .await;
        }
        .boxed()
    }

    fn free_sudo(&self) -> Option<Arc<AtomicBool>> {
        Some(self.free_sudo.clone())
    }
}
