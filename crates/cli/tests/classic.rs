//! Kubernetes 1.20 with companions of its age, as the manual describes it: three masters behind a load balancer, and
//! docker as the runtime. Machines are real, and afterwards as before.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use assert_cmd::Command;
use hatchery_sandbox::{
    docker,
    fault::Fault,
    fixtures,
    lab::{Machine, Options},
    snapshot::Snapshot,
    test_lab::TestLab,
};
use tempfile::TempDir;

/// As root on the machine, without SSH.
async fn inside(machine: &Machine, script: &str) -> String {
    docker::run(&["exec", &machine.container(), "bash", "-c", script])
        .await
        .unwrap()
}

/// A sandbox, a user's home with a deploy file for it, and how its machines were.
struct Bench {
    lab: TestLab,
    user: TempDir,
    before: Vec<Snapshot>,
}

impl Bench {
    async fn new(name: &str, machines: usize) -> Self {
        Self {
            lab: TestLab::up(Options::new(name.parse().unwrap(), machines))
                .await
                .unwrap(),
            user: TempDir::new().unwrap(),
            before: Vec::new(),
        }
    }

    async fn look(&self) -> Vec<Snapshot> {
        let mut snapshots = Vec::new();
        for machine in &self.lab.machines {
            snapshots.push(Snapshot::of(machine).await.unwrap());
        }
        snapshots
    }

    /// Writes the deploy file with what every one of them says, and looks at the machines.
    async fn begin(&mut self, text: &str) {
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

    /// Runs `hatchery COMMAND -f deploy.yaml`, which has to succeed.
    fn hatchery(&self, command: &str) -> String {
        let output = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")))
            .args(command.split(' '))
            .args(["-f", "deploy.yaml"])
            .current_dir(self.user.path())
            .env("HOME", self.user.path())
            .env_remove("HATCHERY_HOME")
            .env_remove("SSH_AUTH_SOCK")
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        eprintln!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{command}");
        stdout
    }

    async fn cleanup(&self) {
        self.hatchery("cleanup -y");
        for (before, after) in self.before.iter().zip(self.look().await) {
            after.assert_same(before, "after cleanup");
        }
    }
}

/// A machine's line in a list of the deploy file.
fn entry(machine: &Machine) -> String {
    format!("- {{name: {}, ip: {}}}\n", machine.name, machine.address)
}

fn entries(machines: &[&Machine]) -> String {
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
fn lists(runtime: &[&str]) -> String {
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

const KUBECTL: &str = "kubectl --kubeconfig=/etc/kubernetes/admin.conf --cache-dir=/tmp/kubectl --request-timeout=10s";

async fn kubectl(machine: &Machine, arguments: &str) -> String {
    inside(machine, &format!("{KUBECTL} {arguments}")).await
}

/// Waits until a command of kubectl succeeds and its output fits.
async fn eventually(machine: &Machine, arguments: &str, fits: impl Fn(&str) -> bool) {
    shell_eventually(machine, &format!("{KUBECTL} {arguments} 2>&1"), fits).await;
}

/// The same for any command.
async fn shell_eventually(machine: &Machine, script: &str, fits: impl Fn(&str) -> bool) {
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

async fn assert_ready(machine: &Machine, count: usize, runtime: &str) {
    let nodes = kubectl(machine, "get nodes --no-headers -o wide").await;
    assert_eq!(nodes.lines().count(), count, "{nodes}");
    for node in nodes.lines() {
        let fits = node.contains(" Ready ") && node.contains("v1.20.2") && node.contains(runtime);
        assert!(fits, "{nodes}");
    }
}

/// A pod on every node that takes pods finds the API's Service by its name, and each other by a Service of their own.
async fn assert_pods_work(machine: &Machine, count: usize) {
    let version = include_str!("../../../fixtures/versions.env")
        .lines()
        .find_map(|line| line.strip_prefix("KUBERNETES_NEW="))
        .unwrap();
    let manifest = PODS.replace("VERSION", version);
    let apply = format!("{KUBECTL} apply -f - <<'END'\n{manifest}END\n");
    inside(machine, &apply).await;
    kubectl(machine, "rollout status daemonset/agnhost --timeout=120s").await;
    let addresses = kubectl(
        machine,
        "get pods -l app=agnhost -o jsonpath='{.items[*].status.podIP}'",
    )
    .await;
    assert_eq!(addresses.split_whitespace().count(), count, "{addresses}");
    for address in addresses.split_whitespace() {
        assert!(address.starts_with("10.55."), "{address}");
        let lookup = format!(
            "curl -sS --max-time 20 'http://{address}:8080/shell?cmd=nslookup%20kubernetes.default.svc.cluster.local'"
        );
        // What stands behind a Service reaches the nodes a moment after the pods are ready.
        let found = |answer: &str| answer.contains("Address: 10.66.0.1\\n");
        shell_eventually(machine, &lookup, found).await;
        let dial = format!(
            "curl -sS --max-time 20 'http://{address}:8080/dial?host=agnhost&port=80&request=hostname&protocol=http'"
        );
        shell_eventually(machine, &dial, |answer| answer.contains("[\"agnhost-")).await;
    }
}

const PODS: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agnhost}
spec:
  selector: {matchLabels: {app: agnhost}}
  template:
    metadata: {labels: {app: agnhost}}
    spec:
      containers:
      - name: agnhost
        image: hatchery/agnhost:VERSION
        imagePullPolicy: Never
        args: [netexec, --http-port=8080]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: agnhost}
spec:
  selector: {app: agnhost}
  ports: [{port: 80, targetPort: 8080}]
";

#[tokio::test(flavor = "multi_thread")]
async fn three_masters_behind_a_load_balancer_outlive_one_of_them() {
    let mut bench = Bench::new("t-classic", 4).await;
    let machines = bench.lab.machines.clone();
    let [first, second, third, balancer] = &machines[..] else {
        panic!("four machines")
    };
    let masters = entries(&[first, second, third]);
    let text = format!(
        "runtime: containerd\nmasters:\n{masters}nodes:\n{masters}loadbalance: {{name: {}, ip: {}, bind-port: 8443}}\n{}",
        balancer.name,
        balancer.address,
        lists(&["containerd", "runc"]),
    );
    bench.begin(&text).await;

    bench.hatchery("deploy");
    assert_ready(first, 3, "containerd://1.6").await;
    let view = kubectl(second, "config view").await;
    let endpoint = format!("server: https://{}:8443", balancer.address);
    assert!(view.contains(&endpoint), "{view}");
    assert_pods_work(second, 3).await;

    // Two of three are a quorum, and the load balancer leads around the lost one.
    bench.lab.fault(&first.name, Fault::Stop).await.unwrap();
    let begin = Instant::now();
    eventually(second, "create namespace after-the-power-cut", |_| true).await;
    assert!(begin.elapsed() < Duration::from_secs(60));
    bench.lab.fault(&first.name, Fault::Start).await.unwrap();
    let own = format!("--server=https://{}:6443 get --raw /readyz", first.address);
    eventually(second, &own, |answer| answer == "ok").await;
    eventually(second, "get nodes --no-headers", |nodes| {
        nodes.matches(" Ready ").count() == 3
    })
    .await;

    let again = bench.hatchery("deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    bench.cleanup().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_runs_the_pods() {
    let mut bench = Bench::new("t-docker", 2).await;
    let machines = bench.lab.machines.clone();
    let [master, worker] = &machines[..] else {
        panic!("two machines")
    };
    // What the user had told docker comes back in the end.
    inside(
        worker,
        "mkdir /etc/docker && echo '{\"debug\": true}' >/etc/docker/daemon.json",
    )
    .await;
    let text = format!(
        "runtime: docker\ninsecure-registries: [registry.example:5000]\n\
         config-extra-args: [{{name: container-engine, extra-args: {{--log-level: warn}}}}]\n\
         masters:\n{}nodes:\n{}{}",
        entry(master),
        entries(&[master, worker]),
        lists(&["docker-engine"]),
    );
    bench.begin(&text).await;

    bench.hatchery("deploy");
    assert_ready(master, 2, "docker://20.10").await;
    // The master takes no pods where there is another worker.
    assert_pods_work(master, 1).await;
    let told = inside(worker, "docker info; systemctl cat docker.service").await;
    for words in ["registry.example:5000", "--log-level=warn"] {
        assert!(told.contains(words), "{told}");
    }
    // Pods go on while docker is restarted.
    let started = "docker inspect -f '{{.State.StartedAt}}' $(docker ps -q | sort) | sort";
    let before = inside(worker, started).await;
    inside(worker, "systemctl restart docker.service").await;
    assert_eq!(before, inside(worker, started).await);

    let again = bench.hatchery("deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    bench.cleanup().await;
}
