//! Ranges of ports: firewalld joins those that overlap, and splits one that a part is taken out of.

use std::fs;

use super::{
    firewall::{open, with_zones, works},
    place::{Place, SHELLS, assert_same},
    task, word,
};
use crate::{
    operation::{Firewall, Operation, Port, Protocol},
    report::Line,
};

fn open_range(first: u16, last: u16) -> Operation {
    Operation::Firewall(Firewall {
        port: Port::range(first, last).unwrap(),
        protocol: Protocol::Tcp,
        address: None,
    })
}

/// A machine with one zone, in which these are open, now and for good.
fn with_open(shell: &'static [&'static str], ports: &[&str]) -> Place {
    let mut zones = "public target default\ntrusted target ACCEPT\n".to_owned();
    for port in ports {
        zones += &format!("public ports {port}\n");
    }
    let place = with_zones(shell, &zones);
    fs::write(place.root().join("fake/firewalld/kept"), zones).unwrap();
    place
}

/// In the order of their numbers: firewalld's own depends on what was added when.
fn open_ports(place: &Place, list: &str) -> Vec<String> {
    let text = fs::read_to_string(place.root().join("fake/firewalld").join(list)).unwrap();
    let ports = text
        .lines()
        .filter_map(|line| line.strip_prefix("public ports "));
    let mut ports: Vec<_> = ports.map(str::to_owned).collect();
    ports.sort();
    ports
}

fn zone_files(place: &Place) -> usize {
    fs::read_dir(place.root().join("etc/firewalld/zones"))
        .unwrap()
        .count()
}

#[test]
fn a_range_that_others_have_a_part_of_leaves_theirs_open() {
    let wanted = task("role", vec![open_range(30000, 32767)]);
    for shell in SHELLS {
        for theirs in [
            &["22/tcp", "30080/tcp"][..],
            &["22/tcp", "31000-33000/tcp"],
            &["22/tcp", "29000-30000/tcp", "32767/tcp", "30080/udp"],
        ] {
            let place = with_open(shell, theirs);
            let before = open_ports(&place, "now");
            works(&place, &wanted);
            assert_ne!(open_ports(&place, "now"), before, "{shell:?}");
            let undone = place.undo(&[]);
            assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
            for list in ["now", "kept"] {
                assert_eq!(open_ports(&place, list), before, "{shell:?} {list}");
            }
            // The zone is what it was, so its files are as well.
            assert_eq!(zone_files(&place), 1, "{shell:?} {theirs:?}");
        }
    }
}

#[test]
fn a_port_within_somebody_elses_range_is_open() {
    for shell in SHELLS {
        let place = with_open(shell, &["2000-3000/tcp"]);
        let before = place.snapshot();
        let answer = place.apply(&open(2379));
        let unchanged = |line: &Line| matches!(line, Line::Unchanged(_));
        assert!(answer.steps.values().all(unchanged), "{shell:?} {answer:?}");
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// What was open only until firewalld starts again, or only after that, is so afterwards.
#[test]
fn theirs_comes_back_where_it_was() {
    for shell in SHELLS {
        for list in ["now", "kept"] {
            let place = with_open(shell, &["22/tcp"]);
            let at = place.root().join("fake/firewalld").join(list);
            let text = fs::read_to_string(&at).unwrap() + "public ports 30080/tcp\n";
            fs::write(&at, text).unwrap();
            works(&place, &task("role", vec![open_range(30000, 32767)]));
            assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
            for one in ["now", "kept"] {
                let theirs: &[&str] = if one == list {
                    &["22/tcp", "30080/tcp"]
                } else {
                    &["22/tcp"]
                };
                assert_eq!(open_ports(&place, one), theirs, "{shell:?} {list} {one}");
            }
        }
    }
}

#[test]
fn a_range_that_somebody_made_wider_or_closed_in_part_is_respected() {
    for shell in SHELLS {
        let both = |place: &Place, from: &str, to: &str| {
            for list in ["now", "kept"] {
                let at = place.root().join("fake/firewalld").join(list);
                let text = fs::read_to_string(&at).unwrap();
                assert!(text.contains(from), "{text}");
                fs::write(&at, text.replace(from, to)).unwrap();
            }
        };
        let place = with_open(shell, &["22/tcp"]);
        works(&place, &open(2379));
        both(
            &place,
            "public ports 2379/tcp",
            "public ports 2379-2380/tcp",
        );
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_eq!(open_ports(&place, "now"), ["22/tcp", "2379-2380/tcp"]);

        let place = with_open(shell, &["22/tcp", "30080/tcp"]);
        works(&place, &task("role", vec![open_range(30000, 32767)]));
        both(
            &place,
            "public ports 30000-32767/tcp",
            "public ports 30000-30079/tcp\npublic ports 30081-32767/tcp",
        );
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_eq!(open_ports(&place, "now"), ["22/tcp"], "{shell:?}");
    }
}

/// Who works on the files of a firewalld that is stopped has to split ranges by himself.
#[test]
fn theirs_is_open_when_a_firewalld_that_was_stopped_starts_again() {
    for shell in SHELLS {
        let theirs = ["22/tcp", "29000-30000/tcp", "30080/tcp"];
        let place = with_open(shell, &theirs);
        works(&place, &task("role", vec![open_range(30000, 32767)]));
        assert_eq!(open_ports(&place, "kept"), ["22/tcp", "29000-32767/tcp"]);
        fs::write(place.root().join("fake/firewalld/stopped"), "").unwrap();
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_eq!(open_ports(&place, "kept"), theirs, "{shell:?}");
        assert_eq!(zone_files(&place), 1, "{shell:?}");
    }
}

/// Two owners, of whom one opens a part of what the other opens.
#[test]
fn ranges_of_ours_that_overlap_do_not_close_each_other() {
    for shell in SHELLS {
        for first in ["one", "all"] {
            let place = with_open(shell, &["22/tcp"]);
            works(&place, &task("one", open(30080).operations().to_vec()));
            works(&place, &task("all", vec![open_range(30000, 32767)]));
            assert_eq!(place.undo(&[word(first)]).end.as_deref(), Some("ok"));
            let left = if first == "one" {
                "30000-32767/tcp"
            } else {
                "30080/tcp"
            };
            assert_eq!(open_ports(&place, "kept"), ["22/tcp", left], "{shell:?}");
            assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
            for list in ["now", "kept"] {
                assert_eq!(open_ports(&place, list), ["22/tcp"], "{shell:?} {first}");
            }
        }
    }
}

/// Between the two commands nothing of theirs would be open any more.
#[test]
fn theirs_is_opened_again_by_the_next_run_when_one_dies() {
    for shell in SHELLS {
        for next in ["undo", "apply"] {
            let place = with_open(shell, &["22/tcp", "30080/tcp"]);
            let wanted = task("role", vec![open_range(30000, 32767)]);
            works(&place, &wanted);
            // As it is after the range was taken out, and before anything else.
            for list in ["now", "kept"] {
                let at = place.root().join("fake/firewalld").join(list);
                let text = fs::read_to_string(&at).unwrap();
                fs::write(&at, text.replace("public ports 30000-32767/tcp\n", "")).unwrap();
            }
            let words = "now public 30080/tcp\nkept public 30080/tcp\n";
            fs::write(place.root().join("var/lib/hatchery/reopen"), words).unwrap();
            if next == "apply" {
                works(&place, &wanted);
            }
            assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
            for list in ["now", "kept"] {
                let left = ["22/tcp", "30080/tcp"];
                assert_eq!(open_ports(&place, list), left, "{shell:?} {next}");
            }
        }
    }
}
