//! Every key takes effect: changing it changes the place that the table names, or is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::collections::HashSet;

use hatchery_spec::keys::KEYS;
use hatchery_spec::reading::{Reading, read};
use hatchery_spec::source::Input;

#[path = "keys/cases.rs"]
mod cases;

use cases::CASES;

fn reading(text: &str) -> Reading {
    read(Input::private("deploy.yaml", text.as_bytes()))
}

fn value(text: &str) -> serde_json::Value {
    let reading = reading(text);
    let said = reading.diagnostics.render(false);
    assert_eq!(reading.diagnostics.errors(), 0, "{text}\n{said}");
    serde_json::to_value(reading.cluster.unwrap()).unwrap()
}

#[test]
fn every_key_has_its_effect() {
    for (section, key, base, from, to) in CASES {
        let info = KEYS
            .iter()
            .find(|info| info.section == *section && info.key == *key)
            .unwrap_or_else(|| panic!("{section} {key} is not in the table"));
        assert!(base.contains(from), "{section} {key}: no {from}");
        let changed = base.replacen(from, to, 1);
        if info.effect == "!" {
            assert_eq!(reading(&changed).diagnostics.errors(), 1, "{section} {key}");
            continue;
        }
        let (before, after) = (value(base), value(&changed));
        assert_ne!(
            before.pointer(info.effect),
            after.pointer(info.effect),
            "{section} {key} changes nothing at {}",
            info.effect
        );
    }
}

#[test]
fn every_key_of_the_table_is_tried() {
    let tried: HashSet<_> = CASES.iter().map(|case| (case.0, case.1)).collect();
    for info in KEYS {
        assert!(
            tried.contains(&(info.section, info.key)),
            "{} {}",
            info.section,
            info.key
        );
    }
    assert_eq!(tried.len(), KEYS.len());
}

#[test]
fn every_key_of_the_table_is_known_to_the_reader() {
    // A key of the table that the reader does not match would be told as unknown.
    for (section, key, base, from, to) in CASES {
        let reading = reading(&base.replacen(from, to, 1));
        let unknown = reading
            .diagnostics
            .sorted()
            .into_iter()
            .find(|one| one.code == "unknown-key");
        assert!(unknown.is_none(), "{section} {key}: {unknown:?}");
    }
}
