//! Which machine, and how it lets us in.

use std::path::PathBuf;

use secrecy::SecretString;

use super::{HostKey, Key};

/// A machine to be reached.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in messages.
    pub name: String,
    /// Its address, or a name that has one; seen from the last bastion when there are any.
    pub host: String,
    /// The port that sshd listens on.
    pub port: u16,
    /// The login user.
    pub user: String,
    /// What lets us in, tried in this order.
    pub auth: Vec<Auth>,
    /// Which host keys are trusted.
    pub host_key: HostKey,
    /// The bastions on the way, from here to there.
    pub jumps: Vec<Hop>,
}

impl Target {
    /// The last hop of the way: the machine itself.
    pub(super) fn last(&self) -> Hop {
        Hop {
            host: self.host.clone(),
            port: self.port,
            user: self.user.clone(),
            auth: self.auth.clone(),
            host_key: self.host_key.clone(),
        }
    }
}

/// A machine on the way.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Its address, or a name that has one; seen from the bastion before.
    pub host: String,
    /// The port that sshd listens on.
    pub port: u16,
    /// The login user.
    pub user: String,
    /// What lets us in, tried in this order.
    pub auth: Vec<Auth>,
    /// Which host keys are trusted.
    pub host_key: HostKey,
}

impl Hop {
    /// Host and port.
    pub(super) fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// What lets us in.
#[derive(Clone, Debug)]
pub enum Auth {
    /// The user's password: for the method `password`, then for `keyboard-interactive`.
    Password(SecretString),
    /// A private key.
    Key(Key),
    /// The keys of an ssh-agent.
    Agent {
        /// Its socket; `None` for the one that `SSH_AUTH_SOCK` names.
        socket: Option<PathBuf>,
    },
}
