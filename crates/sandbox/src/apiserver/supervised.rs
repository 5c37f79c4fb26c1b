//! One program that cannot outlive its owner, not even when the owner is killed.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const SCRIPT: &str = include_str!("supervise.sh");

/// How many lines of a log are worth showing.
const TAIL_LINES: usize = 20;

/// How long the end of a killed program is waited for.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// A running program with its log. Dropping it kills the program and removes its directory.
#[derive(Debug)]
pub(super) struct Supervised {
    name: &'static str,
    log: PathBuf,
    supervisor: Child,
}

impl Supervised {
    /// Starts `program` with its log in `dir`, which is removed when this ends.
    pub(super) fn start(
        name: &'static str,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        dir: &Path,
    ) -> io::Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let supervisor = Command::new("sh")
            .args(["-c", SCRIPT, "supervise"])
            .args([dir, &log, program])
            .args(args)
            // etcd takes ETCD_* from the environment as settings, others take proxies.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            // Interrupting the owner from the keyboard must leave the supervisor its work to do.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            name,
            log,
            supervisor,
        })
    }

    /// The program's name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The exit status, when the program has ended by itself.
    pub(super) fn ended(&self) -> Option<String> {
        let status = fs::read_to_string(self.log.with_extension("log.ended")).ok()?;
        status.ends_with('\n').then(|| status.trim().to_owned())
    }

    /// The last lines the program wrote.
    pub(super) fn log_tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Lets the supervisor end its work; does not wait for it.
    pub(super) fn release(&mut self) {
        drop(self.supervisor.stdin.take());
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.release();
        let deadline = Instant::now() + KILL_TIMEOUT;
        while matches!(self.supervisor.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
