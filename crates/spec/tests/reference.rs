//! The reference in `docs/` lists every key and every variable of inventories, in the words of the
//! program's tables; the translation lists the same ones in the same order.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hatchery_spec::inventory::{Treatment, VARIABLES};
use hatchery_spec::keys::{KEYS, Origin, for_section};

const END: &str = "<!-- end -->\n";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Classic => "manual",
        Origin::Current => "current",
        Origin::Both => "both",
        Origin::New => "new",
    }
}

/// A cell; `|` would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn keys(section: &str) -> String {
    let mut table =
        "| key | from | value | without it | meaning |\n|---|---|---|---|---|\n".to_owned();
    for info in for_section(section) {
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            info.key,
            origin(info.origin),
            cell(&info.kind_in_words()),
            cell(&info.default_in_words()),
            cell(info.doc)
        )
        .unwrap();
    }
    table
}

fn treatment(treatment: Treatment) -> String {
    match treatment {
        Treatment::Honoured(_) => "honoured".to_owned(),
        Treatment::Only([]) => "must be empty".to_owned(),
        Treatment::Only(values) => format!("only `{}`", values.join("`, `")),
        Treatment::NoEffect => "no effect".to_owned(),
    }
}

fn variables() -> String {
    let mut table = "| variable | is | meaning |\n|---|---|---|\n".to_owned();
    for info in VARIABLES {
        let (name, doc) = (cell(info.name), cell(info.doc));
        writeln!(
            table,
            "| `{name}` | {} | {doc} |",
            treatment(info.treatment)
        )
        .unwrap();
    }
    table
}

/// The text between a mark and the next end, and what is around it.
fn between<'t>(text: &'t str, mark: &str) -> (&'t str, &'t str, &'t str) {
    let (before, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no {mark}"));
    let (inside, after) = rest
        .split_once(END)
        .unwrap_or_else(|| panic!("no end of {mark}"));
    (before, inside, after)
}

fn mark(section: &str) -> String {
    format!("<!-- keys of {section} -->\n")
}

fn sections() -> Vec<&'static str> {
    let mut seen = HashSet::new();
    let sections = KEYS.iter().map(|info| info.section);
    sections.filter(|section| seen.insert(*section)).collect()
}

#[test]
fn the_reference_is_fresh() {
    let path = docs("deploy-file.md");
    let there = std::fs::read_to_string(&path).unwrap();
    let mut text = there.clone();
    let mut tables: Vec<_> = sections()
        .iter()
        .map(|section| (mark(section), keys(section)))
        .collect();
    tables.push(("<!-- variables -->\n".to_owned(), variables()));
    for (mark, table) in tables {
        let (before, _, after) = between(&text, &mark);
        text = format!("{before}{mark}\n{table}\n{END}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    } else {
        assert!(
            there == text,
            "docs/deploy-file.md is stale: run UPDATE_DOCS=1 cargo test -p hatchery-spec"
        );
    }
}

/// The cells of a table's rows, without its head.
fn rows(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

#[test]
fn the_translation_has_the_same_keys() {
    let text = std::fs::read_to_string(docs("zh-CN/deploy-file.md")).unwrap();
    for section in sections() {
        let (_, table, _) = between(&text, &mark(section));
        let rows = rows(table);
        let expected: Vec<_> = for_section(section)
            .map(|info| (format!("`{}`", info.key), origin(info.origin)))
            .collect();
        let found: Vec<_> = rows
            .iter()
            .map(|cells| (cells[0].to_owned(), cells[1]))
            .collect();
        assert_eq!(found, expected, "keys of {section:?}");
        for cells in rows {
            assert_eq!(cells.len(), 5, "{cells:?}");
            assert!(!cells[2].is_empty() && !cells[4].is_empty(), "{cells:?}");
            // A sentence that was not translated has no Chinese in it.
            assert!(!cells[4].is_ascii(), "{cells:?}");
        }
    }
}

#[test]
fn the_translation_has_the_same_variables() {
    let text = std::fs::read_to_string(docs("zh-CN/deploy-file.md")).unwrap();
    let (_, table, _) = between(&text, "<!-- variables -->\n");
    let rows = rows(table);
    let found: Vec<_> = rows
        .iter()
        .map(|cells| (cells[0].to_owned(), cells[1].to_owned()))
        .collect();
    let expected: Vec<_> = VARIABLES
        .iter()
        .map(|info| {
            let name = format!("`{}`", info.name);
            (name, treatment_in_chinese(info.treatment))
        })
        .collect();
    assert_eq!(found, expected);
    for cells in rows {
        assert!(cells.len() == 3 && !cells[2].is_ascii(), "{cells:?}");
    }
}

fn treatment_in_chinese(treatment: Treatment) -> String {
    match treatment {
        Treatment::Honoured(_) => "支持".to_owned(),
        Treatment::Only([]) => "必须为空".to_owned(),
        Treatment::Only(values) => format!("只接受 `{}`", values.join("`、`")),
        Treatment::NoEffect => "不起作用".to_owned(),
    }
}
