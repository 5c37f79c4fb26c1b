//! The prelude with real shells on a directory that stands for a machine's root.

mod conffiles;
mod equivalence;
mod firewall;
mod hosts;
mod images;
mod kill;
mod looks;
mod managed;
mod one_off;
mod packages;
mod place;
mod port_ranges;
mod release;
mod transactions;
mod users;

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, time::Duration};

use self::place::{Place, SHELLS, assert_same};
use crate::{
    content::{Content, Hash},
    machine::Managed,
    operation::{
        Access, Directory, File, HostsEntry, Link, Operation, PackageName, PackageSource, Packages,
        Script, Sysctl, Unit, UnitName,
    },
    path::{MachinePath, Word},
    report::Line,
    script::{RecordKey, Release},
    task::Task,
};

fn path(text: &str) -> MachinePath {
    MachinePath::new(text).unwrap()
}

fn word(text: &str) -> Word {
    Word::new(text).unwrap()
}

fn file(at: &str, content: &str, mode: u16) -> Operation {
    Operation::File(File {
        path: path(at),
        content: Content::bytes(content.as_bytes()),
        access: Access::root(mode).unwrap(),
    })
}

/// As it is on the machine, by its hash alone.
fn known(at: &str, content: &str, mode: u16) -> Operation {
    Operation::File(File {
        path: path(at),
        content: Content::known(Hash::digest(content.as_bytes()), content.len() as u64),
        access: Access::root(mode).unwrap(),
    })
}

fn directory(at: &str, mode: u16, contents_are_ours: bool) -> Operation {
    Operation::Directory(Directory {
        path: path(at),
        access: Access::root(mode).unwrap(),
        contents_are_ours,
    })
}

fn link(at: &str, target: &str) -> Operation {
    Operation::Link(Link {
        path: path(at),
        target: target.into(),
    })
}

fn unit(name: &str, restart_on: &[&str]) -> Operation {
    Operation::Unit(Unit {
        name: UnitName::new(name).unwrap(),
        enabled: Some(true),
        running: Some(true),
        restart_on: restart_on.iter().map(|at| path(at)).collect(),
    })
}

fn task(owner: &str, operations: Vec<Operation>) -> Task {
    Task::new(word(owner), operations).unwrap()
}

/// What an owner has beside what is wanted.
fn beside(managed: &Managed, owner: &str, wanted: &BTreeSet<RecordKey>) -> Vec<Release> {
    let resources = managed.resources.iter();
    resources
        .filter(|one| one.owners.iter().any(|name| name == owner) && !wanted.contains(&one.key))
        .map(|one| Release {
            owner: word(owner),
            key: one.key.clone(),
        })
        .collect()
}

/// One of each kind that a directory can stand in for, on things that are there and things that are not.
fn mixture(flavour: &str) -> Vec<Operation> {
    vec![
        file("/etc/new/deep/file.conf", flavour, 0o600),
        file("/etc/there.conf", flavour, 0o644),
        file("/etc/mode.conf", "only its mode changes\n", 0o600),
        file("/etc/was-a-link", flavour, 0o644),
        directory("/var/lib/data", 0o700, true),
        directory("/opt/empty", 0o750, false),
        link("/etc/link", &format!("target-{flavour}")),
        link("/etc/to-directory", "elsewhere"),
        Operation::Absent(path("/etc/unwanted")),
        file(
            "/etc/systemd/system/ours.service",
            &format!("# {flavour}\n"),
            0o644,
        ),
        unit("ours.service", &["/etc/systemd/system/ours.service"]),
        file(
            "/etc/systemd/system/theirs.service",
            &format!("# {flavour}\n"),
            0o644,
        ),
        unit("theirs.service", &["/etc/systemd/system/theirs.service"]),
        Operation::Sysctl(Sysctl::new("net.ipv4.ip_forward", "1").unwrap()),
        Operation::Sysctl(Sysctl::new("net.ipv4.ip_local_port_range", "1024  65535").unwrap()),
        Operation::Module(word("br_netfilter")),
        Operation::HostsEntry(HostsEntry {
            address: "10.0.0.1".parse().unwrap(),
            names: vec![word("m1"), word("m1.example.com")],
        }),
        Operation::HostsEntry(HostsEntry {
            address: "fd00::2".parse().unwrap(),
            names: vec![word("m2")],
        }),
        Operation::Hostname(word("m1")),
        Operation::Packages(Packages {
            source: PackageSource::Repository(vec![
                PackageName::new("socat").unwrap(),
                PackageName::new("tar").unwrap(),
                PackageName::new("nginx").unwrap(),
                PackageName::new("g++").unwrap(),
            ]),
        }),
        Operation::Script(Script {
            name: word("counter"),
            check: "[ -e \"$FAKE_ROOT/fake/counter\" ]".into(),
            apply: "echo 'it'\\''s' >\"$FAKE_ROOT/fake/counter\"".into(),
            undo: "rm -f \"$FAKE_ROOT/fake/counter\"".into(),
            deadline: Duration::from_secs(10),
        }),
    ]
}

#[test]
fn every_shell_applies_once_and_puts_back_exactly() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let task = task("role", mixture("first"));

        let seen = place.look(&task);
        assert!(
            seen.steps
                .values()
                .any(|line| matches!(line, Line::Would(..)))
        );
        assert_same(&place.snapshot(), &before, "looking changes nothing");

        let first = place.apply(&task);
        assert_eq!(first.end.as_deref(), Some("ok"), "{shell:?}: {first:?}");
        assert!(
            first
                .steps
                .values()
                .filter(|l| matches!(l, Line::Changed(_)))
                .count()
                >= 20
        );
        let made = place.snapshot_without_record();

        let again = place.apply_without_contents(&task);
        assert_eq!(again.end.as_deref(), Some("ok"), "{shell:?}: {again:?}");
        let moved: Vec<_> = again
            .steps
            .values()
            .filter(|line| !matches!(line, Line::Unchanged(_)))
            .collect();
        assert!(moved.is_empty(), "{shell:?}: {moved:?}");
        assert_same(&place.snapshot_without_record(), &made, "nothing to do");

        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

#[test]
fn the_first_original_wins_over_several_changes() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        for flavour in ["first", "second", "third"] {
            let answer = place.apply(&task("role", mixture(flavour)));
            assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?}: {answer:?}");
        }
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

#[test]
fn nobody_waits_for_a_slow_disk() {
    let places = SHELLS.map(Place::new);
    for place in &places {
        fs::write(place.root().join("fake/slow-disk"), "").unwrap();
        let answer = place.apply(&task("role", vec![file("/etc/some.conf", "some", 0o644)]));
        assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
        assert!(!place.root().join("fake/synced").exists());
    }
    let end = std::time::Instant::now() + Duration::from_secs(60);
    for place in &places {
        while !place.root().join("fake/synced").exists() {
            assert!(std::time::Instant::now() < end, "nothing was written out");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn what_another_owner_needs_stays() {
    let place = Place::new(SHELLS[0]);
    let before = place.snapshot();
    let shared = file("/etc/shared.conf", "shared", 0o644);
    let first = task(
        "etcd",
        vec![shared.clone(), file("/etc/etcd.conf", "e", 0o644)],
    );
    let second = task("worker", vec![shared, unit("theirs.service", &[])]);
    place.apply(&first);
    let half = place.snapshot_without_record();
    place.apply(&second);

    place.undo(&[word("worker")]);
    assert_same(
        &place.snapshot_without_record(),
        &half,
        "the other owner's things are there",
    );
    place.undo(&[word("etcd")]);
    assert_same(&place.snapshot(), &before, "nobody needs anything");
}

#[test]
fn contents_that_are_missing_are_asked_for_and_nothing_is_done() {
    let place = Place::new(SHELLS[0]);
    let task = task("role", mixture("first"));
    let before = place.snapshot_without_record();
    let answer = place.apply_without_contents(&task);
    assert_eq!(answer.end.as_deref(), Some("wanting"), "{answer:?}");
    assert_eq!(
        answer
            .steps
            .values()
            .filter(|l| matches!(l, Line::Wanting(_)))
            .count(),
        5
    );
    assert_same(
        &place.snapshot_without_record(),
        &before,
        "nothing was done",
    );
}

#[test]
fn somebody_elses_edit_is_noticed_and_corrected() {
    let place = Place::new(SHELLS[0]);
    let task = task("role", mixture("first"));
    place.apply(&task);
    // The same length, so that only the bytes tell.
    let edited = place.root().join("etc/there.conf");
    fs::write(&edited, "FIRST").unwrap();
    let answer = place.look(&task);
    let would: Vec<_> = answer
        .steps
        .values()
        .filter(|l| matches!(l, Line::Would(..)))
        .collect();
    assert_eq!(would.len(), 1, "{would:?}");
    assert!(matches!(would[0], Line::Would(_, reason) if reason == "content"));
    place.apply(&task);
    assert_eq!(fs::read_to_string(&edited).unwrap(), "first");
    fs::set_permissions(&edited, fs::Permissions::from_mode(0o666)).unwrap();
    place.apply_without_contents(&task);
    assert_eq!(
        fs::metadata(&edited).unwrap().permissions().mode() & 0o7777,
        0o644
    );
}

#[test]
fn tasks_that_are_looked_at_together_know_nothing_of_each_other() {
    let absent = || {
        let path = MachinePath::new("/etc/there.conf").unwrap();
        vec![Operation::Absent(path)]
    };
    for shell in SHELLS {
        let place = Place::new(shell);
        place.apply(&task("role", mixture("first")));
        let before = place.snapshot();
        let tasks = [
            task("role", mixture("first")),
            task("other", absent()),
            task("role", mixture("second")),
            task("role", mixture("first")),
        ];
        let together = place.look_at_all(&tasks);
        assert_eq!(together.len(), tasks.len(), "{shell:?}: {together:?}");
        for (task, together) in tasks.iter().zip(&together) {
            let alone = place.look(task);
            assert_eq!((&together.steps, &together.end), (&alone.steps, &alone.end));
        }
        let changes = together.iter().map(|answer| {
            let lines = answer.steps.values();
            lines.filter(|one| matches!(one, Line::Would(..))).count()
        });
        let changes: Vec<_> = changes.collect();
        assert!(
            changes[0] == 0 && changes[1] == 1 && changes[2] > 1 && changes[3] == 0,
            "{changes:?}"
        );
        assert_same(&place.snapshot(), &before, "looking changes nothing");
    }
}

#[test]
fn another_cluster_is_refused() {
    let place = Place::new(SHELLS[0]);
    place.apply(&task("role", mixture("first")));
    let made = place.snapshot_without_record();
    let answer = place
        .as_cluster("other")
        .apply(&task("role", mixture("second")));
    assert_eq!(
        answer.others.last(),
        Some(&Line::Held("c1".into(), "one".into()))
    );
    assert_eq!(
        place.as_cluster("other").undo(&[]).others.last(),
        Some(&Line::Held("c1".into(), "one".into()))
    );
    assert_same(
        &place.snapshot_without_record(),
        &made,
        "nothing was touched",
    );
}

#[test]
fn a_step_that_fails_says_why_and_what_came_before_stays_recorded() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let broken = Operation::Script(Script {
            name: word("broken"),
            check: "false".into(),
            apply: "echo some last words; echo and more >&2; exit 3".into(),
            undo: String::new(),
            deadline: Duration::from_secs(5),
        });
        let operations = vec![
            file("/etc/there.conf", "x", 0o644),
            broken,
            file("/etc/after", "x", 0o644),
        ];
        let answer = place.apply(&task("role", operations));
        assert_eq!(answer.end.as_deref(), Some("failed"));
        let failed = answer.steps.values().find_map(|line| match line {
            Line::Failed(_, text) => Some(text.clone()),
            _ => None,
        });
        assert_eq!(
            failed.as_deref(),
            Some("some last words\nand more"),
            "{shell:?}"
        );
        assert_eq!(
            fs::read_to_string(place.root().join("etc/there.conf")).unwrap(),
            "x"
        );
        assert!(!place.root().join("etc/after").exists());
        place.undo(&[]);
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

#[test]
fn others_files_in_our_directory_stay() {
    let place = Place::new(SHELLS[0]);
    place.apply(&task("role", mixture("first")));
    fs::write(place.root().join("etc/new/deep/theirs"), "x").unwrap();
    fs::write(place.root().join("var/lib/data/grown"), "x").unwrap();
    let answer = place.undo(&[]);
    assert_eq!(answer.end.as_deref(), Some("ok"));
    assert!(
        answer
            .others
            .contains(&Line::Kept("directory /etc/new/deep".into()))
    );
    assert!(place.root().join("etc/new/deep/theirs").exists());
    assert!(!place.root().join("var/lib/data/grown").exists());
    assert!(place.root().join("var/lib/data/theirs").exists());
    assert!(!place.root().join("var/lib/hatchery").exists());
}

#[test]
fn owners_without_a_name_and_odd_names_come_back() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let data = place.root().join("var/lib/data");
        for name in ["-v", "-foo", "ünï", "a b", ".hidden"] {
            fs::write(data.join(name), name).unwrap();
        }
        for owned in ["etc/there.conf", "var/lib/data", "var/lib/data/-v"] {
            std::os::unix::fs::chown(place.root().join(owned), Some(54321), Some(54322)).unwrap();
        }
        let before = place.snapshot();
        let answer = place.apply(&task("role", mixture("first")));
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?}: {answer:?}");
        fs::write(data.join("-grown"), "").unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// A script that fails, as a step.
fn failure() -> Operation {
    Operation::Script(Script {
        name: word("failure"),
        check: "false".into(),
        apply: "exit 1".into(),
        undo: String::new(),
        deadline: Duration::from_secs(5),
    })
}

#[test]
fn what_was_only_going_to_be_done_is_not_ours() {
    let place = Place::new(SHELLS[0]);
    let operations = vec![
        failure(),
        file("/etc/later", "ours", 0o644),
        file("/etc/there.conf", "ours", 0o644),
    ];
    let answer = place.apply(&task("role", operations));
    assert_eq!(answer.end.as_deref(), Some("failed"));
    // Somebody else makes one of them, and edits the other as an editor does.
    let (later, there) = (
        place.root().join("etc/later"),
        place.root().join("etc/there.conf"),
    );
    fs::write(&later, "theirs").unwrap();
    fs::write(place.root().join("etc/new"), "edited").unwrap();
    fs::rename(place.root().join("etc/new"), &there).unwrap();
    assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
    assert_eq!(fs::read_to_string(later).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(there).unwrap(), "edited");
}

#[test]
fn a_package_that_somebody_installs_after_a_failure_is_theirs() {
    let place = Place::new(SHELLS[0]);
    let packages = Operation::Packages(Packages {
        source: PackageSource::Repository(vec![PackageName::new("broken").unwrap()]),
    });
    let answer = place.apply(&task("role", vec![packages]));
    assert_eq!(answer.end.as_deref(), Some("failed"), "{answer:?}");
    let list = place.root().join("fake/packages");
    let now = fs::read_to_string(&list).unwrap();
    assert!(now.contains("libbroken"), "its dependency came: {now}");
    fs::write(&list, format!("{now}vim 9\n")).unwrap();
    assert_eq!(place.undo(&[word("role")]).end.as_deref(), Some("ok"));
    assert_eq!(
        fs::read_to_string(&list).unwrap(),
        "bash 5\ntar 1.34\nvim 9\n"
    );
}

#[test]
fn a_directory_made_for_a_file_can_become_ours() {
    let place = Place::new(SHELLS[0]);
    let before = place.snapshot();
    place.apply(&task("role", vec![file("/opt/made/file", "x", 0o644)]));
    place.apply(&task("role", vec![directory("/opt/made", 0o755, true)]));
    fs::write(place.root().join("opt/made/grown"), "").unwrap();
    assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
    assert_same(&place.snapshot(), &before, "emptied and removed");
}
