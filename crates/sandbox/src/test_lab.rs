//! Sandboxes for tests: removed when the test ends, also when it panics, and by the next test
//! run when it was killed.

use std::{fs, ops::Deref, path::Path, process::Command, str::FromStr as _};

use tempfile::TempDir;

use crate::{
    docker, down, engine,
    error::{Error, Problem},
    inventory::Inventory,
    lab::{self, Lab, Options},
    progress::Progress,
    settings::{SANDBOX, TEST},
};

/// A sandbox that a test owns. Its files lie in a directory of its own.
#[derive(Debug)]
pub struct TestLab {
    lab: Lab,
    reservation: Reservation,
}

impl Deref for TestLab {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

/// Removes a sandbox when dropped.
#[derive(Debug)]
struct Guard {
    name: String,
    home: TempDir,
}

impl Drop for Guard {
    /// Blocks, since a runtime that is ending (or panicking) would not finish a task.
    fn drop(&mut self) {
        let filter = format!("label={SANDBOX}={}", self.name);
        for (list, remove) in [
            (
                &["ps", "--all", "--quiet"][..],
                &["rm", "--force", "--volumes"][..],
            ),
            (&["network", "ls", "--quiet"][..], &["network", "rm"][..]),
        ] {
            let found = Command::new("docker")
                .args(list)
                .args(["--filter", &filter])
                .output();
            let found = found.map(|output| output.stdout).unwrap_or_default();
            let found = String::from_utf8_lossy(&found).into_owned();
            let ids: Vec<_> = found.split_whitespace().collect();
            if !ids.is_empty() {
                let _ = Command::new("docker").args(remove).args(ids).output();
            }
        }
    }
}

/// A name, a home and a guard for a sandbox that a test is about to make.
#[derive(Debug)]
pub struct Reservation {
    /// What is going to be asked for.
    pub options: Options,
    guard: Guard,
}

impl Reservation {
    /// Reserves for the calling test. The process's id is appended to the name, and progress goes to standard error.
    /// Whatever has that name is removed in the end, also when another process made it or `up` fails.
    pub async fn new(mut options: Options) -> Result<Self, Error> {
        engine::ensure(&Progress::stderr()).await?;
        remove_leftovers().await?;
        let home = tempfile::tempdir().map_err(|source| Problem::Local {
            what: "create a directory for the test",
            source,
        })?;
        let name = format!("{}-{}", options.name, std::process::id());
        options.name = name.parse()?;
        options
            .labels
            .insert(TEST.to_owned(), Owner::current().to_string());
        options.progress = Progress::stderr();
        let guard = Guard { name, home };
        Ok(Self { options, guard })
    }

    /// Hatchery's home for this sandbox.
    pub fn home(&self) -> &Path {
        self.guard.home.path()
    }

    /// Makes the sandbox.
    pub async fn up(self) -> Result<TestLab, Error> {
        let lab = lab::up(&self.options, self.home()).await?;
        Ok(TestLab {
            lab,
            reservation: self,
        })
    }
}

impl TestLab {
    /// Makes a sandbox for the calling test, see [`Reservation::new`].
    pub async fn up(options: Options) -> Result<Self, Error> {
        Reservation::new(options).await?.up().await
    }

    /// Brings it up again with changed options.
    pub async fn up_again(&mut self, change: impl FnOnce(&mut Options)) -> Result<(), Error> {
        change(&mut self.reservation.options);
        self.lab = lab::up(&self.reservation.options, self.reservation.home()).await?;
        Ok(())
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.reservation.options
    }

    /// Hatchery's home for this sandbox.
    pub fn home(&self) -> &Path {
        self.reservation.home()
    }
}

/// Removes what killed test runs have left.
async fn remove_leftovers() -> Result<(), docker::Error> {
    let all = Inventory::read(None).await?;
    for name in all.sandboxes() {
        let own = all.for_sandbox(&name);
        let owner = own
            .test_owner()
            .and_then(|label| Owner::from_str(label).ok());
        if owner.is_some_and(|owner| !owner.is_alive()) {
            down::remove_from_docker(&name).await?;
        }
    }
    Ok(())
}

/// A process, distinguished from later ones with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    boot: String,
    pid: u32,
    started: String,
}

impl Owner {
    fn current() -> Self {
        let pid = std::process::id();
        Self {
            boot: boot_id(),
            pid,
            started: start_time(pid).unwrap_or_default(),
        }
    }

    fn is_alive(&self) -> bool {
        self.boot == boot_id() && start_time(self.pid).as_ref() == Some(&self.started)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.boot, self.pid, self.started)
    }
}

impl std::str::FromStr for Owner {
    type Err = ();

    fn from_str(label: &str) -> Result<Self, ()> {
        let mut words = label.splitn(3, '/');
        let mut word = || words.next().ok_or(());
        Ok(Self {
            boot: word()?.to_owned(),
            pid: word()?.parse().map_err(|_| ())?,
            started: word()?.to_owned(),
        })
    }
}

fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// When a process began, in the kernel's ticks: the 22nd word of its `stat`, counted from
/// behind the name, which may hold anything.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_owner_is_told_from_a_dead_one() {
        let this = Owner::current();
        assert_eq!(this.to_string().parse(), Ok(this.clone()));
        assert!(this.is_alive());
        let other_boot = Owner {
            boot: "before".into(),
            ..this.clone()
        };
        assert!(!other_boot.is_alive());
        let same_number = Owner {
            started: "1".into(),
            ..this
        };
        assert!(!same_number.is_alive());
    }
}
