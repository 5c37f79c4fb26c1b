//! What a caller wants to know of a machine beside what everybody does.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

use super::{SCRIPT, answer::Answer};
use crate::{package_manager, quote::quote};

/// Questions about things that only the caller knows the meaning of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Questions {
    /// Directories whose entries are listed, at most 64 of each.
    pub entries: &'static [&'static str],
    /// Units of systemd.
    pub units: &'static [&'static str],
    /// Settings that name directories.
    pub directories: &'static [DirectorySetting],
    /// Directories below which mounts come and go by the thousand and are left out.
    pub busy_mounts: &'static [&'static str],
    /// Container runtimes that may be installed.
    pub runtimes: &'static [RuntimeQuestion],
}

/// By what a container runtime is found.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RuntimeQuestion {
    /// The name under which the answer is found, a single word.
    pub name: &'static str,
    /// The name of the program, without its directory. It prints its version with `--version`.
    pub program: &'static str,
    pub unit: &'static str,
    pub socket: &'static str,
    /// Where its data is; mounts below that are left out.
    pub data: &'static str,
}

/// A setting of an environment file that names a directory, such as `DATA_DIR="/srv/data"`.
#[derive(Clone, Copy, Debug)]
pub struct DirectorySetting {
    /// The environment file.
    pub file: &'static str,
    /// The setting's name.
    pub name: &'static str,
    /// Where a path begins that is not absolute.
    pub base: &'static str,
    /// A directory that is looked for in the one that the setting names.
    pub contains: &'static str,
}

/// A directory as a setting names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfiguredDirectory {
    /// Its absolute path.
    pub path: String,
    /// Whether it has in it what was looked for.
    pub is_used: bool,
}

/// The script with the questions, to be run by any POSIX shell.
pub fn script(questions: &Questions) -> String {
    let mut text = String::new();
    let runtimes = questions.runtimes;
    let words = |word: fn(&RuntimeQuestion) -> &'static str| runtimes.iter().map(word);
    let mounts = questions.busy_mounts.iter().copied();
    let mounts = mounts.chain(words(|runtime| runtime.data));
    let units = questions.units.iter().copied();
    let units = units.chain(words(|runtime| runtime.unit));
    for (name, value) in [
        ("package_programs", joined(package_manager::programs())),
        ("asked_units", joined(units)),
        ("asked_mounts", mounts.map(pattern).collect()),
        ("asked_programs", joined(words(|runtime| runtime.program))),
        ("asked_sockets", joined(words(|runtime| runtime.socket))),
    ] {
        let _ = writeln!(text, "{name}={}", quote(&value));
    }
    text.push_str("asked_entries() {\n:\n");
    for directory in questions.entries {
        let _ = writeln!(text, "entries_of {}", quote(directory));
    }
    text.push_str("}\nasked_directories() {\n:\n");
    for one in questions.directories {
        let words = [one.file, one.name, one.base, one.contains].map(quote);
        let _ = writeln!(text, "directory_of {}", words.join(" "));
    }
    text.push_str("}\nasked_runtimes() {\n:\n");
    for runtime in runtimes {
        let words = [runtime.name, runtime.program, runtime.unit, runtime.socket];
        let _ = writeln!(text, "echo {}", quote(&words.join(" ")));
    }
    text.push_str("}\n");
    text + SCRIPT
}

fn joined(words: impl Iterator<Item = &'static str>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

/// One more alternative of a regular expression for paths without their first slash.
fn pattern(path: &str) -> String {
    let mut pattern = "|".to_owned();
    for character in path.trim_start_matches('/').chars() {
        if !character.is_ascii_alphanumeric() && character != '/' {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

pub(super) fn directories(answer: &Answer) -> BTreeMap<String, ConfiguredDirectory> {
    let directory = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let name = words.next()?.to_owned();
        let is_used = words.next()? == "used";
        let path = unescaped(words.next()?);
        Some((name, ConfiguredDirectory { path, is_used }))
    };
    answer.each("directories").filter_map(directory).collect()
}

/// As systemd reads what stands between quotes.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn settings_name_directories() {
        let said = "DATA used /srv/data/\nLOG empty /a b\\\"\\\\c\nbroken\n";
        let found = directories(&with_sections(&[("directories", said)]));
        let found: Vec<_> = found
            .iter()
            .map(|(name, one)| (name.as_str(), one.path.as_str(), one.is_used))
            .collect();
        assert_eq!(
            found,
            [("DATA", "/srv/data/", true), ("LOG", "/a b\"\\c", false)]
        );
    }

    #[test]
    fn paths_are_no_patterns() {
        assert_eq!(pattern("/var/lib/x.y"), "|var/lib/x\\.y");
    }
}
