//! Container runtimes that are installed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{answer::Answer, service::Unit};

/// A container runtime on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// Its name in [`Questions::runtimes`](super::Questions::runtimes).
    pub kind: String,
    /// The path of its program.
    pub path: String,
    /// Its version, such as `1.6.20`.
    pub version: Option<String>,
    /// Its unit, where there is one.
    pub unit: Option<Unit>,
    /// Its socket, while there is one.
    pub socket: Option<String>,
}

/// More than there are questions for; a machine that says so much is not believed.
const MOST: usize = 16;

/// Those that were asked for: the script repeats their name, program, unit and socket in its answer.
pub(super) fn runtimes(
    answer: &Answer,
    programs: &BTreeMap<String, String>,
    units: Option<&BTreeMap<String, Unit>>,
) -> Vec<Runtime> {
    let runtime = |asked: &str| {
        let mut words = asked.split(' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        let (kind, program, unit, socket) = (word()?, word()?, word()?, word()?);
        let path = programs.get(program)?.clone();
        let mut said = answer
            .each(&format!("version-{program}"))
            .map(str::to_owned);
        Some(Runtime {
            kind: kind.to_owned(),
            path,
            version: said.find_map(|line| version(&line)),
            unit: units.and_then(|units| units.get(unit).cloned()),
            socket: answer.has_path(socket).then(|| socket.to_owned()),
        })
    };
    let mut found: Vec<Runtime> = Vec::new();
    for one in answer.each("runtimes").filter_map(runtime) {
        if found.len() < MOST && found.iter().all(|known| known.kind != one.kind) {
            found.push(one);
        }
    }
    found
}

/// The first word that looks like a version: `v2.4.2`, `20.10.24+dfsg1,`, `1.6.20~ds1`.
fn version(line: &str) -> Option<String> {
    line.split_whitespace().find_map(|word| {
        let word = word.strip_prefix('v').unwrap_or(word);
        let word = word.trim_end_matches([',', ';']);
        let mut parts = word.splitn(3, '.');
        let is_number = |part: Option<&str>| {
            part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        };
        let is_version = is_number(parts.next()) && is_number(parts.next());
        let rest_begins = parts
            .next()
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        (is_version && rest_begins).then(|| word.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, expected) in [
            (
                "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3",
                Some("1.6.20~ds1"),
            ),
            (
                "containerd github.com/containerd/containerd/v2 v2.4.2 abcdef",
                Some("2.4.2"),
            ),
            (
                "Docker version 20.10.24+dfsg1, build 5d6db84",
                Some("20.10.24+dfsg1"),
            ),
            ("Version 2.0.18, commit 1234", Some("2.0.18")),
            ("crio version 1.28.4", Some("1.28.4")),
            ("command not found", None),
        ] {
            assert_eq!(version(said).as_deref(), expected, "{said}");
        }
    }

    #[test]
    fn a_socket_alone_is_no_runtime() {
        let answer = with_sections(&[
            (
                "paths",
                "/run/docker.sock\n/run/containerd/containerd.sock\n",
            ),
            (
                "runtimes",
                "docker dockerd docker.service /run/docker.sock\nbroken\n\
                 containerd containerd containerd.service /run/containerd/containerd.sock\n\
                 containerd containerd other.service /run/other.sock\n",
            ),
            ("version-containerd", "containerd x 1.7.0\n"),
        ]);
        let programs =
            BTreeMap::from([("containerd".to_owned(), "/usr/bin/containerd".to_owned())]);
        let found = runtimes(&answer, &programs, None);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, "containerd");
        assert_eq!(found[0].version.as_deref(), Some("1.7.0"));
        assert_eq!(
            found[0].socket.as_deref(),
            Some("/run/containerd/containerd.sock")
        );
    }
}
