//! What goes wrong with one machine is said with its name and the step, in time, while another machine goes on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hatchery_host::{
    content::Content,
    machine::{Error, Machine},
    operation::{Access, File, Operation},
    path::MachinePath,
    privilege::Privilege,
    script::Identity,
    task::Task,
    transport::ssh::{Auth, Bastions, Ssh, Target, Timeouts},
};
use hatchery_sandbox::{
    fault::Fault,
    settings::{RequestedSettings, System},
};

use crate::lab::{Bench, inside, word};

fn timeouts() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(3),
        handshake: Duration::from_secs(5),
        busy: Duration::from_secs(5),
        keep_alive: Duration::from_secs(1),
        ..Timeouts::default()
    }
}

fn small_task(content: &str) -> Task {
    let file = File {
        path: MachinePath::new("/etc/hatchery-test/file").unwrap(),
        content: Content::bytes(content.as_bytes()),
        access: Access::root(0o644).unwrap(),
    };
    let mut task = Task::new(word("worker"), vec![Operation::File(file)]).unwrap();
    task.deadline = Duration::from_secs(20);
    task
}

fn machine(target: Target, privilege: Privilege) -> Machine {
    machine_of("c1", target, privilege)
}

fn machine_of(cluster: &str, target: Target, privilege: Privilege) -> Machine {
    let identity = Identity {
        cluster: word(cluster),
        cluster_name: word(&format!("named-{cluster}")),
    };
    let ssh = Ssh::new(target, timeouts(), Bastions::new());
    Machine::new(Arc::new(ssh), privilege, identity)
}

/// Runs a task on a machine with a fault and on one without, at the same time.
async fn fails(bench: &Bench, broken: &Machine, task: &Task, within: Duration) -> Error {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let good = machine(bench.target(1), Privilege::Root);
    let begin = Instant::now();
    let (change, nothing) = (
        small_task(&format!("content {count}")),
        |_: hatchery_host::machine::Event<'_>| (),
    );
    let (error, report) = tokio::join!(broken.apply(task, &nothing), good.apply(&change, &nothing));
    assert_eq!(report.unwrap().changes(), 1, "the other machine goes on");
    let error = error.unwrap_err();
    assert!(
        begin.elapsed() < within,
        "{error} took {:?}",
        begin.elapsed()
    );
    good.disconnect().await;
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn each_names_machine_and_remedy_while_the_other_goes_on() {
    let settings = RequestedSettings {
        system: Some(System::Debian),
        ..RequestedSettings::default()
    };
    let bench = Bench::new("t-refuse", 2, settings).await;
    let node = &bench.lab.machines[0];
    let task = small_task("x");
    let quick = Duration::from_secs(10);
    let says = |error: &Error, parts: &[&str]| {
        let text = format!("{error}\n{}", error.remedy().unwrap_or_default());
        for part in parts.iter().chain([&node.name.as_str()]) {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        eprintln!("{text}\n");
    };

    // Nobody is there.
    let mut target = bench.target(0);
    let [a, b, c, _] = node.address.octets();
    let nobody = std::net::Ipv4Addr::new(a, b, c, 250).to_string();
    target.host.clone_from(&nobody);
    let error = fails(&bench, &machine(target, Privilege::Root), &task, quick).await;
    says(&error, &["cannot reach", &nobody]);

    // Something is there, but not sshd.
    let mut target = bench.target(0);
    target.port = 1;
    let error = fails(&bench, &machine(target, Privilege::Root), &task, quick).await;
    says(&error, &["cannot reach", "connection refused", "sshd"]);

    // A wrong password.
    let mut target = bench.target(0);
    target.auth = vec![Auth::Password("not this one".to_owned().into())];
    let error = fails(&bench, &machine(target, Privilege::Root), &task, quick).await;
    says(&error, &["does not let root in", "password"]);
    assert!(!error.to_string().contains("not this one"));

    // A user who may not become root.
    inside(node, "useradd -m -s /bin/sh plain && mkdir -p ~plain/.ssh && cp ~/.ssh/authorized_keys ~plain/.ssh/ && chown -R plain ~plain/.ssh").await;
    let mut target = bench.target(0);
    target.user = "plain".into();
    for password in [None, Some("some password".to_owned().into())] {
        let broken = machine(target.clone(), Privilege::Sudo { password });
        let error = fails(&bench, &broken, &task, Duration::from_secs(20)).await;
        says(&error, &["cannot become root", "sudo"]);
        assert!(!error.to_string().contains("some password"));
    }

    // Another cluster's.
    machine_of("c2", bench.target(0), Privilege::Root)
        .apply(&task, &|_| ())
        .await
        .unwrap();
    let error = fails(
        &bench,
        &machine(bench.target(0), Privilege::Root),
        &task,
        quick,
    )
    .await;
    says(&error, &["held by another cluster", "named-c2"]);
    let error = machine(bench.target(0), Privilege::Root)
        .undo(&[], quick)
        .await
        .unwrap_err();
    says(&error, &["held by another cluster"]);
    machine_of("c2", bench.target(0), Privilege::Root)
        .undo(&[], quick)
        .await
        .unwrap();

    // A full disk: where the stream is unpacked, and where the file belongs.
    let large = small_task(&"large ".repeat(500_000));
    inside(
        node,
        "mkdir -p /var/lib/hatchery && mount -t tmpfs -o size=256k tmpfs /var/lib/hatchery",
    )
    .await;
    let error = fails(
        &bench,
        &machine(bench.target(0), Privilege::Root),
        &large,
        quick,
    )
    .await;
    says(&error, &["no space left", "free some space"]);
    inside(node, "umount /var/lib/hatchery && rm -rf /var/lib/hatchery && mkdir /etc/hatchery-test && mount -t tmpfs -o size=64k tmpfs /etc/hatchery-test").await;
    let error = fails(
        &bench,
        &machine(bench.target(0), Privilege::Root),
        &large,
        quick,
    )
    .await;
    says(
        &error,
        &["No space left", "file /etc/hatchery-test/file", "run again"],
    );
    inside(node, "umount /etc/hatchery-test").await;
    let report = machine(bench.target(0), Privilege::Root)
        .apply(&large, &|_| ())
        .await
        .unwrap();
    assert_eq!(report.changes(), 1);

    // One that froze before, and one that freezes in the middle.
    let frozen = machine(bench.target(0), Privilege::Root);
    frozen.connection().await.unwrap();
    bench.lab.fault(&node.name, Fault::Pause).await.unwrap();
    let error = fails(&bench, &frozen, &task, Duration::from_secs(25)).await;
    says(&error, &["within"]);
    let error = fails(
        &bench,
        &machine(bench.target(0), Privilege::Root),
        &task,
        Duration::from_secs(25),
    )
    .await;
    says(&error, &["within"]);
    bench.lab.fault(&node.name, Fault::Resume).await.unwrap();

    // A machine that is not the one that it was.
    inside(
        node,
        "rm /etc/ssh/ssh_host_*_key* && ssh-keygen -A >/dev/null && systemctl reset-failed ssh; systemctl restart ssh",
    )
    .await;
    let error = fails(
        &bench,
        &machine(bench.target(0), Privilege::Root),
        &task,
        quick,
    )
    .await;
    says(&error, &["host key", "not trusted"]);
}
