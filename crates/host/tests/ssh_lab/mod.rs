//! What the tests of SSH share: machines, ways to them, and their sshd's settings.

use std::{sync::Arc, time::Duration};

use hatchery_host::transport::{
    Connection, Connector as _, Error,
    ssh::{Auth, Bastions, HostKey, Key, Ssh, Target, Timeouts},
};
use hatchery_sandbox::{docker, lab::Machine, test_lab::TestLab};

/// Deadlines that a test can wait for.
pub(crate) fn timeouts() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(4),
        handshake: Duration::from_secs(4),
        keep_alive: Duration::from_secs(1),
        ..Timeouts::default()
    }
}

pub(crate) fn target(lab: &TestLab, machine: &Machine) -> Target {
    Target {
        name: machine.name.clone(),
        host: machine.address.to_string(),
        port: 22,
        user: "root".into(),
        auth: vec![Auth::Key(Key::file(lab.key(), None))],
        host_key: HostKey::Known {
            files: vec![lab.known_hosts()],
            record: None,
        },
        jumps: Vec::new(),
    }
}

pub(crate) async fn connect(target: &Target) -> Result<Arc<dyn Connection>, Error> {
    let ssh = Ssh::new(target.clone(), timeouts(), Bastions::new());
    ssh.connect().await
}

pub(crate) async fn output(connection: &dyn Connection, command: &str) -> String {
    let finished = connection
        .exec(command)
        .await
        .unwrap()
        .finish(b"")
        .await
        .unwrap();
    assert!(finished.exit.is_success(), "{command}: {finished:?}");
    String::from_utf8(finished.output)
        .unwrap()
        .trim()
        .to_owned()
}

pub(crate) async fn lets_in(target: &Target) {
    let connection = connect(target).await.unwrap();
    assert_eq!(output(&*connection, "id -un").await, target.user);
    connection.close().await;
}

/// As root on the machine, without SSH.
pub(crate) async fn inside(machine: &Machine, script: &str) -> String {
    let arguments = ["exec", &machine.container(), "bash", "-c", script];
    docker::run(&arguments).await.unwrap()
}

pub(crate) async fn sshd_with(machine: &Machine, lines: &str) {
    let script = format!(
        "printf '%s\\n' '{lines}' > /etc/ssh/sshd_config.d/0-test.conf; mkdir -p /run/sshd; sshd -t && systemctl reset-failed ssh; systemctl restart ssh"
    );
    inside(machine, &script).await;
}
