//! An archive of the test's own, and what it brings beside the usual.

use std::{fs, path::PathBuf};

use hatchery_sandbox::fixtures;

use crate::bench::Bench;

const ADDON: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists, effect: NoSchedule}]
      containers: [{name: one, image: 'hatchery/agnhost:VERSION', imagePullPolicy: Never, args: WORDS}]
";

fn agnhost_version() -> String {
    let versions = include_str!("../../../../fixtures/versions.env");
    let mut lines = versions.lines();
    let version = lines.find_map(|line| line.strip_prefix("KUBERNETES_NEW="));
    version.unwrap().to_owned()
}

impl Bench {
    /// An archive of the test's own that also holds these scripts, run on workers at the time that they are called by.
    pub(crate) async fn bring_scripts(&self, scripts: &[(&str, &str)]) {
        let fixtures = fixtures::ensure(&["archive-new"]).await.unwrap();
        let usual = fixtures.path("archive-new/current.tar.gz");
        fs::create_dir(self.home().join("file")).unwrap();
        let mut list = "    worker:\n".to_owned();
        for (schedule, text) in scripts {
            fs::write(self.home().join(format!("file/{schedule}.sh")), text).unwrap();
            list += &format!(
                "      - {{name: {schedule}.sh, type: shell, schedule: {schedule}, timeout: 20s}}\n"
            );
        }
        self.sh(&format!(
            "zcat '{}' >own.tar && tar -rf own.tar file/*",
            usual.display()
        ));
        let manifest = "      - {name: flannel.yaml, type: yaml}\n";
        let text = fs::read_to_string(self.file()).unwrap();
        let text = text
            .replace(
                usual.to_str().unwrap(),
                self.home().join("own.tar").to_str().unwrap(),
            )
            .replace(manifest, &format!("{manifest}{list}"));
        fs::write(self.file(), text).unwrap();
    }

    /// Addons in the test's own archive, each a Deployment of one pod that runs Kubernetes' test program with these
    /// words, instead of those that were brought before.
    pub(crate) fn bring_addons(&self, addons: &[(&str, &str)]) {
        let text = fs::read_to_string(self.file()).unwrap();
        let mark = "# of the test's own\n";
        let usual: String = text
            .split_inclusive('\n')
            .filter(|line| !line.ends_with(mark))
            .collect();
        let mut list = String::new();
        for (name, words) in addons {
            let deployment = name.trim_end_matches(".yaml");
            let manifest = ADDON
                .replace("NAME", deployment)
                .replace("WORDS", words)
                .replace("VERSION", &agnhost_version());
            fs::write(self.home().join("file").join(name), manifest).unwrap();
            self.sh(&format!("tar -rf own.tar file/{name}"));
            list += &format!("      - {{name: {name}, type: yaml}} {mark}");
        }
        let flannel = "      - {name: flannel.yaml, type: yaml}\n";
        let text = usual.replace(flannel, &format!("{flannel}{list}"));
        fs::write(self.file(), text).unwrap();
    }

    /// A package of the machines' distribution in the test's own archive.
    pub(crate) async fn bring_package(&self, name: &str) {
        let fixtures = fixtures::ensure(&["packages-new"]).await.unwrap();
        let packages = fixtures.path("packages-new/apt");
        self.sh(&format!(
            "mkdir pkg && cp '{}'/{name}_*.deb pkg/ && tar -rf own.tar pkg && rm -r pkg",
            packages.display()
        ));
    }

    /// Another kubelet in the test's own archive.
    pub(crate) fn bring_other_kubelet(&self) {
        self.sh(
            "tar -xf own.tar bin/kubelet && echo >>bin/kubelet && tar --delete -f own.tar bin/kubelet && \
             tar -rf own.tar bin/kubelet",
        );
    }

    /// The deploy file with an archive `later.tar`: the test's own, whose programs say another version.
    pub(crate) fn bring_later_version(&self, from: &str, to: &str) -> PathBuf {
        assert_eq!(from.len(), to.len());
        let programs = "bin/kubelet bin/kube-apiserver";
        let from = from.replace('.', "\\.");
        self.sh(&format!(
            "rm -rf bin && tar -xf own.tar {programs} && LC_ALL=C sed -i 's/{from}/{to}/g' {programs} && cp own.tar later.tar && \
             tar --delete -f later.tar {programs} && tar -rf later.tar {programs} && rm -r bin"
        ));
        let text = fs::read_to_string(self.file()).unwrap();
        self.write("later.yaml", &text.replace("own.tar", "later.tar"))
    }
}
