//! Logging in to real machines: every way in, every way to be kept out, and host keys.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

mod ssh_lab;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use futures::future::join_all;
use hatchery_host::transport::{
    Connector as _, Error, Unreachable,
    ssh::{
        Auth, Bastions, HostKey, Key, Ssh, Target, Timeouts, host_keys::Mismatch, key::KeyError,
    },
};
use hatchery_sandbox::{
    lab::{Machine, Options},
    test_lab::TestLab,
};
use ssh_lab::{connect, inside, lets_in, sshd_with, target, timeouts};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    time::sleep,
};

#[tokio::test(flavor = "multi_thread")]
async fn every_way_in() {
    let options = Options::new("t-login".parse().unwrap(), 1);
    let lab = TestLab::up(options).await.unwrap();
    let machine = &lab.machines[0];
    passwords(&lab, machine).await;
    keys(&lab, machine).await;
    agent(&lab, machine).await;
    ports_and_addresses(&lab, machine).await;
    host_keys(&lab, machine).await;
}

async fn refused(target: &Target) -> Error {
    let error = connect(target).await.err().expect("let in");
    assert!(error.to_string().contains(&target.name), "{error}");
    assert!(
        error.remedy().is_some_and(|remedy| remedy.len() > 10),
        "{error}"
    );
    error
}

async fn passwords(lab: &TestLab, machine: &Machine) {
    let right = lab.password().unwrap();
    let password = |word: &str| Target {
        auth: vec![Auth::Password(word.into())],
        ..target(lab, machine)
    };
    lets_in(&password(&right)).await;
    assert!(!format!("{:?}", password(&right)).contains(&right));
    let wrong = refused(&password("wrong")).await;
    let Error::Authentication { tried, offered, .. } = &wrong else {
        panic!("{wrong:?}")
    };
    assert_eq!(tried[0], "password (refused)");
    assert!(offered.contains(&"publickey".into()), "{wrong}");
    assert!(!wrong.to_string().contains("wrong"), "{wrong}");

    sshd_with(
        machine,
        "PasswordAuthentication no\nKbdInteractiveAuthentication yes\nUsePAM yes",
    )
    .await;
    lets_in(&password(&right)).await;
    let wrong = refused(&password("wrong")).await;
    assert!(
        wrong.to_string().contains("keyboard-interactive (refused)"),
        "{wrong}"
    );

    sshd_with(machine, "AuthenticationMethods publickey,password").await;
    let both = Target {
        auth: [password(&right).auth, target(lab, machine).auth].concat(),
        ..target(lab, machine)
    };
    lets_in(&both).await;
    let half = refused(&target(lab, machine)).await;
    assert!(half.to_string().contains("accepted, not enough"), "{half}");

    sshd_with(
        machine,
        "PasswordAuthentication no\nKbdInteractiveAuthentication no",
    )
    .await;
    let none = refused(&password(&right)).await;
    assert!(none.to_string().contains("it takes no password"), "{none}");
    sshd_with(machine, "").await;
}

async fn keygen(arguments: &[&str], path: &Path) {
    let mut keygen = Command::new("ssh-keygen");
    keygen
        .args(arguments)
        .args(["-q", "-C", "test", "-f"])
        .arg(path);
    assert!(keygen.status().await.unwrap().success());
}

async fn authorize(machine: &Machine, key: &Path) {
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    inside(
        machine,
        &format!("echo '{}' >> /root/.ssh/authorized_keys", public.trim()),
    )
    .await;
}

async fn keys(lab: &TestLab, machine: &Machine) {
    lets_in(&target(lab, machine)).await;
    let secret = lab.home().join("id_secret");
    keygen(&["-t", "ed25519", "-N", "hush hush"], &secret).await;
    let rsa = lab.home().join("id_rsa");
    keygen(&["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""], &rsa).await;
    for key in [&secret, &rsa] {
        authorize(machine, key).await;
    }
    let with = |keys: Vec<Key>| Target {
        auth: keys.into_iter().map(Auth::Key).collect(),
        ..target(lab, machine)
    };
    lets_in(&with(vec![Key::file(&secret, Some("hush hush".into()))])).await;
    lets_in(&with(vec![Key::file(&rsa, None)])).await;
    let text = std::fs::read_to_string(&rsa).unwrap();
    lets_in(&with(vec![Key::text(text.into(), None)])).await;

    let closed = refused(&with(vec![Key::file(&secret, None)])).await;
    assert!(
        matches!(
            closed,
            Error::Key {
                source: KeyError::NeedsPassphrase { .. },
                ..
            }
        ),
        "{closed:?}"
    );
    assert!(closed.remedy().unwrap().contains("HATCHERY_KEY_PASSPHRASE"));
    // A key that cannot be used does not keep the others from being tried.
    lets_in(&with(vec![
        Key::file(&secret, None),
        Key::file(lab.key(), None),
    ]))
    .await;

    let mut strangers = Vec::new();
    for number in 0..7 {
        let path = lab.home().join(format!("id_stranger{number}"));
        keygen(&["-t", "ed25519", "-N", ""], &path).await;
        strangers.push(Key::file(path, None));
    }
    let stranger = refused(&with(strangers[..2].to_vec())).await;
    assert!(
        stranger.to_string().contains("id_stranger1 (refused)"),
        "{stranger}"
    );
    let too_many = refused(&with(strangers.clone())).await;
    assert!(
        too_many.to_string().contains("no more than 6"),
        "{too_many}"
    );
    strangers[5] = Key::file(lab.key(), None);
    lets_in(&with(strangers)).await;
}

struct Agent {
    _child: Child,
    socket: PathBuf,
}

async fn start_agent(home: &Path) -> Agent {
    let socket = home.join("agent");
    let mut agent = Command::new("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
    let child = agent.kill_on_drop(true).spawn().unwrap();
    for _ in 0..200 {
        if socket.exists() {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    Agent {
        _child: child,
        socket,
    }
}

async fn agent(lab: &TestLab, machine: &Machine) {
    let agent = start_agent(lab.home()).await;
    let with = |socket: &Path| Target {
        auth: vec![Auth::Agent {
            socket: Some(socket.to_owned()),
        }],
        ..target(lab, machine)
    };
    let empty = refused(&with(&agent.socket)).await;
    assert!(empty.to_string().contains("it holds no key"), "{empty}");
    let missing = refused(&with(Path::new("/does/not/exist"))).await;
    assert!(missing.to_string().contains("ssh-agent"), "{missing}");
    for key in [lab.home().join("id_rsa"), lab.key()] {
        let mut add = Command::new("ssh-add");
        add.arg("-q").arg(key).env("SSH_AUTH_SOCK", &agent.socket);
        assert!(add.status().await.unwrap().success());
        lets_in(&with(&agent.socket)).await;
        let mut remove = Command::new("ssh-add");
        remove
            .args(["-q", "-D"])
            .env("SSH_AUTH_SOCK", &agent.socket);
        assert!(remove.status().await.unwrap().success());
    }
}

async fn ports_and_addresses(lab: &TestLab, machine: &Machine) {
    sshd_with(machine, "Port 22\nPort 2222").await;
    let record = lab.home().join("ports");
    let elsewhere = Target {
        port: 2222,
        host_key: HostKey::Known {
            files: vec![],
            record: Some(record.clone()),
        },
        ..target(lab, machine)
    };
    lets_in(&elsewhere).await;
    let line = std::fs::read_to_string(record).unwrap();
    assert!(
        line.starts_with(&format!("[{}]:2222 ", machine.address)),
        "{line}"
    );
    sshd_with(machine, "").await;

    let reason = async |target: Target| match refused(&target).await {
        Error::Unreachable { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    let closed = Target {
        port: 2222,
        ..target(lab, machine)
    };
    assert_eq!(reason(closed).await, Unreachable::Refused);
    let nowhere = Target {
        host: "no-such-host.invalid".into(),
        ..target(lab, machine)
    };
    assert!(matches!(reason(nowhere).await, Unreachable::Name(_)));
    for (says, expected) in [
        ("hello\r\n", "before it sends anything"),
        ("", "did not answer"),
    ] {
        let port = something_else(says).await;
        let host = "127.0.0.1".into();
        let wrong = Target {
            host,
            port,
            ..target(lab, machine)
        };
        let timeouts = Timeouts {
            busy: Duration::from_secs(1),
            ..timeouts()
        };
        let begin = Instant::now();
        let error = Ssh::new(wrong, timeouts, Bastions::new()).connect().await;
        let error = error.err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}

/// Something that listens and is not sshd: says a word and closes, or nothing at all.
async fn something_else(says: &'static str) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            match says {
                "" => silent.push(stream),
                _ => drop(stream.write_all(says.as_bytes()).await),
            }
        }
    });
    port
}

async fn host_keys(lab: &TestLab, machine: &Machine) {
    let record = lab.home().join("state/known_hosts");
    let first_use = Target {
        host_key: HostKey::Known {
            files: vec![lab.home().join("none")],
            record: Some(record.clone()),
        },
        ..target(lab, machine)
    };
    let strict = Target {
        host_key: HostKey::Known {
            files: vec![lab.home().join("none")],
            record: None,
        },
        ..target(lab, machine)
    };
    let unknown = refused(&strict).await;
    assert!(
        matches!(&unknown, Error::HostKey { source, .. } if matches!(**source, Mismatch::Unknown { .. })),
        "{unknown:?}"
    );
    let many: Vec<_> = (0..5).map(|_| connect(&first_use)).collect();
    assert!(
        join_all(many)
            .await
            .into_iter()
            .all(|connected| connected.is_ok())
    );
    assert_eq!(std::fs::read_to_string(&record).unwrap().lines().count(), 1);

    // Another kind of key beside the known one gives no alarm, also when it would be preferred.
    let fresh = "cd /etc/ssh; ssh-keygen -q -t rsa -b 2048 -N '' -f ssh_host_rsa_key; ssh-keygen -q -t ecdsa -N '' -f ssh_host_ecdsa_key; systemctl reset-failed ssh; systemctl restart ssh; cat ssh_host_rsa_key.pub; ssh-keygen -lf ssh_host_ecdsa_key.pub";
    let said = inside(machine, fresh).await;
    let mut lines = said.lines();
    let rsa = lines.next().unwrap();
    let ecdsa = lines.next().unwrap().split(' ').nth(1).unwrap();
    lets_in(&first_use).await;
    for pin in [rsa, ecdsa] {
        let host_key = HostKey::Pinned(vec![pin.parse().unwrap()]);
        lets_in(&Target {
            host_key,
            ..target(lab, machine)
        })
        .await;
    }
    let known = lab.home().join("rsa_known");
    std::fs::write(&known, format!("{} {rsa}\n", machine.address)).unwrap();
    let host_key = HostKey::Known {
        files: vec![known],
        record: None,
    };
    lets_in(&Target {
        host_key,
        ..target(lab, machine)
    })
    .await;

    // A changed key stops before the password is sent.
    let old = std::fs::read_to_string(&record).unwrap();
    let change = "cd /etc/ssh; cp ssh_host_ed25519_key /root/old_key; rm -f ssh_host_*; ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key; systemctl reset-failed ssh; systemctl restart ssh; ssh-keygen -lf ssh_host_ed25519_key.pub; journalctl --rotate -q; journalctl --vacuum-time=1s -q";
    let said = inside(machine, change).await;
    let shown = said.split(' ').nth(1).unwrap().to_owned();
    let with_password = Target {
        auth: vec![Auth::Password("precious".into())],
        ..first_use.clone()
    };
    let changed = refused(&with_password).await;
    let words = format!("{changed} {}", changed.remedy().unwrap());
    assert!(
        matches!(&changed, Error::HostKey { source, .. } if matches!(**source, Mismatch::Changed { .. })),
        "{changed:?}"
    );
    for expected in [
        shown.as_str(),
        &format!("{} line 1", record.display()),
        "ssh-keygen -R",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    assert_eq!(std::fs::read_to_string(&record).unwrap(), old);
    let log = inside(
        machine,
        "journalctl -q --no-pager -u ssh | grep -c 'Failed password' || true",
    )
    .await;
    assert_eq!(log.trim(), "0", "an attempt was made");
    let restore = "cd /etc/ssh; cp /root/old_key ssh_host_ed25519_key; ssh-keygen -y -f ssh_host_ed25519_key > ssh_host_ed25519_key.pub; systemctl reset-failed ssh; systemctl restart ssh";
    inside(machine, restore).await;
    lets_in(&first_use).await;
}
