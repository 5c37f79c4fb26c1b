//! A thousand machines over real SSH connections on the loopback, with the limit of open files that a login shell has:
//! time, memory and open files of the client. The servers are another process, so that theirs are not counted.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement may fail loudly"
)]

#[path = "../tests/loopback/mod.rs"]
mod loopback;

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use hatchery_host::{
    machine::Machine,
    transport::ssh::{Bastions, raise_open_files},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::loopback::{Questions, machines, nothing_to_do, servers};

/// What a login shell has.
const USUAL: u64 = 1024;
/// As the program does unless told otherwise.
const PARALLEL: usize = 32;
/// Tells the second process what it is.
const ROLE: &str = "HATCHERY_BENCH_SERVERS";

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Ok(count) = env::var(ROLE) {
        raise_open_files().unwrap();
        runtime.block_on(async {
            println!(
                "{}",
                servers(count.parse().unwrap(), Questions::default()).await
            );
            std::future::pending::<()>().await;
        });
    }
    let count = env::var("HATCHERY_BENCH_MACHINES").map_or(1000, |text| text.parse().unwrap());
    let others = Others::begin(count);
    let home = tempfile::tempdir().unwrap();
    let known_hosts = home.path().join("known_hosts");
    let hard = getrlimit(Resource::Nofile).maximum;
    limit(USUAL, hard);
    raise_open_files().unwrap();
    runtime.block_on(round(
        "raised to the hard limit",
        count,
        others.port,
        &known_hosts,
    ));
    // Where the hard limit is no higher, connections have to make room for each other.
    limit(USUAL, Some(USUAL));
    runtime.block_on(round("not to be raised", count, others.port, &known_hosts));
}

fn limit(current: u64, maximum: Option<u64>) {
    let current = Some(current);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

struct Others {
    child: Child,
    port: u16,
}

impl Others {
    fn begin(count: usize) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .env(ROLE, count.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self { child, port }
    }
}

impl Drop for Others {
    /// Also when a measurement fails: the servers would wait for ever.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn round(how: &str, count: usize, port: u16, known_hosts: &Path) {
    let before = status("VmRSS:");
    let all = machines(count, port, known_hosts, &Bastions::new());
    let begin = Instant::now();
    let facts = all
        .iter()
        .map(|machine| machine.facts(Duration::from_secs(300)));
    let mut answers = stream::iter(facts).buffer_unordered(PARALLEL);
    while let Some(answer) = answers.next().await {
        answer.unwrap();
    }
    let asked = begin.elapsed();
    let open = open_files();
    let task = nothing_to_do();
    let begin = Instant::now();
    let tasks = all.iter().map(|machine| machine.apply(&task, &|_| ()));
    let mut reports = stream::iter(tasks).buffer_unordered(PARALLEL);
    while let Some(report) = reports.next().await {
        assert_eq!(report.unwrap().changes(), 0);
    }
    let applied = begin.elapsed();
    let open = open.max(open_files());
    let each = status("VmHWM:").saturating_sub(before) / count as u64;
    println!(
        "{count} machines over SSH, limit of open files {how}: facts in {asked:.1?}, a task without work in {applied:.1?}, \
         {open} files open, {each} KiB of memory each (wanted: below 1024)"
    );
    assert!(each < 1024, "{each} KiB");
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        assert!((open as u64) < limit, "{open} files open");
    }
    stream::iter(&all)
        .for_each_concurrent(PARALLEL, Machine::disconnect)
        .await;
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// In KiB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
