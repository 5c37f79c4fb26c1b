//! A sandbox, the manual's deploy file for it, and the program run on it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use assert_cmd::Command;
use futures::future::try_join_all;
use hatchery_sandbox::{
    docker, fixtures,
    lab::{Machine, Options},
    snapshot::Snapshot,
    test_lab::TestLab,
};
use tempfile::TempDir;

/// As root on the machine, without SSH.
pub(crate) async fn inside(machine: &Machine, script: &str) -> String {
    docker::run(&["exec", &machine.container(), "bash", "-c", script])
        .await
        .unwrap()
}

/// A sandbox, a user's home with a deploy file for it, and how its machines were.
pub(crate) struct Bench {
    pub(crate) lab: TestLab,
    user: TempDir,
    before: Vec<Snapshot>,
}

impl Bench {
    pub(crate) async fn new(name: &str, machines: usize) -> Self {
        Self {
            lab: TestLab::up(Options::new(name.parse().unwrap(), machines))
                .await
                .unwrap(),
            user: TempDir::new().unwrap(),
            before: Vec::new(),
        }
    }

    /// The user's home.
    pub(crate) fn home(&self) -> &Path {
        self.user.path()
    }

    async fn look(&self) -> Vec<Snapshot> {
        try_join_all(self.lab.machines.iter().map(Snapshot::take))
            .await
            .unwrap()
    }

    /// Writes the deploy file with what every one of them says, and looks at the machines.
    pub(crate) async fn begin(&mut self, text: &str) {
        let fixtures = fixtures::ensure(&["packages-classic"]).await.unwrap();
        let archive = fixtures.path("packages-classic/deb.tar.gz");
        let text = format!(
            "cluster-id: demo\nusername: {}\nprivate-key-path: {}\n{text}{COMMON}package-src:\n  type: tar.gz\n  x86src: {}\n",
            self.lab.settings.user,
            self.lab.key().display(),
            archive.display(),
        );
        let path = self.user.path().join("deploy.yaml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self.before = self.look().await;
    }

    /// Runs `hatchery COMMAND -f deploy.yaml`, which has to end with this; gives what it printed.
    pub(crate) fn hatchery(&self, code: i32, command: &str) -> String {
        let output = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")))
            .args(command.split(' '))
            .args(["-f", "deploy.yaml"])
            .current_dir(self.user.path())
            .env("HOME", self.user.path())
            .env_remove("HATCHERY_HOME")
            .env_remove("SSH_AUTH_SOCK")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        eprintln!("{text}");
        assert_eq!(output.status.code(), Some(code), "{command}");
        text
    }

    /// Adds lines to the deploy file.
    pub(crate) fn say(&self, lines: &str) {
        let path = self.user.path().join("deploy.yaml");
        let text = fs::read_to_string(&path).unwrap() + lines;
        fs::write(&path, text).unwrap();
    }

    /// Writes the entry of one more machine behind that of another, in the list of nodes.
    pub(crate) fn add_node(&self, behind: &Machine, machine: &Machine) {
        let path = self.user.path().join("deploy.yaml");
        let text = fs::read_to_string(&path).unwrap();
        let (before, after) = text.rsplit_once(&entry(behind)).unwrap();
        let text = [before, &entry(behind), &entry(machine), after].concat();
        fs::write(&path, text).unwrap();
    }

    pub(crate) async fn cleanup(&self) {
        self.hatchery(0, "cleanup -y");
        for machine in &self.lab.machines {
            // This test's own.
            inside(machine, "rm -rf /tmp/kubectl").await;
        }
        for (before, after) in self.before.iter().zip(self.look().await) {
            after.assert_same(before, "after cleanup");
        }
    }

    /// The same where somebody's data lives on below paths.
    pub(crate) async fn cleanup_but(&self, living: &[&str]) {
        self.hatchery(0, "cleanup -y");
        for machine in &self.lab.machines {
            // This test's own.
            inside(machine, "rm -rf /tmp/kubectl").await;
        }
        for (before, after) in self.before.iter().zip(self.look().await) {
            let mut differences = after.differences(before);
            differences.retain(|one| !living.iter().any(|path| one.contains(path)));
            assert!(differences.is_empty(), "{}", differences.join("\n"));
        }
    }
}

/// A machine's line in a list of the deploy file.
pub(crate) fn entry(machine: &Machine) -> String {
    format!("- {{name: {}, ip: {}}}\n", machine.name, machine.address)
}

pub(crate) fn entries(machines: &[&Machine]) -> String {
    machines.iter().map(|machine| entry(machine)).collect()
}

/// The services' network is other than any default, so that a value written down somewhere is found out.
const COMMON: &str = "\
service:
  cidr: 10.66.0.0/16
  dnsaddr: 10.66.0.10
  gateway: 10.66.0.1
  dns: {corednstype: binary}
network:
  podcidr: 10.55.0.0/16
  plugin: flannel
  plugin-args: {\"NetworkYamlPath\": \"/etc/kubernetes/addons/flannel.yaml\"}
pause-image: k8s.gcr.io/pause:3.2
network-plugin: cni
cni-bin-dir: /usr/libexec/cni,/opt/cni/bin
";

/// The manual's lists, with its spelling.
pub(crate) fn lists(runtime: &[&str]) -> String {
    let list = |names: &[&str]| -> String {
        names
            .iter()
            .map(|name| format!("  - {{name: {name}, type: pkg, dstpath: \"\"}}\n"))
            .collect()
    };
    let workers = [
        "libnetfilter_cthelper",
        "libnetfilter_cttimeout",
        "libnetfilter_queue",
        "conntrack-tools",
        "socat",
        "containernetworking-plugins",
        "kubernetes-client",
        "kubernetes-node",
        "kubernetes-kubelet",
    ];
    format!(
        "pacakges:\n  etcd:\n{}  master:\n{}  - {{name: addons, type: binary, dstpath: /etc/kubernetes}}\n  node:\n{}{}  loadbalance:\n{}",
        list(&["etcd"]),
        list(&["kubernetes-client", "kubernetes-master", "coredns"]),
        list(&workers),
        list(runtime),
        list(&["nginx"]),
    )
}

pub(crate) const KUBECTL: &str = "kubectl --kubeconfig=/etc/kubernetes/admin.conf --cache-dir=/tmp/kubectl --request-timeout=10s";

pub(crate) async fn kubectl(machine: &Machine, arguments: &str) -> String {
    inside(machine, &format!("{KUBECTL} {arguments}")).await
}

/// Waits until a command of kubectl succeeds and its output fits.
pub(crate) async fn eventually(machine: &Machine, arguments: &str, fits: impl Fn(&str) -> bool) {
    shell_eventually(machine, &format!("{KUBECTL} {arguments} 2>&1"), fits).await;
}

/// The same for any command.
pub(crate) async fn shell_eventually(machine: &Machine, script: &str, fits: impl Fn(&str) -> bool) {
    let begin = Instant::now();
    loop {
        let said = docker::run(&["exec", &machine.container(), "bash", "-c", script]).await;
        if said.as_ref().is_ok_and(|output| fits(output)) {
            return;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "{script}: {said:?}"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) async fn assert_ready(machine: &Machine, count: usize, runtime: &str) {
    let nodes = kubectl(machine, "get nodes --no-headers -o wide").await;
    assert_eq!(nodes.lines().count(), count, "{nodes}");
    for node in nodes.lines() {
        let fits = node.contains(" Ready ") && node.contains("v1.20.2") && node.contains(runtime);
        assert!(fits, "{nodes}");
    }
}
