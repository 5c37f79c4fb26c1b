//! Packages that others install at the same time, or after a run of ours was cut off, are theirs.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use super::{
    file,
    packages::{apply, installed, owners, packages},
    place::{Place, SHELLS, assert_same, in_memory},
    task,
};
use crate::{
    content::Content,
    operation::{Operation, PackageFile, PackageSource, Packages},
    report::Line,
    task::Task,
};

/// What another run does, with some packages, a directory and a user that come with them.
fn others_install(place: &Place, when: &str, lines: &[&str]) {
    let mut script =
        "cd \"$FAKE_ROOT\"\nmkdir -p var/lib/theirs\necho theirs:x:101: >>etc/group\n".to_owned();
    for line in lines {
        script += &format!("echo '{line}' >>fake/packages\n");
    }
    fs::write(place.root().join("fake").join(when), script).unwrap();
}

fn undo_leaves(place: &Place, packages: &[&str]) {
    let undone = place.undo(&[]);
    assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
    let mut left: Vec<_> = "bash 5\ntar 1.34"
        .lines()
        .chain(packages.iter().copied())
        .collect();
    left.sort_unstable();
    let now = installed(place);
    let mut now: Vec<_> = now.lines().collect();
    now.sort_unstable();
    assert_eq!(now, left);
}

fn theirs_is_there(place: &Place) {
    assert!(place.root().join("var/lib/theirs").is_dir());
    let groups = fs::read_to_string(place.root().join("etc/group")).unwrap();
    assert!(groups.contains("theirs:x:101:"), "{groups}");
}

#[test]
fn what_others_install_while_we_wait_for_the_lock_is_theirs() {
    for shell in SHELLS {
        let place = Place::new(shell);
        others_install(&place, "other", &["vim 9", "libsocat 1"]);
        apply(&place, &task("role", vec![packages(&["socat"])]));
        assert_eq!(owners(&place, "socat"), ["role"], "{shell:?}");
        assert!(owners(&place, "vim").is_empty() && owners(&place, "libsocat").is_empty());
        undo_leaves(&place, &["vim 9", "libsocat 1"]);
        theirs_is_there(&place);
    }
}

#[test]
fn a_package_of_the_task_that_others_install_first_is_theirs() {
    for shell in SHELLS {
        let place = Place::new(shell);
        others_install(&place, "other", &["socat 1", "libsocat 1"]);
        let wanted = task("role", vec![packages(&["socat", "g++"])]);
        apply(&place, &wanted);
        let again = place.apply(&wanted);
        let unchanged = |line: &Line| matches!(line, Line::Unchanged(_));
        assert!(again.steps.values().all(unchanged), "{shell:?}: {again:?}");
        undo_leaves(&place, &["socat 1", "libsocat 1"]);
        // Also when our own installation fails.
        let place = Place::new(shell);
        others_install(&place, "other", &["socat 1"]);
        let answer = place.apply(&task("role", vec![packages(&["socat", "broken"])]));
        assert_eq!(answer.end.as_deref(), Some("failed"), "{shell:?}");
        undo_leaves(&place, &["socat 1"]);
    }
}

/// They get the lock between our look and our turn, after others had it already.
#[test]
fn only_what_our_packages_name_is_cleared_away_where_others_were_at_work() {
    for shell in SHELLS {
        let place = Place::new(shell);
        fs::write(place.root().join("fake/other"), "").unwrap();
        others_install(&place, "meanwhile", &["vim 9"]);
        apply(&place, &task("role", vec![packages(&["etcd-server"])]));
        assert!(place.root().join("var/www/html").exists());
        undo_leaves(&place, &["vim 9"]);
        theirs_is_there(&place);
        assert!(!place.root().join("var/www").exists(), "{shell:?}");
        let mode = fs::metadata(place.root().join("var/lib/data")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o755, "{shell:?}");
    }
}

/// Nobody waits for a lock, and what others make is none of packages.
#[test]
fn what_others_make_while_packages_come_is_theirs() {
    for shell in SHELLS {
        for place in [Place::new(shell), Place::with_rpm(shell)] {
            let at = |path: &str| place.root().join(path);
            let users = "root:x:0:0:root:/root:/bin/sh\n";
            fs::write(at("etc/passwd"), users).unwrap();
            let script = "cd \"$FAKE_ROOT\"\nmkdir -p var/lib/myapp var/log/myapp\necho data >var/lib/myapp/db.sqlite\n\
                echo myapp:x:991:991::/:/bin/false >>etc/passwd\necho myapp:x:991: >>etc/group\n";
            fs::write(at("fake/meanwhile"), script).unwrap();
            apply(&place, &task("role", vec![packages(&["etcd-server"])]));
            let now = fs::read_to_string(at("etc/passwd")).unwrap();
            assert!(now.contains("ours-etcd-server:"), "{shell:?}: {now}");
            assert!(at("var/www/html/index page.html").exists());
            undo_leaves(&place, &[]);
            let database = fs::read_to_string(at("var/lib/myapp/db.sqlite"));
            assert_eq!(database.unwrap(), "data\n", "{shell:?}");
            assert!(at("var/log/myapp").is_dir(), "{shell:?}");
            let left = fs::read_to_string(at("etc/passwd")).unwrap();
            let theirs = format!("{users}myapp:x:991:991::/:/bin/false\n");
            assert_eq!(left, theirs, "{shell:?}");
            assert_eq!(
                fs::read_to_string(at("etc/group")).unwrap(),
                "myapp:x:991:\n"
            );
            assert!(!at("var/www").exists(), "{shell:?}");
        }
    }
}

/// A program that takes the place of one that stands in, which it is then to become.
pub(super) fn in_place_of(name: &str, first: &str, last: &str) -> tempfile::TempDir {
    let tools = in_memory();
    let fake = tools.path().join(name);
    let real = concat!(env!("CARGO_MANIFEST_DIR"), "/src/script/fakes");
    let text = format!("#!/bin/sh\n{first}\n{real}/{name} \"$@\"\n{last}\n");
    fs::write(&fake, text).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    tools
}

/// A run that dies with its package manager at work, which gets to its end.
fn dies_with(manager: &str, place: &Place, task: &Task, brought: &str) {
    let kill = "case \" $* \" in *' -s '*) ;; *) kill -9 \"$PPID\" ;; esac";
    let tools = in_place_of(manager, kill, "");
    let answer = place.apply_with(task, tools.path());
    assert_eq!(answer.end, None, "{answer:?}");
    let end = Instant::now() + Duration::from_secs(20);
    while !installed(place).contains(brought) {
        assert!(Instant::now() < end, "it did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn dies(place: &Place, task: &Task) {
    dies_with("apt-get", place, task, "libsocat");
}

fn add(place: &Place, line: &str) {
    fs::write(
        place.root().join("fake/packages"),
        format!("{}{line}\n", installed(place)),
    )
    .unwrap();
}

#[test]
fn what_others_install_after_a_run_died_is_theirs() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let wanted = task("role", vec![packages(&["socat"])]);
        dies(&place, &wanted);
        let transaction = place.root().join("var/lib/hatchery/transaction");
        assert!(transaction.exists(), "{shell:?}");
        add(&place, "vim 9");
        undo_leaves(&place, &["vim 9"]);

        // With the plan that is in the transaction nothing of ours is forgotten.
        fs::write(place.root().join("fake/packages"), "bash 5\ntar 1.34\n").unwrap();
        dies(&place, &wanted);
        apply(&place, &wanted);
        assert_eq!(owners(&place, "libsocat"), ["role"], "{shell:?}");
        undo_leaves(&place, &[]);
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// The next run notes what came, and comes to nothing before its own first change.
#[test]
fn what_a_run_that_died_brought_outlives_a_failure_of_the_next() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        dies(&place, &task("role", vec![packages(&["socat"])]));
        let directory = file("/etc/elsewhere", "is a directory", 0o644);
        let wanted = task("role", vec![file("/etc/some.conf", "x", 0o644), directory]);
        let failed = failure(&place, &wanted);
        assert!(failed.ends_with("neither a file nor a link"), "{failed}");
        assert_eq!(owners(&place, "libsocat"), ["role"], "{shell:?}");
        assert!(owners(&place, "/etc/some.conf").is_empty(), "{shell:?}");
        undo_leaves(&place, &[]);
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// It tells only what was there before.
#[test]
fn a_transaction_of_an_older_release_claims_all_that_is_new() {
    for shell in SHELLS {
        let place = Place::new(shell);
        dies(&place, &task("role", vec![packages(&["socat"])]));
        let transaction = place.root().join("var/lib/hatchery/transaction");
        let text = fs::read_to_string(&transaction).unwrap();
        let older = text.lines().filter(|line| !line.starts_with('+'));
        let older: String = older.map(|line| format!("{line}\n")).collect();
        assert_eq!(older, ": role\nbash\ntar\n", "{shell:?}");
        fs::write(&transaction, older).unwrap();
        add(&place, "vim 9");
        undo_leaves(&place, &[]);
    }
}

/// The run that removed the packages died before it had cleared away what was unpacked of others.
#[test]
fn what_was_unpacked_goes_when_no_package_is_left() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let owned = task("role", vec![file("/etc/ours.conf", "ours\n", 0o644)]);
        assert_eq!(place.apply(&owned).end.as_deref(), Some("ok"));
        fs::write(place.root().join("usr/unpacked"), "unpacked").unwrap();
        let leftovers = place.root().join("var/lib/hatchery/leftovers");
        fs::write(leftovers, "/usr/unpacked\n").unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

fn from_file(name: &str) -> Operation {
    let content = Content::bytes(b"crictl 1-1\n".to_vec());
    let file = PackageFile::new(name, content).unwrap();
    Operation::Packages(Packages {
        source: PackageSource::Files(vec![file]),
    })
}

#[test]
fn of_files_only_the_packages_in_them_are_ours() {
    for shell in SHELLS {
        let place = Place::new(shell);
        others_install(&place, "other", &["vim 9"]);
        apply(
            &place,
            &task("role", vec![from_file("crictl_1-1_amd64.deb")]),
        );
        assert_eq!(owners(&place, "crictl"), ["role"], "{shell:?}");
        undo_leaves(&place, &["vim 9"]);
        theirs_is_there(&place);

        let place = Place::with_rpm(shell);
        apply(
            &place,
            &task("role", vec![from_file("crictl-1-1.x86_64.rpm")]),
        );
        assert_eq!(owners(&place, "crictl"), ["role"], "{shell:?}");
        undo_leaves(&place, &[]);
    }
}

/// While dnf downloads, nobody has a lock.
#[test]
fn of_a_repository_of_rpms_only_our_own_transaction_is_ours() {
    for shell in SHELLS {
        for when in ["meanwhile", "other"] {
            let place = Place::with_rpm(shell);
            others_install(&place, when, &["vim 9 99", "libvim 9 99"]);
            apply(&place, &task("role", vec![packages(&["socat", "g++"])]));
            for (name, ours) in [("socat", true), ("libg++", true), ("vim", false)] {
                assert_eq!(!owners(&place, name).is_empty(), ours, "{shell:?} {name}");
            }
            undo_leaves(&place, &["vim 9 99", "libvim 9 99"]);
        }
    }
}

/// Nothing came of what was asked for, only what that needs.
#[test]
fn what_came_for_an_rpm_that_did_not_is_ours() {
    for shell in SHELLS {
        let wanted = task("role", vec![packages(&["broken"])]);
        for when in ["meanwhile", "other"] {
            let place = Place::with_rpm(shell);
            others_install(&place, when, &["vim 9 99", "gpg-pubkey 1 (none)"]);
            let failed = failure(&place, &wanted);
            assert!(
                failed.starts_with("Error: Transaction failed\n"),
                "{failed}"
            );
            assert_eq!(owners(&place, "libbroken"), ["role"], "{shell:?}");
            undo_leaves(&place, &["vim 9 99", "gpg-pubkey 1 (none)"]);
        }
        // A run that was cut off, after which others came.
        let place = Place::with_rpm(shell);
        dies_with("dnf", &place, &wanted, "libbroken");
        add(&place, "vim 9 101");
        undo_leaves(&place, &["vim 9 101"]);
    }
}

/// Others were at work while dnf downloaded, or after a power cut had ended it.
#[test]
fn where_no_rpm_came_for_us_those_of_others_are_theirs() {
    for shell in SHELLS {
        let wanted = task("role", vec![packages(&["unknown"])]);
        let place = Place::with_rpm(shell);
        others_install(&place, "meanwhile", &["vim 9 99"]);
        failure(&place, &wanted);
        undo_leaves(&place, &["vim 9 99"]);

        let place = Place::with_rpm(shell);
        others_install(&place, "meanwhile", &["vim 9 9000000001"]);
        fs::write(place.root().join("proc/stat"), "cpu 0\nbtime 9000000000\n").unwrap();
        dies_with("dnf", &place, &wanted, "vim");
        undo_leaves(&place, &["vim 9 9000000001"]);

        let place = Place::with_rpm(shell);
        fs::write(place.root().join("proc/stat"), "cpu 0\nbtime 9000000000\n").unwrap();
        dies_with(
            "dnf",
            &place,
            &task("role", vec![packages(&["broken"])]),
            "libbroken",
        );
        add(&place, "vim 9 9000000001");
        undo_leaves(&place, &["vim 9 9000000001"]);
    }
}

/// It sounds as if the package manager had been locked out, when it has already installed something.
#[test]
fn a_lock_that_a_script_of_a_package_meets_is_a_failure() {
    for shell in SHELLS {
        for place in [Place::new(shell), Place::with_rpm(shell)] {
            fs::write(place.root().join("fake/asking"), "").unwrap();
            let wanted = task("role", vec![packages(&["g++", "zip"])]);
            let failed = failure(&place, &wanted);
            assert!(
                failed.contains("Resource temporarily unavailable"),
                "{failed}"
            );
            for (name, ours) in [("g++", true), ("libg++", true), ("zip", false)] {
                assert_eq!(!owners(&place, name).is_empty(), ours, "{shell:?} {name}");
            }
            apply(&place, &wanted);
            undo_leaves(&place, &[]);
        }
    }
}

fn failure(place: &Place, task: &Task) -> String {
    let answer = place.apply(task);
    let failed = answer.steps.values().find_map(|line| match line {
        Line::Failed(_, text) => Some(text.clone()),
        _ => None,
    });
    failed.unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn a_dnf_that_is_busy_for_ever_is_waited_for_until_the_deadline() {
    std::thread::scope(|scope| {
        for shell in SHELLS {
            scope.spawn(move || {
                let place = Place::with_rpm(shell);
                fs::write(place.root().join("fake/locked"), "").unwrap();
                let mut wanted = task("role", vec![packages(&["socat"])]);
                wanted.step_deadline = Duration::from_secs(2);
                let start = Instant::now();
                let failed = failure(&place, &wanted);
                assert!(start.elapsed() < Duration::from_secs(9), "{shell:?}");
                let words = "RPMDB already locked by 1\nthe package manager was busy for 2 s";
                assert!(failed.starts_with(words), "{shell:?}: {failed}");
            });
        }
    });
}
