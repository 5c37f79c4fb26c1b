//! The first process, and the units it keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// The first process of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Init {
    /// Its name, such as `systemd`.
    pub name: Option<String>,
    /// When the machine was booted with systemd.
    pub systemd: Option<Systemd>,
}

/// The systemd that runs a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Systemd {
    /// Whether it answered when asked.
    pub answers: bool,
    /// Its version, such as 252.
    pub version: Option<u32>,
    /// `running`, `degraded`, `starting` and so on.
    pub state: Option<String>,
}

/// A unit of systemd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// What it is doing.
    pub active: Option<ActiveState>,
    /// Whether it starts at boot: `enabled`, `disabled`, `static`, `masked` and so on.
    pub enablement: Option<String>,
    /// The path of its unit file.
    pub path: Option<String>,
}

impl Unit {
    /// Whether it runs.
    pub fn is_active(&self) -> bool {
        matches!(
            self.active,
            Some(ActiveState::Active | ActiveState::Reloading)
        )
    }
}

/// What a unit is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActiveState {
    /// It runs.
    Active,
    /// It runs and reads its configuration anew.
    Reloading,
    /// It does not run.
    Inactive,
    /// It ended with an error.
    Failed,
    /// It is being started.
    Activating,
    /// It is being stopped.
    Deactivating,
}

impl ActiveState {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "active" => Self::Active,
            "reloading" => Self::Reloading,
            "inactive" => Self::Inactive,
            "failed" => Self::Failed,
            "activating" => Self::Activating,
            "deactivating" => Self::Deactivating,
            _ => return None,
        })
    }
}

pub(super) fn init(answer: &Answer) -> Init {
    let systemd = answer.has_path("/run/systemd/system").then(|| {
        let value = |key: &str| {
            let mut lines = answer.each("systemd");
            let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            value.filter(|value| !value.is_empty())
        };
        let version = value("Version").and_then(|version| {
            // "252 (252.38-1)", "v255-4", "219"
            let version = version.trim_start_matches(|c: char| !c.is_ascii_digit());
            version
                .split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        });
        Systemd {
            answers: value("SystemState").is_some(),
            version,
            state: value("SystemState").map(str::to_owned),
        }
    });
    Init {
        name: answer.value("init"),
        systemd,
    }
}

/// Units that exist. `systemctl show` begins each one with some property, in an order of its
/// own, so a property that comes again begins the next.
pub(super) fn units(answer: &Answer) -> Option<BTreeMap<String, Unit>> {
    let lines = answer.lines("units").filter(|lines| !lines.is_empty())?;
    let mut units = BTreeMap::new();
    let mut properties: BTreeMap<&str, &str> = BTreeMap::new();
    for line in lines {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        if properties.contains_key(key) {
            units.extend(unit(&properties));
            properties.clear();
        }
        properties.insert(key, value);
    }
    units.extend(unit(&properties));
    Some(units)
}

fn unit(properties: &BTreeMap<&str, &str>) -> Option<(String, Unit)> {
    let value = |key| {
        properties
            .get(key)
            .copied()
            .filter(|value| !value.is_empty())
    };
    let name = value("Id")?.to_owned();
    if value("LoadState")? == "not-found" {
        return None;
    }
    let unit = Unit {
        active: value("ActiveState").and_then(ActiveState::from_word),
        enablement: value("UnitFileState").map(str::to_owned),
        path: value("FragmentPath").map(str::to_owned),
    };
    Some((name, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn units_that_exist_are_listed() {
        let text = "Id=docker.service\nLoadState=not-found\nActiveState=inactive\nFragmentPath=\nUnitFileState=\n\n\
            Id=firewalld.service\nLoadState=loaded\nActiveState=active\nFragmentPath=/lib/firewalld.service\nUnitFileState=enabled\n\n\
            Id=ufw.service\nLoadState=masked\nActiveState=inactive\nFragmentPath=/dev/null\nUnitFileState=masked\n";
        let units = units(&with_sections(&[("units", text)])).unwrap();
        assert_eq!(
            units.keys().collect::<Vec<_>>(),
            ["firewalld.service", "ufw.service"]
        );
        let firewalld = &units["firewalld.service"];
        assert!(firewalld.is_active());
        assert_eq!(firewalld.path.as_deref(), Some("/lib/firewalld.service"));
        assert!(!units["ufw.service"].is_active());
    }

    #[test]
    fn a_systemd_that_hangs_is_no_lack_of_units() {
        let answer = with_sections(&[
            ("paths", "/run/systemd/system\n"),
            ("systemd", ""),
            ("units", ""),
        ]);
        assert_eq!(units(&answer), None);
        assert!(!init(&answer).systemd.unwrap().answers);
        assert_eq!(
            init(&with_sections(&[("values", "init sh\n"), ("paths", "")])).systemd,
            None
        );
    }

    #[test]
    fn versions_have_many_looks() {
        for (said, version) in [
            ("252.38-1~deb12u1", 252),
            ("v249.11-0ubuntu3", 249),
            ("219", 219),
        ] {
            let said = format!("Version={said}\nSystemState=degraded\n");
            let answer = with_sections(&[("paths", "/run/systemd/system\n"), ("systemd", &said)]);
            let systemd = init(&answer).systemd.unwrap();
            assert_eq!(systemd.version, Some(version));
            assert!(systemd.answers);
        }
    }
}
