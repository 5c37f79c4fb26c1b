//! Configuration files of packages: the package's own goes with it, and somebody's own stays.

use std::fs;

use super::{
    file,
    packages::{apply, packages},
    place::{Place, SHELLS, assert_same},
    task,
    transactions::in_place_of,
    word,
};

/// With what is at the place of socat's configuration before anything.
fn places(content: Option<&str>) -> Vec<Place> {
    let both = |shell| [Place::new(shell), Place::with_rpm(shell)];
    let places: Vec<_> = SHELLS.into_iter().flat_map(both).collect();
    for place in &places {
        let at = place.root().join("etc/there.conf");
        match content {
            Some(content) => fs::write(at, content).unwrap(),
            None => fs::remove_file(at).unwrap(),
        }
    }
    places
}

fn undo(place: &Place, owner: &str) {
    let undone = place.undo(&[word(owner)]);
    assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
}

/// What a package and a role do, where the role comes and goes a few times. Each time the original has another
/// name for a while, which changes its time of the last change.
fn come_and_go(place: &Place, times: usize) {
    let role = task("role", vec![file("/etc/there.conf", "ours", 0o644)]);
    apply(place, &task("prepare", vec![packages(&["socat"])]));
    for _ in 1..times {
        apply(place, &role);
        undo(place, "role");
    }
    apply(place, &role);
    let undone = place.undo(&[]);
    assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
}

#[test]
fn a_file_that_the_package_brought_goes_with_it() {
    for place in places(None) {
        let before = place.snapshot();
        come_and_go(&place, 2);
        assert_same(&place.snapshot(), &before, "the package's own");
    }
}

#[test]
fn a_file_that_was_there_before_the_package_stays() {
    for content in ["as it was\n", "of the package\n"] {
        for place in places(Some(content)) {
            let before = place.snapshot();
            come_and_go(&place, 3);
            assert_same(&place.snapshot(), &before, content);
        }
    }
}

/// Nobody but the package manager knows of it.
#[test]
fn a_file_that_was_there_before_the_package_stays_where_we_have_none() {
    for content in ["as it was\n", "of the package\n"] {
        for place in places(Some(content)) {
            let before = place.snapshot();
            apply(&place, &task("prepare", vec![packages(&["socat"])]));
            let undone = place.undo(&[]);
            assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
            assert_same(&place.snapshot(), &before, content);
        }
    }
}

/// rpm moves such a file aside for one of a package that insists on its own.
#[test]
fn a_file_that_was_there_before_a_package_that_insists_stays() {
    for content in ["as it was\n", "of the package\n"] {
        for place in places(None) {
            let at = place.root().join("etc/zip.conf");
            fs::write(&at, content).unwrap();
            let before = place.snapshot();
            apply(&place, &task("prepare", vec![packages(&["zip"])]));
            assert_eq!(fs::read_to_string(&at).unwrap(), content);
            let undone = place.undo(&[]);
            assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
            assert_same(&place.snapshot(), &before, content);
        }
    }
}

/// What an earlier rpm left beside the file is somebody's own too, although rpm takes its name for what it moves away now.
#[test]
fn what_an_earlier_package_left_beside_a_file_stays() {
    for place in places(Some("as it was\n")) {
        let saved = place.root().join("etc/there.conf.rpmsave");
        fs::write(saved, "of another time\n").unwrap();
        let before = place.snapshot();
        apply(&place, &task("prepare", vec![packages(&["socat"])]));
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
        assert_same(&place.snapshot(), &before, "left alone");
    }
}

/// An undo that dies when the package is gone, and then the package comes again.
#[test]
fn a_file_that_was_there_before_the_package_outlives_an_undo_that_died() {
    for place in places(Some("as it was\n")) {
        let before = place.snapshot();
        let prepare = task("prepare", vec![packages(&["socat"])]);
        apply(&place, &prepare);
        let kill = "case \" $* \" in *' --purge '* | *' -e '*) kill -9 \"$PPID\" ;; esac";
        let tools = in_place_of(place.manager(), "", kill);
        let undone = place.undo_with(tools.path());
        assert_eq!(undone.end, None, "{undone:?}");
        assert!(!place.root().join("etc/there.conf").exists());
        apply(&place, &prepare);
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
        assert_same(&place.snapshot(), &before, "after all");
    }
}

#[test]
fn what_somebody_changed_in_the_packages_file_stays() {
    for place in places(None) {
        apply(&place, &task("prepare", vec![packages(&["socat"])]));
        let at = place.root().join("etc/there.conf");
        fs::write(&at, "changed since\n").unwrap();
        apply(
            &place,
            &task("role", vec![file("/etc/there.conf", "ours", 0o644)]),
        );
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert_eq!(fs::read_to_string(&at).unwrap(), "changed since\n");
        assert!(!place.root().join("etc/there.conf.rpmsave").exists());
    }
}

/// The package is removed and comes again; in between somebody has taken their file away.
#[test]
fn whose_file_it_is_is_decided_anew_with_each_installation() {
    for place in places(Some("as it was\n")) {
        let prepare = task("prepare", vec![packages(&["socat"])]);
        let other = task("other", vec![file("/etc/other.conf", "x", 0o644)]);
        apply(&place, &other);
        apply(&place, &prepare);
        undo(&place, "prepare");
        let at = place.root().join("etc/there.conf");
        assert_eq!(fs::read_to_string(&at).unwrap(), "as it was\n");
        fs::remove_file(&at).unwrap();
        apply(&place, &prepare);
        apply(
            &place,
            &task("role", vec![file("/etc/there.conf", "ours", 0o644)]),
        );
        assert_eq!(place.undo(&[]).end.as_deref(), Some("ok"));
        assert!(!at.exists());
    }
}

#[test]
fn a_package_stays_while_the_file_that_was_there_before_cannot_be_kept() {
    for place in places(Some("as it was\n")) {
        let before = place.snapshot();
        apply(&place, &task("prepare", vec![packages(&["socat"])]));
        // Where a directory should be made.
        let kept = place.root().join("var/lib/hatchery/kept");
        fs::write(&kept, "").unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("stuck"), "{undone:?}");
        assert!(place.root().join("etc/there.conf").exists());
        fs::remove_file(kept).unwrap();
        let undone = place.undo(&[]);
        assert_eq!(undone.end.as_deref(), Some("ok"), "{undone:?}");
        assert_same(&place.snapshot(), &before, "afterwards");
    }
}
