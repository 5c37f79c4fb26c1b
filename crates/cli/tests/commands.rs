//! `docs/commands.md` and its translation show every command, with the help that the program prints.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;

use assert_cmd::Command;

const END: &str = "<!-- end -->\n";

fn help(command: &str) -> String {
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_hatchery")))
        .args(command.split_whitespace())
        .arg("-h")
        .env_remove("HATCHERY_HOME")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}");
    let text = String::from_utf8(output.stdout).unwrap();
    // What every command understands is told once.
    match text.split_once("\nGlobal options:") {
        Some((own, _)) if !command.is_empty() => own.to_owned(),
        _ => text,
    }
}

#[test]
fn the_pages_are_fresh() {
    for page in ["docs/commands.md", "docs/zh-CN/commands.md"] {
        is_fresh(page);
    }
}

fn is_fresh(page: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(page);
    let there = std::fs::read_to_string(&path).unwrap();
    let mut text = String::new();
    let mut rest = there.as_str();
    while let Some((before, after)) = rest.split_once("<!-- help of ") {
        let (command, after) = after.split_once(" -->\n").unwrap();
        let (_, after) = after.split_once(END).unwrap();
        let help = help(command);
        let help = help.trim_end();
        text.push_str(&format!(
            "{before}<!-- help of {command} -->\n\n```\n{help}\n```\n\n{END}"
        ));
        rest = after;
    }
    text.push_str(rest);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
        return;
    }
    assert!(
        there == text,
        "{page} is stale: run UPDATE_DOCS=1 cargo test -p hatchery-cli --test commands"
    );
}

#[test]
fn no_command_is_left_out() {
    let pages = [
        include_str!("../../../docs/commands.md"),
        include_str!("../../../docs/zh-CN/commands.md"),
    ];
    let help = help("");
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for (name, page) in commands
        .into_iter()
        .flat_map(|name| pages.map(|page| (name, page)))
    {
        assert!(page.contains(&format!("\n## {name}\n")), "{name}");
        assert!(page.contains(&format!("<!-- help of {name} -->")), "{name}");
    }
}
