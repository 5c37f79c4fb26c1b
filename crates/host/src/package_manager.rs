//! Package managers, one file each: what installs packages on a machine.
//!
//! A new one is a file here, a file of functions beside it, and a line in [`PACKAGE_MANAGERS`].

mod apt;
mod dnf;
mod rpm;
mod yum;

use std::{collections::BTreeMap, fmt, iter};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use apt::APT;
pub use dnf::DNF;
pub use rpm::RPM;
pub use yum::YUM;

use crate::package_format::{FORMATS, PackageFormat};

/// What installs packages on a machine.
pub struct PackageManager {
    /// As facts call it, and as its functions in the machine's script begin.
    pub name: &'static str,
    /// The packages that it installs.
    pub format: &'static PackageFormat,
    /// How it brings packages from repositories; `None` when it installs only files.
    pub(crate) repositories: Option<Repositories>,
}

/// How packages come from repositories.
pub(crate) struct Repositories {
    /// The program that brings them.
    pub(crate) program: &'static str,
    /// Its functions in the machine's script.
    pub(crate) functions: &'static str,
    /// Reads what its function `NAME_offered` prints about packages: each line about one gives its name and a
    /// version, the installed one first.
    pub(crate) read_offered: fn(&str) -> Vec<(String, String)>,
}

/// In the order in which they are looked for.
pub(crate) const PACKAGE_MANAGERS: [&PackageManager; 4] = [&APT, &DNF, &YUM, &RPM];

impl PackageManager {
    /// Whether it can bring packages from repositories.
    pub fn has_repositories(&self) -> bool {
        self.repositories.is_some()
    }

    /// Whether it is there, by the programs that are.
    pub(crate) fn is_there(&self, programs: &BTreeMap<String, String>) -> bool {
        let own = self.repositories.iter().map(|one| one.program);
        iter::once(self.format.program)
            .chain(own)
            .all(|name| programs.contains_key(name))
    }
}

/// Those that have repositories.
pub(crate) fn with_repositories()
-> impl Iterator<Item = (&'static PackageManager, &'static Repositories)> {
    PACKAGE_MANAGERS
        .into_iter()
        .filter_map(|one| Some((one, one.repositories.as_ref()?)))
}

/// The programs by which a machine's package manager is known.
pub(crate) fn programs() -> impl Iterator<Item = &'static str> {
    let formats = FORMATS.into_iter().map(|format| format.program);
    formats.chain(with_repositories().map(|(_, own)| own.program))
}

/// The functions of all formats and package managers, for the machine's script.
pub(crate) fn functions() -> impl Iterator<Item = &'static str> {
    let formats = FORMATS.into_iter().map(|format| format.functions);
    formats.chain(with_repositories().map(|(_, own)| own.functions))
}

/// What the script looks for: formats as `NAME:PROGRAM`, package managers as `NAME:FORMAT:PROGRAM`.
pub(crate) fn lists() -> String {
    let formats = FORMATS.map(|one| format!("{}:{}", one.name, one.query));
    let managers: Vec<_> = with_repositories()
        .map(|(one, own)| format!("{}:{}:{}", one.name, one.format.name, own.program))
        .collect();
    format!(
        "package_formats='{}'\npackage_managers='{}'\n",
        formats.join(" "),
        managers.join(" ")
    )
}

impl PartialEq for PackageManager {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PackageManager {}

impl fmt::Debug for PackageManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for PackageManager {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static PackageManager {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let mut all = PACKAGE_MANAGERS.into_iter();
        all.find(|one| one.name == name)
            .ok_or_else(|| de::Error::custom(format!("no package manager is called {name:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words behind `before` in the machine's script.
    fn verbs(before: &str) -> Vec<&'static str> {
        let script = crate::script::prelude_text();
        let mut verbs: Vec<_> = script
            .split(before)
            .skip(1)
            .filter_map(|rest| rest.split([' ', ')', ';', '\n']).next())
            .collect();
        verbs.sort_unstable();
        verbs.dedup();
        verbs
    }

    #[test]
    fn every_one_has_all_functions_that_are_called() {
        let script = crate::script::prelude_text();
        let formats = FORMATS.map(|one| one.name);
        let managers: Vec<_> = with_repositories().map(|(one, _)| one.name).collect();
        for (names, mut called) in [
            (&formats[..], verbs("per_format ")),
            (&managers[..], verbs("per_manager ")),
        ] {
            assert!(called.len() >= 4, "{called:?}");
            if names == managers {
                called.push("offered");
            }
            for name in names {
                for verb in &called {
                    let function = format!("\n{name}_{verb}() {{");
                    assert!(script.contains(&function), "no {name}_{verb}");
                }
            }
        }
    }

    #[test]
    fn a_name_is_read_back() {
        for manager in PACKAGE_MANAGERS {
            let text = serde_json::to_string(manager).unwrap();
            let back: &'static PackageManager = serde_json::from_str(&text).unwrap();
            assert_eq!(back, manager);
        }
        assert!(serde_json::from_str::<&'static PackageManager>("\"apt-get\"").is_err());
    }
}
