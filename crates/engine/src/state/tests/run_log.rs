//! Logs of runs.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use time::Duration;

use super::*;

#[test]
fn each_run_has_its_own_place_in_the_order_of_time() {
    let place = Place::new();
    let store = place.directory();
    let begin = |seconds: i64| RunLog::begin(&store, now() + Duration::seconds(seconds)).unwrap();
    let logs = [begin(0), begin(0), begin(0), begin(1), begin(100_000)];
    let paths: Vec<_> = logs.iter().map(RunLog::path).collect();
    assert!(paths.is_sorted_by(|one, next| one < next), "{paths:?}");
    assert!(paths[0].ends_with("runs/20270115T080000.000Z"), "{paths:?}");
}

#[test]
fn the_last_twenty_are_kept_and_this_one_in_any_case() {
    let place = Place::new();
    let store = place.directory();
    let begin = |hours: i64| RunLog::begin(&store, now() + Duration::hours(hours)).unwrap();
    let logs: Vec<_> = (0..25).map(begin).collect();
    let there: Vec<_> = logs.iter().map(|log| log.path().exists()).collect();
    assert_eq!(there, [[false; 5].as_slice(), &[true; 20]].concat());
    // The clock was set back.
    let log = begin(-1000);
    assert!(log.path().exists());
    assert_eq!(fs::read_dir(store.path().join("runs")).unwrap().count(), 20);
}

#[test]
fn lines_are_added_to_the_events_and_to_each_machine() {
    let place = Place::new();
    let log = RunLog::begin(&place.directory(), now()).unwrap();
    log.event(&serde_json::json!({"kind": "begin", "text": "two\nlines"}))
        .unwrap();
    log.event(&serde_json::json!({"kind": "end"})).unwrap();
    log.machine(&name("m0"), "one\ntwo\n").unwrap();
    log.machine(&name("m0"), "\u{1b}]0;title\u{7}\tthree\r")
        .unwrap();
    log.machine(&name("events.jsonl"), "an odd name").unwrap();
    let read = |file: &str| fs::read_to_string(log.path().join(file)).unwrap();
    let events: Vec<serde_json::Value> = read("events.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["text"], "two\nlines");
    assert_eq!(
        read("m0.log"),
        "one\ntwo\n\u{fffd}]0;title\u{fffd}\tthree\u{fffd}\n"
    );
}

proptest! {
    #[test]
    fn a_log_obeys_no_machine(text in any::<String>()) {
        let place = Place::new();
        let log = RunLog::begin(&place.directory(), now()).unwrap();
        log.machine(&name("m0"), &text).unwrap();
        let written = fs::read_to_string(log.path().join("m0.log")).unwrap();
        prop_assert!(written.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        let plain = text.strip_suffix('\n').unwrap_or(&text);
        prop_assert_eq!(written.chars().count(), plain.chars().count() + 1);
    }
}
