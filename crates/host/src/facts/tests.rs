//! Whole answers of real machines, and answers that nobody should have to expect.

use std::time::{Duration, Instant, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const DEBIAN: &[u8] = include_bytes!("answers/debian.txt");
const RPM: &[u8] = include_bytes!("answers/rpm.txt");

/// As if the question had been asked a moment before the recorded answers.
fn parsed(bytes: &[u8]) -> Result<Facts, Error> {
    let sent = UNIX_EPOCH + Duration::from_secs(1_794_787_750);
    parse(bytes, sent, sent + Duration::from_secs(20))
}

fn shown(bytes: &[u8]) -> String {
    serde_json::to_string_pretty(&parsed(bytes).unwrap()).unwrap()
}

#[test]
fn a_debian_machine_with_traces_of_a_cluster() {
    insta::assert_snapshot!(shown(DEBIAN));
}

#[test]
fn an_openeuler_machine() {
    insta::assert_snapshot!(shown(RPM));
}

#[test]
fn facts_can_be_kept_and_read_again() {
    for bytes in [DEBIAN, RPM] {
        let facts = parsed(bytes).unwrap();
        let kept = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&kept).unwrap(), facts);
    }
}

#[test]
fn an_answer_cut_anywhere_is_noticed() {
    let near_the_end = RPM.len() - 100;
    for length in (0..near_the_end).step_by(7).chain(near_the_end..RPM.len()) {
        assert!(parsed(&RPM[..length]).is_err(), "cut after {length} bytes");
    }
    assert!(parsed(RPM).is_ok());
}

#[test]
fn a_terminal_in_between_changes_nothing() {
    let text = String::from_utf8(RPM.to_vec()).unwrap();
    let facts = parsed(text.replace('\n', "\r\n").as_bytes());
    assert_eq!(facts.unwrap(), parsed(RPM).unwrap());
}

#[test]
fn the_longest_answer_takes_no_longer_for_being_hostile() {
    let boundary = "0f0e0d0c-1111-2222-3333-444455556666";
    let mut text =
        format!("hatchery-facts 1 {boundary}\n\n{boundary} sockets\n\n{boundary} mounts\n");
    for number in 0..50_000 {
        text += &format!("1 1 0:1 / /{number} rw - ext4 x rw\n");
    }
    text += &format!("\n{boundary} socket-owners\n");
    for number in 0..100_000 {
        text += &format!("1 {number} x\n");
    }
    text += &format!("\n{boundary} end\n");
    let begin = Instant::now();
    let facts = parsed(text.as_bytes()).unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
    assert!(facts.disks.unwrap().len() < 10_000);
}

/// No text of the facts may move a terminal's cursor or end a line.
fn is_printable(value: &Value) -> bool {
    let plain = |text: &str| !text.chars().any(char::is_control);
    match value {
        Value::String(text) => plain(text),
        Value::Array(values) => values.iter().all(is_printable),
        Value::Object(values) => values
            .iter()
            .all(|(key, value)| plain(key) && is_printable(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// A piece of text that some reader of a section takes for more than it is.
fn bait() -> impl Strategy<Value = Vec<u8>> {
    let baits = [
        "\n",
        " ",
        "-",
        ":",
        "/",
        "=",
        " - ",
        "\u{1b}[2J",
        "\u{202e}",
        "\0",
        "ä",
        "\"",
        "'",
        "\\",
        "%",
        ".",
        "18446744073709551615",
        "99999999999999999999999999",
        "-1",
        "0",
        "ffffffff",
        "<",
        ">",
        "@",
        ".ko",
        "\u{fffd}",
        "nameserver ",
        "inet ",
        "CapBnd:",
        "CONFIG_",
        "Id=",
        "socket:[1]",
    ];
    prop_oneof![
        prop::sample::select(baits.map(|bait| bait.as_bytes().to_vec()).to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ]
}

/// A real answer with pieces overwritten, put in or taken out.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), 0..24_usize, bait());
    let changes = prop::collection::vec(change, 1..60);
    (prop::bool::ANY, changes).prop_map(|(debian, changes)| {
        let mut bytes = if debian { DEBIAN } else { RPM }.to_vec();
        // The greeting stays, or nothing behind it would be read.
        let begin = 60;
        for (place, removed, bait) in changes {
            let at = begin + place.index(bytes.len() - begin);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, bait);
            bytes.resize(bytes.len().max(begin + 1), b'\n');
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(parsed(&bytes).is_err());
    }

    #[test]
    fn a_damaged_answer_gives_safe_facts_or_an_error(bytes in mutated()) {
        if let Ok(facts) = parsed(&bytes) {
            let value = serde_json::to_value(&facts).unwrap();
            prop_assert!(is_printable(&value), "{value}");
            prop_assert_eq!(serde_json::from_value::<Facts>(value).unwrap(), facts);
        }
    }
}
