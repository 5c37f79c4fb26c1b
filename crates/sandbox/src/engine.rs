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
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("{problem}"))]
    Missing { problem: String, remedy: String },
    #[snafu(display("cannot install Docker: {source}"))]
    Install { source: packages::Error },
    #[snafu(display("the Docker engine does not start: {reason}"))]
    Start { reason: String },
    #[snafu(display("{source}"))]
    Lock { source: files::Error },
}

impl Error {
    /// Whether nothing was touched.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }

    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Missing { remedy, .. } => remedy.clone(),
            Self::Install { .. } => {
                "check that 'apt-get update && apt-get install docker.io' works, then run this again".into()
            }
            Self::Start { .. } => format!("its log is {LOG} (or 'journalctl -u docker')"),
            Self::Lock { source } => return source.remedy(),
        })
    }
}

/// What stands between us and an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Status {
    Running,
    NotInstalled,
    NoPermission,
    Unreachable(String),
}

/// The facts that decide what may be done about a missing engine.
#[derive(Clone, Debug)]
struct Situation {
    status: Status,
    docker_host: Option<String>,
    root: bool,
    distribution: Distribution,
}

/// Uses the running engine, or refuses with what is missing. Changes nothing.
pub(crate) async fn require() -> Result<(), Error> {
    let situation = Situation::observe().await;
    match situation.status {
        Status::Running => Ok(()),
        _ => Err(situation.refusal().unwrap_or_else(|| Error::Missing {
            problem: "no Docker engine is running, so there is no sandbox".into(),
            remedy: "'hatchery sandbox up' installs and starts one".into(),
        })),
    }
}

/// Uses the running engine; otherwise installs and starts one where that is possible.
pub async fn ensure(progress: &Progress) -> Result<(), Error> {
    let situation = Situation::observe().await;
    if situation.status == Status::Running {
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
    if status().await == Status::Running {
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
        if status().await == Status::Running {
            progress.note("the Docker engine is running; it is kept when the sandbox is removed");
            return Ok(());
        }
        sleep(Duration::from_millis(250)).await;
    }
    let log = fs::read_to_string(LOG).unwrap_or_default();
    let last = log.lines().next_back().unwrap_or("it left no log");
    Err(start_failed(format!(
        "no status after {} s; last line of its log: {last}",
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

async fn status() -> Status {
    classify(docker::run(&["version", "--format", "{{.Server.Version}}"]).await)
}

fn classify(result: Result<String, docker::Error>) -> Status {
    match result {
        Ok(_) => Status::Running,
        Err(docker::Error::Start { .. }) => Status::NotInstalled,
        Err(error) if error.mentions("permission denied") => Status::NoPermission,
        Err(docker::Error::Failed { message, .. }) => Status::Unreachable(message),
        Err(error @ docker::Error::Answer { .. }) => Status::Unreachable(error.to_string()),
    }
}

impl Situation {
    async fn observe() -> Self {
        Self {
            status: status().await,
            docker_host: env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()),
            root: packages::is_root(),
            distribution: Distribution::read(),
        }
    }

    /// Why no engine can be made here; `None` when one can.
    fn refusal(&self) -> Option<Error> {
        let title = &self.distribution.title;
        let (problem, remedy) = match (&self.status, &self.docker_host) {
            (Status::Running, _) => return None,
            (Status::NoPermission, _) => (
                "the Docker engine is running, but this user may not access it".to_owned(),
                "run this as root, or as root: 'usermod -aG docker USER', then log in again".to_owned(),
            ),
            (_, Some(host)) => (
                format!("no Docker engine answers at DOCKER_HOST={host}"),
                "unset DOCKER_HOST to use the engine of this machine, or start the one it names".to_owned(),
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
                format!("no Docker engine is running, and installing one on {title} is not supported"),
                "install Docker with the distribution's package manager and start it: 'systemctl start docker'".to_owned(),
            ),
            _ => return None,
        };
        Some(Error::Missing { problem, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(status: Status) -> Situation {
        Situation {
            status,
            docker_host: None,
            root: true,
            distribution: Distribution {
                title: "Debian GNU/Linux 12 (bookworm)".into(),
                is_debian_or_ubuntu: true,
            },
        }
    }

    fn message(situation: &Situation) -> String {
        let error = situation.refusal().expect("a refusal");
        assert!(error.is_refusal());
        format!("{error}\n{}", error.remedy().unwrap())
    }

    #[test]
    fn root_on_debian_may_make_one() {
        assert!(situation(Status::NotInstalled).refusal().is_none());
        assert!(
            situation(Status::Unreachable("x".into()))
                .refusal()
                .is_none()
        );
    }

    #[test]
    fn every_other_situation_says_exactly_what_is_missing() {
        let user = Situation {
            root: false,
            ..situation(Status::NotInstalled)
        };
        assert!(message(&user).contains("only root can install"));
        assert!(message(&user).contains("apt-get install docker.io"));

        let group = situation(Status::NoPermission);
        assert!(message(&group).contains("usermod -aG docker"));

        let elsewhere = Situation {
            docker_host: Some("tcp://nowhere:1".into()),
            ..situation(Status::Unreachable("refused".into()))
        };
        assert!(message(&elsewhere).contains("DOCKER_HOST=tcp://nowhere:1"));

        let rocky = Situation {
            distribution: Distribution {
                title: "Rocky Linux 9".into(),
                is_debian_or_ubuntu: false,
            },
            ..situation(Status::Unreachable("refused".into()))
        };
        assert!(message(&rocky).contains("Rocky Linux 9"));
    }

    #[test]
    fn the_answer_of_the_client_is_understood() {
        let failed = |message: &str| {
            Err(docker::Error::Failed {
                command: "version".into(),
                message: message.into(),
            })
        };
        assert_eq!(classify(Ok("20.10".into())), Status::Running);
        assert_eq!(
            classify(failed("permission denied while trying to connect")),
            Status::NoPermission
        );
        assert!(matches!(
            classify(failed("Cannot connect to the Docker daemon")),
            Status::Unreachable(_)
        ));
    }
}
