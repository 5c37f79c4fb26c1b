//! Docker by its command line: arguments as a vector, never through a shell.

use std::io;

use serde::de::DeserializeOwned;
use snafu::{ResultExt as _, Snafu};
use tokio::process::Command;

use crate::process;

/// What can go wrong when Docker is asked.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("cannot run docker: {source}"))]
    Start { source: io::Error },
    #[snafu(display("docker {command} failed: {message}"))]
    Failed { command: String, message: String },
    #[snafu(display("cannot read the answer of docker {command}: {source}"))]
    Answer {
        command: String,
        source: serde_json::Error,
    },
}

impl Error {
    /// Whether Docker's own words contain `words`, in any case.
    pub(crate) fn mentions(&self, words: &str) -> bool {
        matches!(self, Self::Failed { message, .. } if message.to_lowercase().contains(words))
    }

    /// Whether the thing asked about does not exist (any more).
    pub(crate) fn is_not_found(&self) -> bool {
        self.mentions("no such") || self.mentions("not found")
    }

    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        if self.mentions("no space left on device") {
            return Some("free some space on Docker's disk ('docker system df' shows what uses it), then run this again".into());
        }
        self.mentions("cannot connect to the docker daemon")
            .then(|| {
                "the Docker engine has stopped: run 'hatchery sandbox up' again to start it".into()
            })
    }

    /// Whether the name is taken already.
    pub(crate) fn is_conflict(&self) -> bool {
        self.mentions("already in use") || self.mentions("already exists")
    }
}

/// Runs docker and returns its standard output.
pub async fn run<A: AsRef<str>>(arguments: &[A]) -> Result<String, Error> {
    run_with_input(arguments, &[]).await
}

/// Runs docker with `input` on its standard input and returns its standard output.
pub async fn run_with_input<A: AsRef<str>>(arguments: &[A], input: &[u8]) -> Result<String, Error> {
    let (success, stdout, stderr) = call(arguments, input).await?;
    if success {
        return Ok(stdout);
    }
    FailedSnafu {
        command: subcommand(arguments),
        message: error_text(&stderr, &stdout),
    }
    .fail()
}

/// `docker [KIND] inspect` of several things; those that are gone by now are left out.
pub async fn inspect<T: DeserializeOwned>(kind: &str, names: &[String]) -> Result<Vec<T>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec![kind, "inspect"];
    arguments.extend(names.iter().map(String::as_str));
    let (success, stdout, stderr) = call(&arguments, &[]).await?;
    let command = subcommand(&arguments);
    let gone = |error: &Error| error.is_not_found();
    if !success {
        let message = error_text(&stderr, "");
        let error = Error::Failed {
            command: command.clone(),
            message,
        };
        if !gone(&error) {
            return Err(error);
        }
    }
    serde_json::from_str(&stdout).context(AnswerSnafu { command })
}

async fn call<A: AsRef<str>>(
    arguments: &[A],
    input: &[u8],
) -> Result<(bool, String, String), Error> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    tracing::debug!("docker {}", arguments.join(" "));
    let mut command = Command::new("docker");
    command.args(&arguments).env("LC_ALL", "C");
    let output = process::run(&mut command, input)
        .await
        .context(StartSnafu)?;
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

/// `network create` of `docker network create --label …`: enough to know what was tried.
fn subcommand<A: AsRef<str>>(arguments: &[A]) -> String {
    let words = arguments.iter().map(AsRef::as_ref);
    let words = words.take_while(|word| !word.starts_with('-')).take(2);
    words.collect::<Vec<_>>().join(" ")
}

fn error_text(stderr: &str, stdout: &str) -> String {
    let text = if stderr.trim().is_empty() {
        stdout
    } else {
        stderr
    };
    let lines = text.lines().map(str::trim);
    let lines: Vec<_> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("See 'docker"))
        .collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_subcommand_and_keeps_docker_s_words() {
        let error = Error::Failed {
            command: subcommand(&["network", "create", "--label", "secret"]),
            message: error_text("Error: Pool overlaps\n\nSee 'docker run --help'.\n", ""),
        };
        assert_eq!(
            error.to_string(),
            "docker network create failed: Error: Pool overlaps"
        );
        assert!(error.mentions("pool overlaps"));
        assert_eq!(error.remedy(), None);
        assert!(!error.is_conflict());
    }

    #[test]
    fn a_full_disk_has_a_remedy() {
        let error = Error::Failed {
            command: "cp".into(),
            message: "Error: write /x: no space left on device".into(),
        };
        assert!(error.remedy().unwrap().contains("docker system df"));
    }
}
