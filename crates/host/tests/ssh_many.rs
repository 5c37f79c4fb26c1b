//! Many machines with room for few connections, and servers that ask for more than a password.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

mod loopback;

use std::{sync::atomic::Ordering, time::Duration};

use futures::{StreamExt as _, stream};
use hatchery_host::transport::{
    Connector as _, Error,
    ssh::{Bastions, HostKey, Ssh, Timeouts, host_keys::Mismatch},
};
use loopback::{PASSWORD, Questions, address, machines, nothing_to_do, servers, target};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, time::timeout};

#[tokio::test(flavor = "multi_thread")]
async fn more_machines_than_connections() {
    const MACHINES: usize = 24;
    const ROOM: usize = 6;
    let questions = Questions::default();
    let port = servers(MACHINES, questions.clone()).await;
    let home = tempfile::tempdir().unwrap();
    let bastions = Bastions::with_room(ROOM);
    let all = machines(MACHINES, port, &home.path().join("known_hosts"), &bastions);
    let task = nothing_to_do();
    // Nobody disconnects: whoever is idle makes room for those who wait.
    let work = all.iter().map(|machine| async {
        machine.facts(Duration::from_secs(120)).await.unwrap();
        let report = machine.apply(&task, &|_| ()).await.unwrap();
        report.changes()
    });
    let changes: Vec<_> = stream::iter(work).buffer_unordered(8).collect().await;
    assert_eq!(changes, [0; MACHINES]);
    // A server learns a moment later that somebody went.
    let peak = questions.peak.load(Ordering::SeqCst);
    assert!(peak < MACHINES / 2, "{peak} connections at once");
    // The first of them is reached again.
    all[0].facts(Duration::from_secs(120)).await.unwrap();
}

/// A server that says who it is and nothing more.
async fn banner_only(number: usize) -> u16 {
    let listener = TcpListener::bind((address(number), 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"SSH-2.0-Silent\r\n").await.unwrap();
            silent.push(stream);
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_gives_its_place_back() {
    let silent = banner_only(1).await;
    let port = servers(1, Questions::default()).await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("known_hosts");
    let bastions = Bastions::with_room(1);
    let timeouts = Timeouts {
        handshake: Duration::from_millis(500),
        ..Timeouts::default()
    };
    let connect = |port| Ssh::new(target(1, port, &file), timeouts.clone(), bastions.clone());
    let error = connect(silent).connect().await.err().expect("let in");
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");
    // Also where whoever wanted the connection is gone before the deadline.
    let silent = connect(silent);
    let left = timeout(Duration::from_millis(200), silent.connect()).await;
    assert!(left.is_err(), "the deadline came first");
    let patient = Ssh::new(target(1, port, &file), Timeouts::default(), bastions);
    let next = timeout(Duration::from_secs(10), patient.connect()).await;
    next.expect("there is still no room").unwrap();
}

async fn login(prompts: &[&'static str]) -> (Option<Error>, Vec<String>) {
    let questions = Questions {
        prompts: prompts.to_vec(),
        ..Questions::default()
    };
    let port = servers(1, questions.clone()).await;
    let home = tempfile::tempdir().unwrap();
    let target = target(1, port, &home.path().join("known_hosts"));
    let ssh = Ssh::new(target, Timeouts::default(), Bastions::new());
    let error = ssh.connect().await.err();
    let heard = questions.heard.lock().unwrap().clone();
    (error, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_answers_no_other_question() {
    let (error, heard) = login(&["Verification code: "]).await;
    assert_eq!(heard, [""]);
    let error = error.expect("let in").to_string();
    assert!(error.contains("it asks 'Verification code:'"), "{error}");

    let (_, heard) = login(&["Password: ", "One-time password: ", "Password: "]).await;
    assert_eq!(heard, [PASSWORD, "", ""]);
    let (_, heard) = login(&["动态口令："]).await;
    assert_eq!(heard, [""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_host_hears_no_password_where_checking_is_strict() {
    let questions = Questions::default();
    let port = servers(1, questions.clone()).await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("known_hosts");
    let mut strict = target(1, port, &file);
    strict.host_key = HostKey::Known {
        files: vec![file.clone()],
        record: None,
    };
    let connect = |target| Ssh::new(target, Timeouts::default(), Bastions::new());
    let refused = connect(strict.clone())
        .connect()
        .await
        .err()
        .expect("let in");
    let Error::HostKey { source, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert!(matches!(**source, Mismatch::Unknown { .. }), "{source:?}");
    assert_eq!(*questions.heard.lock().unwrap(), [""; 0]);
    assert!(!file.exists());

    // Once it is known it is let in.
    connect(target(1, port, &file)).connect().await.unwrap();
    connect(strict).connect().await.unwrap();
    assert_eq!(*questions.heard.lock().unwrap(), [PASSWORD, PASSWORD]);
}
