//! A machine whose docker somebody used before the cluster came.

use hatchery_sandbox::{docker, fixtures, lab::Machine};

use crate::bench::inside;

/// What changes with every start of that docker: its data, and its process and sockets.
pub(crate) const LIVING: [&str; 2] = [DATA, "/run/docker"];

/// Where that docker has its data.
const DATA: &str = "/var/lib/docker/theirs";

/// Installs docker by hand, with settings and a container that runs.
pub(crate) async fn begin(machine: &Machine) {
    let fixtures = fixtures::ensure(&["packages-classic"]).await.unwrap();
    let packages = fixtures.path("packages-classic/apt");
    let package = std::fs::read_dir(packages).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name()?.to_str()?.to_owned();
        (name.starts_with("docker-engine_") && name.ends_with(".deb")).then_some(path)
    });
    let package = package.expect("docker-engine");
    let to = format!("{}:/root/docker-engine.deb", machine.container());
    docker::run(&["cp", package.to_str().unwrap(), &to])
        .await
        .unwrap();
    let script = format!(
        "set -e
        dpkg -i /root/docker-engine.deb
        rm /root/docker-engine.deb
        mkdir -p /etc/docker
        echo '{{\"data-root\": \"{DATA}\", \"labels\": [\"whose=theirs\"]}}' >/etc/docker/daemon.json
        systemctl enable -q docker.service
        systemctl restart docker.service
        tar -C / -ch bin/sleep lib64/ld-linux-x86-64.so.2 lib/x86_64-linux-gnu/libc.so.6 | docker import - theirs:1
        docker run -d --name theirs --network host theirs:1 /bin/sleep infinity"
    );
    inside(machine, &script).await;
}

/// One more container, which docker removes when docker is restarted.
pub(crate) async fn run_passing(machine: &Machine) {
    let run = "docker run -d --rm --name passing --network host theirs:1 /bin/sleep infinity";
    inside(machine, run).await;
}

/// Everything of theirs is as it was made.
pub(crate) async fn assert_untouched(machine: &Machine) {
    assert_runs(machine).await;
    let settings = inside(machine, "cat /etc/docker/daemon.json").await;
    assert_eq!(
        settings.trim(),
        format!("{{\"data-root\": \"{DATA}\", \"labels\": [\"whose=theirs\"]}}")
    );
    let known = "docker ps -a --format '{{.Names}}'; docker images --format '{{.Repository}}'";
    assert_eq!(inside(machine, known).await, "theirs\ntheirs\n");
}

/// The cluster uses a docker that is still theirs.
pub(crate) async fn assert_shared(machine: &Machine) {
    assert_runs(machine).await;
    let info = inside(machine, "docker info").await;
    for words in ["whose=theirs", DATA, "Live Restore Enabled: true"] {
        assert!(info.contains(words), "{info}");
    }
    // Their containers have a network as before.
    inside(
        machine,
        "ip link show docker0 && iptables -t nat -n -L DOCKER",
    )
    .await;
}

async fn assert_runs(machine: &Machine) {
    let running = inside(machine, "docker inspect -f '{{.State.Running}}' theirs").await;
    assert_eq!(running.trim(), "true");
}
