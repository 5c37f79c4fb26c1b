//! From a stream to an SSH session whose host key is trusted.

use std::{borrow::Cow, sync::Arc, time::Instant};

use russh::{
    Disconnect, Preferred, cipher,
    client::{self, DisconnectReason, Handle},
    compression,
    keys::{Algorithm, PublicKeyOrCertificate},
};
use tokio::{net::TcpStream, time::sleep, time::timeout};

use super::{
    Hop, HostKey, Timeouts,
    attempt::Attempt,
    connection::{Fate, SshConnection},
    host_keys::{Mismatch, Place},
    sockets::{Place as Room, Placed, Sockets},
    stall::Stalling,
    timeouts::pause,
};
use crate::transport::{Error, Stream, Unreachable};

/// The receive window of a channel, in bytes.
const WINDOW: u32 = 1 << 20;

/// The number of packets that a channel buffers for its reader before the connection waits.
const PACKETS: usize = 8;

/// The session's other half: checks the host key and learns why the session ended.
pub(super) struct Guard {
    host_key: HostKey,
    host: String,
    port: u16,
    fate: Fate,
}

/// Why a session did not begin or ended.
#[derive(Debug)]
pub(super) enum Failure {
    Library(russh::Error),
    Untrusted(Mismatch),
}

impl From<russh::Error> for Failure {
    fn from(error: russh::Error) -> Self {
        Self::Library(error)
    }
}

impl client::Handler for Guard {
    type Error = Failure;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        // Certificates are not asked for, so that none is shown.
        let (host_key, host, port) = (self.host_key.clone(), self.host.clone(), self.port);
        let shown = shown.public_key();
        let checked =
            tokio::task::spawn_blocking(move || host_key.check(&host, port, &shown)).await;
        match checked {
            Ok(Ok(())) => Ok(true),
            Ok(Err(mismatch)) => Err(Failure::Untrusted(mismatch)),
            Err(_) => Ok(false),
        }
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Failure>) -> Result<(), Failure> {
        self.fate.seal(&match reason {
            DisconnectReason::ReceivedDisconnect(info) => match info.reason_code {
                Disconnect::ByApplication if info.message.is_empty() => "it ended it".into(),
                _ => format!("it says '{}'", printable(&info.message)),
            },
            DisconnectReason::Error(Failure::Library(error)) => self.fate.words(&error),
            DisconnectReason::Error(Failure::Untrusted(mismatch)) => mismatch.to_string(),
        });
        Ok(())
    }
}

/// Words from the other side, before anyone has been let in: harmless and short.
pub(super) fn printable(words: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    words.trim().chars().take(200).map(plain).collect()
}

/// A session with the machine at the end of `via`, whose key is trusted. It ends when the attempt is dropped.
pub(super) async fn session(
    name: &str,
    hop: &Hop,
    via: Option<&SshConnection>,
    timeouts: &Timeouts,
    sockets: &Sockets,
) -> Result<(Handle<Guard>, Fate, Attempt), Error> {
    let fail = |reason: String| Error::Handshake {
        host: name.into(),
        reason,
    };
    let begin = Instant::now();
    let mut orders = hop
        .host_key
        .algorithms(&hop.host, hop.port)
        .into_iter()
        .peekable();
    let mut order = orders.next().unwrap_or_default();
    let mut attempt = 0;
    loop {
        let stream = dial(name, hop, via, timeouts, sockets).await?;
        let fate = Fate::new(name, timeouts);
        let guard = Guard {
            host_key: hop.host_key.clone(),
            host: hop.host.clone(),
            port: hop.port,
            fate: fate.clone(),
        };
        let (beginning, stream) = Attempt::begin(stream);
        let stream = Stalling::new(stream, timeouts.silence());
        let begun = client::connect_stream(config(&order, timeouts), stream, guard);
        let failure = match timeout(timeouts.handshake, begun).await {
            Ok(Ok(handle)) => return Ok((handle, fate, beginning)),
            Ok(Err(failure)) => failure,
            Err(_) => {
                return Err(Error::Deadline {
                    host: name.into(),
                    step: "agreeing on SSH keys",
                    after: timeouts.handshake,
                });
            }
        };
        let another_kind = matches!(
            &failure,
            Failure::Untrusted(Mismatch::Changed {
                place: Place::Pinned,
                ..
            }) | Failure::Library(russh::Error::NoCommonAlgo {
                kind: russh::AlgorithmKind::Key,
                ..
            })
        );
        match failure {
            _ if another_kind && orders.peek().is_some() => {
                order = orders.next().unwrap_or_default();
            }
            Failure::Untrusted(source) => {
                return Err(Error::HostKey {
                    host: name.into(),
                    source: Box::new(source),
                });
            }
            // sshd with too many others before it lets us in closes without a word.
            Failure::Library(error) if turned_away(&error) => {
                let pause = pause(attempt, seed(name, attempt));
                if begin.elapsed() + pause > timeouts.busy {
                    let tries = attempt + 1;
                    return Err(fail(format!(
                        "the other side closes the connection before it sends anything ({tries} attempts)"
                    )));
                }
                attempt += 1;
                sleep(pause).await;
            }
            Failure::Library(russh::Error::NoCommonAlgo {
                kind: russh::AlgorithmKind::Key,
                theirs,
                ..
            }) => {
                return Err(fail(format!(
                    "it has no host key of the kind that is pinned, only {}",
                    printable(&theirs.join(", "))
                )));
            }
            Failure::Library(error) => return Err(fail(fate.words(&error))),
        }
    }
}

fn turned_away(error: &russh::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error {
        russh::Error::IO(error) => {
            matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
        }
        russh::Error::Disconnect | russh::Error::HUP => true,
        _ => false,
    }
}

/// Differs between machines and attempts, and is always the same for one.
pub(super) fn seed(name: &str, attempt: u32) -> u64 {
    let bytes = name.bytes().chain(attempt.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn config(keys: &[Algorithm], timeouts: &Timeouts) -> Arc<client::Config> {
    let preferred = Preferred {
        key: Cow::Owned(keys.to_vec()),
        cipher: Cow::Borrowed(&[
            cipher::AES_256_GCM,
            cipher::CHACHA20_POLY1305,
            cipher::AES_256_CTR,
            cipher::AES_192_CTR,
            cipher::AES_128_CTR,
        ]),
        compression: Cow::Borrowed(&[compression::NONE]),
        ..Preferred::DEFAULT
    };
    Arc::new(client::Config {
        preferred,
        window_size: WINDOW,
        channel_buffer_size: PACKETS,
        keepalive_interval: Some(timeouts.keep_alive),
        keepalive_max: timeouts.unanswered,
        nodelay: true,
        ..client::Config::default()
    })
}

async fn dial(
    name: &str,
    hop: &Hop,
    via: Option<&SshConnection>,
    timeouts: &Timeouts,
    sockets: &Sockets,
) -> Result<Box<dyn Stream>, Error> {
    let unreachable = |reason| Error::Unreachable {
        host: name.into(),
        address: hop.address(),
        reason,
    };
    // A way through a bastion has no socket of its own. Waiting for room is not the machine's fault.
    let place = match via {
        Some(_) => None,
        None => Some(sockets.place().await),
    };
    let dialled = async {
        match (via, place) {
            (Some(bastion), _) => through(name, hop, bastion).await,
            (None, place) => directly(hop, place).await.map_err(unreachable),
        }
    };
    let late = |_| unreachable(Unreachable::Timeout(timeouts.connect));
    timeout(timeouts.connect, dialled).await.map_err(late)?
}

async fn directly(hop: &Hop, place: Option<Room>) -> Result<Box<dyn Stream>, Unreachable> {
    let addresses = tokio::net::lookup_host((hop.host.as_str(), hop.port)).await;
    let addresses = addresses.map_err(|error| Unreachable::Name(error.to_string()))?;
    let mut last = Unreachable::Name("none found".into());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream
                    .set_nodelay(true)
                    .map_err(|error| Unreachable::from_error(&error))?;
                return Ok(match place {
                    Some(place) => Box::new(Placed::new(stream, place)),
                    None => Box::new(stream),
                });
            }
            Err(error) => last = Unreachable::from_error(&error),
        }
    }
    Err(last)
}

async fn through(name: &str, hop: &Hop, bastion: &SshConnection) -> Result<Box<dyn Stream>, Error> {
    match bastion.tunnel(&hop.host, hop.port).await {
        Ok(stream) => Ok(stream),
        Err(Error::ForwardRefused {
            forbidden: false,
            reason,
            ..
        }) => Err(Error::Unreachable {
            host: name.into(),
            address: hop.address(),
            reason: Unreachable::Other(format!(
                "{reason}, seen from the bastion {}",
                bastion.fate.host()
            )),
        }),
        Err(error) => Err(Error::Bastion {
            host: name.into(),
            bastion: bastion.fate.host().into(),
            source: Box::new(error),
        }),
    }
}
