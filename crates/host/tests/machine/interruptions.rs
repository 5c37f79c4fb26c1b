//! Runs that are cut off anywhere: our process is killed, the machine loses its power, the connection breaks.
//!
//! The points are random; the seed is printed, and `HATCHERY_SEED` repeats it. `HATCHERY_ROUNDS` asks for more rounds.

use std::{
    env,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use hatchery_host::{
    machine::{Event, Machine},
    operation::{Operation, Script},
    task::Task,
    transport::faulty::{Fault, FaultyConnector},
};
use hatchery_sandbox::{
    fault::Fault as MachineFault,
    settings::{RequestedSettings, System},
    snapshot::Snapshot,
};
use tokio::process::Command;

use crate::{
    lab::{Bench, word},
    work,
};

const DEADLINE: Duration = Duration::from_secs(120);

/// A small generator is enough to choose moments.
struct Moments(u64);

impl Moments {
    fn new(what: &str) -> Self {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        let seed = env::var("HATCHERY_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(since.as_nanos() as u64) | 1;
        eprintln!("{what}: HATCHERY_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        limit.mul_f64((self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

fn rounds() -> usize {
    env::var("HATCHERY_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(3)
}

async fn bench(name: &str) -> (Bench, Snapshot) {
    let settings = RequestedSettings {
        system: Some(System::Debian),
        ..RequestedSettings::default()
    };
    let bench = Bench::new(name, 1, settings).await;
    bench.furnish(&bench.lab.machines[0]).await;
    // As it is after a start, since some of the rounds end with one.
    let machine = bench.lab.machines[0].name.clone();
    bench.lab.fault(&machine, MachineFault::Stop).await.unwrap();
    bench
        .lab
        .fault(&machine, MachineFault::Start)
        .await
        .unwrap();
    let before = Snapshot::take(&bench.lab.machines[0]).await.unwrap();
    (bench, before)
}

/// How long the whole of it takes undisturbed, there and back.
async fn undisturbed(machine: &Machine, task: &Task) -> Duration {
    let start = Instant::now();
    machine.apply(task, &|_| ()).await.unwrap();
    let took = start.elapsed();
    let undone = machine.undo(&[], DEADLINE).await.unwrap();
    assert!(undone.left.is_empty(), "{:?}", undone.left);
    took
}

/// Every second time the task is finished first, with other resources.
async fn recover(bench: &Bench, before: &Snapshot, round: usize, when: &str) {
    let machine = bench.machine(0);
    if round.is_multiple_of(2) {
        let task = work::two_hundred(System::Debian, "second").await;
        let report = machine
            .apply(&task, &|_| ())
            .await
            .unwrap_or_else(|error| panic!("{when}: {error}"));
        assert!(
            report
                .outcomes
                .iter()
                .all(|o| !matches!(o, hatchery_host::machine::Outcome::Failed))
        );
    }
    let undone = machine
        .undo(&[], DEADLINE)
        .await
        .unwrap_or_else(|error| panic!("{when}: {error}"));
    assert!(undone.left.is_empty(), "{when}: {:?}", undone.left);
    let now = Snapshot::take(&bench.lab.machines[0]).await.unwrap();
    now.assert_same(before, when);
    machine.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_cuts() {
    let (bench, before) = bench("t-power").await;
    let name = bench.lab.machines[0].name.clone();
    let task = work::two_hundred(System::Debian, "first").await;
    let took = undisturbed(&bench.machine(0), &task).await;
    let mut moments = Moments::new("power cuts");
    for round in 0..rounds() {
        let (at, machine) = (moments.below(took), bench.machine(0));
        let cut = tokio::time::timeout(at, machine.apply(&task, &|_| ())).await;
        assert!(!matches!(cut, Ok(Err(_))), "{cut:?}");
        bench.lab.fault(&name, MachineFault::Stop).await.unwrap();
        bench.lab.fault(&name, MachineFault::Start).await.unwrap();
        recover(
            &bench,
            &before,
            round,
            &format!("power cut {round} after {at:?} of {took:?}"),
        )
        .await;
    }
    eprintln!("{} power cuts", rounds());
}

const CHILD: &str = "HATCHERY_TEST_CHILD";

/// Applies until it is killed; only ever run by the test below.
#[tokio::test]
#[ignore = "the child process of killed_processes"]
async fn child() {
    let Ok(given) = env::var(CHILD) else { return };
    let words: Vec<_> = given.split('|').collect();
    let machine = crate::lab::root_at(words[0], words[1].as_ref(), words[2].as_ref());
    let task = work::two_hundred(System::Debian, "first").await;
    eprintln!("begins");
    machine.apply(&task, &|_| ()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes() {
    let (bench, before) = bench("t-kill").await;
    let task = work::two_hundred(System::Debian, "first").await;
    let took = undisturbed(&bench.machine(0), &task).await + Duration::from_millis(300);
    let mut moments = Moments::new("killed processes");
    for round in 0..rounds() {
        let at = moments.below(took);
        let lab = &bench.lab;
        let given = format!(
            "{}|{}|{}",
            lab.machines[0].address,
            lab.key().display(),
            lab.known_hosts().display()
        );
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "interruptions::child",
                "--nocapture",
            ])
            .env(CHILD, given)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // Building the task takes a while of its own.
        let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("begins") {
            line.clear();
            let read = tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line)
                .await
                .unwrap();
            assert!(read > 0, "the child ended early");
        }
        tokio::time::sleep(at).await;
        child.start_kill().unwrap();
        child.wait().await.unwrap();
        recover(
            &bench,
            &before,
            round,
            &format!("kill {round} after {at:?} of {took:?}"),
        )
        .await;
    }
    eprintln!("{} killed processes", rounds());
}

/// A connection that breaks after so many bytes: the task ends well by itself, whatever the machine had got of it.
#[tokio::test(flavor = "multi_thread")]
async fn lost_connections() {
    let (bench, before) = bench("t-lost").await;
    let task = work::two_hundred(System::Debian, "first").await;
    for (round, fault) in [
        Fault::DropAfterWritten(40_000),
        Fault::DropAfterWritten(900_000),
        Fault::DropAfterRead(200),
        Fault::DropAfterRead(2_500),
    ]
    .into_iter()
    .enumerate()
    {
        let faults = [Some(fault.clone())];
        let connector = Arc::new(FaultyConnector::new(bench.connector(0), faults));
        let machine = bench.machine_through(connector.clone());
        let lost = std::sync::Mutex::new(0);
        let watch = |event: Event<'_>| {
            if let Event::Lost { .. } = event {
                *lost.lock().unwrap() += 1;
            }
        };
        let report = machine
            .apply(&task, &watch)
            .await
            .unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(*lost.lock().unwrap() > 0, "{fault:?} did nothing");
        assert!(connector.connects() > 1);
        assert_eq!(report.outcomes.len(), 200);
        let again = bench.machine(0).apply(&task, &|_| ()).await.unwrap();
        assert_eq!(again.changes(), 0, "{fault:?}");
        recover(&bench, &before, round + 1, &format!("{fault:?}")).await;
    }
}

/// A run that nobody listens to any more and that does not end is ended by the next one.
#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_is_fenced_off() {
    let (bench, before) = bench("t-orphan").await;
    let hang = Operation::Script(Script {
        name: word("hang"),
        check: "false".into(),
        apply: "sleep 1000".into(),
        undo: String::new(),
        deadline: Duration::from_secs(900),
    });
    let mut task = Task::new(word("worker"), vec![hang]).unwrap();
    task.deadline = Duration::from_secs(3);
    let first = bench.machine(0);
    let error = first.apply(&task, &|_| ()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("step hang did not finish within 3 s"),
        "{error}"
    );

    // As long as its connection lives it is somebody's, and the machine is busy.
    let mut second = bench.machine(0);
    second.lock_timeout = Duration::from_secs(1);
    let other = work::two_hundred(System::Debian, "first").await;
    let error = second.apply(&other, &|_| ()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("is being worked on by another run"),
        "{error}"
    );

    first.disconnect().await;
    let fenced = std::sync::Mutex::new(false);
    let watch = |event: Event<'_>| {
        if let Event::Fenced { .. } = event {
            *fenced.lock().unwrap() = true;
        }
    };
    second.apply(&other, &watch).await.unwrap();
    assert!(*fenced.lock().unwrap());
    recover(&bench, &before, 1, "fenced").await;
}
