//! A thousand machines through a whole session: the first deploy, another one with nothing to do, and one worker more.
//!
//! The machines are roots of file systems on which the real prelude is run by a real shell ([`roots`]). Nothing on them
//! serves an API, so what is asked of one is taken out of the plans. No programs are installed: what is sent is scripts,
//! settings and certificates, so that what a session costs by itself is not lost among gigabytes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement may fail loudly"
)]

mod roots;
mod sent;

use std::{
    collections::BTreeMap,
    env, fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hatchery_engine::{
    api_access::Machines,
    event::Event,
    package::Installation,
    plan::{self, Plan, TaskId},
    preflight::{self, AskOptions},
    reach::Environment,
    session::{Control, Locked, Planned, Session},
    state::{DeployFile, Holder, Home, Stores},
    versions::Versions,
    wanted::Wanted,
};
use hatchery_host::{machine::Machine, privilege::Privilege};
use hatchery_spec::{
    Cluster, Input, read,
    value::{Name, Version},
};
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::{
    roots::Roots,
    sent::{Counted, Sent},
};

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if env::args().any(|argument| argument == "--test") {
        return;
    }
    let count = env::var("HATCHERY_BENCH_MACHINES").map_or(1000, |text| text.parse().unwrap());
    // Before there are threads: each would otherwise keep the namespaces of the computer.
    let roots = Roots::enter();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure(count, &roots));
}

async fn measure(count: usize, roots: &Roots) {
    let mut fleet = Fleet::new(roots).await;
    let first = fleet.deploy(count).await;
    let again = fleet.deploy(count).await;
    let more = fleet.deploy(count + 1).await;

    println!("{count} workers and a master, no programs among what is sent");
    first.print("first deploy");
    again.print("nothing to do");
    more.print("one worker more");
    let added = worker(count);
    let own = more.sent[&added];
    println!(
        "one worker more against the first deploy: {:.3} of the time, {:.3} of the time of running, {:.3} of the bytes, \
         {:.5} of the bytes to the worker itself (wanted: below {:.5}); memory at most {} MiB",
        more.total() / first.total(),
        more.running / first.running,
        more.bytes() as f64 / first.bytes() as f64,
        own.bytes as f64 / first.bytes() as f64,
        2.0 / count as f64,
        memory() / 1024,
    );

    assert_eq!(first.changed(), count + 1, "{:?}", first.changes);
    assert_eq!(again.changes, BTreeMap::new());
    let changed: Vec<_> = more.changes.keys().collect();
    assert_eq!(changed, [&added]);
    assert!(own.bytes * (count as u64) < 2 * first.bytes());
    // The others are asked as if there were nothing to do, and get nothing.
    for (name, sent) in &more.sent {
        let asked = again.sent.get(name);
        assert!(
            *name == added || asked.is_some_and(|asked| sent.bytes <= asked.bytes * 101 / 100),
            "{name}: {sent:?} instead of {asked:?}"
        );
    }
}

/// One cluster, with as many workers as it is to have at the moment.
struct Fleet<'a> {
    roots: &'a Roots,
    session: Locked,
    machines: Machines,
    sent: BTreeMap<String, Arc<Sent>>,
}

impl<'a> Fleet<'a> {
    async fn new(roots: &'a Roots) -> Self {
        let home = roots.directory().join("home");
        let stores: Arc<dyn Stores> = Arc::new(Home::new(&home));
        let environment = Environment::new(home.join("cache"), None, |_| None);
        let id = Name::parse("fleet").unwrap();
        let session = Session::open(stores, &id, environment).await.unwrap();
        let holder = Holder::this_process("deploy", OffsetDateTime::now_utc());
        Self {
            roots,
            session: session.lock(holder).await.unwrap(),
            machines: Machines::new(),
            sent: BTreeMap::new(),
        }
    }

    /// As the command does it: observe, plan, run.
    async fn deploy(&mut self, workers: usize) -> Cost {
        let file = file(workers);
        let cluster = cluster(&file);
        for node in cluster.machines() {
            self.add(&node.name);
        }
        let before = self.sent();
        let begin = Instant::now();
        let options = AskOptions {
            deadline: Duration::from_secs(120),
            stay: true,
            ..AskOptions::default()
        };
        let observed = preflight::ask(&self.machines, options, |name, reply| {
            assert!(reply.is_ok(), "{name}: {reply:?}");
        })
        .await;
        let observing = begin.elapsed();
        let wanted = wanted(cluster);
        let begin = Instant::now();
        let plan = plan::make(&wanted, &observed, OffsetDateTime::now_utc()).unwrap();
        let planning = begin.elapsed();
        let planned = Planned {
            plan: on_machines(plan),
            wanted,
            observed,
            machines: self.machines.clone(),
            findings: Vec::new(),
            formed: false,
        };
        let begin = Instant::now();
        let changes = self.run(&planned, &file).await;
        let running = begin.elapsed();
        let sent = self.sent().into_iter().map(|(name, sent)| {
            let before = before.get(&name).copied().unwrap_or_default();
            (name, sent.since(before))
        });
        Cost {
            observing: observing.as_secs_f64(),
            planning: planning.as_secs_f64(),
            running: running.as_secs_f64(),
            sent: sent.collect(),
            changes,
        }
    }

    fn add(&mut self, name: &Name) {
        if self.machines.contains_key(name) {
            return;
        }
        let sent = Arc::new(Sent::default());
        let shell = self.roots.furnish(name.as_str());
        let counted = Counted::new(shell, Arc::clone(&sent));
        let identity = self.session.identity().clone();
        let machine = Machine::new(Arc::new(counted), Privilege::Root, identity);
        self.machines.insert(name.clone(), Arc::new(machine));
        self.sent.insert(name.to_string(), sent);
    }

    fn sent(&self) -> BTreeMap<String, sent::Total> {
        let sent = self.sent.iter();
        sent.map(|(name, sent)| (name.clone(), sent.total()))
            .collect()
    }

    /// Gives how much changed on each machine on which anything did.
    async fn run(&mut self, planned: &Planned, file: &DeployFile) -> BTreeMap<String, usize> {
        let changes = Mutex::new(BTreeMap::new());
        let emit = |event: Event| {
            if let Event::Finished {
                machine: Some(machine),
                changes: changed @ 1..,
                ..
            } = event
            {
                *changes.lock().unwrap().entry(machine).or_insert(0) += changed;
            }
        };
        let (_stop, stop) = watch::channel(false);
        let control = Control { emit: &emit, stop };
        let authorities = self.session.make_authorities(planned).await.unwrap();
        let outcome = self.session.run(planned, file, &authorities, control).await;
        let outcome = outcome.unwrap();
        assert!(outcome.not_done.is_empty(), "{:?}", outcome.not_done);
        changes.into_inner().unwrap()
    }
}

fn worker(number: usize) -> String {
    format!("w{number}")
}

fn file(workers: usize) -> DeployFile {
    let mut text = String::from(
        "cluster-id: fleet\nruntime: containerd\nnetwork: {podcidr: 10.240.0.0/12}\n\
         masters: [{name: m0, ip: 172.20.255.1}]\nworkers:\n",
    );
    for number in 0..workers {
        let (name, high, low) = (worker(number), number / 250, number % 250 + 1);
        text += &format!("  - {{name: {name}, ip: 172.20.{high}.{low}}}\n");
    }
    DeployFile {
        text: text.into_bytes(),
        variables: None,
    }
}

fn cluster(file: &DeployFile) -> Cluster {
    let reading = read(Input::private("deploy.yaml", &file.text));
    let said = reading.diagnostics.render(false);
    reading.cluster.unwrap_or_else(|| panic!("{said}"))
}

fn wanted(cluster: Cluster) -> Wanted {
    let names = cluster.machines().iter().map(|node| node.name.clone());
    Wanted {
        installations: names.map(|name| (name, Installation::default())).collect(),
        versions: Versions {
            kubernetes: Version::parse("1.37.0").unwrap(),
            containerd: None,
            etcd: None,
            coredns: None,
        },
        manifests: Vec::new(),
        images: Vec::new(),
        cluster,
    }
}

/// The plan without what is asked of the API.
fn on_machines(plan: Plan) -> Plan {
    let mut places = BTreeMap::new();
    let mut tasks = Vec::new();
    for (number, mut task) in plan.tasks.into_iter().enumerate() {
        if task.work.machine().is_none() {
            continue;
        }
        places.insert(TaskId(number), TaskId(tasks.len()));
        for before in [&mut task.needs, &mut task.after] {
            *before = before
                .iter()
                .filter_map(|id| places.get(id).copied())
                .collect();
        }
        tasks.push(task);
    }
    Plan { tasks, ..plan }
}

/// What a deploy took, in seconds and by machine.
struct Cost {
    observing: f64,
    planning: f64,
    running: f64,
    sent: BTreeMap<String, sent::Total>,
    changes: BTreeMap<String, usize>,
}

impl Cost {
    fn total(&self) -> f64 {
        self.observing + self.planning + self.running
    }

    fn bytes(&self) -> u64 {
        self.sent.values().map(|sent| sent.bytes).sum()
    }

    /// How many machines changed.
    fn changed(&self) -> usize {
        self.changes.len()
    }

    fn print(&self, what: &str) {
        let commands: u64 = self.sent.values().map(|sent| sent.commands).sum();
        println!(
            "{what}: {:.1} s (observing {:.1}, planning {:.2}, running {:.1}), {} KiB in {commands} commands, {} changes on {} \
             machines",
            self.total(),
            self.observing,
            self.planning,
            self.running,
            self.bytes() / 1024,
            self.changes.values().sum::<usize>(),
            self.changed(),
        );
    }
}

/// The most that this process has held, in KiB.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
