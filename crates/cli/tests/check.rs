//! `check` and `schema` on the command line.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use assert_cmd::Command;
use hatchery_pki::{AUTHORITY_LIFETIME, Authority};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tempfile::TempDir;
use time::OffsetDateTime;

const GOOD: &str = "\
cluster-id: demo
kubernetes-version: 1.28
masters: [{name: m0, ip: 10.0.0.1}]
workers: [{name: m0, ip: 10.0.0.1}, {name: w0, ip: 10.0.0.2}]
runtime: containerd
";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file that only its owner can read.
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.mode(name, 0o600);
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(&self, program: &Path, arguments: &str) -> (Option<i32>, String, String) {
        let output = Command::new(program)
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env_remove("HATCHERY_HOME")
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// Runs a command that must end with `code`; returns what it printed on both sides.
    fn expect(&self, code: i32, arguments: &str) -> (String, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_hatchery"));
        let (found, stdout, stderr) = self.command(program, arguments);
        assert_eq!(found, Some(code), "{arguments}\n{stdout}{stderr}");
        (stdout, stderr)
    }

    /// The codes of what there is to say, with their lines.
    fn codes(&self, code: i32, arguments: &str) -> Vec<(String, u64)> {
        let (stdout, stderr) = self.expect(code, &format!("{arguments} -o json"));
        assert_eq!(stderr, "");
        let document: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(document["ok"], Value::from(code == 0));
        let all = document["diagnostics"].as_array().unwrap().iter();
        all.map(|one| {
            let code = one["code"].as_str().unwrap().to_owned();
            (code, one["line"].as_u64().unwrap())
        })
        .collect()
    }
}

#[test]
fn a_good_file_is_told_in_one_line() {
    let place = Place::new();
    place.write("deploy.yaml", GOOD);
    let (stdout, stderr) = place.expect(0, "check -f deploy.yaml");
    assert_eq!(
        stdout,
        "deploy.yaml is valid: demo, Kubernetes 1.28 with containerd, \
         2 machines (1 master, 2 workers, 1 etcd member), Services 10.32.0.0/16, pods 10.244.0.0/16\n"
    );
    assert_eq!(stderr, "");
    let (stdout, _) = place.expect(0, "check -f deploy.yaml -o json");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        document["cluster"]["workers"],
        serde_json::json!(["m0", "w0"])
    );
    assert_eq!(document["cluster"]["endpoint"], "10.0.0.1:6443");
    assert_eq!(document["diagnostics"], serde_json::json!([]));
}

#[test]
fn ten_mistakes_are_told_at_once() {
    let place = Place::new();
    let text = include_str!("../../spec/tests/files/ten-mistakes.yaml");
    let archive = place.path("packages-arm64.tar.gz").display().to_string();
    let text = text.replace("/root/packages-arm64.tar.gz", &archive);
    place.write("deploy.yaml", &text);
    place.write("packages-arm64.tar.gz", "x");
    place.write(".ssh/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    let (stdout, stderr) = place.expect(2, "check -f deploy.yaml");
    assert_eq!(stdout, "");
    assert_eq!(stderr.lines().last(), Some("10 errors"), "{stderr}");
    assert_eq!(stderr.matches("= help: ").count(), 10, "{stderr}");
    assert!(!stderr.contains('\x1b'), "colours without a terminal");
    let codes = place.codes(2, "check -f deploy.yaml");
    assert_eq!(codes.len(), 10);
    assert_eq!(codes[0], ("bad-name".to_owned(), 1));
    for (code, line) in codes {
        assert!(
            stderr.contains(&format!("error[{code}]"))
                && stderr.contains(&format!("deploy.yaml:{line}:")),
            "{code} {line}"
        );
    }
}

#[test]
fn warnings_do_not_fail() {
    let place = Place::new();
    place.write("deploy.yaml", &format!("{GOOD}password: hunter2\n"));
    assert_eq!(place.codes(0, "check -f deploy.yaml"), []);
    for mode in [0o644, 0o640, 0o604] {
        place.mode("deploy.yaml", mode);
        assert_eq!(
            place.codes(0, "check -f deploy.yaml"),
            [("readable-password".to_owned(), 6)]
        );
    }
    let (stdout, stderr) = place.expect(0, "check -f deploy.yaml");
    assert!(stdout.contains("is valid"), "{stdout}");
    assert_eq!(stderr.lines().last(), Some("1 warning"), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[test]
fn files_that_are_named_are_looked_for() {
    let place = Place::new();
    let top = place.0.path().display().to_string();
    let text = format!(
        "{GOOD}private-key-path: ~/.ssh/key
password-file: ~/secret
external-ca: true
external-ca-path: {top}/ca
install:
  package-source:
    srcpath: {{amd64: packages/amd64.tar.gz}}
"
    );
    place.write("deploy.yaml", &text);
    let said = |codes: &[(&str, u64)]| -> Vec<(String, u64)> {
        let codes = codes.iter();
        codes
            .map(|(code, line)| ((*code).to_owned(), *line))
            .collect()
    };
    let all = [
        ("missing-private-key", 6),
        ("missing-password-file", 7),
        ("missing-external-ca", 9),
        ("missing-archive", 12),
    ];
    assert_eq!(place.codes(2, "check -f deploy.yaml"), said(&all));

    // Each in turn is there, but not what it should be.
    fs::create_dir_all(place.path("packages/amd64.tar.gz")).unwrap();
    place.write(".ssh/key", "ssh-ed25519 AAAA me@here\n");
    place.write("secret", "\nlater\n");
    place.write("ca/ca.crt", "x");
    place.write("ca/ca.key", "x");
    place.write("ca/etcd/ca.crt", "x");
    assert_eq!(place.codes(2, "check -f deploy.yaml"), said(&all));
    let (_, stderr) = place.expect(2, "check -f deploy.yaml");
    for words in [
        "it is a public key",
        "its first line is empty",
        "ca.crt: the authority's certificate is not valid",
        "etcd/ca.key: there is no such file",
        "it is a directory",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }

    fs::remove_dir(place.path("packages/amd64.tar.gz")).unwrap();
    place.write("packages/amd64.tar.gz", "x");
    place.write(".ssh/key", "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    place.write("secret", "hunter2\n");
    // What may be left out is left out.
    fs::remove_dir_all(place.path("ca/etcd")).unwrap();
    let now = OffsetDateTime::now_utc();
    let ca = Authority::new("company", AUTHORITY_LIFETIME, now).unwrap();
    place.write("ca/ca.crt", ca.cert_pem());
    place.write("ca/ca.key", ca.key_pem().expose_secret());
    assert_eq!(place.codes(0, "check -f deploy.yaml"), []);
    place.write("deploy.yaml", &text.replace(&format!("{top}/ca"), "~/ca"));
    assert_eq!(place.codes(0, "check -f deploy.yaml"), []);

    // Secrets that others can read are worth a warning.
    place.mode(".ssh/key", 0o640);
    place.mode("secret", 0o604);
    assert_eq!(
        place.codes(0, "check -f deploy.yaml"),
        said(&[("readable-secret", 6), ("readable-secret", 7)])
    );

    // Those of a bastion as well.
    let text = format!(
        "{GOOD}bastion: {{host: jump, private-key-path: /nowhere/key, password-file: /nowhere/password}}\n"
    );
    place.write("deploy.yaml", &text);
    let all = [("missing-password-file", 6), ("missing-private-key", 6)];
    assert_eq!(place.codes(2, "check -f deploy.yaml"), said(&all));
}

#[test]
fn without_a_name_the_usual_files_are_read() {
    let place = Place::new();
    let (stdout, stderr) = place.expect(2, "check");
    assert_eq!(stdout, "");
    for usual in [".hatchery/deploy.yaml", ".eggo/deploy.yaml"] {
        let path = place.path(usual).display().to_string();
        assert!(stderr.contains(&path), "{stderr}");
    }
    assert!(stderr.contains("\n  name one with -f"), "{stderr}");

    place.write(".eggo/deploy.yaml", &GOOD.replace("demo", "from-eggo"));
    assert!(place.expect(0, "check").0.contains("from-eggo"));
    place.write(".hatchery/deploy.yaml", &GOOD.replace("demo", "own"));
    assert!(place.expect(0, "check").0.contains("own"));
    place.write("other/deploy.yaml", &GOOD.replace("demo", "elsewhere"));
    assert!(
        place
            .expect(0, "check --home other")
            .0
            .contains("elsewhere")
    );
    assert!(place.expect(0, "check --home none").0.contains("from-eggo"));
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let place = Place::new();
    for (file, words) in [
        ("nowhere.yaml", "there is no such file"),
        (".", "it is a directory"),
    ] {
        let (stdout, stderr) = place.expect(2, &format!("check -o json -f {file}"));
        assert_eq!(stdout, "");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(words),
            "{stderr}"
        );
    }
    // Endless, and no YAML.
    let (_, stderr) = place.expect(2, "check -f /dev/zero");
    assert!(stderr.contains("file-too-big"), "{stderr}");
}

#[test]
fn the_manuals_file_is_checked_under_the_manuals_name() {
    let place = Place::new();
    let text = include_str!("../../spec/tests/files/manual-sample.yaml");
    place.write(".eggo/deploy.yaml", text);
    let eggo = place.path("eggo");
    symlink(env!("CARGO_BIN_EXE_hatchery"), &eggo).unwrap();
    let (code, stdout, stderr) = place.command(&eggo, "check");
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("slash-comment"), "{stderr}");
    assert_eq!(
        stderr.lines().last(),
        Some("5 errors, 2 warnings"),
        "{stderr}"
    );
}

#[test]
fn an_inventory_is_read_with_its_variables() {
    let place = Place::new();
    place.write(
        "hosts.yml",
        "\
all:
  hosts:
    node1: {ansible_host: 10.0.0.1}
    node2: {ansible_host: 10.0.0.2}
  children:
    kube_control_plane: {hosts: {node1: }}
    kube_node: {hosts: {node1: , node2: }}
    etcd: {hosts: {node1: }}
",
    );
    place.write(
        "vars.yml",
        "hatchery_cluster_id: spray\nkube_version: v1.28.3\nkube_network_plugin: flannel\n",
    );
    let (stdout, stderr) = place.expect(0, "check -f hosts.yml --vars vars.yml");
    assert!(
        stdout.starts_with("hosts.yml is valid: spray, Kubernetes 1.28.3"),
        "{stdout}{stderr}"
    );
    // A mistake in either file is told with that file's name.
    place.write(
        "vars.yml",
        "hatchery_cluster_id: spray\nkube_version: 1.x\nkube_network_plugin: flannel\n",
    );
    let (_, stderr) = place.expect(2, "check -f hosts.yml --vars vars.yml");
    assert!(stderr.contains("--> vars.yml:2:15"), "{stderr}");
    let (_, stderr) = place.expect(2, "check -f hosts.yml --vars none.yml");
    assert!(stderr.contains("cannot read none.yml"), "{stderr}");
    place.write("deploy.yaml", GOOD);
    let (_, stderr) = place.expect(2, "check -f deploy.yaml --vars vars.yml");
    assert!(stderr.contains("not an inventory"), "{stderr}");
    let (_, stderr) = place.expect(2, "check --vars vars.yml");
    assert!(stderr.contains("--file <FILE>"), "{stderr}");
}

#[test]
fn the_schema_is_the_one_in_docs() {
    let place = Place::new();
    for arguments in ["schema", "schema -o json"] {
        let (stdout, _) = place.expect(0, arguments);
        let there = include_str!("../../../docs/deploy-file.schema.json");
        assert!(stdout == there, "docs/deploy-file.schema.json is stale");
    }
}

#[test]
fn machines_are_not_asked_for_a_cluster_that_cannot_be_known() {
    let place = Place::new();
    place.write("deploy.yaml", GOOD);
    place.write(".hatchery/clusters/demo/cluster.json", "{\"uid\": ");
    let (_, stderr) = place.expect(2, "check -f deploy.yaml --hosts");
    assert!(
        stderr.contains("clusters/demo/cluster.json is damaged") && stderr.contains("backup"),
        "{stderr}"
    );
}
