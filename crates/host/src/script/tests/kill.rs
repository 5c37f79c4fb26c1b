//! A shell that dies between any two commands.
//!
//! Points are blocks of the shell's trace, at least one for each command. A command that leaves the
//! machine as it was needs no case of its own: where the states at two points are the same, so they are between.

use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::operation::{Operation, Script};

use super::{
    mixture,
    place::{Place, SHELLS, Snapshot, TRACED, assert_same},
    task, word,
};

/// What dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Apply,
    /// One that is giving up because a step in the middle failed.
    Failing,
    Undo,
}

impl Way {
    /// A machine on which it died at a point, and what the machine was before anything.
    fn dead_at(self, point: usize) -> (Place, Snapshot) {
        let place = Place::new(SHELLS[0]);
        let before = place.snapshot();
        let mut operations = mixture("first");
        if self == Self::Failing {
            // It fails at once, and has a few things to forget that stand on each other.
            let stand_on_others =
                |o: &Operation| matches!(o, Operation::HostsEntry(_) | Operation::File(_));
            operations.retain(stand_on_others);
            operations.insert(0, failing_script());
        }
        let task = task("role", operations);
        if self == Self::Undo {
            assert_eq!(place.apply(&task).end.as_deref(), Some("ok"));
            place.undo_output(&[], Some(point));
        } else {
            place.apply_output(&task, true, Some(point));
        }
        (place, before)
    }

    /// What it left can be undone, and can be applied over with other resources and then undone. Each state is tried
    /// in one of the two ways, or in both when there is time.
    fn check(self, point: usize, state: usize) {
        let both = is_thorough();
        if both || state.is_multiple_of(2) {
            self.check_undone(point);
        }
        if both || !state.is_multiple_of(2) {
            self.check_repeated(point);
        }
    }

    fn check_undone(self, point: usize) {
        let (place, before) = self.dead_at(point);
        assert_put_back(&place, &before, &format!("{self:?} died at {point}"));
    }

    fn check_repeated(self, point: usize) {
        let (place, before) = self.dead_at(point);
        let when = format!("{self:?} died at {point} and was repeated");
        let repeated = place.apply(&task("role", mixture("second")));
        assert_eq!(repeated.end.as_deref(), Some("ok"), "{when}: {repeated:?}");
        assert_put_back(&place, &before, &when);
    }
}

fn failing_script() -> Operation {
    Operation::Script(Script {
        name: word("failing"),
        check: "false".into(),
        apply: "false".into(),
        undo: String::new(),
        deadline: Duration::from_secs(10),
    })
}

/// So far apart the points may be that are looked at, unless there is time for all of them. Which ones these are is up to
/// chance, so that many runs see all.
const GRAIN: usize = 16;

fn is_thorough() -> bool {
    std::env::var_os("HATCHERY_ROUNDS").is_some()
}

/// A point between two: the middle, or one near it.
fn between(low: usize, high: usize, grain: usize) -> usize {
    let chance = RandomState::new().hash_one(low);
    let near = usize::try_from(chance % u64::try_from(grain).unwrap()).unwrap();
    (low.midpoint(high) + near / 2).min(high - 1)
}

/// One worker less is busy.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn assert_put_back(place: &Place, before: &Snapshot, when: &str) {
    let undone = place.undo(&[]);
    assert_eq!(undone.end.as_deref(), Some("ok"), "{when}: {undone:?}");
    assert_same(&place.snapshot(), before, when);
}

/// Visits every state that a machine can be left in; gives their number and that of the points.
fn die_everywhere(way: Way) -> (usize, usize) {
    let (place, _) = way.dead_at(TRACED);
    let points = place.traced.load(Ordering::Relaxed);
    drop(place);
    let state = |point| way.dead_at(point).0.state();
    let seen = Mutex::new(HashSet::new());
    let visit = |point: usize| {
        let found = state(point);
        let new = {
            let mut seen = seen.lock().unwrap();
            seen.insert(found.clone()).then_some(seen.len())
        };
        if let Some(number) = new {
            way.check(point, number);
        }
        found
    };
    let grain = if is_thorough() { 1 } else { GRAIN };
    // Ranges whose ends are known; what lies between them is looked at only when they differ.
    let ranges = Mutex::new(vec![(1, visit(1), points - 1, visit(points - 1))]);
    let busy = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let range = {
                        let mut ranges = ranges.lock().unwrap();
                        let range = ranges.pop();
                        if range.is_some() {
                            busy.fetch_add(1, Ordering::SeqCst);
                        }
                        range
                    };
                    // Also when this one panics, so that the others do not wait for it.
                    let _done = range.is_some().then(|| Done(&busy));
                    let Some((low, low_state, high, high_state)) = range else {
                        if busy.load(Ordering::SeqCst) == 0 {
                            break;
                        }
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        continue;
                    };
                    if high - low > grain && low_state != high_state {
                        let middle = between(low, high, grain);
                        let found = visit(middle);
                        let mut ranges = ranges.lock().unwrap();
                        ranges.push((low, low_state, middle, found.clone()));
                        ranges.push((middle, found, high, high_state));
                    }
                }
            });
        }
    });
    (seen.into_inner().unwrap().len(), points)
}

#[test]
fn apply_that_dies_anywhere_can_be_undone_or_repeated() {
    let (states, points) = die_everywhere(Way::Apply);
    eprintln!("apply died in {states} states, at {points} points");
    assert!(states > 60, "{states}");
}

#[test]
fn apply_that_dies_while_it_gives_up_can_be_undone_or_repeated() {
    let (states, points) = die_everywhere(Way::Failing);
    eprintln!("a failing apply died in {states} states, at {points} points");
    assert!(states > 20, "{states}");
}

#[test]
fn undo_that_dies_anywhere_can_be_repeated_or_turned_around() {
    let (states, points) = die_everywhere(Way::Undo);
    eprintln!("undo died in {states} states, at {points} points");
    assert!(states > 40, "{states}");
}
