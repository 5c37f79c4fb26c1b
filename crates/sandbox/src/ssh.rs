//! SSH to the machines with the system's own client: commands and copies.

use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use snafu::{ResultExt as _, Snafu, ensure};
use tokio::process::Command;

use crate::{
    files,
    packages::{self, Distribution},
    process,
    progress::Progress,
    ssh_directory::Directory,
};

/// What can go wrong over SSH.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("there is no {program} on this machine"))]
    NoClient { program: &'static str },
    #[snafu(display("cannot install the SSH client: {source}"))]
    Install { source: packages::Error },
    #[snafu(display("cannot run {program}: {source}"))]
    Start {
        program: &'static str,
        source: io::Error,
    },
    #[snafu(display("ssh-keygen failed: {message}"))]
    Key { message: String },
    #[snafu(display("cannot reach {machine} over SSH: {message}"))]
    Unreachable { machine: String, message: String },
    #[snafu(display("cannot copy {} to {machine}:{remote}: {message}", local.display()))]
    Copy {
        local: PathBuf,
        machine: String,
        remote: String,
        message: String,
    },
    #[snafu(transparent)]
    Files { source: files::Error },
}

impl Error {
    /// Whether nothing was touched.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::NoClient { .. })
    }

    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::NoClient { .. } => Some("install the OpenSSH client (Debian: apt-get install openssh-client)".into()),
            Self::Unreachable { .. } => Some(
                "'hatchery sandbox list' shows whether it is running; 'hatchery sandbox up' starts, resumes and reconnects machines".into(),
            ),
            Self::Files { source } => source.remedy(),
            Self::Key { message } if message.contains("No space left") => {
                Some("free some space on the disk of Hatchery's home, or choose another with --home".into())
            }
            _ => None,
        }
    }
}

/// Makes sure that there is an SSH client, installing one as root on Debian or Ubuntu.
pub(crate) async fn ensure_client(progress: &Progress) -> Result<(), Error> {
    let programs = ["ssh", "ssh-keygen"];
    let Some(program) = programs.into_iter().find(|p| !packages::has_program(p)) else {
        return Ok(());
    };
    let may = packages::is_root() && Distribution::read().is_debian_or_ubuntu;
    ensure!(may, NoClientSnafu { program });
    packages::install(&["openssh-client"], progress)
        .await
        .context(InstallSnafu)
}

/// A value as one word of a shell.
pub fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// What a command on a machine did.
#[derive(Clone, Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

/// A machine to reach over SSH.
#[derive(Clone, Debug)]
pub struct Remote {
    machine: String,
    config: PathBuf,
}

impl Remote {
    /// A machine named in the configuration of `directory`.
    pub(crate) fn new(machine: &str, directory: &Directory) -> Self {
        Self {
            machine: machine.to_owned(),
            config: directory.config(),
        }
    }

    /// The arguments of an `ssh` command to the machine, up to its name.
    pub fn ssh_arguments(&self, batch: bool) -> Vec<String> {
        let mut arguments = vec!["-F".to_owned(), self.config.to_string_lossy().into_owned()];
        if batch {
            arguments.push("-oBatchMode=yes".to_owned());
        }
        arguments.push(self.machine.clone());
        arguments
    }

    /// Runs a shell command as the login user.
    pub async fn run(&self, command: &str) -> Result<Output, Error> {
        self.run_with_input(command, &[]).await
    }

    /// Runs a shell command with something on its standard input.
    pub async fn run_with_input(&self, command: &str, input: &[u8]) -> Result<Output, Error> {
        tracing::debug!("ssh {} {command}", self.machine);
        let mut ssh = Command::new("ssh");
        ssh.args(self.ssh_arguments(true))
            .args(["--", command])
            .kill_on_drop(true);
        let output = process::run(&mut ssh, input)
            .await
            .context(StartSnafu { program: "ssh" })?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // The client's own failures end with 255.
        ensure!(
            output.status.code() != Some(255),
            UnreachableSnafu {
                machine: &self.machine,
                message: stderr.trim().replace('\n', "; "),
            }
        );
        Ok(Output {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr,
        })
    }

    /// Copies a file or a directory to exactly the path `remote`.
    pub async fn copy_to(&self, local: &Path, remote: &str) -> Result<(), Error> {
        let (this, local, remote) = (self.clone(), local.to_owned(), remote.to_owned());
        let (path, machine, there) = (local.clone(), self.machine.clone(), remote.clone());
        let result = tokio::task::spawn_blocking(move || this.send(&path, &there)).await;
        result
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| Error::Copy {
                local,
                machine,
                remote,
                message: error.to_string(),
            })
    }

    fn send(&self, local: &Path, remote: &str) -> io::Result<()> {
        let (parent, name) = match remote.trim_end_matches('/').rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((parent, name)) => (parent, name),
            None => (".", remote),
        };
        let parent = quote(parent);
        let mut child = std::process::Command::new("ssh")
            .args(self.ssh_arguments(true))
            .args([
                "--",
                &format!("mkdir -p {parent} && tar -C {parent} --no-same-owner -xf -"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let written = match child.stdin.take() {
            Some(stdin) => write_archive(stdin, local, name),
            None => Ok(()),
        };
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        written
    }
}

fn write_archive(to: impl io::Write, local: &Path, name: &str) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    if local.is_dir() {
        archive.append_dir_all(name, local)?;
    } else {
        archive.append_path_with_name(local, name)?;
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_survives_a_shell() {
        for value in ["plain", "two words", "it's", "$HOME `id` \\ \"x\"", "a\nb"] {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(value))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
        }
    }
}
