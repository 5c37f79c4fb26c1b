//! Waits until a machine has booted: SSH answers with the expected host key, and systemd is done.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Mutex, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    docker,
    error::{Error, Problem},
    files,
    machine::Access,
    name,
    ssh::{self, Remote},
    ssh_directory::{self, Directory},
};

/// A machine alone boots in a few seconds; many at once share the processors.
const DEADLINE: Duration = Duration::from_secs(90);
const DEADLINE_PER_MACHINE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(300);

const HOST_KEY: &str = "/etc/ssh/ssh_host_ed25519_key.pub";

/// Installs our key and password on a machine that has others. Reads them from standard input.
const INSTALL_ACCESS: &str = r#"
IFS= read -r key && IFS= read -r password || exit 1
home=$(getent passwd "$1" | cut -d: -f6)
mkdir -p -m 700 "$home/.ssh"
grep -qxF "$key" "$home/.ssh/authorized_keys" 2>/dev/null || echo "$key" >>"$home/.ssh/authorized_keys"
chmod 600 "$home/.ssh/authorized_keys"
chown -R "$1:" "$home/.ssh"
printf '%s:%s\n' "$1" "$password" | chpasswd
"#;

/// How long machines that boot at the same time may take.
pub(crate) fn deadline(machines: usize) -> Duration {
    DEADLINE + DEADLINE_PER_MACHINE * u32::try_from(machines).unwrap_or(u32::MAX)
}

/// The machines' host keys as they become known, and SSH's `known_hosts` file.
pub(crate) struct KnownHosts {
    directory: Directory,
    lines: Mutex<BTreeMap<Ipv4Addr, String>>,
}

impl KnownHosts {
    /// Begins with what the file says already, so that machines that are not waited for now
    /// stay known.
    pub(crate) fn open(directory: &Directory) -> Result<Self, files::Error> {
        let text = files::read_if_there(&directory.known_hosts())?.unwrap_or_default();
        let address = |line: &str| line.split([',', ' ']).nth(1)?.parse().ok();
        let lines = text
            .lines()
            .filter_map(|line| Some((address(line)?, format!("{line}\n"))));
        Ok(Self {
            directory: directory.clone(),
            lines: Mutex::new(lines.collect()),
        })
    }

    fn learn(&self, address: Ipv4Addr, line: String) -> Result<(), files::Error> {
        // A poisoned lock holds lines that are still whole.
        let mut lines = self
            .lines
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if lines.get(&address) == Some(&line) {
            return Ok(());
        }
        lines.insert(address, line);
        let text: String = lines.values().map(String::as_str).collect();
        files::write_atomically(&self.directory.known_hosts(), text.as_bytes(), 0o600)
    }
}

/// One machine that is being waited for.
pub(crate) struct Booting<'a> {
    pub(crate) machine: &'a str,
    pub(crate) address: Ipv4Addr,
    pub(crate) user: &'a str,
    pub(crate) access: &'a Access,
    pub(crate) known_hosts: &'a KnownHosts,
    pub(crate) within: Duration,
    /// Made just now: no unit on it can have been broken by others.
    pub(crate) fresh: bool,
}

/// How a machine is when it has booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Booted {
    /// All of it runs.
    Running,
    /// It runs, but these units of its user failed.
    Degraded(String),
}

enum Seen {
    Booted(Booted),
    Failed(String),
    NotYet(String),
}

impl Booting<'_> {
    /// Waits for it; an error says what it was waiting for.
    pub(crate) async fn wait(&self) -> Result<Booted, Error> {
        let started = Instant::now();
        let deadline = started + self.within;
        let mut last = "it has not started".to_owned();
        let mut known = false;
        loop {
            match timeout_at(deadline, self.look(&mut known)).await {
                Ok(Ok(Seen::Booted(booted))) => return Ok(booted),
                Ok(Ok(Seen::NotYet(state))) => last = state,
                Ok(Ok(Seen::Failed(state))) => return Err(self.not_ready(started, state)),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(self.not_ready(started, last)),
            }
            if Instant::now() + PAUSE >= deadline {
                return Err(self.not_ready(started, last));
            }
            sleep(PAUSE).await;
        }
    }

    fn not_ready(&self, started: Instant, state: String) -> Error {
        Problem::NotReady {
            machine: self.machine.to_owned(),
            seconds: started.elapsed().as_secs(),
            state,
        }
        .into()
    }

    /// `known` says whether its host key was read already.
    async fn look(&self, known: &mut bool) -> Result<Seen, Error> {
        let container = name::container(self.machine);
        if !*known {
            let key = match docker::run(&["exec", &container, "cat", HOST_KEY]).await {
                Ok(key) => key,
                Err(error) if error.mentions("is not running") => {
                    return Ok(Seen::Failed("its container has stopped".into()));
                }
                Err(_) => return Ok(Seen::NotYet("it has no SSH host key yet".into())),
            };
            let Some(line) = ssh_directory::known_host(self.machine, self.address, &key) else {
                return Ok(Seen::NotYet("its SSH host key is incomplete".into()));
            };
            self.known_hosts.learn(self.address, line)?;
            *known = true;
        }

        let remote = Remote::new(self.machine, &self.known_hosts.directory);
        let answer = remote.run("systemctl is-system-running --wait").await;
        let state = match answer {
            Ok(output) => output.stdout.trim().to_owned(),
            Err(ssh::Error::Unreachable { message, .. }) => {
                if message.contains("Permission denied") && !message.contains("booting up") {
                    self.install_access(&container).await;
                }
                *known = !message.contains("Host key verification failed");
                return Ok(Seen::NotYet(format!("SSH: {message}")));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(match state.as_str() {
            "running" => Seen::Booted(Booted::Running),
            "degraded" if !self.fresh => {
                Seen::Booted(Booted::Degraded(failed_units(&remote).await))
            }
            "degraded" => Seen::Failed(format!(
                "systemd says degraded, failed units: {}",
                failed_units(&remote).await
            )),
            "" => Seen::NotYet("systemd does not answer".into()),
            other => Seen::NotYet(format!("systemd says {other}")),
        })
    }

    /// The machine was made with a key that is lost since: a user who controls Docker may give
    /// it another. When it does not work, the next look says so.
    async fn install_access(&self, container: &str) {
        let input = format!("{}\n{}\n", self.access.public_key, self.access.password);
        let arguments = [
            "exec",
            "-i",
            container,
            "sh",
            "-c",
            INSTALL_ACCESS,
            "sh",
            self.user,
        ];
        if let Err(error) = docker::run_with_input(&arguments, input.as_bytes()).await {
            tracing::debug!("no access to {}: {error}", self.machine);
        }
    }
}

async fn failed_units(remote: &Remote) -> String {
    let command = "systemctl list-units --failed --plain --no-legend | cut -d' ' -f1";
    match remote.run(command).await {
        Ok(output) => output
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(", "),
        Err(error) => error.to_string(),
    }
}
