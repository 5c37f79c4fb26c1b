//! The Docker engine: the running one, or one installed and started here.

use std::{
    env,
    fs::{self, File},
    io,
    path::Path,
    process::Stdio,
    time::Duration,
};

use snafu::{ResultExt as _, Snafu};
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use crate::{
    docker, files,
    packages::{self, Distribution},
    progress::Progress,
};

const LOG: &str = "/var/log/dockerd.log";
const START_DEADLINE: Duration = Duration::from_secs(60);

/// What can go wrong on the way to a Docker engine.
#[derive(Debug, Snafu)]
pub enum Error {
    /// There is none and we may not or cannot make one; nothing was touched.
    #[snafu(display("{problem}"))]
    Missing {
        /// What exactly is missing.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// Its packages could not be installed.
    #[snafu(display("cannot install Docker: {source}"))]
    Install {
        /// Why.
        source: packages::Error,
    },
    /// It was installed but does not run.
    #[snafu(display("the Docker engine does not start: {reason}"))]
    Start {
        /// What was seen.
        reason: String,
    },
    /// The lock against a second installation failed.
    #[snafu(display("{source}"))]
    Lock {
        /// Why.
        source: files::Error,
    },
}

impl Error {
    /// Whether nothing was touched.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Missing { remedy, .. } => remedy.clone(),
            Self::Install { .. } => {
                "see whether 'apt-get update && apt-get install docker.io' works, then run this again".into()
            }
            Self::Start { .. } => format!("its log is {LOG} (or 'journalctl -u docker')"),
            Self::Lock { source } => return source.remedy(),
        })
    }
}

/// What stands between us and an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Running,
    NoProgram,
    NoPermission,
    Silent(String),
}

/// The facts that decide what may be done about a missing engine.
#[derive(Clone, Debug)]
struct Situation {
    answer: Answer,
    docker_host: Option<String>,
    root: bool,
    distribution: Distribution,
}

/// Uses the running engine, or refuses with what is missing. Changes nothing.
pub async fn require() -> Result<(), Error> {
    let situation = Situation::observe().await;
    match situation.answer {
        Answer::Running => Ok(()),
        _ => Err(situation.refusal().unwrap_or_else(|| Error::Missing {
            problem: "no Docker engine is running, so there is no sandbox".into(),
            remedy: "'hatchery sandbox up' installs and starts one".into(),
        })),
    }
}

/// Uses the running engine; otherwise installs and starts one where that is possible.
pub async fn ensure(progress: &Progress) -> Result<(), Error> {
    let situation = Situation::observe().await;
    if situation.answer == Answer::Running {
        return Ok(());
    }
    if let Some(refusal) = situation.refusal() {
        return Err(refusal);
    }
    let _lock = match files::cache_dir() {
        Ok(cache) => Some(
            files::Lock::exclusive(
                &cache.join("locks/docker-engine"),
                "another process that is starting Docker",
                progress,
            )
            .await
            .context(LockSnafu)?,
        ),
        Err(_) => None,
    };
    if ask().await == Answer::Running {
        return Ok(());
    }
    if !(packages::has_program("dockerd") && packages::has_program("docker")) {
        progress.note("no Docker engine on this machine: installing one");
        packages::install(&["docker.io", "iptables", "ca-certificates"], progress)
            .await
            .context(InstallSnafu)?;
    }
    start(progress).await
}

async fn start(progress: &Progress) -> Result<(), Error> {
    if Path::new("/run/systemd/system").is_dir() {
        progress.note("starting the Docker engine (systemctl start docker)");
        let output = Command::new("systemctl")
            .args(["start", "docker"])
            .output()
            .await
            .map_err(|error| start_failed(error.to_string()))?;
        if !output.status.success() {
            return Err(start_failed(String::from_utf8_lossy(&output.stderr).trim()));
        }
    } else {
        progress.note(format!("starting the Docker engine (dockerd, log: {LOG})"));
        in_its_own_session("dockerd").map_err(|error| start_failed(error.to_string()))?;
    }
    let deadline = Instant::now() + START_DEADLINE;
    while Instant::now() < deadline {
        if ask().await == Answer::Running {
            progress.note("the Docker engine runs; it stays when the sandbox is removed");
            return Ok(());
        }
        sleep(Duration::from_millis(250)).await;
    }
    let log = fs::read_to_string(LOG).unwrap_or_default();
    let last = log.lines().next_back().unwrap_or("it left no log");
    Err(start_failed(format!(
        "no answer after {} s; last line of its log: {last}",
        START_DEADLINE.as_secs()
    )))
}

fn start_failed(reason: impl Into<String>) -> Error {
    Error::Start {
        reason: reason.into(),
    }
}

/// A daemon that outlives this process and its terminal.
fn in_its_own_session(program: &str) -> io::Result<()> {
    let log = File::options().create(true).append(true).open(LOG)?;
    let path = env::var("PATH").unwrap_or_default();
    std::process::Command::new("setsid")
        .args(["--fork", program])
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .map(|_| ())
}

async fn ask() -> Answer {
    classify(docker::run(&["version", "--format", "{{.Server.Version}}"]).await)
}

fn classify(result: Result<String, docker::Error>) -> Answer {
    match result {
        Ok(_) => Answer::Running,
        Err(docker::Error::Start { .. }) => Answer::NoProgram,
        Err(error) if error.says("permission denied") => Answer::NoPermission,
        Err(docker::Error::Failed { message, .. }) => Answer::Silent(message),
        Err(error @ docker::Error::Answer { .. }) => Answer::Silent(error.to_string()),
    }
}

impl Situation {
    async fn observe() -> Self {
        Self {
            answer: ask().await,
            docker_host: env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()),
            root: packages::is_root(),
            distribution: Distribution::read(),
        }
    }

    /// Why no engine can be made here; `None` when one can.
    fn refusal(&self) -> Option<Error> {
        let title = &self.distribution.title;
        let (problem, remedy) = match (&self.answer, &self.docker_host) {
            (Answer::Running, _) => return None,
            (Answer::NoPermission, _) => (
                "the Docker engine runs, but this user may not use it".to_owned(),
                "run this as root, or as root: 'usermod -aG docker USER', then log in again".to_owned(),
            ),
            (_, Some(host)) => (
                format!("no Docker engine answers at DOCKER_HOST={host}"),
                "unset DOCKER_HOST to use this machine's own engine, or start the one it names".to_owned(),
            ),
            _ if !self.root => (
                "no Docker engine is running, and only root can install or start one".to_owned(),
                if self.distribution.is_debian_or_ubuntu {
                    "run this as root, or as root: 'apt-get install docker.io', 'usermod -aG docker USER', then log in again".to_owned()
                } else {
                    format!("install and start Docker on {title}, and add this user to the group docker")
                },
            ),
            _ if !self.distribution.is_debian_or_ubuntu => (
                format!("no Docker engine is running, and on {title} none can be installed from here"),
                "install Docker with the distribution's own means and start it: 'systemctl start docker'".to_owned(),
            ),
            _ => return None,
        };
        Some(Error::Missing { problem, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(answer: Answer) -> Situation {
        Situation {
            answer,
            docker_host: None,
            root: true,
            distribution: Distribution {
                title: "Debian GNU/Linux 12 (bookworm)".into(),
                is_debian_or_ubuntu: true,
            },
        }
    }

    fn told(situation: &Situation) -> String {
        let error = situation.refusal().expect("a refusal");
        assert!(error.is_refusal());
        format!("{error}\n{}", error.remedy().unwrap())
    }

    #[test]
    fn root_on_debian_may_make_one() {
        assert!(situation(Answer::NoProgram).refusal().is_none());
        assert!(situation(Answer::Silent("x".into())).refusal().is_none());
    }

    #[test]
    fn every_other_situation_says_exactly_what_is_missing() {
        let user = Situation {
            root: false,
            ..situation(Answer::NoProgram)
        };
        assert!(told(&user).contains("only root can install"));
        assert!(told(&user).contains("apt-get install docker.io"));

        let group = situation(Answer::NoPermission);
        assert!(told(&group).contains("usermod -aG docker"));

        let elsewhere = Situation {
            docker_host: Some("tcp://nowhere:1".into()),
            ..situation(Answer::Silent("refused".into()))
        };
        assert!(told(&elsewhere).contains("DOCKER_HOST=tcp://nowhere:1"));

        let rocky = Situation {
            distribution: Distribution {
                title: "Rocky Linux 9".into(),
                is_debian_or_ubuntu: false,
            },
            ..situation(Answer::Silent("refused".into()))
        };
        assert!(told(&rocky).contains("Rocky Linux 9"));
    }

    #[test]
    fn the_answer_of_the_client_is_understood() {
        let failed = |message: &str| {
            Err(docker::Error::Failed {
                command: "version".into(),
                message: message.into(),
            })
        };
        assert_eq!(classify(Ok("20.10".into())), Answer::Running);
        assert_eq!(
            classify(failed("permission denied while trying to connect")),
            Answer::NoPermission
        );
        assert!(matches!(
            classify(failed("Cannot connect to the Docker daemon")),
            Answer::Silent(_)
        ));
    }
}
