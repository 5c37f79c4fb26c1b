//! The machine in memory as everything above `host` uses it: through [`Machine`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

#[path = "memory/failures.rs"]
mod failures;
#[path = "memory/known.rs"]
mod known;

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hatchery_host::{
    content::Content,
    facts::Arch,
    machine::{Difference, Error, Event, Machine, Outcome},
    operation::{
        Access, Directory, File, Firewall, HostsEntry, ImageStore, Images, Operation, PackageName,
        PackageSource, Packages, Port, Protocol, Script, Sysctl, Unit, UnitName, User,
    },
    path::{MachinePath, Word},
    privilege::Privilege,
    script::Identity,
    task::Task,
    transport::{
        self, Connector, Exit,
        memory::{Login, MachineFacts, Memory},
    },
};

const SOON: Duration = Duration::from_secs(10);

fn word(text: &str) -> Word {
    Word::new(text).unwrap()
}

fn path(text: &str) -> MachinePath {
    MachinePath::new(text).unwrap()
}

fn file(at: &str, text: &str) -> Operation {
    Operation::File(File {
        path: path(at),
        content: Content::bytes(text.as_bytes()),
        access: Access::root(0o644).unwrap(),
    })
}

fn task(owner: &str, operations: Vec<Operation>) -> Task {
    let mut task = Task::new(word(owner), operations).unwrap();
    task.deadline = SOON;
    task
}

fn reached(connector: Arc<dyn Connector>, privilege: Privilege, cluster: &str) -> Machine {
    let identity = Identity {
        cluster: word(cluster),
        cluster_name: word("one"),
    };
    let mut machine = Machine::new(connector, privilege, identity);
    machine.lock_timeout = Duration::from_secs(1);
    machine
}

fn machine(memory: &Memory) -> Machine {
    reached(Arc::new(memory.clone()), Privilege::Root, "c1")
}

fn quiet(_: Event<'_>) {}

/// One of each kind.
fn everything(flavour: &str) -> Vec<Operation> {
    vec![
        Operation::Packages(Packages {
            source: PackageSource::Repository(vec![PackageName::new("containerd").unwrap()]),
        }),
        Operation::Directory(Directory {
            path: path("/var/lib/ours"),
            access: Access::root(0o700).unwrap(),
            contents_are_ours: true,
        }),
        file("/etc/ours/deep/file.conf", flavour),
        file("/etc/there.conf", flavour),
        file("/etc/systemd/system/ours.service", flavour),
        Operation::Unit(Unit {
            name: UnitName::new("ours.service").unwrap(),
            enabled: Some(true),
            running: Some(true),
            restart_on: vec![path("/etc/systemd/system/ours.service")],
        }),
        Operation::Unit(Unit {
            name: UnitName::new("containerd.service").unwrap(),
            enabled: Some(true),
            running: Some(true),
            restart_on: vec![],
        }),
        Operation::Sysctl(Sysctl::new("net.ipv4.ip_nonlocal_bind", "1").unwrap()),
        Operation::Sysctl(Sysctl::new("vm.swappiness", "0").unwrap()),
        Operation::Module(word("br_netfilter")),
        Operation::HostsEntry(HostsEntry {
            address: "10.0.0.1".parse().unwrap(),
            names: vec![word("m1")],
        }),
        Operation::Hostname(word("node-1")),
        Operation::Firewall(Firewall {
            port: Port::one(6443).unwrap(),
            protocol: Protocol::Tcp,
            address: None,
        }),
        Operation::TrustedNetwork("10.244.0.0/16".parse().unwrap()),
        Operation::User(User {
            name: word("etcd"),
            home: path("/var/lib/etcd"),
        }),
        Operation::Images(
            Images::new(
                ImageStore {
                    name: "containerd",
                    list: "ctr images ls -q",
                    load: "ctr images import \"$1\"",
                    remove: "ctr images rm \"$1\"",
                },
                Content::bytes(*b"an archive"),
                vec!["pause:3.9".into()],
            )
            .unwrap(),
        ),
        Operation::Script(Script {
            name: word("step"),
            check: format!("grep -q '{flavour}' /proc/version\n}}\nundo"),
            apply: "it's".into(),
            undo: String::new(),
            deadline: SOON,
        }),
    ]
}

fn furnished() -> Memory {
    Memory::new("m1")
        .with_file("/etc/there.conf", 0o640, *b"as it was")
        .with_packaged_unit("containerd", "containerd.service")
        .with_firewall()
}

#[tokio::test]
async fn a_task_is_done_once_and_put_back() {
    let memory = furnished();
    let machine = machine(&memory);
    let task = task("role", everything("first"));

    let look = machine.look(&task).await.unwrap();
    assert!(
        look.differences
            .iter()
            .all(|difference| matches!(difference, Difference::Change(_))),
        "{look:?}"
    );
    assert!(memory.is_untouched());

    let titles = Mutex::new(Vec::new());
    let watch = |event: Event<'_>| {
        if let Event::Step { title } = event {
            titles.lock().unwrap().push(title.to_owned());
        }
    };
    let report = machine.apply(&task, &watch).await.unwrap();
    assert_eq!(report.changes(), task.operations().len(), "{report:?}");
    assert_eq!(report.round_trips, 2);
    assert!(
        titles
            .lock()
            .unwrap()
            .contains(&"directory /etc/ours".to_owned())
    );
    assert_eq!(
        memory.file("/etc/there.conf").as_deref(),
        Some(&b"first"[..])
    );
    assert_eq!(memory.unit("ours.service"), (true, true));
    assert_eq!(memory.sysctl("vm/swappiness").as_deref(), Some("0"));
    assert!(!memory.is_untouched());

    let sent = memory.log().bytes;
    let again = machine.apply(&task, &quiet).await.unwrap();
    assert_eq!((again.changes(), again.round_trips), (0, 1));
    assert_eq!(memory.log().bytes - sent, again.bytes_sent);

    let (facts, managed) = machine.facts(SOON).await.unwrap();
    assert_eq!(facts.names.hostname.as_deref(), Some("node-1"));
    assert_eq!(facts.sysctls["vm.swappiness"], "0");
    assert!(facts.units.unwrap().contains_key("containerd.service"));
    assert_eq!(managed.cluster, Some(("c1".into(), "one".into())));
    assert_eq!(managed.resources, memory.resources());

    let undone = machine.undo(&[], SOON).await.unwrap();
    assert!(
        undone.left.is_empty() && undone.kept.is_empty(),
        "{undone:?}"
    );
    assert!(memory.is_untouched(), "{:?}", memory.paths());
    let log = memory.log();
    assert_eq!((log.connections, log.commands), (1, 6));
    assert_eq!(
        log.asked,
        ["look", "apply", "apply", "apply", "facts", "undo"]
    );
}

#[tokio::test]
async fn several_tasks_are_looked_at_in_one_question() {
    let memory = furnished();
    let machine = machine(&memory);
    let first = task("role", everything("first"));
    machine.apply(&first, &|_| ()).await.unwrap();
    let tasks = [
        first,
        task("role", vec![file("/etc/ours/new", "x")]),
        task("role", everything("first")),
    ];
    let commands = memory.log().commands;
    let looks = machine.look_at_all(&tasks).await.unwrap();
    assert_eq!(memory.log().commands, commands + 1);
    let counts = looks.iter().map(|look| {
        let changes = look.differences.iter();
        changes.filter(|one| **one != Difference::Unchanged).count()
    });
    assert_eq!(counts.collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(machine.look_at_all(&[]).await.unwrap(), []);
    // Whoever holds the machine for another cluster learns of all that it is held.
    memory.hold_for("c9", "nine");
    let error = machine.look_at_all(&tasks).await.unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
}

#[tokio::test]
async fn what_another_owner_needs_stays() {
    let memory = furnished();
    let machine = machine(&memory);
    let shared = file("/etc/ours/shared", "x");
    machine
        .apply(
            &task("etcd", vec![shared.clone(), file("/etc/etcd", "e")]),
            &quiet,
        )
        .await
        .unwrap();
    machine
        .apply(
            &task("worker", vec![shared, file("/etc/worker", "w")]),
            &quiet,
        )
        .await
        .unwrap();
    machine.undo(&[word("etcd")], SOON).await.unwrap();
    assert_eq!(memory.file("/etc/etcd"), None);
    assert!(memory.file("/etc/ours/shared").is_some());
    machine.undo(&[word("worker")], SOON).await.unwrap();
    assert!(memory.is_untouched());
}

#[tokio::test]
async fn a_script_whose_check_is_another_is_done_again() {
    let memory = furnished();
    let machine = machine(&memory);
    machine
        .apply(&task("role", everything("first")), &quiet)
        .await
        .unwrap();
    let report = machine
        .apply(&task("role", everything("second")), &quiet)
        .await
        .unwrap();
    let changed: Vec<_> = (0..)
        .zip(&report.outcomes)
        .filter(|(_, o)| **o == Outcome::Changed)
        .map(|(n, _)| n)
        .collect();
    assert_eq!(changed, [2, 3, 4, 5, 16]);
}

#[tokio::test]
async fn facts_are_what_the_test_says() {
    let facts = MachineFacts::debian()
        .with_machine("aarch64")
        .with_cpus(8)
        .with_memory(4 << 30)
        .with_value("kernel", "4.19.90")
        .with_listener(6443, "kube-apiserver");
    let memory = Memory::new("arm-1").with_facts(facts);
    let (facts, managed) = machine(&memory).facts(SOON).await.unwrap();
    assert_eq!(facts.arch, Some(Arch::Arm64));
    assert_eq!(
        (facts.cpus, facts.memory.unwrap().total),
        (Some(8), 4 << 30)
    );
    assert_eq!(facts.kernel.as_deref(), Some("4.19.90"));
    assert_eq!(facts.names.hostname.as_deref(), Some("arm-1"));
    let listeners = facts.listeners.unwrap();
    let listener = listeners
        .iter()
        .find(|listener| listener.port == 6443)
        .unwrap();
    assert_eq!(listener.processes[0].name, "kube-apiserver");
    assert!(facts.entries.is_empty());
    assert!(
        !facts
            .clock
            .unwrap()
            .is_off_by_more_than(Duration::from_secs(5))
    );
    assert!(managed.cluster.is_none() && memory.is_untouched());
}

#[tokio::test]
async fn sudo_asks_and_refuses() {
    let with = |login: Login, password: Option<&str>| {
        let password = password.map(|password| password.to_owned().into());
        let memory = Memory::new("m1").with_login(login);
        let machine = reached(Arc::new(memory.clone()), Privilege::Sudo { password }, "c1");
        (memory, machine)
    };
    let asking = || Login::Sudo {
        password: Some("secret".into()),
    };
    let task = task("role", vec![file("/etc/x", "x")]);
    for (login, password) in [
        (asking(), Some("secret")),
        (Login::Sudo { password: None }, None),
        (Login::Root, None),
    ] {
        let (memory, machine) = with(login.clone(), password);
        assert_eq!(
            machine.apply(&task, &quiet).await.unwrap().changes(),
            1,
            "{login:?}"
        );
        assert!(memory.file("/etc/x").is_some());
    }
    for (login, password, expected) in [
        (asking(), Some("wrong"), "sudo rejected the password"),
        (asking(), None, "sudo asks for a password"),
        (Login::Nobody, Some("secret"), "sudo does not allow it"),
    ] {
        let (memory, machine) = with(login, password);
        let error = machine.apply(&task, &quiet).await.unwrap_err();
        let refused = matches!(&error, Error::Transport { source: transport::Error::Privilege { source, .. } }
            if source.to_string().starts_with(expected));
        assert!(refused, "{error}");
        assert!(memory.is_untouched());
    }
    let (memory, _) = with(asking(), None);
    let error = machine(&memory).apply(&task, &quiet).await.unwrap_err();
    assert!(
        matches!(&error, Error::NotBegun { complaint, .. } if complaint.contains("Permission denied")),
        "{error}"
    );
}

#[tokio::test]
async fn each_command_takes_its_time() {
    let memory = Memory::new("m1").with_latency(Duration::from_millis(100));
    let machine = machine(&memory);
    let begin = Instant::now();
    machine
        .apply(&task("role", vec![file("/etc/x", "x")]), &quiet)
        .await
        .unwrap();
    assert!(
        begin.elapsed() >= Duration::from_millis(200),
        "{:?}",
        begin.elapsed()
    );
}

#[tokio::test]
async fn other_commands_are_unknown() {
    let connection = Memory::new("m1").connect().await.unwrap();
    let finished = connection
        .exec("kubectl get nodes")
        .await
        .unwrap()
        .finish(b"")
        .await
        .unwrap();
    assert_eq!(finished.exit, Exit::Code(127));
    assert!(connection.forward("127.0.0.1", 6443).await.is_err());
}

/// Kilobytes that this process has in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// In a process of its own, whose memory no other test uses.
#[test]
fn a_thousand_machines_at_once() {
    const ALONE: &str = "HATCHERY_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let alone = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_thousand_machines_at_once", "--nocapture"])
            .env(ALONE, "1")
            .status();
        assert!(alone.unwrap().success());
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(thousand_machines());
}

async fn thousand_machines() {
    let operations: Vec<_> = (0..50)
        .map(|n| file(&format!("/etc/ours/d{}/f{n}", n % 5), &format!("{n}")))
        .collect();
    let mut work = task("role", operations);
    work.deadline = Duration::from_secs(120);
    let work = Arc::new(work);
    let before = resident();
    let memories: Vec<_> = (0..1000).map(|n| Memory::new(format!("m{n}"))).collect();
    let begin = Instant::now();
    let runs: Vec<_> = memories
        .iter()
        .map(|memory| {
            let (machine, work) = (machine(memory), Arc::clone(&work));
            tokio::spawn(async move {
                machine
                    .apply(&work, &quiet)
                    .await
                    .map(|report| report.changes())
            })
        })
        .collect();
    for run in runs {
        assert_eq!(run.await.unwrap().unwrap(), 50);
    }
    let (took, grown) = (begin.elapsed(), resident().saturating_sub(before));
    eprintln!("1000 machines with 50 operations each: {took:?}, {grown} kB");
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert!(grown < 300 * 1024, "{grown} kB");
    assert!(memories.iter().all(|memory| memory.files().len() == 52));
}
