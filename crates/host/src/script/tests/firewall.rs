//! Ports on a machine with ufw, whose rules may bear comments.

use std::fs;

use super::{
    place::{Place, SHELLS, assert_same},
    task,
};
use crate::{
    operation::{Firewall, Operation, Port, Protocol},
    report::Line,
    task::Task,
};

fn open(port: u16) -> Task {
    let firewall = Operation::Firewall(Firewall {
        port: Port::one(port).unwrap(),
        protocol: Protocol::Tcp,
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
