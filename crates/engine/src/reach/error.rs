//! What is missing on the control machine before any machine can be reached.

use std::fmt;

use crate::name_list::NameList;

/// Something that is missing, and the machines that need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What.
    pub problem: Problem,
    /// Whose way it bars.
    pub machines: Vec<String>,
}

/// Something that is missing on the control machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The environment variable with a password.
    Variable {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file with a password.
    PasswordFile {
        /// As the deploy file names it.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A password that stands in the deploy file.
    PasswordText {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The private key.
    PrivateKey {
        /// As the deploy file names it.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The pinned host key.
    HostKey {
        /// What is wrong with it.
        reason: String,
    },
    /// The place where host keys are remembered.
    Store {
        /// What is wrong with it.
        reason: String,
    },
}

impl Problem {
    /// What the user can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Variable { name, .. } => {
                format!("set it for this command: read -rs {name} && export {name}")
            }
            Self::PasswordFile { path, .. } => {
                format!("write the password into {path} as one line (chmod 600), or correct the path")
            }
            Self::PasswordText { .. } => {
                "correct the password, or use password-env or password-file".to_owned()
            }
            Self::PrivateKey { .. } => {
                "correct private-key-path, or remove it to use the SSH agent and your default keys".to_owned()
            }
            Self::HostKey { .. } => {
                "write the line of /etc/ssh/ssh_host_ed25519_key.pub, or the SHA256:… that 'ssh-keygen -lf' prints for it"
                    .to_owned()
            }
            Self::Store { .. } => {
                "make it writable for this user, or choose another place with --home".to_owned()
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name, reason } => {
                write!(
                    f,
                    "the environment variable {name}, which is to hold a password, {reason}"
                )
            }
            Self::PasswordFile { path, reason } => {
                write!(f, "cannot use the password file {path}: {reason}")
            }
            Self::PasswordText { reason } => write!(f, "a password in the deploy file {reason}"),
            Self::PrivateKey { path, reason } => {
                write!(f, "cannot use the private key {path}: {reason}")
            }
            Self::HostKey { reason } => write!(f, "the host-key cannot be used: {reason}"),
            Self::Store { reason } => write!(f, "cannot record host keys: {reason}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (for {})", self.problem, NameList(&self.machines))
    }
}

impl std::error::Error for Error {}
