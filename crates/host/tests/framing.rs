//! Script, payload and sudo's password over one command, on real machines with real sudo: every
//! `sh`, every way to become root, small payloads and big ones.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hatchery_host::{
    privilege::{Privilege, Refusal, begin, begin_within},
    transport::{
        Connection, Connector as _, Error, Exit, Finished,
        local::Local,
        ssh::{Auth, Bastions, HostKey, Key, Ssh, Target, Timeouts},
    },
};
use hatchery_sandbox::{
    docker,
    lab::{Machine, Options},
    settings::{RequestedSettings, Sudo, System},
    test_lab::TestLab,
};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const BIG: u64 = 500_000_000;

async fn lab(name: &str, system: System, user: &str, sudo: Option<Sudo>) -> TestLab {
    let settings = RequestedSettings {
        system: Some(system),
        user: Some(user.into()),
        sudo,
        bastion: None,
    };
    let options = Options {
        settings,
        ..Options::new(name.parse().unwrap(), 1)
    };
    TestLab::up(options).await.unwrap()
}

fn target(lab: &TestLab, user: &str) -> Target {
    Target {
        name: lab.machines[0].name.clone(),
        host: lab.machines[0].address.to_string(),
        port: 22,
        user: user.into(),
        auth: vec![Auth::Key(Key::file(lab.key(), None))],
        host_key: HostKey::Known {
            files: vec![lab.known_hosts()],
            record: None,
        },
        jumps: Vec::new(),
    }
}

async fn connect(lab: &TestLab) -> Arc<dyn Connection> {
    let target = target(lab, &lab.settings.user);
    let ssh = Ssh::new(target, Timeouts::default(), Bastions::new());
    ssh.connect().await.unwrap()
}

fn sudo(password: Option<&str>) -> Privilege {
    Privilege::Sudo {
        password: password.map(Into::into),
    }
}

/// As root on the machine, without SSH.
async fn inside(machine: &Machine, script: &str) -> String {
    let arguments = ["exec", &machine.container(), "bash", "-c", script];
    docker::run(&arguments).await.unwrap()
}

async fn run(
    connection: &dyn Connection,
    privilege: &Privilege,
    script: &str,
    input: &[u8],
) -> Finished {
    let running = begin(connection, privilege, script).await.unwrap();
    running.finish(input).await.unwrap()
}

/// Lines that a shell would run, and bytes that no text has.
const PAYLOAD: &[u8] = b"touch /tmp/never\n\xff\x00\x01 exit 9\r\nlast line without end";

/// All three kinds of `sh`, as login shell and as the script's.
async fn every_shell(lab: &TestLab, privilege: &Privilege) {
    let machine = &lab.machines[0];
    let user = &lab.settings.user;
    for shell in ["dash", "bash", "busybox"] {
        let login = if shell == "busybox" {
            "/usr/local/bin/ash"
        } else {
            shell
        };
        let setup = format!(
            "set -e; rm -f /usr/local/bin/sh; cp $(command -v busybox) /usr/local/bin/ash
             if [ {shell} = busybox ]; then ln -s /usr/local/bin/ash /usr/local/bin/sh; else ln -s $(command -v {shell}) /usr/local/bin/sh; fi
             usermod --shell $(command -v {login}) {user}"
        );
        inside(machine, &setup).await;
        let connection = connect(lab).await;
        // The second time nothing is waited for where sudo asks for nothing.
        for round in 0..2 {
            let finished = run(&*connection, privilege, "cat; id -u >&2; exit 3", PAYLOAD).await;
            let told = format!("{shell}, round {round}: {finished:?}");
            assert_eq!(finished.output, PAYLOAD, "{told}");
            assert!(finished.errors.ends_with(b"0\n"), "{told}");
            assert_eq!(finished.exit, Exit::Code(3), "{told}");
            let who = "readlink /proc/$$/exe; echo it'\"'s \"$HOME\"";
            let finished = run(&*connection, privilege, who, b"").await;
            let said = String::from_utf8(finished.output).unwrap();
            let (exe, rest) = said.split_once('\n').unwrap();
            let expected = if shell == "busybox" { "ash" } else { shell };
            assert!(exe.ends_with(expected), "{shell}: {said}");
            assert!(rest.starts_with("it\"s /root"), "{shell}: {said}");
        }
        connection.close().await;
    }
    inside(machine, "rm -f /usr/local/bin/sh; test ! -e /tmp/never").await;
    inside(machine, &format!("usermod --shell /bin/bash {user}")).await;
}

/// Half a gigabyte arrives as it was sent.
async fn half_a_gigabyte(connection: &dyn Connection, privilege: &Privilege) {
    let mut running = begin(connection, privilege, "sha256sum").await.unwrap();
    let mut chunk: Vec<u8> = (0..1_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut hash = Sha256::new();
    for number in 0..BIG / 1_000_000 {
        chunk[..8].copy_from_slice(&number.to_le_bytes());
        hash.update(&chunk);
        running.input.write_all(&chunk).await.unwrap();
    }
    running.input.shutdown().await.unwrap();
    let mut output = String::new();
    running.output.read_to_string(&mut output).await.unwrap();
    assert_eq!(running.exit.await.unwrap(), Exit::Code(0));
    let expected = hex::encode(hash.finalize());
    assert_eq!(output.split(' ').next().unwrap(), expected);
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = own.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(
        kilobytes < 200_000,
        "the payload was held in memory: {peak}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn as_root() {
    let lab = lab("t-root", System::Debian, "root", None).await;
    every_shell(&lab, &Privilege::Root).await;
    let connection = connect(&lab).await;
    half_a_gigabyte(&*connection, &Privilege::Root).await;
    // What a login shell prints by itself is not the script's.
    inside(
        &lab.machines[0],
        "echo 'echo noise; echo noise >&2' > /root/.bashrc",
    )
    .await;
    let finished = run(&*connection, &Privilege::Root, "echo mine", b"").await;
    assert_eq!(finished.output, b"mine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn sudo_without_a_password() {
    let lab = lab("t-free", System::Debian, "ops", Some(Sudo::Nopasswd)).await;
    // A password that nobody asks for must not be left over.
    let privilege = sudo(Some("rm -rf /; unasked"));
    every_shell(&lab, &privilege).await;
    let connection = connect(&lab).await;
    assert!(!connection.free_sudo().unwrap().load(Ordering::Relaxed));
    half_a_gigabyte(&*connection, &privilege).await;
    assert!(connection.free_sudo().unwrap().load(Ordering::Relaxed));

    let machine = &lab.machines[0];
    inside(machine, "echo 'ops ALL=(ALL) ALL' > /etc/sudoers.d/sandbox").await;
    // It was free and is no more: nothing is run, and it is asked again from then on.
    let running = begin(&*connection, &privilege, "touch /tmp/never; cat")
        .await
        .unwrap();
    let mut running = running;
    let _ = running.input.write_all(PAYLOAD).await;
    let mut output = Vec::new();
    running.output.read_to_end(&mut output).await.unwrap_err();
    let asked = begin(&*connection, &privilege, "true").await.unwrap_err();
    assert!(
        matches!(
            asked,
            Error::Privilege {
                source: Refusal::WrongPassword,
                ..
            }
        ),
        "{asked:?}"
    );
    inside(machine, "test ! -e /tmp/never").await;

    refusals(&lab, &*connection).await;
}

async fn refusals(lab: &TestLab, connection: &dyn Connection) {
    let machine = &lab.machines[0];
    let refused = async |privilege: &Privilege| {
        let error = begin(connection, privilege, "true").await.unwrap_err();
        assert!(error.to_string().contains(&machine.name), "{error}");
        assert!(
            error.remedy().is_some_and(|remedy| remedy.len() > 10),
            "{error}"
        );
        match error {
            Error::Privilege { source, .. } => source,
            other => panic!("{other:?}"),
        }
    };
    let password = lab.password().unwrap();
    inside(
        machine,
        "printf 'Defaults requiretty\\nops ALL=(ALL) ALL\\n' > /etc/sudoers.d/sandbox",
    )
    .await;
    let terminal = refused(&sudo(Some(&password))).await;
    assert!(
        matches!(terminal, Refusal::NeedsTerminal { .. }),
        "{terminal:?}"
    );
    inside(machine, "rm /etc/sudoers.d/sandbox").await;
    let stranger = refused(&sudo(Some(&password))).await;
    assert!(
        matches!(stranger, Refusal::NotAllowed { .. }),
        "{stranger:?}"
    );
    inside(machine, "mv $(command -v sudo) /root/sudo").await;
    assert_eq!(refused(&sudo(None)).await, Refusal::NoSudo);
}

#[tokio::test(flavor = "multi_thread")]
async fn sudo_with_a_password() {
    let lab = lab("t-pass", System::Rpm, "ops", Some(Sudo::Password)).await;
    let password = lab.password().unwrap();
    let privilege = sudo(Some(&password));
    every_shell(&lab, &privilege).await;
    let connection = connect(&lab).await;
    half_a_gigabyte(&*connection, &privilege).await;
    assert!(!connection.free_sudo().unwrap().load(Ordering::Relaxed));

    let search = "grep -laF -f - /proc/[0-9]*/cmdline /proc/[0-9]*/environ; echo searched";
    let finished = run(&*connection, &privilege, search, password.as_bytes()).await;
    let said = String::from_utf8(finished.output).unwrap();
    assert_eq!(
        said, "searched\n",
        "the password is in a process's arguments or environment"
    );
    assert!(!format!("{privilege:?}").contains(&password));
    assert!(!String::from_utf8_lossy(&finished.errors).contains("hatchery-asks"));

    for (privilege, expected) in [
        (sudo(Some("wrong")), Refusal::WrongPassword),
        (sudo(None), Refusal::NeedsPassword),
        (sudo(Some("two\nlines")), Refusal::Unspeakable),
    ] {
        let error = begin(&*connection, &privilege, "true").await.unwrap_err();
        assert!(
            matches!(&error, Error::Privilege { source, .. } if *source == expected),
            "{error:?}"
        );
    }
    // A wrong password is one attempt, not as many as sudo allows.
    let log = inside(
        &lab.machines[0],
        "journalctl -q --no-pager | grep 'incorrect password'",
    )
    .await;
    assert!(log.contains(": 1 incorrect password attempt"), "{log}");
    assert!(!log.contains("attempts"), "{log}");
}

/// A `sudo` with manners of its own before everything else in the path.
async fn with_sudo_like(script: &str) -> (tempfile::TempDir, Arc<dyn Connection>) {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sudo");
    let rest = "while [ $1 != -- ]; do shift; done; shift; exec \"$@\"";
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n{rest}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", dir.path().display());
    let connection = Local::with_shell("here", "env", &[&path, "sh"])
        .connect()
        .await;
    (dir, connection.unwrap())
}

async fn begun_by(script: &str, password: Option<&str>) -> Result<Finished, Error> {
    let (_dir, connection) = with_sudo_like(script).await;
    let deadline = Duration::from_secs(6);
    let running = begin_within(&*connection, &sudo(password), "cat", deadline).await?;
    running.finish(PAYLOAD).await
}

#[tokio::test]
async fn a_question_in_pam_s_own_words_is_answered() {
    let asks =
        "printf 'We trust you.\\nLDAP Password: ' >&2; read -r p; [ \"$p\" = hush ] || exit 1";
    let finished = begun_by(asks, Some("hush")).await.unwrap();
    assert_eq!(finished.output, PAYLOAD);
    let twice = format!(
        "for try in 1 2; do {}; done",
        asks.replace("|| exit 1", "&& break")
    );
    let wrong = begun_by(&twice, Some("wrong")).await.unwrap_err();
    assert!(
        matches!(
            wrong,
            Error::Privilege {
                source: Refusal::WrongPassword,
                ..
            }
        ),
        "{wrong:?}"
    );
}

#[tokio::test]
async fn an_answer_to_what_was_no_question_never_reaches_the_script() {
    let noise = "printf 'Your password expires soon, new Password: ' >&2; sleep 3";
    let finished = begun_by(noise, Some("touch /tmp/never")).await.unwrap();
    assert_eq!(finished.output, PAYLOAD);
}

#[tokio::test]
async fn other_questions_and_silence_are_told() {
    let code = begun_by("printf 'Verification code: ' >&2; read -r p", Some("hush")).await;
    let code = code.unwrap_err();
    assert!(code.to_string().contains("Verification code:"), "{code}");
    let silent = begun_by("sleep 20", Some("hush")).await.unwrap_err();
    assert!(
        matches!(
            silent,
            Error::Privilege {
                source: Refusal::Silent { .. },
                ..
            }
        ),
        "{silent:?}"
    );
    let bad = begun_by("exit 0", None).await.unwrap_err();
    assert!(
        matches!(
            bad,
            Error::Privilege {
                source: Refusal::Ended { .. },
                ..
            }
        ),
        "{bad:?}"
    );
    let (_dir, connection) = with_sudo_like("").await;
    let script = begin(&*connection, &sudo(None), "test ! -e x")
        .await
        .unwrap_err();
    assert!(
        matches!(
            script,
            Error::Privilege {
                source: Refusal::Script { .. },
                ..
            }
        ),
        "{script:?}"
    );
}

#[tokio::test]
async fn nothing_runs_without_the_go() {
    let dir = tempfile::tempdir().unwrap();
    let proof = dir.path().join("proof");
    let here = Local::new("here").connect().await.unwrap();
    let script = format!("touch {}", proof.display());
    // As `begin` does it, but the connection ends before the go line.
    let (_sudo, connection) = with_sudo_like("exec <&-; exec </dev/null").await;
    let begun = begin(&*connection, &sudo(None), &script).await.unwrap();
    assert_eq!(begun.exit.await.unwrap(), Exit::Code(97));
    assert!(!proof.exists());
    let begun = begin(&*here, &Privilege::Root, &script).await.unwrap();
    assert_eq!(begun.exit.await.unwrap(), Exit::Code(0));
    assert!(proof.exists());
}
