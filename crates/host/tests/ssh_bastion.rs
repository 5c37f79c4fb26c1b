//! Machines that can be reached only through a bastion, and whose sshd forbids forwarding.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{sync::Arc, time::Duration, time::Instant};

use futures::future::join_all;
use hatchery_host::{
    privilege::{Privilege, begin},
    transport::{
        Connection, Connector as _, Error, Exit,
        ssh::{Auth, Bastions, Hop, HostKey, Key, Ssh, Target, Timeouts},
    },
};
use hatchery_sandbox::{
    docker,
    lab::{Machine, Options},
    settings::{RequestedSettings, Sudo, System},
    test_lab::TestLab,
};
use tokio::io::AsyncReadExt as _;

fn host_key(lab: &TestLab) -> HostKey {
    HostKey::Known {
        files: vec![lab.known_hosts()],
        record: None,
    }
}

fn hop(lab: &TestLab) -> Hop {
    Hop {
        host: lab.bastion.as_ref().unwrap().address.to_string(),
        port: 22,
        user: "ops".into(),
        auth: vec![Auth::Key(Key::file(lab.key(), None))],
        host_key: host_key(lab),
    }
}

fn target(lab: &TestLab, machine: &Machine) -> Target {
    Target {
        name: machine.name.clone(),
        host: machine.address.to_string(),
        port: 22,
        user: "ops".into(),
        auth: vec![Auth::Password(lab.password().unwrap().into())],
        host_key: host_key(lab),
        jumps: vec![hop(lab)],
    }
}

fn ssh(target: Target, bastions: &Bastions) -> Ssh {
    let timeouts = Timeouts {
        connect: Duration::from_secs(4),
        ..Timeouts::default()
    };
    Ssh::new(target, timeouts, bastions.clone())
}

async fn fails(target: Target) -> Error {
    let begin = Instant::now();
    let error = ssh(target, &Bastions::new()).connect().await;
    assert!(begin.elapsed() < Duration::from_secs(15));
    error.err().expect("let in")
}

async fn said(connection: &dyn Connection, command: &str) -> String {
    let finished = connection
        .exec(command)
        .await
        .unwrap()
        .finish(b"")
        .await
        .unwrap();
    assert_eq!(finished.exit, Exit::Code(0), "{finished:?}");
    String::from_utf8(finished.output)
        .unwrap()
        .trim()
        .to_owned()
}

async fn connections_to(bastion: &Machine) -> usize {
    let count = "ss -Htn state established sport = :22 | wc -l";
    let arguments = ["exec", &bastion.container(), "sh", "-c", count];
    docker::run(&arguments)
        .await
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rpm_machines_behind_a_bastion() {
    let settings = RequestedSettings {
        system: Some(System::Rpm),
        user: Some("ops".into()),
        sudo: Some(Sudo::Password),
        bastion: Some(true),
    };
    let options = Options {
        settings,
        ..Options::new("t-jump".parse().unwrap(), 2)
    };
    let lab = TestLab::up(options).await.unwrap();
    one_connection_for_all(&lab).await;
    forbidden_and_unreachable(&lab).await;
    every_hop_is_checked(&lab).await;
}

async fn one_connection_for_all(lab: &TestLab) {
    let bastion = lab.bastion.as_ref().unwrap();
    let bastions = Bastions::new();
    let ways: Vec<_> = lab
        .machines
        .iter()
        .cycle()
        .take(10)
        .map(|machine| ssh(target(lab, machine), &bastions))
        .collect();
    let connected = join_all(
        ways.iter()
            .map(hatchery_host::transport::Connector::connect),
    )
    .await;
    let connected: Vec<Arc<dyn Connection>> = connected.into_iter().map(Result::unwrap).collect();
    assert_eq!(connections_to(bastion).await, 1);
    for (connection, machine) in connected.iter().zip(lab.machines.iter().cycle()) {
        assert_eq!(said(&**connection, "hostname").await, machine.name);
    }

    let privilege = Privilege::Sudo {
        password: Some(lab.password().unwrap().into()),
    };
    let payload = vec![7; 20_000_000];
    let both = connected[..2].iter().map(async |connection| {
        let running = begin(
            &**connection,
            &privilege,
            "wc -c; head -c 5000000 /dev/zero",
        )
        .await
        .unwrap();
        running.finish(&payload).await.unwrap().output
    });
    for output in join_all(both).await {
        assert!(output.starts_with(b"20000000\n"));
        assert_eq!(output.len(), 5_000_009);
    }

    // Two bastions on the way: the first machine is one itself, once it may be.
    let first = &lab.machines[0];
    let allow = "sed -i s/AllowTcpForwarding.*// /etc/ssh/sshd_config.d/sandbox.conf; systemctl reset-failed ssh; systemctl restart ssh";
    docker::run(&["exec", &first.container(), "sh", "-c", allow])
        .await
        .unwrap();
    let mut second = target(lab, &lab.machines[1]);
    second.jumps.push(Hop {
        host: first.address.to_string(),
        ..hop(lab)
    });
    let far = ssh(second, &bastions).connect().await.unwrap();
    assert!(
        said(&*far, "echo $SSH_CLIENT")
            .await
            .starts_with(&first.address.to_string())
    );
    assert_eq!(connections_to(bastion).await, 1);

    // The connection to the bastion ends with the last machine behind it.
    drop((connected, far));
    let begin = Instant::now();
    while connections_to(bastion).await != 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "the bastion is still connected"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let again = ways[0].connect().await.unwrap();
    assert_eq!(said(&*again, "echo back").await, "back");
}

async fn forbidden_and_unreachable(lab: &TestLab) {
    let machine = &lab.machines[1];
    let bastions = Bastions::new();
    let connection = ssh(target(lab, machine), &bastions)
        .connect()
        .await
        .unwrap();
    // The machine forbids streams, and a command there carries them.
    let mut stream = connection.forward("127.0.0.1", 22).await.unwrap();
    let mut banner = [0; 4];
    stream.read_exact(&mut banner).await.unwrap();
    assert_eq!(&banner, b"SSH-");

    let closed = fails(Target {
        port: 2222,
        ..target(lab, machine)
    })
    .await;
    assert!(matches!(closed, Error::Unreachable { .. }), "{closed:?}");
    assert!(
        closed.to_string().contains("seen from the bastion"),
        "{closed}"
    );
    // Nobody has this address.
    let address = machine.address.to_string();
    let nobody = format!("{}.199", address.rsplit_once('.').unwrap().0);
    let nobody = fails(Target {
        host: nobody,
        ..target(lab, machine)
    })
    .await;
    assert!(matches!(nobody, Error::Unreachable { .. }), "{nobody:?}");
    // The machine forbids to be a bastion.
    let mut through = target(lab, &lab.machines[0]);
    through.jumps.push(Hop {
        host: address,
        ..hop(lab)
    });
    let refused = fails(through).await;
    assert!(
        matches!(&refused, Error::Bastion { source, .. } if matches!(**source, Error::ForwardRefused { .. })),
        "{refused:?}"
    );
    assert!(refused.remedy().unwrap().contains("AllowTcpForwarding"));
    // Directly it cannot be reached at all.
    let direct = fails(Target {
        jumps: Vec::new(),
        ..target(lab, machine)
    })
    .await;
    assert!(matches!(direct, Error::Unreachable { .. }), "{direct:?}");

    // All who wait for a bastion that is not there learn it together.
    let bastions = Bastions::new();
    let mut lost = target(lab, machine);
    lost.jumps[0].host = machine.address.to_string();
    let begin = Instant::now();
    let failed = join_all((0..20).map(|_| {
        let way = ssh(lost.clone(), &bastions);
        async move { way.connect().await.err().unwrap() }
    }));
    for error in failed.await {
        assert!(matches!(error, Error::Bastion { .. }), "{error:?}");
        assert!(error.to_string().contains(&machine.name), "{error}");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );

    // A stream that dies takes only its own connection along.
    let mut running = connection.exec("echo up; sleep 60").await.unwrap();
    let mut up = [0; 3];
    running.output.read_exact(&mut up).await.unwrap();
    let bastion = lab.bastion.as_ref().unwrap();
    docker::run(&[
        "exec",
        &bastion.container(),
        "sh",
        "-c",
        "pkill -9 -f '^sshd: ops' || pkill -9 -f '^sshd-session: ops'",
    ])
    .await
    .unwrap();
    let dropped = tokio::time::timeout(Duration::from_secs(10), running.exit)
        .await
        .unwrap();
    assert!(dropped.unwrap_err().is_lost());
    assert!(connection.is_closed());
}

async fn every_hop_is_checked(lab: &TestLab) {
    let machine = &lab.machines[1];
    let nobody = || HostKey::Known {
        files: Vec::new(),
        record: None,
    };
    let mut bad_bastion = target(lab, machine);
    bad_bastion.jumps[0].host_key = nobody();
    let refused = fails(bad_bastion).await;
    assert!(
        matches!(&refused, Error::Bastion { source, .. } if matches!(**source, Error::HostKey { .. })),
        "{refused:?}"
    );
    let bad_machine = Target {
        host_key: nobody(),
        ..target(lab, machine)
    };
    let refused = fails(bad_machine).await;
    assert!(matches!(refused, Error::HostKey { .. }), "{refused:?}");
}
