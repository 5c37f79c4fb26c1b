//! Whom the container runtimes of a machine serve besides us.
//!
//! Once a cluster has come its own containers are there too. So what was found before is written down on the
//! machine ([`RuntimeUse::lines`]) and told from then on.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

use super::{answer::Answer, service::Unit};

/// Where [`RuntimeUse::lines`] are kept on a machine while a cluster holds it.
pub const RUNTIME_USE: &str = "/var/lib/hatchery/runtime-use";
/// Where docker's settings of the time before the cluster are kept.
pub const DOCKER_SETTINGS: &str = "/var/lib/hatchery/docker-settings";

/// What docker and containerd were used for before a cluster came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RuntimeUse {
    /// Whether it was written down when the cluster came. Otherwise it is what was seen just now.
    pub recorded: bool,
    pub docker: DockerUse,
    /// Running containers of containerd, whoever started them.
    pub containerd_containers: usize,
    /// Lines of containerd's configuration that say where its data is, such as `root = "/srv/containerd"`.
    pub containerd_directories: Vec<String>,
}

/// What docker was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DockerUse {
    /// Containers, running or not.
    pub containers: usize,
    /// Whether there is a `docker.service`.
    pub unit: bool,
    /// Whether it belongs to a swarm.
    pub swarm: bool,
    /// Names of the arguments that it was started with, with their dashes. Values may be secret and stay there.
    pub flags: Vec<String>,
    /// Whether there is an `/etc/docker/daemon.json`.
    pub settings: bool,
    /// What stands in it. It may hold a proxy's password: it is not written anywhere.
    #[serde(skip)]
    pub settings_text: Option<String>,
}

impl RuntimeUse {
    /// Whether docker is in use, or has been configured.
    pub fn uses_docker(&self) -> bool {
        self.docker.containers > 0 || self.docker.settings
    }

    /// Whether containerd is in use.
    pub fn uses_containerd(&self) -> bool {
        self.containerd_containers > 0
    }

    /// All of it but docker's settings, as it is kept on the machine: lines of plain words.
    pub fn lines(&self) -> String {
        let docker = &self.docker;
        let mut text = String::new();
        for (name, count) in [
            ("docker containers", docker.containers),
            ("containerd containers", self.containerd_containers),
        ] {
            if count > 0 {
                let _ = writeln!(text, "{name} {count}");
            }
        }
        for (name, is) in [
            ("docker unit", docker.unit),
            ("docker swarm", docker.swarm),
            ("docker settings", docker.settings),
        ] {
            if is {
                let _ = writeln!(text, "{name}");
            }
        }
        for flag in &docker.flags {
            let _ = writeln!(text, "docker flag {flag}");
        }
        for line in &self.containerd_directories {
            let _ = writeln!(text, "containerd directory {line}");
        }
        text
    }
}

pub(super) fn runtime_use(answer: &Answer, units: Option<&BTreeMap<String, Unit>>) -> RuntimeUse {
    let mut found = RuntimeUse::default();
    let docker = &mut found.docker;
    let count = |text: &str| text.trim().parse().unwrap_or(1);
    for line in answer.each("runtime-use") {
        let (what, value) = match line.match_indices(' ').nth(1) {
            Some((at, _)) => (&line[..at], line[at..].trim()),
            None => (line, ""),
        };
        match what {
            "before" => found.recorded = true,
            "docker containers" => docker.containers = count(value),
            "docker unit" => docker.unit = true,
            "docker swarm" => docker.swarm = true,
            "docker settings" => docker.settings = true,
            "docker flag" if is_flag(value) && docker.flags.len() < 64 => {
                docker.flags.push(value.to_owned());
            }
            "containerd containers" => found.containerd_containers = count(value),
            "containerd directory" if is_directory_line(value) => {
                found.containerd_directories.push(value.to_owned());
            }
            _ => {}
        }
    }
    if !found.recorded {
        docker.unit = units.is_some_and(|units| units.contains_key("docker.service"));
    }
    if docker.settings {
        let lines = answer.lines("docker-settings");
        docker.settings_text = lines.map(|lines| lines.join("\n"));
    }
    found
}

fn is_flag(text: &str) -> bool {
    text.starts_with('-') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// `root = "/path"` or `state = '/path'`, with nothing that a shell or TOML could take for something else.
fn is_directory_line(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=') else {
        return false;
    };
    let value = value.trim();
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    matches!(name.trim(), "root" | "state")
        && inner.is_some_and(|path| {
            path.starts_with('/')
                && path
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn what_was_found_is_read_again_as_it_was_written_down() {
        let section = "docker containers 2\ndocker swarm\ndocker settings\ndocker flag --host\n\
                       docker flag $(id)\ncontainerd containers 1\ncontainerd directory root = \"/srv/c\"\n\
                       containerd directory root = \"/a'b\"\nsomething else\n";
        let settings = "{\n  \"data-root\": \"/srv/docker\"\n}\n";
        let first = with_sections(&[("runtime-use", section), ("docker-settings", settings)]);
        let mut found = runtime_use(&first, None);
        assert!(!found.recorded && found.uses_docker() && found.uses_containerd());
        assert_eq!(found.docker.flags, ["--host"]);
        assert_eq!(found.containerd_directories, ["root = \"/srv/c\""]);
        let text = found.docker.settings_text.as_deref().unwrap();
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(json["data-root"], "/srv/docker");
        // It is not among the facts that are shown or kept.
        assert!(
            !serde_json::to_string(&found)
                .unwrap()
                .contains("/srv/docker")
        );

        let again = format!("before\n{}", found.lines());
        let again = with_sections(&[("runtime-use", &again), ("docker-settings", settings)]);
        found.recorded = true;
        assert_eq!(runtime_use(&again, None), found);
    }

    #[test]
    fn a_machine_that_serves_nobody_is_not_in_use() {
        let found = runtime_use(&with_sections(&[("runtime-use", "\n")]), None);
        assert_eq!(found, RuntimeUse::default());
        assert!(!found.uses_docker() && !found.uses_containerd());
        assert_eq!(found.lines(), "");
    }
}
