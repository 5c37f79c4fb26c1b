//! Wrong input and missing prerequisites: exit code 2, words that help, nothing touched.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, fs::symlink, process::CommandExt as _},
    path::Path,
    process::Command as StdCommand,
};

use assert_cmd::Command;
use tempfile::TempDir;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_hatchery"))
}

/// Runs a command line that must be refused, in an empty home that must stay empty.
fn refused(arguments: &[&str]) -> String {
    let home = TempDir::new().unwrap();
    let output = Command::new(program())
        .args(arguments)
        .env("HATCHERY_HOME", home.path())
        .env("HATCHERY_CACHE", home.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    let left = fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 0, "{arguments:?} left files behind");
    stderr
}

#[test]
fn impossible_sandboxes_are_refused() {
    for (arguments, words) in [
        ("--machines 0", "at least one machine"),
        ("--machines 201", "has addresses for 200"),
        ("--machines many", "invalid value"),
        (
            "--machines 2 --masters 3",
            "3 masters need 3 machines, not 2",
        ),
        (
            "--machines 1 --loadbalance",
            "1 master and a load balancer need 2 machines",
        ),
        ("--machines 1 --masters 0", "at least one master"),
        ("--name Lab_1", "lower-case letters"),
        ("--user 0ps", "not a valid user name"),
        ("--sudo password", "root needs no sudo password"),
        ("--system windows", "debian, rpm"),
        ("--colour", "unexpected argument"),
    ] {
        let words_given: Vec<_> = ["sandbox", "up"]
            .into_iter()
            .chain(arguments.split(' '))
            .collect();
        let stderr = refused(&words_given);
        assert!(stderr.contains(words), "{arguments}: {stderr}");
    }
}

#[test]
fn a_remedy_follows_the_error() {
    let stderr = refused(&["sandbox", "up", "--machines", "2", "--masters", "3"]);
    assert_eq!(
        stderr,
        "error: 3 masters need 3 machines, not 2\n  increase --machines, or ask for fewer roles\n"
    );
}

#[test]
fn impossible_faults_are_refused() {
    let stderr = refused(&["sandbox", "fault", "slow", "lab-1", "--rate", "fast"]);
    assert!(stderr.contains("'fast' is not a rate"), "{stderr}");
    let stderr = refused(&["sandbox", "fault", "slow", "lab-1", "--delay", "5"]);
    assert!(stderr.contains("with ms or s"), "{stderr}");
    let stderr = refused(&["sandbox", "exec", "lab-1"]);
    assert!(stderr.contains("required arguments"), "{stderr}");
}

#[test]
fn a_user_without_a_home_is_told_what_to_set() {
    for arguments in [&["list"][..], &["sandbox", "ssh", "lab-1"]] {
        let output = Command::new(program())
            .args(arguments)
            .env_remove("HATCHERY_HOME")
            .env_remove("HOME")
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains("neither HATCHERY_HOME nor HOME is set"),
            "{stderr}"
        );
        assert!(stderr.contains("--home DIR"), "{stderr}");
    }
}

#[test]
fn an_engine_elsewhere_that_is_not_there_is_named() {
    let home = TempDir::new().unwrap();
    for arguments in [
        &["sandbox", "up", "--machines", "1"][..],
        &["sandbox", "list"],
        &["sandbox", "down"],
    ] {
        let output = Command::new(program())
            .args(arguments)
            .env("HATCHERY_HOME", home.path())
            .env("DOCKER_HOST", "tcp://127.0.0.1:1")
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        // Without any docker program there is nothing to ask the host with; both are said.
        assert!(stderr.contains("DOCKER_HOST=tcp://127.0.0.1:1"), "{stderr}");
        assert!(stderr.contains("unset DOCKER_HOST"), "{stderr}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_user_without_docker_is_told_what_to_ask_for() {
    // Root hands over to somebody else, who cannot enter the build directory.
    let root = fs::metadata("/proc/self").unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&root) == 0;
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = place.path().join("hatchery");
    fs::copy(program(), &copy).unwrap();
    // A PATH with an SSH client and no docker.
    let tools = place.path().join("tools");
    fs::create_dir(&tools).unwrap();
    for tool in ["ssh", "ssh-keygen"] {
        fs::write(tools.join(tool), "").unwrap();
    }
    let mut command = StdCommand::new(&copy);
    command
        .args(["sandbox", "up", "--machines", "1"])
        .env("PATH", &tools)
        .env("HOME", place.path().join("home"))
        .env_remove("HATCHERY_HOME")
        .env_remove("DOCKER_HOST")
        .current_dir("/");
    if is_root {
        command.uid(65534).gid(65534);
    }
    let output = loop {
        match command.output() {
            // Another test that starts a program right now may still have the copy open for writing.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            output => break output.unwrap(),
        }
    };
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("only root can install or start one"),
        "{stderr}"
    );
    assert!(
        stderr.contains("\n  ") && stderr.contains("docker"),
        "{stderr}"
    );
}

#[test]
fn the_same_program_answers_as_eggo() {
    let place = TempDir::new().unwrap();
    let eggo = place.path().join("eggo");
    symlink(program(), &eggo).unwrap();
    let version = Command::new(&eggo).arg("-v").output().unwrap();
    assert!(version.status.success());
    let version = String::from_utf8(version.stdout).unwrap();
    let keys: Vec<_> = version
        .lines()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(
        keys,
        ["Version:", "CommitID:", "Architecture:", "BuildTime:"]
    );
    assert!(version.lines().all(|line| {
        line.split('\t')
            .nth(1)
            .is_some_and(|value| !value.is_empty())
    }));

    let version = Command::new(program()).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    assert_eq!(version, format!("hatchery {}\n", env!("CARGO_PKG_VERSION")));

    for (path, name) in [(eggo.as_path(), "eggo"), (program(), "hatchery")] {
        let help = Command::new(path).arg("--help").output().unwrap();
        assert!(help.status.success());
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains(&format!("Usage: {name} ")), "{help}");
        let nothing = Command::new(path).output().unwrap();
        assert!(nothing.status.success());
        assert!(
            String::from_utf8(nothing.stdout)
                .unwrap()
                .contains(&format!("Usage: {name} "))
        );
        let script = Command::new(path)
            .args(["completion", "bash"])
            .output()
            .unwrap();
        assert!(
            String::from_utf8(script.stdout)
                .unwrap()
                .contains(&format!("complete -F _{name}"))
        );
    }
}

#[test]
fn version_can_be_read_by_programs() {
    let output = Command::new(program())
        .args(["version", "-o", "json"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(&format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
}

#[test]
fn a_home_that_cannot_be_made_is_named() {
    let output = Command::new(program())
        .args([
            "sandbox",
            "up",
            "--machines",
            "1",
            "--home",
            "/proc/1/nowhere",
        ])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("/proc/1/nowhere"), "{stderr}");
}
