//! What one of its owners gives up goes back to what it was, unless another one still needs it.

use super::{
    Line, beside, directory, file, link, mixture,
    place::{Place, SHELLS, assert_same},
    task, unit,
};

#[test]
fn what_an_owner_no_longer_names_goes_back_to_what_it_was() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let first = task("role", mixture("first"));
        assert_eq!(place.apply(&first).end.as_deref(), Some("ok"));
        // Of most kinds one goes; what stays stands on nothing that goes.
        let staying = [0, 2, 5, 7, 9, 10, 14, 15, 17];
        let some = mixture("first").into_iter().enumerate();
        let some = some.filter(|(number, _)| staying.contains(number));
        let wanted = task("role", some.map(|(_, operation)| operation).collect());
        let released = beside(&place.managed(), "role", &wanted.record_keys());
        assert!(!released.is_empty());
        let answer = place.release(&released);
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?} {answer:?}");
        assert_eq!(beside(&place.managed(), "role", &wanted.record_keys()), []);
        // It is as if the others had never been asked for.
        let other = Place::new(shell);
        assert_eq!(other.apply(&wanted).end.as_deref(), Some("ok"));
        assert_eq!(
            place.managed().resources.len(),
            other.managed().resources.len()
        );
        let again = place.look(&wanted);
        let changes = again
            .steps
            .values()
            .filter(|line| !matches!(line, Line::Unchanged(_)));
        assert_eq!(changes.count(), 0, "{shell:?} {again:?}");
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"), "{shell:?}");
        assert_same(&place.snapshot(), &before, "afterwards");
    }
}

#[test]
fn what_another_owner_needs_stays() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let shared = || file("/etc/new/shared.conf", "both\n", 0o644);
        let of_one = || {
            vec![
                shared(),
                file("/etc/there.conf", "ours\n", 0o644),
                directory("/var/lib/data", 0o700, true),
                link("/etc/link", "ours"),
                unit("theirs.service", &[]),
            ]
        };
        assert_eq!(
            place.apply(&task("one", of_one())).end.as_deref(),
            Some("ok")
        );
        assert_eq!(
            place.apply(&task("other", vec![shared()])).end.as_deref(),
            Some("ok")
        );
        let released = beside(
            &place.managed(),
            "one",
            &task("one", Vec::new()).record_keys(),
        );
        let answer = place.release(&released);
        assert_eq!(answer.end.as_deref(), Some("ok"), "{shell:?} {answer:?}");
        let kept = place.managed().resources;
        let kept: Vec<_> = kept
            .iter()
            .map(|one| (one.name.as_str(), &one.owners[..]))
            .collect();
        let other = &["other".to_owned()][..];
        assert_eq!(
            kept,
            [("/etc/new/shared.conf", other), ("/etc/new", other)],
            "{shell:?}"
        );
        // A second time there is nothing to give up.
        let again = place.release(&released);
        assert_eq!(again.end.as_deref(), Some("ok"));
        let undone = again
            .others
            .iter()
            .filter(|line| matches!(line, Line::Undone(..)));
        assert_eq!(undone.count(), 0, "{shell:?} {again:?}");
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"), "{shell:?}");
        assert_same(&place.snapshot(), &before, "afterwards");
    }
}

/// Others have their time to end.
#[test]
fn a_unit_that_asks_for_it_is_killed_when_it_is_removed() {
    for shell in SHELLS {
        let place = Place::new(shell);
        let before = place.snapshot();
        let at = |name: &str| format!("/etc/systemd/system/{name}");
        let wanted = task(
            "role",
            vec![
                file(
                    &at("member.service"),
                    "[Service]\nX-HatcheryRemoval=kill\n",
                    0o644,
                ),
                file(&at("proxy.service"), "[Service]\n", 0o644),
                unit("member.service", &[]),
                unit("proxy.service", &[]),
            ],
        );
        assert_eq!(place.apply(&wanted).end.as_deref(), Some("ok"));
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"), "{shell:?}");
        let killed = place.root().join("fake/killed");
        let text = std::fs::read_to_string(&killed).unwrap();
        assert_eq!(text, "member.service\n", "{shell:?}");
        std::fs::remove_file(&killed).unwrap();
        assert_same(&place.snapshot(), &before, "afterwards");
    }
}
