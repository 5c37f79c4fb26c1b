//! Bastions: one connection to each, shared by all machines behind it.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Instant,
};

use tokio::sync::Semaphore;

use super::{Hop, Timeouts, connection::SshConnection, sockets::Sockets};
use crate::transport::{Connection as _, Error};

/// Machines that begin their connection through one bastion at the same time.
const AT_ONCE: usize = 16;

/// Connections to bastions. A bastion is known by the way to it: user, host, port and trusted host
/// keys of it and of those before it; who comes later uses the connection of who came first. A connection
/// ends with the last machine that uses it.
#[derive(Clone, Debug)]
pub struct Bastions {
    all: Arc<Mutex<HashMap<String, Arc<Bastion>>>>,
    sockets: Sockets,
}

impl Default for Bastions {
    fn default() -> Self {
        Self {
            all: Arc::default(),
            sockets: Sockets::of_process(),
        }
    }
}

#[derive(Debug)]
struct Bastion {
    state: tokio::sync::Mutex<State>,
    beginnings: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    connection: Weak<SshConnection>,
    /// The last failure, shared by all who were waiting for it, so that a thousand machines do
    /// not wait a thousand times for a bastion that is not there.
    failed: Option<(Instant, Error)>,
}

/// A bastion with its connection.
type Way = (Arc<Bastion>, Arc<SshConnection>);

impl Bastions {
    /// No bastion is connected yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with a maximum number of connections other than what the limit of open files allows.
    pub fn with_room(room: usize) -> Self {
        Self {
            all: Arc::default(),
            sockets: Sockets::with_room(room),
        }
    }

    /// Connects to a machine through all its bastions.
    pub(super) async fn reach(
        &self,
        name: &str,
        jumps: &[Hop],
        last: &Hop,
        timeouts: &Timeouts,
    ) -> Result<Arc<SshConnection>, Error> {
        let mut way: Option<Way> = None;
        let mut known_as = String::new();
        for hop in jumps {
            // Writing to a String cannot fail.
            let _ = write!(
                known_as,
                "{}@{} {:?}>",
                hop.user,
                hop.address(),
                hop.host_key
            );
            let bastion = self.bastion(&known_as);
            let connection = bastion
                .connection(hop, way.as_ref(), timeouts, &self.sockets)
                .await;
            let connection = connection.map_err(|error| Error::Bastion {
                host: name.into(),
                bastion: hop.host.clone(),
                source: Box::new(error),
            })?;
            way = Some((bastion, connection));
        }
        begin(name, last, way.as_ref(), timeouts, &self.sockets).await
    }

    fn bastion(&self, known_as: &str) -> Arc<Bastion> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            Arc::new(Bastion {
                state: tokio::sync::Mutex::default(),
                beginnings: Semaphore::new(AT_ONCE),
            })
        };
        all.entry(known_as.into()).or_insert_with(new).clone()
    }
}

impl Bastion {
    async fn connection(
        &self,
        hop: &Hop,
        way: Option<&Way>,
        timeouts: &Timeouts,
        sockets: &Sockets,
    ) -> Result<Arc<SshConnection>, Error> {
        let came = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.upgrade().filter(|c| !c.is_closed()) {
            return Ok(connection);
        }
        if let Some((_, error)) = state.failed.as_ref().filter(|(when, _)| *when >= came) {
            return Err(error.clone());
        }
        match begin(&hop.host, hop, way, timeouts, sockets).await {
            Ok(connection) => {
                state.connection = Arc::downgrade(&connection);
                state.failed = None;
                Ok(connection)
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

async fn begin(
    name: &str,
    hop: &Hop,
    way: Option<&Way>,
    timeouts: &Timeouts,
    sockets: &Sockets,
) -> Result<Arc<SshConnection>, Error> {
    let Some((bastion, connection)) = way else {
        let connection = SshConnection::establish(name, hop, None, timeouts, sockets).await?;
        sockets.add(&connection);
        return Ok(connection);
    };
    // Never closed; and if it were, going on would do no harm.
    let _turn = bastion.beginnings.acquire().await;
    SshConnection::establish(name, hop, Some(connection.clone()), timeouts, sockets).await
}
