//! /etc/hosts that is a link: it is replaced by a file, what it leads to is left alone, and it comes back.

use std::{fs, os::unix::fs::symlink, path::Path, sync::atomic::Ordering};

use super::{
    place::{Place, SHELLS, TRACED, assert_same},
    task, word,
};
use crate::{
    operation::{HostsEntry, Operation},
    task::Task,
};

fn entry(number: u8) -> Task {
    let entry = Operation::HostsEntry(HostsEntry {
        address: format!("10.0.0.{number}").parse().unwrap(),
        names: vec![word(&format!("m{number}"))],
    });
    task("role", vec![entry])
}

/// A machine whose /etc/hosts leads to another file, which is there or not.
fn linked(shell: &'static [&'static str], absolute: bool, text: Option<&str>) -> Place {
    let place = Place::new(shell);
    let (hosts, real) = (
        place.root().join("etc/hosts"),
        place.root().join("opt/real"),
    );
    fs::remove_file(&hosts).unwrap();
    if let Some(text) = text {
        fs::write(&real, text).unwrap();
    }
    let target = if absolute {
        &real
    } else {
        Path::new("../opt/real")
    };
    symlink(target, hosts).unwrap();
    place
}

fn read(place: &Place, at: &str) -> String {
    fs::read_to_string(place.root().join(at)).unwrap()
}

#[test]
fn a_link_comes_back_and_its_file_is_not_touched() {
    for shell in SHELLS {
        for absolute in [false, true] {
            for text in [
                None,
                Some("127.0.0.1 localhost"),
                Some("127.0.0.1 localhost\n"),
            ] {
                let when = format!("{shell:?} {absolute} {text:?}");
                let place = linked(shell, absolute, text);
                let before = place.snapshot();
                for number in [1, 2] {
                    let answer = place.apply(&entry(number));
                    assert_eq!(answer.end.as_deref(), Some("ok"), "{when}: {answer:?}");
                }
                let begin = text.map_or(String::new(), |text| text.trim().to_owned() + "\n");
                let now = read(&place, "etc/hosts");
                assert_eq!(
                    now,
                    format!("{begin}10.0.0.1 m1 # hatchery\n10.0.0.2 m2 # hatchery\n"),
                    "{when}"
                );
                let real = fs::read_to_string(place.root().join("opt/real")).ok();
                assert_eq!(real.as_deref(), text, "{when}");
                let undone = place.undo(&[]);
                assert_eq!(undone.end.as_deref(), Some("ok"), "{when}: {undone:?}");
                assert_same(&place.snapshot(), &before, &when);
            }
        }
    }
}

#[test]
fn a_link_comes_back_although_its_file_became_another() {
    for shell in SHELLS {
        let place = linked(shell, false, Some("127.0.0.1 localhost\n"));
        place.apply(&entry(1));
        fs::write(place.root().join("opt/real"), "127.0.0.1 other\n").unwrap();
        place.undo(&[]);
        assert_eq!(read(&place, "etc/hosts"), "127.0.0.1 other\n", "{shell:?}");
        assert!(place.root().join("etc/hosts").is_symlink(), "{shell:?}");
    }
}

#[test]
fn what_somebody_wrote_into_our_file_stays() {
    for shell in SHELLS {
        let place = linked(shell, false, Some("127.0.0.1 localhost\n"));
        place.apply(&entry(1));
        let hosts = place.root().join("etc/hosts");
        fs::write(&hosts, read(&place, "etc/hosts") + "10.9.9.9 theirs\n").unwrap();
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        let expected = "127.0.0.1 localhost\n10.9.9.9 theirs\n";
        assert_eq!(read(&place, "etc/hosts"), expected, "{shell:?}");
        assert_eq!(read(&place, "opt/real"), "127.0.0.1 localhost\n");
    }
}

#[test]
fn somebody_elses_link_stays() {
    for shell in SHELLS {
        let place = Place::new(shell);
        place.apply(&entry(1));
        let (hosts, theirs) = (
            place.root().join("etc/hosts"),
            place.root().join("opt/theirs"),
        );
        let text = "10.0.0.1 m1 # hatchery\n10.9.9.9 theirs\n";
        fs::write(&theirs, text).unwrap();
        fs::remove_file(&hosts).unwrap();
        symlink("../opt/theirs", &hosts).unwrap();
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert!(hosts.is_symlink(), "{shell:?}");
        assert_eq!(read(&place, "opt/theirs"), text, "{shell:?}");
    }
}

#[test]
fn a_run_that_dies_loses_no_link() {
    let fresh = || linked(SHELLS[0], false, Some("127.0.0.1 localhost\n"));
    let place = fresh();
    place.apply_output(&entry(1), true, Some(TRACED));
    let points = place.traced.load(Ordering::Relaxed);
    for point in (1..points).step_by(points / 24) {
        let place = fresh();
        let before = place.snapshot();
        place.apply_output(&entry(1), true, Some(point));
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "at {point}: {undone:?}");
        assert_same(&place.snapshot(), &before, &format!("died at {point}"));
    }
}
