//! `list`, `kubeconfig`, `cleanup` and `plan` where there is no cluster: nothing is made, and the user is told what to do.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{fs, path::Path};

use assert_cmd::Command;
use tempfile::TempDir;

/// Runs a command in a home of its own, which must stay as it was. Returns its code and both outputs.
fn run(home: &Path, arguments: &str) -> (i32, String, String) {
    let before = names(home);
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")))
        .args(arguments.split(' '))
        .env("HATCHERY_HOME", home)
        .env("HOME", home)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    assert_eq!(names(home), before, "{arguments} left something");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_empty_home_has_no_clusters() {
    let home = TempDir::new().unwrap();
    let (code, stdout, stderr) = run(home.path(), "list");
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(stderr.contains("no clusters"), "{stderr}");
    assert_eq!(run(home.path(), "list -o json").1, "[]\n");
}

#[test]
fn a_cluster_that_is_not_known_is_refused() {
    let home = TempDir::new().unwrap();
    for arguments in [
        "kubeconfig --id lab",
        "kubeconfig --id lab --merge",
        "cleanup --id lab",
        "cleanup --id lab --yes",
    ] {
        let (code, stdout, stderr) = run(home.path(), arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments}");
        assert!(
            stderr.contains("cluster lab is unknown") && stderr.contains("--home"),
            "{stderr}"
        );
    }
}

#[test]
fn arguments_that_contradict_each_other_are_refused() {
    let home = TempDir::new().unwrap();
    for (arguments, words) in [
        ("cleanup --id ../etc", "it is "),
        ("kubeconfig --id lab --kubeconfig x", "--merge"),
        ("plan --parallel 0", "invalid value"),
    ] {
        let (code, _, stderr) = run(home.path(), arguments);
        assert_eq!(code, 2, "{arguments}: {stderr}");
        assert!(stderr.contains(words), "{arguments}: {stderr}");
    }
}

/// eggo took both.
#[test]
fn an_id_and_a_file_are_about_one_cluster() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("lab.yaml");
    let text = "cluster-id: lab\nmasters: [{name: m0, ip: 10.0.0.1}]\n\
        install: {package-source: {type: tar.gz, srcpath: {amd64: /nowhere.tar.gz}}}\n";
    fs::write(&file, text).unwrap();
    for (id, words) in [
        ("other", "describes cluster lab, not other"),
        ("lab", "cluster lab was not made from here"),
    ] {
        let arguments = format!("kubeconfig --id {id} -f {}", file.display());
        let (code, _, stderr) = run(home.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn a_file_without_a_cluster_gives_no_kubeconfig() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("lab.yaml");
    // The archive is gone; whoever only wants to enter or leave needs none.
    let text = "cluster-id: lab\nmasters: [{name: m0, ip: 10.0.0.1}]\n\
        install: {package-source: {type: tar.gz, srcpath: {amd64: /nowhere.tar.gz}}}\n";
    fs::write(&file, text).unwrap();
    let (code, _, stderr) = run(home.path(), &format!("kubeconfig -f {}", file.display()));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("cluster lab was not made from here"),
        "{stderr}"
    );
    let (code, _, stderr) = run(home.path(), &format!("plan -f {}", file.display()));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("/nowhere.tar.gz"), "{stderr}");
}
