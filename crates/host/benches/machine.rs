//! What one stream per task is worth, as ratios within one run: machines are noisy, a ratio is less so.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a measurement may fail loudly"
)]

#[path = "../tests/machine/lab.rs"]
mod lab;
#[path = "../tests/machine/work.rs"]
mod work;

use std::{
    borrow::Cow,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future;
use hatchery_host::{
    content::Content,
    machine::Machine,
    operation::{Access, File, Operation},
    path::MachinePath,
    task::Task,
};
use hatchery_sandbox::settings::{RequestedSettings, System};
use russh::{
    Disconnect, Preferred, cipher, client,
    keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key},
};

use crate::lab::{Bench, word};

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let settings = RequestedSettings {
            system: Some(System::Debian),
            ..RequestedSettings::default()
        };
        let bench = Bench::new("bench", 6, settings).await;
        throughput(&bench).await;
        round_trips(&bench).await;
        question(&bench).await;
        memory(&bench).await;
    });
}

fn file(at: String, content: Content) -> Operation {
    Operation::File(File {
        path: MachinePath::new(at).unwrap(),
        content,
        access: Access::root(0o644).unwrap(),
    })
}

fn task(operations: Vec<Operation>) -> Task {
    Task::new(word("bench"), operations).unwrap()
}

struct AnyKey;

impl client::Handler for AnyKey {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

/// russh as it is, without anything of ours around it.
async fn plain(bench: &Bench, bytes: &[u8]) -> Duration {
    // With the cipher that we prefer too, which is the faster one: the rest is its own choice.
    let preferred = Preferred {
        cipher: Cow::Borrowed(&[cipher::AES_256_GCM]),
        ..Preferred::default()
    };
    let config = Arc::new(client::Config {
        nodelay: true,
        preferred,
        ..client::Config::default()
    });
    let address = (bench.lab.machines[0].address, 22);
    let mut session = client::connect(config, address, AnyKey).await.unwrap();
    let key = Arc::new(load_secret_key(bench.lab.key(), None).unwrap());
    let key = PrivateKeyWithHashAlg::new(key, None);
    assert!(
        session
            .authenticate_publickey("root", key)
            .await
            .unwrap()
            .success()
    );
    let begin = Instant::now();
    let mut channel = session.channel_open_session().await.unwrap();
    channel.exec(true, "cat >/root/plain").await.unwrap();
    channel.data(bytes).await.unwrap();
    channel.eof().await.unwrap();
    while channel.wait().await.is_some() {}
    let took = begin.elapsed();
    session
        .disconnect(Disconnect::ByApplication, "", "en")
        .await
        .unwrap();
    took
}

async fn throughput(bench: &Bench) {
    let size = 500_000_000;
    let bytes: Arc<[u8]> = (0..size)
        .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let content = Content::bytes(Arc::clone(&bytes));
    let machine = bench.machine(0);
    machine.connection().await.unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..4 {
        theirs.push(plain(bench, &bytes).await);
        let task = task(vec![file(format!("/root/ours-{round}"), content.clone())]);
        let begin = Instant::now();
        machine.apply(&task, &|_| ()).await.unwrap();
        ours.push(begin.elapsed());
        machine.undo(&[], Duration::from_secs(60)).await.unwrap();
    }
    let best = |times: &[Duration]| *times.iter().min().unwrap();
    let speed = |time: Duration| f64::from(size) / time.as_secs_f64() / 1e6;
    println!(
        "500 MB file: {:.0} MB/s as a task, {:.0} MB/s by plain russh: {:.0} % (wanted: 80 %); all: {ours:.1?} against {theirs:.1?}",
        speed(best(&ours)),
        speed(best(&theirs)),
        100.0 * best(&theirs).as_secs_f64() / best(&ours).as_secs_f64(),
    );
}

/// The same operations with the same promises: in one task, and in a task each.
async fn round_trips(bench: &Bench) {
    let machine = bench.machine(1);
    machine.connection().await.unwrap();
    let operations = |flavour: &str| -> Vec<_> {
        let content = |n| Content::bytes(format!("{flavour} {n}").into_bytes());
        (0..200)
            .map(|n| file(format!("/opt/bench/{}/{n}.conf", n % 7), content(n)))
            .collect()
    };
    for (what, flavour) in [("changing", "first"), ("asking", "first")] {
        let whole = task(operations(flavour));
        if what == "asking" {
            machine.apply(&whole, &|_| ()).await.unwrap();
        }
        let begin = Instant::now();
        machine.apply(&whole, &|_| ()).await.unwrap();
        let together = begin.elapsed();
        if what == "changing" {
            machine.undo(&[], Duration::from_secs(60)).await.unwrap();
        }
        let begin = Instant::now();
        for operation in operations(flavour) {
            machine
                .apply(&task(vec![operation]), &|_| ())
                .await
                .unwrap();
        }
        let singly = begin.elapsed();
        println!(
            "200 operations, {what}: {together:.2?} together, {singly:.2?} one by one: {:.0} times (wanted: 10)",
            singly.as_secs_f64() / together.as_secs_f64(),
        );
    }
    machine.undo(&[], Duration::from_secs(60)).await.unwrap();
}

async fn question(bench: &Bench) {
    let whole = work::two_hundred(System::Debian, "first").await;
    let machines: Vec<_> = (0..6).map(|number| bench.machine(number)).collect();
    for node in &bench.lab.machines {
        bench.furnish(node).await;
    }
    let nothing = |_: hatchery_host::machine::Event<'_>| ();
    let all = || {
        future::join_all(
            machines
                .iter()
                .map(|machine| changes(machine, &whole, &nothing)),
        )
    };
    all().await;
    let mut times = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let changed = all().await;
        times.push(begin.elapsed());
        assert!(changed.iter().all(|changes| *changes == 0));
    }
    times.sort();
    println!(
        "200 operations that are so already, 6 machines at once: {:.2?} at best, {:.2?} as a rule (aim: 1 s)",
        times[0], times[2]
    );
    for machine in &machines {
        machine.undo(&[], Duration::from_secs(60)).await.unwrap();
    }
}

async fn changes(
    machine: &Machine,
    whole: &Task,
    watch: &(dyn Fn(hatchery_host::machine::Event<'_>) + Send + Sync),
) -> usize {
    machine.apply(whole, watch).await.unwrap().changes()
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn memory(bench: &Bench) {
    let warm = bench.machine(0);
    warm.connection().await.unwrap();
    let before = resident();
    let machines: Vec<_> = (0..200).map(|number| bench.machine(number % 6)).collect();
    let begin = Instant::now();
    for group in machines.chunks(25) {
        for connected in future::join_all(group.iter().map(Machine::connection)).await {
            connected.unwrap();
        }
    }
    let took = begin.elapsed();
    for group in machines.chunks(25) {
        for facts in future::join_all(group.iter().map(|m| m.facts(Duration::from_secs(60)))).await
        {
            facts.unwrap();
        }
    }
    let each = (resident().saturating_sub(before)) / 200;
    println!(
        "200 connections, each asked for its facts: {each} KiB each (wanted: below 1024), opened in {took:.1?}"
    );
    future::join_all(machines.iter().map(Machine::disconnect)).await;
}
