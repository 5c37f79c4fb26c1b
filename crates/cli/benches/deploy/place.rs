//! Machines, a deploy file for them, and the program run on it with a clock.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use futures::future;
use hatchery_sandbox::{docker, lab::Options, test_lab::TestLab};

use crate::{Shape, timeline::Timeline};

/// Its machines go with it, also when it panics.
pub(crate) struct Place {
    pub(crate) lab: TestLab,
    file: PathBuf,
}

impl Place {
    /// Machines with the sandbox's own deploy file; CoreDNS runs in pods, as kubeadm has it.
    pub(crate) async fn new(shape: Shape) -> Self {
        let mut options = Options::new("bench".parse().unwrap(), shape.machines);
        options.masters = Some(shape.masters);
        let place = Self::bare(options).await;
        let text = fs::read_to_string(place.lab.deploy_file()).unwrap();
        place.write(&text.replace(
            "corednstype: binary",
            "corednstype: pod\n    imageversion: 1.15.0\n    replicas: 2",
        ));
        place
    }

    /// Without a deploy file.
    pub(crate) async fn bare(options: Options) -> Self {
        let lab = TestLab::up(options).await.unwrap();
        let file = lab.home().join("deploy.yaml");
        Self { lab, file }
    }

    /// Writes the deploy file.
    pub(crate) fn write(&self, text: &str) {
        fs::write(&self.file, text).unwrap();
        fs::set_permissions(&self.file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Runs the program, which has to succeed. Gives what it printed, and how long it took.
    fn hatchery(&self, arguments: &[&str]) -> (String, f64) {
        settle();
        let begin = Instant::now();
        let output = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")))
            .args(arguments)
            .arg("-f")
            .arg(&self.file)
            .env("HATCHERY_HOME", self.lab.home())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{errors}");
        (text, seconds)
    }

    pub(crate) fn deploy(&self) -> Timeline {
        let (text, seconds) = self.hatchery(&["deploy", "-o", "json"]);
        Timeline::read(&text, seconds)
    }

    pub(crate) fn cleanup(&self) -> Timeline {
        let (text, seconds) = self.hatchery(&["cleanup", "-y", "-o", "json"]);
        Timeline::read(&text, seconds)
    }

    /// Runs a script on a machine, without SSH.
    pub(crate) async fn inside(&self, machine: usize, script: &str) -> String {
        let container = self.lab.machines[machine].container();
        docker::run(&["exec", &container, "bash", "-c", script])
            .await
            .unwrap()
    }

    /// The same on all of them at once.
    pub(crate) async fn everywhere(&self, script: &str) {
        let machines = 0..self.lab.machines.len();
        future::join_all(machines.map(|machine| self.inside(machine, script))).await;
    }
}

/// What was written before is on the disk, so that nobody's own writing waits for it.
pub(crate) fn settle() {
    let synced = Command::new("sync").status();
    assert!(synced.unwrap().success(), "sync");
}
