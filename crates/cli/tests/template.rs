//! `template` on the command line: every flag, both program names, modes, and what is refused.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Output,
};

use assert_cmd::Command;
use tempfile::TempDir;

struct Place {
    directory: TempDir,
    program: String,
}

impl Place {
    /// An empty directory to work in, with a home of its own.
    fn new(program: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let link = directory.path().join("bin");
        fs::create_dir(&link).unwrap();
        symlink(env!("CARGO_BIN_EXE_hatchery"), link.join(program)).unwrap();
        fs::create_dir(directory.path().join("work")).unwrap();
        Self {
            directory,
            program: program.to_owned(),
        }
    }

    fn run(&self, arguments: &str) -> Output {
        let top = self.directory.path();
        Command::new(top.join("bin").join(&self.program))
            .args(arguments.split(' '))
            .current_dir(top.join("work"))
            .env("HOME", top)
            .env_remove("HATCHERY_HOME")
            .output()
            .unwrap()
    }

    /// Runs a command that must end with `code`; returns what it printed on both sides.
    fn expect(&self, code: i32, arguments: &str) -> (String, String) {
        let output = self.run(arguments);
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let told = format!("{arguments}\n{stdout}{stderr}");
        assert_eq!(output.status.code(), Some(code), "{told}");
        (stdout, stderr)
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("work").join(name)
    }

    /// The names in the working directory.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path().join("work")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// Checks a template; nothing but its archive may be missing.
    fn check(&self, name: &str) -> Vec<String> {
        let (stdout, _) = self.expect(2, &format!("check -f {name} -o json"));
        let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        let codes = found["diagnostics"].as_array().unwrap().iter();
        let (missing, rest): (Vec<String>, _) = codes
            .map(|one| one["code"].as_str().unwrap().to_owned())
            .partition(|code| code == "missing-archive");
        assert_eq!(
            (missing.len(), &found["errors"]),
            (1, &1.into()),
            "{stdout}"
        );
        rest
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

const MANUAL: &str = "template -f template.yaml -n k8s-cluster -u username -p password \
    --masters 192.168.0.1 --masters 192.168.0.2 --nodes 192.168.0.3 --etcds 192.168.0.4 \
    --loadbalancer 192.168.0.5";

#[test]
fn the_manuals_line_works_as_printed_under_both_names() {
    for program in ["eggo", "hatchery"] {
        let place = Place::new(program);
        let line: Vec<_> = MANUAL.split_whitespace().collect();
        let (stdout, stderr) = place.expect(0, &line.join(" "));
        assert!(
            stdout.starts_with(
                "template.yaml written: 2 masters, 1 worker, 1 etcd member, a load balancer\n"
            ),
            "{stdout}"
        );
        assert!(
            stdout.contains(&format!("{program} check -f template.yaml")),
            "{stdout}"
        );
        assert!(
            stderr.contains("password-env") && stderr.contains("private-key-path"),
            "{stderr}"
        );
        let file = place.file("template.yaml");
        assert_eq!(mode(&file), 0o600);
        let text = fs::read_to_string(&file).unwrap();
        for line in [
            "cluster-id: k8s-cluster",
            "username: username",
            "password: \"password\"",
            "- name: k8s-master-1",
            "  ip: 192.168.0.5",
            "workers:",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
        }
        assert_eq!(place.check("template.yaml"), ["master-not-worker"]);
        assert_eq!(place.left(), ["template.yaml"]);
    }
}

#[test]
fn all_flags_in_all_spellings() {
    let place = Place::new("hatchery");
    for (number, (flags, written)) in [
        ("", "1 master, 3 workers, 1 etcd member, a load balancer"),
        (
            "--masters 10.0.0.1,10.0.0.2,10.0.0.3",
            "3 masters, 3 workers, 3 etcd members, no load balancer",
        ),
        (
            "--masters 10.0.0.1 --workers 10.0.0.1,10.0.0.2 -l 10.0.0.9",
            "1 master, 2 workers, 1 etcd member, a load balancer",
        ),
        (
            "--masters fd00::1 --nodes fd00::1 --nodes fd00::2 --loadbalance fd00::9 --name a.b",
            "1 master, 2 workers, 1 etcd member, a load balancer",
        ),
        (
            "--masters 10.32.0.1 --etcds 10.244.0.1 --user ops --classic",
            "1 master, 1 worker, 1 etcd member, no load balancer",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.yaml");
        let line = format!("template --file {name} {flags}");
        let (stdout, stderr) = place.expect(0, line.trim());
        assert!(
            stdout.starts_with(&format!("{name} written: {written}\n")),
            "{stdout}"
        );
        assert_eq!(stderr, "", "{flags}");
        let text = fs::read_to_string(place.file(&name)).unwrap();
        assert!(!text.contains("\npassword"), "{flags}");
        assert_eq!(place.check(&name), [""; 0], "{flags}");
    }
}

#[test]
fn the_manuals_keys_are_written_on_request() {
    let place = Place::new("hatchery");
    place.expect(0, "template --classic");
    let text = fs::read_to_string(place.file("template.yaml")).unwrap();
    for key in [
        "\nnodes:",
        "\npackage-src:",
        "\npacakges:",
        "  plugin-args:",
    ] {
        assert!(text.contains(key), "{key}");
    }
    assert!(!text.contains("\nworkers:") && !text.contains("\ninstall:"));
}

#[test]
fn a_file_that_is_there_stays_without_force() {
    let place = Place::new("hatchery");
    let file = place.file("deploy.yaml");
    fs::write(&file, "mine").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (stdout, stderr) = place.expect(2, "template -f deploy.yaml");
    assert_eq!(stdout, "");
    assert!(
        stderr.contains("deploy.yaml is there already") && stderr.contains("--force"),
        "{stderr}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(place.left(), ["deploy.yaml"]);
    place.expect(0, "template -f deploy.yaml --force");
    assert!(fs::read_to_string(&file).unwrap().contains("cluster-id"));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(place.left(), ["deploy.yaml"]);
}

#[test]
fn wrong_values_are_refused_with_the_flags_name() {
    let place = Place::new("eggo");
    for (flags, words) in [
        ("--masters 192.168.0", "'--masters <IP>'"),
        ("--masters host", "not an IP address"),
        ("--masters 127.0.0.1", "other machines cannot reach"),
        ("--masters 10.0.0.1 --nodes 10.0.0", "'--nodes <IP>'"),
        (
            "--masters 10.0.0.1,10.0.0.1",
            "--masters: 10.0.0.1 is given twice",
        ),
        (
            "--masters 10.0.0.1 --nodes 10.0.0.2 --nodes 10.0.0.2",
            "--nodes: 10.0.0.2 is given twice",
        ),
        (
            "--masters 10.0.0.1 --workers 10.0.0.2,10.0.0.2",
            "--workers: 10.0.0.2 is given twice",
        ),
        (
            "--masters 10.0.0.1 --workers 10.0.0.2 --nodes 10.0.0.3",
            "cannot be used with",
        ),
        (
            "--masters 10.0.0.1 --etcds fd00::1",
            "--etcds: fd00::1 and 10.0.0.1",
        ),
        ("--workers 10.0.0.1", "--masters: other machines are given"),
        ("-l 10.0.0.1,10.0.0.2", "'--loadbalance <IP>'"),
        ("-n K8s_Cluster", "'--name <NAME>'"),
        ("-u a:b", "'--user <USER>'"),
        ("-f nowhere/template.yaml", "there is no directory nowhere"),
        ("-f .", ". is a directory"),
    ] {
        let (stdout, stderr) = place.expect(2, &format!("template {flags}"));
        assert_eq!(stdout, "", "{flags}");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(words),
            "{flags}: {stderr}"
        );
        assert!(place.left().is_empty(), "{flags}");
    }
}

#[test]
fn a_password_is_never_repeated() {
    let place = Place::new("hatchery");
    let (stdout, stderr) = place.expect(2, "template -p hunter2\nx");
    assert!(stderr.contains("--password"), "{stderr}");
    assert!(!stderr.contains("hunter2") && stdout.is_empty(), "{stderr}");
    let (stdout, stderr) = place.expect(0, "template -p hunter2 -d -o json");
    assert!(!stdout.contains("hunter2") && !stderr.contains("hunter2"));
    let (stdout, stderr) = place.expect(2, "check -f template.yaml -o json");
    assert!(!stdout.contains("hunter2") && !stderr.contains("hunter2"));
}

#[test]
fn programs_can_read_what_was_written() {
    let place = Place::new("hatchery");
    let (stdout, _) = place.expect(0, "template -o json --masters 10.0.0.1");
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["file"], "template.yaml");
    assert_eq!(told["workers"], serde_json::json!(["10.0.0.1"]));
    assert_eq!(told["loadBalancer"], serde_json::Value::Null);
}
