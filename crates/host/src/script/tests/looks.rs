//! What a look says of work that is not in a task's own list.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    Line, file,
    place::{Place, SHELLS, in_memory},
    task, word,
};
use crate::{
    operation::{Operation, Script},
    task::Task,
};

const CONFIGURATION: &str = "/etc/new/deep/file.conf";

fn wanted() -> Task {
    task("role", vec![file(CONFIGURATION, "ours\n", 0o644)])
}

fn is_settled(place: &Place) -> bool {
    let answer = place.look(&wanted());
    assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
    !answer.others.contains(&Line::Unsettled)
}

fn apply(place: &Place) {
    assert_eq!(place.apply(&wanted()).end.as_deref(), Some("ok"));
}

#[test]
fn a_machine_is_settled_before_its_first_task_and_after_each() {
    for shell in SHELLS {
        let place = Place::new(shell);
        assert!(is_settled(&place), "{shell:?}");
        for _ in 0..2 {
            apply(&place);
            assert!(is_settled(&place), "{shell:?}");
        }
    }
}

#[test]
fn a_run_that_is_at_work_unsettles() {
    for shell in SHELLS {
        let place = Place::new(shell);
        apply(&place);
        let lock = place.root().join("var/lib/hatchery/lock");
        let mut other = Command::new("flock")
            .arg(&lock)
            .args(["sh", "-c", "echo; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut begun = [0];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut begun).unwrap();
        assert!(!is_settled(&place), "{shell:?}");
        drop(other.stdin.take());
        other.wait().unwrap();
        assert!(is_settled(&place), "{shell:?}");
    }
}

/// A program that outlives its run has no lock any more.
#[test]
fn a_program_of_a_run_that_died_unsettles() {
    for shell in SHELLS {
        let place = Place::new(shell);
        apply(&place);
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
        let began = stat.split(' ').nth(21).unwrap();
        let child = place.root().join("var/lib/hatchery/child");
        fs::write(child, format!("{} {began}\n", program.id())).unwrap();
        assert!(!is_settled(&place), "{shell:?}");
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(is_settled(&place), "{shell:?}");
    }
}

#[test]
fn what_a_run_that_died_left_unsettles_until_the_next() {
    for shell in SHELLS {
        for (left, text) in [
            ("var/lib/hatchery/reopen", "runtime public 1/tcp\n"),
            ("var/lib/hatchery/transaction", ": role\n+\n"),
            ("var/lib/hatchery/record/policy", "file 9 absent\n"),
            ("var/lib/hatchery/in/a1b2c3/script", "ours\n"),
            ("var/lib/hatchery-scripts.a1b2c3/s/script", "ours\n"),
        ] {
            let place = Place::new(shell);
            apply(&place);
            let left = place.root().join(left);
            fs::create_dir_all(left.parent().unwrap()).unwrap();
            fs::write(&left, text).unwrap();
            assert!(!is_settled(&place), "{shell:?} {left:?}");
        }
    }
}

/// What is known of a file is written down by tasks only: until then each look reads all of it.
#[test]
fn a_file_that_has_to_be_read_unsettles_until_the_next_run() {
    for shell in SHELLS {
        let place = Place::new(shell);
        apply(&place);
        let at = place.root().join(CONFIGURATION.trim_start_matches('/'));
        for mode in [0o600, 0o644] {
            fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
        }
        let answer = place.look(&wanted());
        let all_unchanged = answer
            .steps
            .values()
            .all(|line| matches!(line, Line::Unchanged(_)));
        assert!(all_unchanged, "{shell:?} {answer:?}");
        assert!(!is_settled(&place), "{shell:?}");
        apply(&place);
        assert!(is_settled(&place), "{shell:?}");
    }
}

/// Nobody would ever write it down: it is not ours.
#[test]
fn a_file_that_was_as_wanted_does_not_unsettle() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let theirs = || task("role", vec![file("/etc/there.conf", "as it was\n", 0o640)]);
        assert_eq!(place.apply(&theirs()).end.as_deref(), Some("ok"));
        let answer = place.look(&theirs());
        assert!(
            !answer.others.contains(&Line::Unsettled),
            "{shell:?} {answer:?}"
        );
    }
}

/// A run that dies while everything is looked at may have changed what was seen already.
#[test]
fn a_run_that_ends_during_a_look_unsettles() {
    for shell in SHELLS {
        let place = Place::new(shell);
        apply(&place);
        let lock = place.root().join("var/lib/hatchery/lock");
        let held = fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        // The look itself runs this check, after the lock was tested and before the rest is.
        let pipe = place.root().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let text = format!("read line <{}", pipe.display());
        let check = Operation::Script(Script {
            name: word("check"),
            check: text,
            apply: ":".into(),
            undo: String::new(),
            deadline: Duration::from_secs(10),
        });
        let wanted = task("role", vec![check]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Opens when the check does.
                let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
                held.unlock().unwrap();
                std::io::Write::write_all(&mut writer, b"go on\n").unwrap();
            });
            let answer = place.look(&wanted);
            assert!(
                answer.others.contains(&Line::Unsettled),
                "{shell:?} {answer:?}"
            );
        });
    }
}

/// busybox's flock takes the lock or does not; it cannot wait for a while.
#[test]
fn a_lock_is_waited_for_where_flock_knows_no_limit() {
    for shell in SHELLS {
        let place = Place::new(shell);
        apply(&place);
        let tools = in_memory();
        let fake = tools.path().join("flock");
        let text = "#!/bin/sh\ncase \" $* \" in *' -w '*) echo 'flock: invalid option' >&2; exit 1 ;; esac\n\
            exec /usr/bin/flock \"$@\"\n";
        fs::write(&fake, text).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        let free = place.apply_with(&wanted(), tools.path());
        assert_eq!(free.end.as_deref(), Some("ok"), "{shell:?} {free:?}");
        let waits = |line: &Line| matches!(line, Line::Waiting(_));
        assert!(!free.others.iter().any(waits), "{shell:?} {free:?}");

        let lock = fs::File::open(place.root().join("var/lib/hatchery/lock")).unwrap();
        lock.lock().unwrap();
        let held = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(2500));
                lock.unlock().unwrap();
            });
            place.apply_with(&wanted(), tools.path())
        });
        assert_eq!(held.end.as_deref(), Some("ok"), "{shell:?} {held:?}");
        assert!(held.others.iter().any(waits), "{shell:?} {held:?}");
    }
}
