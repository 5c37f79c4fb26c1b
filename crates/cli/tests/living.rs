//! Clusters that are remembered: what a file may not do to them is refused before a machine is asked, and cleanup visits
//! every machine that was claimed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use assert_cmd::Command;
use tempfile::TempDir;

/// A home in which a cluster is remembered. Its machines cannot be reached: commands run in a network of their own.
struct Home(TempDir);

const ID: &str = "0123456789abcdef0123456789abcdef";

impl Home {
    /// The record as it is written, and the file that the cluster was made from.
    fn new(record: &str, machines: &str) -> Self {
        let home = Self(TempDir::new().unwrap());
        for directory in ["", "clusters", "clusters/lab"] {
            let path = home.0.path().join(directory);
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        fs::write(home.state("cluster.json"), record).unwrap();
        fs::write(home.state("deploy.yaml"), text(machines)).unwrap();
        home
    }

    /// A cluster that is up, with these masters and workers.
    fn up(masters: &[&str], workers: &[&str]) -> Self {
        let machine = |roles: &'static str| {
            move |name: &&str| {
                let ip = ip(name);
                format!(
                    "{{\"name\": \"{name}\", \"address\": \"{ip}\", \"host\": \"{ip}\", \"port\": 1, \"user\": \"root\", \
                     \"roles\": [{roles}]}}"
                )
            }
        };
        let masters_told = masters.iter().map(machine("\"master\", \"etcd\""));
        let workers_told = workers.iter().map(machine("\"worker\""));
        let machines: Vec<_> = masters_told.chain(workers_told).collect();
        let record = format!(
            "{{\"format\": 2, \"uid\": \"{ID}\", \"name\": \"lab\", \"created\": \"2027-01-15T08:00:00Z\", \"formed\": true, \
             \"versions\": {{\"kubernetes\": \"1.36.1\"}}, \"machines\": [{}]}}",
            machines.join(", ")
        );
        Self::new(&record, &list(masters, workers))
    }

    fn state(&self, name: &str) -> PathBuf {
        self.0.path().join("clusters/lab").join(name)
    }

    fn record(&self) -> String {
        fs::read_to_string(self.state("cluster.json")).unwrap()
    }

    fn file(&self, machines: &str) -> PathBuf {
        let path = self.0.path().join("wanted.yaml");
        fs::write(&path, text(machines)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn run(&self, arguments: &str, file: Option<&Path>) -> (i32, String) {
        let mut command = Command::new("unshare");
        command
            .args(["--net", env!("CARGO_BIN_EXE_hatchery")])
            .args(arguments.split(' '))
            .env("HATCHERY_HOME", self.0.path())
            .env("HOME", self.0.path());
        if let Some(file) = file {
            command.arg("-f").arg(file);
        }
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(said).unwrap(),
        )
    }
}

fn ip(name: &str) -> String {
    let kind = u32::from(name.as_bytes()[0]);
    format!("10.9.{kind}.{}", 1 + name[1..].parse::<u32>().unwrap())
}

fn list(masters: &[&str], workers: &[&str]) -> String {
    let machines = |names: &[&str]| {
        let machines = names
            .iter()
            .map(|name| format!("{{name: {name}, ip: {}, port: 1}}", ip(name)));
        machines.collect::<Vec<_>>().join(", ")
    };
    format!(
        "masters: [{}]\nworkers: [{}]\n",
        machines(masters),
        machines(workers)
    )
}

fn text(machines: &str) -> String {
    format!("cluster-id: lab\nusername: root\npassword: x\nruntime: containerd\n{machines}")
}

#[test]
fn what_would_harm_a_cluster_is_refused_and_nothing_is_written() {
    let home = Home::up(&["m0"], &["w0", "w1"]);
    let before = (home.record(), fs::read(home.state("deploy.yaml")).unwrap());
    let refused: [(&str, &[&str]); 3] = [
        (
            &list(&["m0", "m1", "m2"], &["w0", "w1"]),
            &[
                "error[etcd-members]: m1, m2: would become",
                "error[masters]: m1, m2:",
                "cleanup --id lab",
            ],
        ),
        (
            &list(&["w0"], &["m0", "w1"]),
            &[
                "error[etcd-members]: w0:",
                "error[etcd-members]: m0:",
                "error[masters]: m0:",
            ],
        ),
        (
            &list(&["m0"], &["w0", "w1"]).replace(&ip("w1"), "10.9.9.9"),
            &["error[machine-changed]: w1: has the address 10.9.9.9 in the file, and 10.9.119.2"],
        ),
    ];
    for (machines, words) in refused {
        let file = home.file(machines);
        for command in ["plan", "deploy"] {
            let (code, said) = home.run(command, Some(&file));
            assert_eq!(code, 2, "{command}: {said}");
            for word in words {
                assert!(said.contains(word), "{command}: {word:?} is not in: {said}");
            }
            assert!(
                said.contains("nothing was changed: cluster lab is there"),
                "{said}"
            );
        }
        let now = (home.record(), fs::read(home.state("deploy.yaml")).unwrap());
        assert_eq!(now, before);
        assert!(!home.state("known_hosts").exists(), "nobody was asked");
    }
    // A file that adds a worker is not refused: it fails since nobody is there.
    let file = home.file(&list(&["m0"], &["w0", "w1", "w2"]));
    let (code, said) = home.run("plan", Some(&file));
    assert!(
        code == 1 && said.contains("m0: cannot be reached"),
        "{said}"
    );
    let (code, said) = home.run("list", None);
    assert!(code == 0 && said.contains("lab "), "{said}");
}

#[test]
fn a_record_of_an_earlier_release_is_completed_by_its_file() {
    let record =
        format!("{{\"uid\": \"{ID}\", \"name\": \"lab\", \"created\": \"2027-01-15T08:00:00Z\"}}");
    let home = Home::new(&record, &list(&["m0"], &["w0"]));
    fs::write(home.state("admin.conf"), "").unwrap();
    let (code, said) = home.run("deploy", Some(&home.file(&list(&["m0", "m1"], &[]))));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("1 machine that the file no longer names is removed from cluster lab: w0"),
        "{said}"
    );
    let (code, said) = home.run("deploy --yes", Some(&home.file(&list(&["m0", "m1"], &[]))));
    assert!(code == 2 && said.contains("[etcd-members]: m1:"), "{said}");
    assert_eq!(home.record(), record);
}

#[test]
fn machines_are_removed_only_by_the_users_word() {
    let home = Home::up(&["m0"], &["w0", "w1"]);
    let before = (home.record(), fs::read(home.state("deploy.yaml")).unwrap());
    let fewer = home.file(&list(&["m0"], &[]));
    for arguments in ["deploy", "deploy --allow-removal 1"] {
        let (code, said) = home.run(arguments, Some(&fewer));
        assert_eq!(code, 2, "{said}");
        for word in [
            "2 machines that the file no longer names are removed from cluster lab: w0, w1",
            "say --yes or --allow-removal 2",
        ] {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
    }
    // With it they are looked for, like all others; a plan asks nobody's leave.
    for arguments in ["deploy --yes", "deploy --allow-removal 2", "plan"] {
        let (code, said) = home.run(arguments, Some(&fewer));
        assert!(
            code == 1 && said.contains("m0: cannot be reached"),
            "{said}"
        );
    }
    // Masters and members do not leave, whatever is said.
    let home = Home::up(&["m0", "m1", "m2"], &[]);
    let fewer = home.file(&list(&["m0", "m1"], &[]));
    let (code, said) = home.run("deploy --yes", Some(&fewer));
    assert!(
        code == 2 && said.contains("error[machine-dropped]: m2: would be forgotten"),
        "{said}"
    );
    let home = Home::up(&["m0"], &["w0", "w1"]);
    assert_eq!(
        (home.record(), fs::read(home.state("deploy.yaml")).unwrap()),
        before
    );
}

/// The record of a release before claims, beside a file that it took and that breaks rules of today.
#[test]
fn rules_that_are_newer_than_a_cluster_do_not_lock_it_up() {
    let record =
        format!("{{\"uid\": \"{ID}\", \"name\": \"lab\", \"created\": \"2027-01-15T08:00:00Z\"}}");
    let machines = list(&["m0"], &["w0"]);
    let broken = [
        "install: {addition: {master: [{name: 'http://mirror/a.yaml', type: yaml}]}}\n",
        "network: {plugin: calico, plugin-args: {IPIP: Always}}\n",
        "kubernetes-version: '1.2'\n",
        "registry-mirrors: ['no mirror']\n",
    ];
    for broken in broken {
        let file = format!("{machines}{broken}");
        let home = Home::new(&record, &file);
        fs::write(home.state("admin.conf"), "").unwrap();
        // The file itself is not good for a cluster any more.
        let (code, said) = home.run("deploy", Some(&home.file(&file)));
        assert!(code == 2 && said.contains("error["), "{said}");
        // A corrected one is only stopped by machines that do not answer.
        let corrected = home.file(&machines);
        for command in ["plan", "deploy"] {
            let (code, said) = home.run(command, Some(&corrected));
            assert!(
                code == 1 && said.contains("m0: cannot be reached"),
                "{command} {broken}: {said}"
            );
        }
        let (code, said) = home.run("list", None);
        assert!(
            code == 0 && said.contains("0/2 reached"),
            "{broken}: {said}"
        );
        for (arguments, file) in [
            ("cleanup --yes --id lab", None),
            ("cleanup --yes", Some(home.file(&file))),
        ] {
            let (code, said) = home.run(arguments, file.as_deref());
            assert_eq!(code, 3, "{arguments} {broken}: {said}");
            assert!(said.contains("not clean: m0, w0\n"), "{said}");
            assert!(said.contains("warning["), "it is told nevertheless: {said}");
        }
    }
    // Without a way to the machines there is nothing that could be done.
    let home = Home::new(&record, &machines.replace("port: 1", "port: x"));
    let (code, said) = home.run("cleanup --yes --id lab", None);
    assert!(code == 2 && said.contains("error[bad-port]"), "{said}");
}

#[test]
fn cleanup_visits_what_the_file_leaves_out_and_forgets_only_when_told() {
    let home = Home::up(&["m0"], &["w0", "w1"]);
    let short = home.file(&list(&["m0"], &[]));
    let (code, said) = home.run("cleanup", Some(&short));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("is removed from 3 machines, also from those that it has and the file does not name (w0, w1)"),
        "{said}"
    );
    for _ in 0..2 {
        let (code, said) = home.run("cleanup --yes", Some(&short));
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("not clean: m0, w0, w1\n"), "{said}");
        assert!(
            said.contains("--forget-missing where machines are gone for good: m0, w0, w1"),
            "{said}"
        );
        assert!(home.record().contains("\"w1\""));
    }
    // What is left of a removal is not taken for a cluster.
    let (code, said) = home.run("deploy", Some(&home.file(&list(&["m0"], &["w0", "w1"]))));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("error[removing]: m0, w0, w1: cleanup was begun"),
        "{said}"
    );

    let (code, said) = home.run("cleanup --yes --forget-missing --id lab", None);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("cluster lab is gone\n  forgotten without being cleaned: m0, w0, w1\n"),
        "{said}"
    );
    assert!(!home.state("").exists());
}

/// The file that is given may be older than the machine, or leave it out by mistake.
#[test]
fn a_machine_of_the_cluster_is_not_cleaned_alone() {
    let home = Home::up(&["m0", "m1", "m2"], &["w0", "w1"]);
    let before = home.record();
    let stale = home.file(&list(&["m0", "m1"], &["w0"]));
    let script = home.0.path().join("save.sh");
    fs::write(&script, "true").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let refused = |host: &str, words: [&str; 2]| {
        let hook = format!("--prehook {},worker", script.display());
        let (code, said) = home.run(&format!("cleanup --yes --host {host} {hook}"), Some(&stale));
        assert_eq!(code, 2, "{said}");
        let is_asked = said.contains("no script was run there");
        assert!(!is_asked, "a machine was asked: {said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
        assert_eq!(home.record(), before);
    };
    let place = home.state("deploy.yaml");
    let named = format!("w1 is part of cluster lab: {} names it", place.display());
    refused("w1", [&named, "take it out first: delete --id lab w1"]);
    let master = [
        "m2 is a master or etcd member of cluster lab",
        "only with the whole cluster: cleanup --id lab",
    ];
    refused("m2", master);
    // Also where an earlier run took it out of the file.
    let latest = fs::read_to_string(&place).unwrap();
    let earlier = serde_json::json!([{ "file": latest }]);
    fs::write(home.state("earlier-files.json"), earlier.to_string()).unwrap();
    fs::write(&place, text(&list(&["m0", "m1"], &["w0"]))).unwrap();
    refused("m2", master);
}

/// One that was deleted and does not come back is given up alone; the cluster stays.
#[test]
fn a_machine_that_left_and_is_gone_for_good_can_be_forgotten() {
    let home = Home::up(&["m0"], &["w0", "w1"]);
    let earlier = fs::read_to_string(home.state("deploy.yaml")).unwrap();
    let earlier = serde_json::json!([{ "file": earlier }]);
    fs::write(home.state("earlier-files.json"), earlier.to_string()).unwrap();
    let latest = text(&list(&["m0"], &["w0"]));
    fs::write(home.state("deploy.yaml"), latest).unwrap();
    let (code, said) = home.run("cleanup --yes --id lab --host w1", None);
    assert_eq!(code, 3, "{said}");
    for word in [
        "what cluster lab left on w1 is partly removed\n  not clean: w1\n",
        "--forget-missing where machines are gone for good: w1",
    ] {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert!(home.record().contains("\"w1\""));
    // What the file names is not given up.
    let (code, said) = home.run("cleanup --yes --id lab --host w0 --forget-missing", None);
    assert!(
        code == 2 && said.contains("w0 is part of cluster lab"),
        "{said}"
    );
    let (code, said) = home.run("cleanup --yes --id lab --host w1 --forget-missing", None);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("w1 is forgotten without being cleaned; cluster lab stays\n"),
        "{said}"
    );
    let record = home.record();
    assert!(
        !record.contains("\"w1\"") && record.contains("\"w0\""),
        "{record}"
    );
    assert!(record.contains("\"formed\": true"), "{record}");
}

/// A cluster that never was up can be made of what an interrupted cleanup left.
#[test]
fn what_never_was_a_cluster_can_be_made_after_a_cleanup_that_did_not_end() {
    let home = Home::up(&["m0"], &["w0"]);
    let record = home.record().replace("\"formed\": true, ", "");
    fs::write(home.state("cluster.json"), record).unwrap();
    let (code, said) = home.run("cleanup --yes --id lab", None);
    assert_eq!(code, 3, "{said}");
    assert!(home.record().contains("\"removing\": true"));
    let (code, said) = home.run("deploy", Some(&home.file(&list(&["m0"], &["w0"]))));
    assert!(
        code == 1 && said.contains("m0: cannot be reached"),
        "{said}"
    );
}
