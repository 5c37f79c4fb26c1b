//! A sandbox, its deploy file, and the program run on it.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use hatchery_sandbox::{
    docker,
    fault::Fault,
    fixtures,
    lab::{Machine, Options},
    snapshot::Snapshot,
    test_lab::TestLab,
};

/// About as long as a deployment takes here, from the first connection on.
pub(crate) const DEPLOY_TAKES: Duration = Duration::from_secs(25);

pub(crate) struct Bench {
    pub(crate) lab: TestLab,
    pub(crate) id: String,
    file: PathBuf,
}

/// The disk that machines here share may be fuller than a kubelet likes.
pub(crate) const ROOM: &str = "config-extra-args:
  - name: kubelet
    extra-args:
      \"--eviction-hard\": nodefs.available<1%,imagefs.available<1%,memory.available<50Mi
      \"--image-gc-high-threshold\": 100
";

impl Bench {
    /// Machines with the sandbox's own deploy file, changed.
    pub(crate) async fn new(name: &str, machines: usize, change: impl Fn(&str) -> String) -> Self {
        Self::with(Options::new(name.parse().unwrap(), machines), change).await
    }

    pub(crate) async fn with(options: Options, change: impl Fn(&str) -> String) -> Self {
        fixtures::ensure(&["archive-new", "packages-new"])
            .await
            .unwrap();
        let lab = TestLab::up(options).await.unwrap();
        let file = lab.home().join("deploy.yaml");
        let text = fs::read_to_string(lab.deploy_file()).unwrap();
        fs::write(&file, change(&text) + ROOM).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let id = lab.options().name.to_string();
        Self { lab, id, file }
    }

    /// Where the administrator's kubeconfig is.
    pub(crate) fn admin_conf(&self) -> PathBuf {
        self.home()
            .join("clusters")
            .join(&self.id)
            .join("admin.conf")
    }

    pub(crate) fn sh(&self, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.home());
        assert!(command.status().unwrap().success(), "{script}");
    }

    /// The deploy file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn home(&self) -> &Path {
        self.lab.home()
    }

    /// Scripts on the control machine, by their paths.
    pub(crate) fn scripts(&self, scripts: &[(&str, &str)]) -> Vec<String> {
        let write = |(name, text): &(&str, &str)| {
            let path = self.write(name, &format!("#!/bin/sh\n{text}\n"));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
            path.display().to_string()
        };
        scripts.iter().map(write).collect()
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        self.command_with(arguments, &self.file)
    }

    fn command_with(&self, arguments: &str, file: &Path) -> Command {
        let words: Vec<_> = arguments.split_whitespace().collect();
        let mut command = self.alone(&words);
        command.arg("-f").arg(file);
        command
    }

    /// Runs a command to its end, which has to be this; gives what it printed.
    pub(crate) fn hatchery(&self, code: i32, arguments: &str) -> String {
        self.hatchery_with(code, arguments, &self.file)
    }

    /// The deploy file of another cluster on one of the machines.
    pub(crate) fn other(&self, id: &str, machine: usize) -> PathBuf {
        let path = self.with_machines(&[machine], &[machine]);
        let text = fs::read_to_string(&path).unwrap();
        let (own, other) = (
            format!("cluster-id: {}", self.id),
            format!("cluster-id: {id}"),
        );
        self.write("other.yaml", &text.replace(&own, &other))
    }

    /// The same deploy file with other machines in its lists.
    pub(crate) fn with_machines(&self, masters: &[usize], workers: &[usize]) -> PathBuf {
        let hosts = |numbers: &[usize]| {
            let host = |number: &usize| {
                let machine = self.machine(*number);
                let (name, address) = (&machine.name, machine.address);
                format!("  - {{name: {name}, ip: {address}, arch: amd64}}\n")
            };
            numbers.iter().map(host).collect::<String>()
        };
        let text = fs::read_to_string(&self.file).unwrap();
        let begin = text.find("masters:").unwrap();
        let end = text.find("service:").unwrap();
        let (masters, workers) = (hosts(masters), hosts(workers));
        let text = format!(
            "{}masters:\n{masters}workers:\n{workers}{}",
            &text[..begin],
            &text[end..]
        );
        let count = masters.len() * 1000 + workers.len();
        self.write(&format!("machines-{count}.yaml"), &text)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub(crate) fn hatchery_with(&self, code: i32, arguments: &str, file: &Path) -> String {
        let output = self.command_with(arguments, file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments}: {text}{errors}"
        );
        text + &errors
    }

    /// A command for the cluster by its id, and for these machines or addresses.
    pub(crate) fn hatchery_by_id(&self, code: i32, command: &str, words: &[&str]) -> String {
        let arguments = [&[command, "--id", &self.id], words].concat();
        self.hatchery_alone(code, &arguments)
    }

    /// A command of just these words.
    pub(crate) fn hatchery_alone(&self, code: i32, words: &[&str]) -> String {
        let output = self.alone(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let text = text + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        text
    }

    pub(crate) fn alone(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hatchery"));
        command.args(words).env("HATCHERY_HOME", self.home());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) async fn kill_deploy(&self, after: Duration) {
        let mut child = self
            .command("deploy")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(after).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// A machine loses its power in the middle; the command ends as it can.
    pub(crate) async fn cut_power_during_deploy(&self, machine: usize, after: Duration) {
        let mut child = self
            .command("deploy")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(after).await;
        let name = &self.lab.machines[machine].name;
        self.lab.fault(name, Fault::Stop).await.unwrap();
        self.lab.fault(name, Fault::Start).await.unwrap();
        tokio::task::spawn_blocking(move || child.wait().unwrap())
            .await
            .unwrap();
    }

    /// Runs a command on a machine, behind SSH's back.
    pub(crate) async fn inside(&self, machine: usize, script: &str) -> String {
        inside(self.machine(machine), script).await
    }

    pub(crate) async fn kubectl(&self, arguments: &str) -> String {
        self.kubectl_on(0, arguments).await
    }

    pub(crate) async fn kubectl_on(&self, machine: usize, arguments: &str) -> String {
        kubectl(self.machine(machine), arguments).await
    }

    /// Until it succeeds, within a minute or so.
    pub(crate) async fn eventually(&self, machine: usize, script: &str) -> String {
        let container = self.lab.machines[machine].container();
        let mut last = String::new();
        for _ in 0..180 {
            match docker::run(&["exec", &container, "bash", "-c", script]).await {
                Ok(text) => return text,
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("{script}: {last}");
    }

    pub(crate) async fn snapshots(&self) -> Vec<Snapshot> {
        let mut snapshots = Vec::new();
        for machine in &self.lab.machines {
            snapshots.push(Snapshot::take(machine).await.unwrap());
        }
        snapshots
    }

    /// The machines are as they were, but for what this test put into `/tmp`.
    pub(crate) async fn assert_as_before(&self, before: &[Snapshot]) {
        for (number, before) in before.iter().enumerate() {
            let own = "rm -rf /tmp/kubectl /tmp/trial.yaml";
            self.inside(number, own).await;
            let machine = self.machine(number);
            let now = Snapshot::take(machine).await.unwrap();
            now.assert_same(before, &format!("{} after cleanup", machine.name));
        }
    }

    /// Which process each service is, on all machines.
    pub(crate) async fn started(&self) -> Vec<String> {
        let units = "etcd kube-apiserver kube-controller-manager kube-scheduler containerd kubelet kube-proxy";
        let script = format!(
            "for u in {units}; do echo $u.service $(systemctl show -p MainPID --value $u); done"
        );
        let mut all = Vec::new();
        for number in 0..self.lab.machines.len() {
            let text = self.inside(number, &script).await;
            all.extend(text.lines().map(|line| format!("{number} {line}")));
        }
        all
    }

    pub(crate) fn machine(&self, number: usize) -> &Machine {
        &self.lab.machines[number]
    }
}

/// As root on a machine, without SSH.
pub(crate) async fn inside(machine: &Machine, script: &str) -> String {
    docker::run(&["exec", &machine.container(), "bash", "-c", script])
        .await
        .unwrap()
}

/// As the administrator on a master.
pub(crate) async fn kubectl(master: &Machine, arguments: &str) -> String {
    inside(master, &crate::workload::kubectl(arguments)).await
}

/// A small generator is enough to choose moments.
pub(crate) struct Seed(u64);

/// A random one that is printed; `HATCHERY_SEED` repeats it.
pub(crate) fn seed(what: &str) -> Seed {
    let given = env::var("HATCHERY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = given.unwrap_or(now) | 1;
    eprintln!("{what}: HATCHERY_SEED={seed}");
    Seed(seed)
}

impl Seed {
    pub(crate) fn below(&mut self, limit: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        limit.mul_f64((self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// How often; `HATCHERY_ROUNDS` asks for more.
pub(crate) fn rounds(usual: usize) -> usize {
    let asked = env::var("HATCHERY_ROUNDS").ok();
    asked
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(usual)
}
