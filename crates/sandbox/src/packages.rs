//! The control machine's own system: who we are on it, and Debian packages installed when a
//! program is missing. Only the sandbox does this, never the rest of Hatchery.

use std::{env, fs, io, path::PathBuf, process::Stdio};

use snafu::{ResultExt as _, Snafu, ensure};
use tokio::process::Command;

use crate::progress::Progress;

/// What can go wrong when packages are installed.
#[derive(Debug, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("cannot run apt-get: {source}"))]
    Start { source: io::Error },
    #[snafu(display("apt-get could not install {packages}: {message}"))]
    Failed { packages: String, message: String },
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective_user(&status) == Some(0)
}

fn effective_user(status: &str) -> Option<u32> {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// The distribution this process runs on, from os-release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distribution {
    /// For people, for example `Debian GNU/Linux 12 (bookworm)`.
    pub(crate) title: String,
    /// Whether it is Debian or Ubuntu, where `docker.io` is a package of the distribution.
    pub(crate) is_debian_or_ubuntu: bool,
}

impl Distribution {
    /// Reads `/etc/os-release`.
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn parse(os_release: &str) -> Self {
        let value = |key: &str| {
            let mut lines = os_release.lines();
            lines
                .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
                .map(|value| value.trim_matches('"').to_owned())
        };
        let id = value("ID").unwrap_or_default();
        Self {
            title: value("PRETTY_NAME").unwrap_or_else(|| "this system".into()),
            is_debian_or_ubuntu: id == "debian" || id == "ubuntu",
        }
    }
}

/// Whether a program is in the `PATH`, or where dockerd and its kind are installed.
pub fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .any(|dir| dir.join(name).is_file())
}

/// Installs Debian packages, as root.
pub async fn install(packages: &[&str], progress: &Progress) -> Result<(), Error> {
    progress.note(format!("installing {} with apt-get", packages.join(" ")));
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    if apt_get(&install).await?.is_ok() {
        return Ok(());
    }
    // A fresh machine has no package lists, or old ones.
    let _ = apt_get(&["update"]).await?;
    let result = apt_get(&install).await?;
    let message = result.err().unwrap_or_default();
    ensure!(
        message.is_empty(),
        FailedSnafu {
            packages: packages.join(" "),
            message
        }
    );
    Ok(())
}

async fn apt_get(arguments: &[&str]) -> Result<Result<(), String>, Error> {
    tracing::debug!("apt-get {}", arguments.join(" "));
    let output = Command::new("apt-get")
        .args(["--quiet", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Otherwise Debian starts the service where there may be no service manager.
        .env("RUNLEVEL", "1")
        .stdin(Stdio::null())
        .output()
        .await
        .context(StartSnafu)?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = stderr.lines().filter(|line| !line.is_empty()).collect();
    let end = lines[lines.len().saturating_sub(3)..].join("; ");
    Ok(Err(if end.is_empty() {
        output.status.to_string()
    } else {
        end
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_and_ubuntu_are_taken_for_such() {
        let debian =
            Distribution::parse("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n");
        assert!(debian.is_debian_or_ubuntu);
        assert_eq!(debian.title, "Debian GNU/Linux 12 (bookworm)");
        assert!(Distribution::parse("ID=ubuntu\nID_LIKE=debian\n").is_debian_or_ubuntu);
        assert!(!Distribution::parse("ID=\"rocky\"\nID_LIKE=\"rhel\"").is_debian_or_ubuntu);
        assert!(!Distribution::parse("").is_debian_or_ubuntu);
    }

    #[test]
    fn the_effective_user_counts() {
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t1\t1\t1\t1\n";
        assert_eq!(effective_user(status), Some(0));
        assert_eq!(effective_user("Uid:\t0\t1000\t0\t0\n"), Some(1000));
    }
}
