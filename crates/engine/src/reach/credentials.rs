//! Passwords and keys, each read once however many machines it opens.

use std::{collections::HashMap, fs, io};

use hatchery_host::transport::ssh::{Auth, Key, key::PASSPHRASE_VARIABLE};
use hatchery_spec::{
    cluster::{Access, Password},
    value::LocalPath,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    ACCESS,
    environment::{Environment, reason},
};
use crate::finding::Finding;

/// The user's keys that are tried when none is named, most wanted first.
const USUAL_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// What lets us in, by where it comes from.
pub(super) struct Credentials<'a> {
    environment: &'a Environment,
    passphrase: Option<SecretString>,
    files: HashMap<LocalPath, Result<SecretString, Finding>>,
    keys: HashMap<LocalPath, Result<Key, Finding>>,
    usual: Option<Vec<Auth>>,
}

impl<'a> Credentials<'a> {
    pub(super) fn new(environment: &'a Environment) -> Self {
        let passphrase = environment.variable(PASSPHRASE_VARIABLE);
        Self {
            environment,
            passphrase: passphrase
                .filter(|text| !text.is_empty())
                .map(SecretString::from),
            files: HashMap::new(),
            keys: HashMap::new(),
            usual: None,
        }
    }

    /// The ways in: the key that was named, then the password, then, without such a key, the user's own keys.
    /// A machine is offered no more than it takes, so that a password that is only sudo's harms nothing.
    pub(super) fn ways(
        &mut self,
        private_key: Option<&LocalPath>,
        password: Option<&Password>,
        problems: &mut Vec<Finding>,
    ) -> Vec<Auth> {
        let key = private_key.map(|path| self.key(path).map(Auth::Key));
        let password = password.map(|password| self.password(password).map(Auth::Password));
        let mut ways = Vec::new();
        for way in [key, password].into_iter().flatten() {
            match way {
                Ok(way) => ways.push(way),
                Err(problem) if problems.contains(&problem) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if private_key.is_none() {
            ways.extend(self.usual().iter().cloned());
        }
        ways
    }

    /// sudo's password: its own, or else the login's.
    pub(super) fn sudo(&mut self, access: &Access) -> Result<Option<SecretString>, Finding> {
        let password = access.sudo_password.as_ref().or(access.password.as_ref());
        password.map(|password| self.password(password)).transpose()
    }

    fn password(&mut self, password: &Password) -> Result<SecretString, Finding> {
        match password {
            Password::Text(secret) => checked(secret.expose().into()).map_err(|reason| {
                Finding::error(
                    ACCESS,
                    format!("a password in the deploy file {reason}"),
                    "correct the password, or use password-env or password-file",
                )
            }),
            Password::Environment(name) => {
                let wrong = |reason| {
                    Finding::error(
                        ACCESS,
                        format!(
                            "the environment variable {name}, which should contain a password, {reason}"
                        ),
                        format!("set it for this command: read -rs {name} && export {name}"),
                    )
                };
                let value = self
                    .environment
                    .variable(name)
                    .ok_or_else(|| wrong("is not set"))?;
                checked(value.into()).map_err(wrong)
            }
            Password::File(path) => {
                let environment = self.environment;
                let read = || password_file(environment, path);
                self.files.entry(path.clone()).or_insert_with(read).clone()
            }
        }
    }

    fn key(&mut self, path: &LocalPath) -> Result<Key, Finding> {
        let (environment, passphrase) = (self.environment, &self.passphrase);
        let find = || {
            // Opened here only to know; the connection reads it when it needs it.
            let found = environment.expand(path.as_str()).and_then(|file| {
                if fs::File::open(&file)?.metadata()?.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                Ok(Key::file(file, passphrase.clone()))
            });
            found.map_err(|error| {
                Finding::error(
                    ACCESS,
                    format!("cannot use the private key {path}: {}", reason(&error)),
                    "correct private-key-path, or remove it to use the SSH agent and your default keys",
                )
            })
        };
        self.keys.entry(path.clone()).or_insert_with(find).clone()
    }

    /// The user's default keys that exist, and those of the agent.
    fn usual(&mut self) -> &[Auth] {
        let (environment, passphrase) = (self.environment, &self.passphrase);
        self.usual.get_or_insert_with(|| {
            let files = USUAL_KEYS
                .into_iter()
                .filter_map(|name| environment.ssh_file(name));
            let keys = files
                .filter(|file| file.is_file())
                .map(|file| Auth::Key(Key::file(file, passphrase.clone())));
            let socket = environment.variable("SSH_AUTH_SOCK");
            let agent = socket
                .filter(|socket| !socket.is_empty())
                .map(|socket| Auth::Agent {
                    socket: Some(socket.into()),
                });
            keys.chain(agent).collect()
        })
    }
}

fn password_file(environment: &Environment, path: &LocalPath) -> Result<SecretString, Finding> {
    let wrong = |reason: String| {
        Finding::error(
            ACCESS,
            format!("cannot use the password file {path}: {reason}"),
            format!("write the password into {path} as one line (chmod 600), or correct the path"),
        )
    };
    let read = environment
        .expand(path.as_str())
        .and_then(fs::read_to_string);
    let mut text = read.map_err(|error| wrong(reason(&error)))?;
    if text.ends_with('\n') {
        text.pop();
    }
    if text.ends_with('\r') {
        text.pop();
    }
    checked(text.into()).map_err(|reason| wrong(format!("it {reason}")))
}

/// A password is one line: what stands behind its end would reach the machine as something else.
fn checked(password: SecretString) -> Result<SecretString, &'static str> {
    let text = password.expose_secret();
    if text.is_empty() {
        return Err("is empty");
    }
    if text.contains(['\n', '\r', '\0']) {
        return Err("has more than one line");
    }
    Ok(password)
}
