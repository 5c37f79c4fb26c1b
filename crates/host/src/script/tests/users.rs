//! Users of the system's own: made with a group, and the lists of users as they were afterwards.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, UNIX_EPOCH},
};

use super::{
    failure, file, path,
    place::{Place, SHELLS, Snapshot, assert_same},
    task, word,
};
use crate::{
    operation::{Operation, User},
    task::Task,
};

fn wanted(owner: &str) -> Task {
    let user = Operation::User(User {
        name: word("etcd"),
        home: path("/var/lib/etcd"),
    });
    task(owner, vec![user])
}

/// With these groups, the backups that tools leave, and a shadow file that is root's alone.
fn with_lists(shell: &'static [&'static str], groups: &str) -> Place {
    let place = Place::new(shell);
    for (name, text, mode) in [
        ("passwd", "root:x:0:0:root:/root:/bin/sh\n", 0o644),
        ("passwd-", "root:x:0:0::/root:/bin/sh\n", 0o644),
        ("shadow", "root:*:1::::::\n", 0o600),
        ("group", groups, 0o644),
        ("gshadow", "root:*::\n", 0o600),
    ] {
        let at = place.root().join("etc").join(name);
        fs::write(&at, text).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
        // BusyBox copies whole seconds only.
        let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = fs::File::options().append(true).open(&at).unwrap();
        file.set_modified(time).unwrap();
    }
    place
}

fn list(place: &Place, name: &str) -> String {
    fs::read_to_string(place.root().join("etc").join(name)).unwrap()
}

fn apply(place: &Place, owner: &str) -> usize {
    let answer = place.apply(&wanted(owner));
    assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
    let changed = |line: &&crate::report::Line| matches!(line, crate::report::Line::Changed(_));
    answer.steps.values().filter(changed).count()
}

fn undone(place: &Place, before: &Snapshot) {
    let answer = place.undo(&[]);
    assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
    assert_same(&place.snapshot(), before, "after undo");
}

#[test]
fn a_user_comes_with_a_group_and_goes_without_a_trace() {
    for shell in SHELLS {
        let place = with_lists(shell, "root:x:0:\n");
        let before = place.snapshot();
        assert_eq!(apply(&place, "etcd"), 1, "{shell:?}");
        assert!(list(&place, "passwd").contains("\netcd:x:"), "{shell:?}");
        assert!(list(&place, "group").contains("\netcd:x:"), "{shell:?}");
        assert_eq!(apply(&place, "other"), 0, "{shell:?}");
        // Who came second still needs the user.
        place.undo(&[word("etcd")]);
        assert!(list(&place, "passwd").contains("\netcd:x:"), "{shell:?}");
        undone(&place, &before);
    }
}

#[test]
fn a_group_that_was_there_stays() {
    for shell in SHELLS {
        let place = with_lists(shell, "root:x:0:\netcd:x:77:somebody\n");
        let before = place.snapshot();
        assert_eq!(apply(&place, "etcd"), 1, "{shell:?}");
        undone(&place, &before);
    }
}

/// `userdel` takes the group along when nobody else is in it.
#[test]
fn a_group_that_was_there_without_members_comes_back_with_its_number() {
    for shell in SHELLS {
        let groups = "root:x:0:\netcd:x:77:\nlast:x:78:\n";
        let place = with_lists(shell, groups);
        let before = place.snapshot();
        assert_eq!(apply(&place, "etcd"), 1, "{shell:?}");
        undone(&place, &before);
        // Somebody else's group is there by then, so the list is not what it was.
        apply(&place, "etcd");
        let (group, new) = (
            place.root().join("etc/group"),
            place.root().join("etc/group+"),
        );
        fs::write(&new, list(&place, "group") + "new:x:1000:\n").unwrap();
        fs::rename(new, group).unwrap();
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"), "{shell:?}");
        let left = "root:x:0:\nlast:x:78:\nnew:x:1000:\netcd:x:77:\n";
        assert_eq!(list(&place, "group"), left, "{shell:?}");
    }
}

/// Copies of the lists that are in the record.
fn copies(place: &Place) -> usize {
    let record = fs::read_dir(place.root().join("var/lib/hatchery/record")).unwrap();
    let is_copy = |name: &std::ffi::OsStr| name.to_str().unwrap().ends_with(".users");
    record
        .filter(|entry| is_copy(&entry.as_ref().unwrap().file_name()))
        .count()
}

#[test]
fn no_copy_of_the_lists_outlives_its_record() {
    for shell in SHELLS {
        let place = with_lists(shell, "root:x:0:\n");
        let others = task("other", vec![file("/etc/other.conf", "x", 0o644)]);
        assert_eq!(place.apply(&others).end.as_deref(), Some("ok"));
        let mut operations = wanted("etcd").operations().to_vec();
        operations.insert(0, failure());
        let failed = place.apply(&task("etcd", operations));
        assert_eq!(failed.end.as_deref(), Some("failed"), "{shell:?}");
        assert_eq!(copies(&place), 0, "{shell:?} forgot the record alone");

        apply(&place, "etcd");
        assert_eq!(copies(&place), 1, "{shell:?}");
        let undone = place.undo(&[word("etcd")]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
        assert_eq!(copies(&place), 0, "{shell:?} put back the record alone");

        // As an older release left it.
        let stray = place.root().join("var/lib/hatchery/record/0a1b.users");
        fs::create_dir(&stray).unwrap();
        fs::write(stray.join("shadow"), "root:secret:1::::::\n").unwrap();
        assert_eq!(place.apply(&others).end.as_deref(), Some("ok"));
        assert_eq!(copies(&place), 0, "{shell:?} left an old copy");
    }
}

#[test]
fn a_user_that_was_there_is_nobody_elses() {
    for shell in SHELLS {
        let place = with_lists(shell, "root:x:0:\netcd:x:77:\n");
        let passwd = list(&place, "passwd") + "etcd:x:77:77::/srv:/bin/sh\n";
        fs::write(place.root().join("etc/passwd"), passwd).unwrap();
        let before = place.snapshot();
        assert_eq!(apply(&place, "etcd"), 0, "{shell:?}");
        undone(&place, &before);
    }
}

#[test]
fn somebody_elses_user_made_since_stays() {
    for shell in SHELLS {
        let place = with_lists(shell, "root:x:0:\n");
        apply(&place, "etcd");
        let passwd = list(&place, "passwd") + "new:x:1000:1000::/home/new:/bin/sh\n";
        fs::write(place.root().join("etc/passwd"), passwd).unwrap();
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"), "{shell:?}");
        let left = "root:x:0:0:root:/root:/bin/sh\nnew:x:1000:1000::/home/new:/bin/sh\n";
        assert_eq!(list(&place, "passwd"), left, "{shell:?}");
        assert_eq!(list(&place, "group"), "root:x:0:\n", "{shell:?}");
    }
}
