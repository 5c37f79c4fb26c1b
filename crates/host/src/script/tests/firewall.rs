//! Ports on a machine with ufw, whose rules may bear comments, and with firewalld, which has zones.

use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use super::{
    place::{Place, SHELLS, assert_same},
    task,
};
use crate::{
    operation::{Firewall, Operation, Port, Protocol},
    report::Line,
    task::Task,
};

pub(super) fn open(port: u16) -> Task {
    let firewall = Operation::Firewall(Firewall {
        port: Port::one(port).unwrap(),
        protocol: Protocol::Tcp,
        address: None,
    });
    task("role", vec![firewall])
}

fn with_rules(shell: &'static [&'static str], rules: &str) -> Place {
    let place = Place::new(shell);
    fs::write(place.root().join("fake/ufw"), rules).unwrap();
    place
}

fn rules(place: &Place) -> String {
    fs::read_to_string(place.root().join("fake/ufw")).unwrap()
}

#[test]
fn a_port_is_opened_and_closed_again() {
    for shell in SHELLS {
        let place = with_rules(
            shell,
            "ufw allow 6443\nufw allow 16443/tcp comment '6443/tcp'\n",
        );
        let before = place.snapshot();
        let answer = place.apply(&open(6443));
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?}: {answer:?}");
        assert!(rules(&place).ends_with("ufw allow 6443/tcp\n"), "{shell:?}");
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

#[test]
fn a_port_that_is_open_with_a_comment_is_left_alone() {
    for shell in SHELLS {
        let rules_of_others =
            "ufw allow 22/tcp comment 'the way in'\nufw allow 6443/tcp comment 'x'\n";
        let place = with_rules(shell, rules_of_others);
        for port in [22, 6443] {
            let answer = place.apply(&open(port));
            assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?}: {answer:?}");
            let unchanged = |line: &Line| matches!(line, Line::Unchanged(_));
            assert!(answer.steps.values().all(unchanged), "{shell:?} {answer:?}");
        }
        place.undo(&[]);
        assert_eq!(rules(&place), rules_of_others, "{shell:?}");
    }
}

#[test]
fn a_rule_of_ours_that_somebody_made_theirs_or_deleted_is_not_deleted() {
    for shell in SHELLS {
        for now in [
            "ufw allow 6443/tcp comment 'mine'\n",
            "ufw deny 6443/tcp\n",
            "",
        ] {
            let place = with_rules(shell, "");
            place.apply(&open(6443));
            fs::write(place.root().join("fake/ufw"), now).unwrap();
            let undone = place.undo(&[]);
            assert_eq!(undone.end.as_deref(), Some("ok"), "{shell:?}: {undone:?}");
            assert_eq!(rules(&place), now, "{shell:?}");
        }
    }
}

/// Somebody's firewalld: the default zone, one with the interface that has 127.0.0.1, one for senders of a network, one that
/// turns other senders away, and one that takes everything.
const ZONES: &str = "public target default\npublic ports 22/tcp\nwork target default\nwork interfaces lo\n\
    office target default\noffice sources 192.168.7.0/24\nblock target %%REJECT%%\nblock sources 203.0.113.0/24\n\
    trusted target ACCEPT\n";

pub(super) fn with_zones(shell: &'static [&'static str], now: &str) -> Place {
    let place = Place::new(shell);
    let state = place.root().join("fake/firewalld");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("now"), now).unwrap();
    fs::write(state.join("kept"), ZONES).unwrap();
    let zones = place.root().join("etc/firewalld/zones");
    fs::create_dir_all(&zones).unwrap();
    let work = fs::File::create(zones.join("work.xml")).unwrap();
    // BusyBox copies whole seconds only.
    work.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000))
        .unwrap();
    place
}

fn added(place: &Place, list: &str) -> Vec<String> {
    let text = fs::read_to_string(place.root().join("fake/firewalld").join(list)).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.retain(|line| !ZONES.lines().any(|known| known == line));
    lines.sort();
    lines
}

fn behind_firewalld(address: Option<&str>) -> Task {
    let port = Operation::Firewall(Firewall {
        port: Port::one(6443).unwrap(),
        protocol: Protocol::Tcp,
        address: address.map(|address| address.parse().unwrap()),
    });
    let pods = Operation::TrustedNetwork("10.244.0.0/16".parse().unwrap());
    task("role", vec![port, pods])
}

pub(super) fn works(place: &Place, task: &Task) {
    let answer = place.apply(task);
    assert_eq!(answer.end.as_deref(), Some("ok"), "{answer:?}");
    let again = place.apply(task);
    let unchanged = |line: &Line| matches!(line, Line::Unchanged(_));
    assert!(again.steps.values().all(unchanged), "{again:?}");
}

#[test]
fn ports_are_opened_where_others_come_in_and_pods_are_trusted() {
    for shell in SHELLS {
        for (address, zone) in [(Some("127.0.0.1"), "work"), (None, "public")] {
            let place = with_zones(shell, ZONES);
            let before = place.snapshot();
            works(&place, &behind_firewalld(address));
            for list in ["now", "kept"] {
                let expected = [
                    "office ports 6443/tcp".to_owned(),
                    "trusted sources 10.244.0.0/16".to_owned(),
                    format!("{zone} ports 6443/tcp"),
                ];
                let mut expected = expected.to_vec();
                expected.sort();
                assert_eq!(added(&place, list), expected, "{shell:?} {list}");
            }
            assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
            assert_same(&place.snapshot(), &before, &format!("{shell:?} {zone}"));
        }
    }
}

#[test]
fn what_somebody_else_decided_for_a_network_counts() {
    for shell in SHELLS {
        let zones = format!("{ZONES}office sources 10.244.0.0/16\n");
        let place = with_zones(shell, &zones);
        fs::write(place.root().join("fake/firewalld/kept"), zones).unwrap();
        let before = place.snapshot();
        works(&place, &behind_firewalld(None));
        assert!(
            !added(&place, "now").contains(&"trusted sources 10.244.0.0/16".to_owned()),
            "{shell:?}"
        );
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_same(&place.snapshot(), &before, &format!("{shell:?}"));
    }
}

/// A record that an earlier release wrote, and a zone that came into use only later.
#[test]
fn a_record_of_one_zone_is_carried_on() {
    for shell in SHELLS {
        let only_public = "public target default\npublic ports 22/tcp\ntrusted target ACCEPT\n";
        let place = with_zones(shell, only_public);
        works(&place, &open(6443));
        let record = place.root().join("var/lib/hatchery/record");
        for entry in fs::read_dir(&record).unwrap() {
            let list = entry.unwrap().path().join("public.list");
            if list.exists() {
                fs::rename(&list, list.with_file_name("list")).unwrap();
            }
        }
        let state = place.root().join("fake/firewalld/now");
        let now = fs::read_to_string(&state).unwrap()
            + "office target default\noffice sources 192.168.7.0/24\n";
        fs::write(&state, now).unwrap();
        let log = place.root().join("fake/sync-log");
        fs::write(&log, "").unwrap();
        works(&place, &open(6443));
        // Both are on disk before they take the place of those that were there.
        let flushed = fs::read_to_string(&log).unwrap();
        let amended = flushed.lines().filter(|line| *line == "amended").count();
        assert_eq!(amended, 2, "{shell:?}: {flushed}");
        assert_eq!(
            added(&place, "now"),
            ["office ports 6443/tcp", "public ports 6443/tcp"],
            "{shell:?}"
        );
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
        for list in ["now", "kept"] {
            assert_eq!(added(&place, list), Vec::<String>::new(), "{shell:?}");
        }
        let zones = fs::read_dir(place.root().join("etc/firewalld/zones")).unwrap();
        assert_eq!(zones.count(), 1, "{shell:?}");
    }
}
