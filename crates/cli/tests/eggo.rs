//! Scripts that were written around eggo go on working when the program is called by that name.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use assert_cmd::Command;
use hatchery_engine::state::{Directory, Holder, Record, Store as _};
use hatchery_spec::value::Name;
use tempfile::TempDir;
use time::OffsetDateTime;

/// Nobody is there: the program runs without a network.
const FILE: &str = "cluster-id: lab\nusername: root\npassword: secret\nruntime: containerd\n\
    masters: [{name: m0, ip: 10.9.8.7, port: 1}]\nworkers: [{name: m0, ip: 10.9.8.7, port: 1}]\n";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        for name in ["eggo", "hatchery"] {
            symlink(env!("CARGO_BIN_EXE_hatchery"), place.path(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }

    /// The exit code and both outputs; standard input is no terminal.
    fn run(&self, line: &str) -> (i32, String, String) {
        let (program, arguments) = line.split_once(' ').unwrap();
        let output = Command::new("unshare")
            .arg("--net")
            .arg(self.path(program))
            .args(arguments.split(' '))
            .env("HOME", self.0.path())
            .env_remove("HATCHERY_HOME")
            .env_remove("SSH_AUTH_SOCK")
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap();
        (code, text(output.stdout), text(output.stderr))
    }

    /// A cluster that was deployed from here.
    fn know(&self, id: &str) {
        let id = Name::parse(id).unwrap();
        let store = Directory::new(&self.path(".hatchery"), &id);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let now = OffsetDateTime::now_utc();
            let lock = store.lock(Holder::this_process("test", now)).await.unwrap();
            let record = Record::new(&id, now).unwrap();
            record.keep(&store).await.unwrap();
            drop(lock);
        });
    }
}

#[test]
fn its_own_default_file_comes_first() {
    let place = Place::new();
    place.write(".hatchery/deploy.yaml", &FILE.replace("lab", "ours"), 0o600);
    place.write(".eggo/deploy.yaml", &FILE.replace("lab", "theirs"), 0o600);
    let found = |program: &str| {
        let (code, stdout, stderr) = place.run(&format!("{program} check"));
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    assert!(found("hatchery").contains(".hatchery/deploy.yaml"));
    assert!(found("eggo").contains(".eggo/deploy.yaml"));
    // Each finds the other's where its own is missing.
    fs::remove_file(place.path(".eggo/deploy.yaml")).unwrap();
    assert!(found("eggo").contains(".hatchery/deploy.yaml"));
}

#[test]
fn cleanup_does_not_ask_for_what_is_named() {
    let place = Place::new();
    place.write("lab.yaml", FILE, 0o600);
    place.know("lab");
    let (code, _, stderr) = place.run("hatchery cleanup -f lab.yaml");
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--yes"), "{stderr}");
    // eggo had no default file for this: nobody's cluster goes by a word too few.
    place.write(".eggo/deploy.yaml", FILE, 0o600);
    let (code, _, stderr) = place.run("eggo cleanup");
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--yes"), "{stderr}");
    // The machine does not answer, so that nothing is cleaned; but it was tried.
    let (code, stdout, stderr) = place.run("eggo -d cleanup -f lab.yaml");
    assert_eq!(code, 3, "{stdout}{stderr}");
    assert!(stdout.contains("m0"), "{stdout}");
}

#[test]
fn rollback_takes_a_value_behind_an_equals_sign() {
    let place = Place::new();
    for flag in [
        "--rollback",
        "--rollback=true",
        "--rollback=false",
        "--rollback=F",
        "--rollback=1",
    ] {
        let (code, _, stderr) = place.run(&format!("eggo deploy {flag} -f none.yaml"));
        assert_eq!(code, 2, "{flag}: {stderr}");
        assert!(stderr.contains("cannot read none.yaml"), "{flag}: {stderr}");
    }
    let (code, _, stderr) = place.run("eggo deploy --rollback=maybe -f none.yaml");
    assert_eq!(code, 2);
    assert!(stderr.contains("write true or false"), "{stderr}");
}

#[test]
fn scripts_are_judged_before_anything_is_touched() {
    let place = Place::new();
    place.write("lab.yaml", FILE, 0o600);
    let good = place.write("good.sh", "echo hello", 0o750);
    let open = place.write("open.sh", "echo hello", 0o777);
    place.write("many/notes.txt", "x", 0o640);
    let many = place.path("many").display().to_string();
    for command in ["deploy", "cleanup"] {
        for flag in ["cluster-prehook", "cluster-posthook", "prehook", "posthook"] {
            for (value, words) in [
                ("good.sh", "is not an absolute path"),
                (&*format!("{good},king"), "\"king\" is not a role"),
                (&*open, "others than its owner may write it"),
                (&*many, "holds no script that can be run"),
            ] {
                let line = format!("eggo {command} -f lab.yaml --{flag} {value}");
                let (code, _, stderr) = place.run(&line);
                assert_eq!(code, 2, "{line}: {stderr}");
                let expected = format!("error: --{flag}: ");
                assert!(
                    stderr.contains(&expected) && stderr.contains(words),
                    "{line}: {stderr}"
                );
            }
        }
    }
    assert!(!place.path(".hatchery/clusters/lab").exists());
    // A variable that is empty asks for nothing, as with eggo: it is the machine that is missing.
    let (code, _, stderr) = place.run("eggo deploy -f lab.yaml --prehook ");
    assert_eq!(code, 1, "{stderr}");
    assert!(!stderr.contains("--prehook"), "{stderr}");
}
