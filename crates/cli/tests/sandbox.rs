//! The sandbox commands from up to down, on a real machine.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use assert_cmd::Command;
use tempfile::TempDir;

struct Sandbox {
    home: TempDir,
    name: String,
}

impl Sandbox {
    fn run(&self, arguments: &str) -> Output {
        let arguments = arguments.replace("NAME", &self.name);
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")));
        command
            .args(arguments.split(' '))
            .env("HATCHERY_HOME", self.home.path());
        command.output().unwrap()
    }

    /// Runs a command that must end with `code`; returns both outputs together.
    fn expect(&self, code: i32, arguments: &str) -> String {
        let output = self.run(arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {text}");
        text
    }

    fn known_hosts(&self) -> PathBuf {
        let clusters = self.home.path().join("clusters");
        clusters.join(&self.name).join("known_hosts")
    }

    /// A record as `deploy` leaves it, with one machine.
    fn remember_cluster(&self, address: &str) {
        let name = &self.name;
        let record = serde_json::json!({
            "format": 2, "uid": "777bde68d25745f3fbbc8ee6f65aea5c", "name": name,
            "created": "2026-11-18T08:39:00Z", "formed": true,
            "machines": [{"name": format!("{name}-1"), "address": address, "host": address, "port": 22,
                "user": "root", "roles": ["master"]}],
        });
        let path = self.known_hosts().with_file_name("cluster.json");
        std::fs::write(path, record.to_string()).unwrap();
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.run("sandbox down --name NAME");
    }
}

/// All that is below a directory.
fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut all = Vec::new();
    for path in paths {
        let below = if path.is_dir() {
            walk(&path)
        } else {
            Vec::new()
        };
        all.push(path);
        all.extend(below);
    }
    all
}

/// A file stands where the cache should be, so there is no root file system to be had.
#[test]
fn a_sandbox_without_a_root_file_system_is_not_begun() {
    let home = TempDir::new().unwrap();
    let name = format!("none-{}", std::process::id());
    let cache = home.path().join("file");
    std::fs::write(&cache, "").unwrap();
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")))
        .args(["sandbox", "up", "--machines", "1", "--name", &name])
        .env("HATCHERY_HOME", home.path())
        .env("HATCHERY_CACHE", &cache)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    let networks = Command::new("docker")
        .args([
            "network",
            "ls",
            "--quiet",
            "--filter",
            &format!("name={name}"),
        ])
        .output()
        .unwrap();
    assert!(
        networks.stdout.is_empty(),
        "a network is left: {networks:?}"
    );
    assert!(
        !home
            .path()
            .join(format!("sandbox/{name}/id_ed25519"))
            .exists()
    );
}

#[test]
fn a_sandbox_from_up_to_down() {
    let sandbox = Sandbox {
        home: TempDir::new().unwrap(),
        name: format!("cli-{}", std::process::id()),
    };
    let up = sandbox.expect(0, "sandbox up --name NAME --machines 1");
    let machine = format!("{}-1", sandbox.name);
    assert!(
        up.contains(&format!("  {machine} ")) && up.contains("ready after"),
        "{up}"
    );
    assert!(
        up.contains(&format!("sandbox down --name {}", sandbox.name)),
        "{up}"
    );
    let deploy = sandbox
        .home
        .path()
        .join(format!("sandbox/{}/deploy.yaml", sandbox.name));
    assert!(
        up.contains(&deploy.display().to_string()) && deploy.is_file(),
        "{up}"
    );

    let list = sandbox.expect(0, "sandbox list -o json");
    assert!(list.contains(&format!("\"name\":\"{machine}\"")), "{list}");
    assert!(sandbox.expect(0, "sandbox list").contains("running"));

    assert_eq!(
        sandbox
            .expect(0, "sandbox exec --name NAME NAME-1 -- hostname")
            .trim(),
        machine
    );
    assert_eq!(
        sandbox.expect(0, "sandbox ssh NAME-1 -- hostname").trim(),
        machine
    );
    sandbox.expect(7, "sandbox exec NAME-1 -- sh -c exit\t7");
    let unknown = sandbox.expect(2, "sandbox exec --name NAME NAME1 -- true");
    assert!(
        unknown.contains(&format!("did you mean '{machine}'?")),
        "{unknown}"
    );

    sandbox.expect(0, "sandbox fault --name NAME stop NAME-1");
    assert!(sandbox.expect(0, "sandbox list").contains("stopped"));
    let cut = sandbox.expect(2, "sandbox fault cut NAME-1");
    assert!(
        cut.contains("is stopped") && cut.contains("fault start"),
        "{cut}"
    );
    sandbox.expect(2, "sandbox fault start NAME-1 NAME-2");
    assert!(
        sandbox.expect(0, "sandbox list").contains("stopped"),
        "a refused fault did something"
    );
    let up = sandbox.expect(0, "sandbox up --name NAME -o json");
    assert!(up.contains("\"deployFile\""), "{up}");
    let other = sandbox.expect(2, "sandbox up --name NAME --user ops");
    assert!(other.contains("exists with user root, not ops"), "{other}");

    // What is known of a cluster on its machines goes with them: later machines have other host keys.
    let key = |sandbox: &Sandbox| {
        let check = format!("check --hosts -f {}", deploy.display());
        let said = sandbox.expect(0, &check);
        assert!(!said.contains("error[host-key]"), "{said}");
    };
    key(&sandbox);
    assert!(sandbox.known_hosts().exists());
    sandbox.remember_cluster("192.0.2.1");
    sandbox.expect(0, "sandbox down --name NAME");
    assert!(sandbox.known_hosts().exists(), "another machine is its too");
    sandbox.expect(0, "sandbox up --name NAME --machines 1");
    let address = sandbox.expect(0, "sandbox exec NAME-1 -- hostname -i");
    sandbox.remember_cluster(address.trim());
    let down = sandbox.expect(0, "sandbox down --name NAME");
    assert!(down.contains("is forgotten"), "{down}");
    sandbox.expect(0, "sandbox up --name NAME --machines 1");
    key(&sandbox);
    sandbox.expect(0, "sandbox down --name NAME");
    let again = sandbox.expect(2, "sandbox down --name NAME");
    assert!(again.contains("there is no sandbox"), "{again}");
    let left = walk(sandbox.home.path());
    assert_eq!(left, [sandbox.home.path().join("clusters")]);
}
