//! Commands and streams on real machines, and what happens when a machine does not do its part.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

mod ssh_lab;

use std::time::{Duration, Instant};

use futures::future::join_all;
use hatchery_host::transport::{
    Connector as _, Error, Exit,
    ssh::{Bastions, Ssh, Timeouts},
};
use hatchery_sandbox::{
    fault::Fault,
    lab::{Machine, Options},
    test_lab::TestLab,
};
use ssh_lab::{connect, inside, lets_in, output, sshd_with, target, timeouts};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{sleep, timeout},
};

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_streams() {
    let options = Options::new("t-exec".parse().unwrap(), 2);
    let lab = TestLab::up(options).await.unwrap();
    let (first, second) = (&lab.machines[0], &lab.machines[1]);
    commands(&lab, first).await;
    much_output(&lab, first).await;
    streams(&lab, first).await;
    busy_machines(&lab, first).await;
    lost_connections(&lab, first).await;
    frozen_machines(&lab, second).await;
}

async fn commands(lab: &TestLab, machine: &Machine) {
    let connection = connect(&target(lab, machine)).await.unwrap();
    let running = connection
        .exec("cat; echo aside >&2; exit 7")
        .await
        .unwrap();
    let finished = running.finish(b"in").await.unwrap();
    assert_eq!(finished.exit, Exit::Code(7));
    assert_eq!(
        (finished.output.as_slice(), finished.errors.as_slice()),
        (&b"in"[..], &b"aside\n"[..])
    );
    let killed = connection
        .exec("kill -TERM $$")
        .await
        .unwrap()
        .finish(b"")
        .await
        .unwrap();
    assert_eq!(killed.exit, Exit::Signal("TERM".into()));

    // More than sshd allows at once, all begun together.
    let begin = Instant::now();
    let many = (0..12).map(|number| {
        let connection = connection.clone();
        async move { output(&*connection, &format!("sleep 0.5; echo {number}")).await }
    });
    let answers = join_all(many).await;
    assert_eq!(
        answers,
        (0..12).map(|number| number.to_string()).collect::<Vec<_>>()
    );
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );

    // One stream is read to its end while the other fills.
    let both = "head -c 200000 /dev/zero >&2; head -c 3000000 /dev/zero; echo end >&2";
    let mut running = connection.exec(both).await.unwrap();
    let mut bytes = Vec::new();
    running.output.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes.len(), 3_000_000);
    bytes.clear();
    running.errors.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes.len(), 200_004);
    assert_eq!(running.exit.await.unwrap(), Exit::Code(0));

    // What is dropped is read and thrown away.
    let mut running = connection
        .exec("head -c 3000000 /dev/zero; echo end >&2")
        .await
        .unwrap();
    running.output = Box::new(tokio::io::empty());
    assert_eq!(running.finish(b"").await.unwrap().errors, b"end\n");

    // A command that does not read does not keep the writer waiting for ever.
    let mut running = connection.exec("exit 4").await.unwrap();
    let written = timeout(Duration::from_secs(10), async {
        loop {
            if running.input.write_all(&[0; 65536]).await.is_err() {
                break;
            }
        }
    });
    written.await.unwrap();
    assert_eq!(running.exit.await.unwrap(), Exit::Code(4));

    // Streams end, commands do not; their places come back.
    for number in 0..8 {
        let running = connection
            .exec(&format!("sleep 2; touch /tmp/outlived{number}"))
            .await
            .unwrap();
        drop(running);
    }
    assert_eq!(output(&*connection, "echo still").await, "still");
    let begin = Instant::now();
    while output(&*connection, "ls /tmp | grep -c outlived || true").await != "8" {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "dropped commands were ended"
        );
        sleep(Duration::from_millis(200)).await;
    }

    // Nobody reads: given up, and the connection goes on.
    let short = Timeouts {
        unread: Duration::from_secs(1),
        ..timeouts()
    };
    let ssh = Ssh::new(target(lab, machine), short, Bastions::new());
    let impatient = ssh.connect().await.unwrap();
    let mut unread = impatient.exec("cat /dev/zero").await.unwrap();
    let error = timeout(Duration::from_secs(10), &mut unread.exit)
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        error.is_lost() && error.to_string().contains("was not read for"),
        "{error}"
    );
    assert_eq!(output(&*impatient, "echo on").await, "on");
    connection.close().await;
    assert!(connection.is_closed());
    assert!(connection.exec("true").await.unwrap_err().is_lost());
}

/// Half a gigabyte is read without being held.
async fn much_output(lab: &TestLab, machine: &Machine) {
    let connection = connect(&target(lab, machine)).await.unwrap();
    let mut running = connection
        .exec("head -c 500000000 /dev/zero")
        .await
        .unwrap();
    let mut count = 0;
    let mut chunk = vec![0; 65536];
    loop {
        match running.output.read(&mut chunk).await.unwrap() {
            0 => break,
            more => count += more,
        }
    }
    assert_eq!(count, 500_000_000);
    assert_eq!(running.exit.await.unwrap(), Exit::Code(0));
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = own.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 200_000, "the output was held in memory: {peak}");
}

async fn streams(lab: &TestLab, machine: &Machine) {
    let connection = connect(&target(lab, machine)).await.unwrap();
    let mut stream = connection.forward("127.0.0.1", 22).await.unwrap();
    let mut banner = [0; 4];
    stream.read_exact(&mut banner).await.unwrap();
    assert_eq!(&banner, b"SSH-");
    drop(stream);
    let closed = connection.forward("127.0.0.1", 9).await.err().unwrap();
    assert!(
        matches!(
            closed,
            Error::ForwardRefused {
                forbidden: false,
                ..
            }
        ),
        "{closed:?}"
    );
    sshd_with(machine, "AllowTcpForwarding no").await;
    let strict = connect(&target(lab, machine)).await.unwrap();
    let mut stream = strict.forward("127.0.0.1", 22).await.unwrap();
    stream.read_exact(&mut banner).await.unwrap();
    assert_eq!(&banner, b"SSH-");
    // Both ends may end it: sshd, to which this is no SSH, and we.
    stream.write_all(b"good day\r\n").await.unwrap();
    let mut rest = Vec::new();
    let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
    ended.unwrap().unwrap();
    drop((stream, strict.forward("127.0.0.1", 22).await.unwrap()));
    let relays = "sleep 1; ps -eo args | grep -c '[/]dev/tcp' || true";
    assert_eq!(output(&*strict, relays).await, "0");
    let closed = strict.forward("127.0.0.1", 9).await.err().unwrap();
    assert!(closed.to_string().contains("nothing answers"), "{closed}");
    sshd_with(machine, "").await;
}

/// sshd turns away whom it has no room for; we come again.
async fn busy_machines(lab: &TestLab, machine: &Machine) {
    sshd_with(machine, "MaxStartups 1\nMaxSessions 2").await;
    let target = target(lab, machine);
    let many = join_all((0..6).map(|_| connect(&target))).await;
    let failed: Vec<_> = many
        .iter()
        .filter_map(|connected| connected.as_ref().err())
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    let connection = many.into_iter().next().unwrap().unwrap();
    let commands = join_all((0..6).map(|_| output(&*connection, "sleep 0.3; echo here"))).await;
    assert!(commands.iter().all(|said| said == "here"), "{commands:?}");
    sshd_with(machine, "").await;
}

async fn lost_connections(lab: &TestLab, machine: &Machine) {
    let connection = connect(&target(lab, machine)).await.unwrap();
    let mut running = connection.exec("echo up; sleep 60").await.unwrap();
    let mut up = [0; 3];
    running.output.read_exact(&mut up).await.unwrap();
    inside(
        machine,
        "pkill -9 -f '^sshd: root@notty' || pkill -9 -f '^sshd-session: root'",
    )
    .await;
    let lost = timeout(Duration::from_secs(10), &mut running.exit)
        .await
        .unwrap()
        .unwrap_err();
    assert!(lost.is_lost(), "{lost}");
    assert!(lost.to_string().contains(&machine.name), "{lost}");
    assert!(
        running.output.read(&mut up).await.is_err(),
        "lost output looks complete"
    );
    assert!(connection.is_closed());
    assert!(connection.exec("true").await.unwrap_err().is_lost());
}

async fn frozen_machines(lab: &TestLab, machine: &Machine) {
    let target = target(lab, machine);
    let connection = connect(&target).await.unwrap();
    let quiet = connection.exec("sleep 60").await.unwrap();
    let other = connect(&target).await.unwrap();
    let begun = join_all((0..6).map(|_| other.exec("cat > /dev/null"))).await;
    lab.fault(&machine.name, Fault::Pause).await.unwrap();

    let limit = Duration::from_secs(12);
    let hung = async {
        let hung = timeout(limit, connect(&target)).await.unwrap();
        let hung = hung.err().unwrap();
        let told = matches!(hung, Error::Deadline { .. } | Error::Unreachable { .. });
        assert!(told, "{hung:?}");
    };
    let dead = async {
        let dead = timeout(limit, quiet.exit).await.unwrap().unwrap_err();
        assert!(dead.is_lost(), "{dead}");
        assert!(dead.to_string().contains("did not answer"), "{dead}");
    };
    // More than all buffers on the way hold, so that the connection itself cannot be written to.
    let flooded = join_all(begun.into_iter().map(async |running| {
        let mut running = running.unwrap();
        while running.input.write_all(&[0; 65536]).await.is_ok() {}
        let stalled = running.exit.await.unwrap_err();
        assert!(stalled.is_lost(), "{stalled}");
    }));
    let ((), (), flooded) = tokio::join!(hung, dead, timeout(limit, flooded));
    flooded.unwrap();
    lab.fault(&machine.name, Fault::Resume).await.unwrap();
    lets_in(&target).await;
}
