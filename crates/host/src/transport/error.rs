//! What can go wrong on the way to a machine, and what the user can do about it.

use std::{fmt, io, time::Duration};

use snafu::Snafu;

use super::ssh::{host_keys::Mismatch, key::KeyError};
use crate::privilege::Refusal;

/// Why a machine could not be reached or used. Names the machine and the step.
#[derive(Clone, Debug, Snafu)]
#[snafu(visibility(pub(super)))]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// No connection could be made.
    #[snafu(display("cannot reach {host} at {address}: {reason}"))]
    Unreachable {
        host: String,
        /// Where it should be.
        address: String,
        reason: Unreachable,
    },
    /// A connection, but no SSH.
    #[snafu(display("cannot begin SSH with {host}: {reason}"))]
    Handshake { host: String, reason: String },
    /// The machine shows a host key that it should not have. Nothing secret was sent.
    #[snafu(display("the host key of {host} is not trusted: {source}"))]
    HostKey {
        host: String,
        #[snafu(source(from(Mismatch, Box::new)))]
        source: Box<Mismatch>,
    },
    /// A private key cannot be used, and there is no other credential.
    #[snafu(display("cannot log in to {host}: {source}"))]
    Key { host: String, source: KeyError },
    /// No credential was accepted.
    #[snafu(display(
        "{host} does not let {user} in: tried {}; it offers {}",
        list(tried),
        list(offered)
    ))]
    Authentication {
        host: String,
        /// The login user.
        user: String,
        /// What was tried, with its outcome.
        tried: Vec<String>,
        /// The methods that the machine would still take.
        offered: Vec<String>,
    },
    /// A step took too long.
    #[snafu(display("{host} did not answer within {} s: {step}", after.as_secs()))]
    Deadline {
        host: String,
        /// What was waited for.
        step: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// A machine on the way failed.
    #[snafu(display("cannot reach {host} through {bastion}: {source}"))]
    Bastion {
        host: String,
        /// The machine on the way.
        bastion: String,
        #[snafu(source(from(Error, Box::new)))]
        source: Box<Error>,
    },
    /// The connection broke. What was being done may be done or not.
    #[snafu(display("lost the connection to {host}: {reason}"))]
    Lost { host: String, reason: String },
    /// The machine takes no further command on this connection.
    #[snafu(display("{host} refuses to run a command: {reason}"))]
    ChannelRefused { host: String, reason: String },
    /// The machine opens no stream to that address.
    #[snafu(display("{host} opens no stream to {to}: {reason}"))]
    ForwardRefused {
        host: String,
        /// The address, as the machine sees it.
        to: String,
        reason: String,
        /// Whether it forbids all such streams.
        forbidden: bool,
    },
    /// A process could not be started on the machine that we run on.
    #[snafu(display("cannot start a process on {host}: {reason}"))]
    Spawn { host: String, reason: String },
    /// A command prints more than anybody should answer.
    #[snafu(display("an answer of more than {} MiB", limit >> 20))]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// We may not become root there.
    #[snafu(display("cannot become root on {host}: {source}"))]
    Privilege { host: String, source: Refusal },
}

impl Error {
    /// Whether a connection that was there is gone: what was asked for may have been done.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether trying again in a moment may help: a machine that boots, a network that comes back.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Handshake { .. }
            | Self::Deadline { .. }
            | Self::Lost { .. } => true,
            Self::Bastion { source, .. } => source.may_pass(),
            _ => false,
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Unreachable { reason, .. } => Some(reason.remedy().into()),
            Self::Handshake { .. } => {
                Some("make sure that an SSH server (OpenSSH 7 or later) answers at this address and port".into())
            }
            Self::HostKey { source, .. } => Some(source.remedy()),
            Self::Key { source, .. } => Some(source.remedy()),
            Self::Authentication { offered, .. } => Some(authentication_remedy(offered).into()),
            Self::Deadline { .. } => {
                Some("look whether the machine is overloaded or frozen, then run again".into())
            }
            Self::Bastion { source, .. } => match &**source {
                Self::Authentication { .. } => Some(
                    "put the public key into the user's ~/.ssh/authorized_keys on the bastion, or give the bastion a password \
                     of its own: it is never sent that of the machines behind it"
                        .into(),
                ),
                other => other.remedy(),
            },
            Self::Privilege { source, .. } => Some(source.remedy().into()),
            Self::Lost { .. } => Some("run again: what is done already is found out from the machine".into()),
            Self::ChannelRefused { .. } => {
                Some("raise MaxSessions in the machine's sshd_config (at least 10), or end other sessions of this user".into())
            }
            Self::ForwardRefused {
                forbidden: true, ..
            } => Some("set 'AllowTcpForwarding yes' in the machine's sshd_config".into()),
            Self::ForwardRefused { .. } => {
                Some("make sure that something listens at this address on the machine".into())
            }
            Self::Spawn { .. } | Self::TooLong { .. } => None,
        }
    }
}

fn authentication_remedy(offered: &[String]) -> &'static str {
    let offers = |method: &str| offered.iter().any(|o| o == method);
    if offers("password") || offers("keyboard-interactive") {
        "check user name and password, or put the public key into the user's ~/.ssh/authorized_keys there"
    } else if offers("publickey") {
        "put the public key into the user's ~/.ssh/authorized_keys there and name the private key; the machine takes no password"
    } else {
        "check user name, password and key; the machine may also have shut this user or address out for a while"
    }
}

fn list(words: &[String]) -> String {
    match words {
        [] => "nothing".into(),
        words => words.join(", "),
    }
}

/// Why no connection could be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The name does not resolve to an address.
    Name(String),
    /// Nothing listens there.
    Refused,
    /// There is no route to the host.
    NoRoute,
    /// There was no answer in time.
    Timeout(Duration),
    /// Another reason.
    Other(String),
}

impl Unreachable {
    /// From what the system said.
    pub(super) fn from_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Self::NoRoute,
            _ => Self::Other(error.to_string()),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Name(_) => "check the spelling of the name, or give the machine's address",
            Self::Refused => "make sure that sshd runs on the machine and listens on this port",
            Self::NoRoute | Self::Timeout(_) | Self::Other(_) => {
                "make sure that the machine is on, that address and port are right and no firewall is between, or name a bastion"
            }
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => write!(f, "its name has no address ({error})"),
            Self::Refused => f.write_str("connection refused"),
            Self::NoRoute => f.write_str("no route to it"),
            Self::Timeout(after) => write!(f, "no answer within {} s", after.as_secs()),
            Self::Other(error) => f.write_str(error),
        }
    }
}
