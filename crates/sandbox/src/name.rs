//! Names of sandboxes and of what belongs to them.

use std::{fmt, str::FromStr};

use snafu::{Snafu, ensure};
use strsim::levenshtein;

/// Room for `-bastion` and the like within the 63 characters of a host name.
const MAX_LENGTH: usize = 40;

/// Why a name cannot be a sandbox's.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display(
    "'{name}' is not a valid sandbox name: the host names of its machines start with it, so use \
     1 to {MAX_LENGTH} lower-case letters, digits and '-', beginning and ending with a letter or digit"
))]
pub struct Invalid {
    name: String,
}

/// The name of a sandbox: an RFC-1123 label, and short enough for names derived from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl FromStr for Name {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        let within = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let good = (1..=MAX_LENGTH).contains(&name.len())
            && name.chars().all(within)
            && !name.starts_with('-')
            && !name.ends_with('-');
        ensure!(good, InvalidSnafu { name });
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sandbox that a machine of this name belongs to: a machine is called by its sandbox
    /// and a number (or `bastion`), so no two sandboxes have a machine of the same name.
    pub fn from_machine(machine: &str) -> Option<Self> {
        let (name, _) = machine.rsplit_once('-')?;
        name.parse().ok()
    }

    /// The host name of the `number`th machine, counted from one.
    pub fn machine(&self, number: usize) -> String {
        format!("{self}-{number}")
    }

    /// The host name of the bastion.
    pub fn bastion(&self) -> String {
        format!("{self}-bastion")
    }

    /// The name of what stands for the world outside.
    pub fn outside(&self) -> String {
        format!("{self}-outside")
    }

    /// The Docker network.
    pub fn network(&self) -> String {
        format!("hatchery-{self}")
    }
}

/// The Docker container of a machine.
pub fn container(machine: &str) -> String {
    format!("hatchery-{machine}")
}

/// The candidate nearest to a mistyped word, if one is near enough to be meant.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = candidates
        .into_iter()
        .map(|candidate| (levenshtein(word, candidate), candidate))
        .min()?;
    (near.0 <= 2.max(word.len() / 3)).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_host_name_labels() {
        for good in ["lab", "a", "lab-2", "0x", &"a".repeat(40)] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "Lab",
            "lab_1",
            "-lab",
            "lab-",
            "läb",
            "a.b",
            "a b",
            &"a".repeat(41),
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_machine_tells_its_sandbox() {
        let lab: Name = "my-lab".parse().unwrap();
        for machine in [lab.machine(12), lab.bastion()] {
            assert_eq!(Name::from_machine(&machine), Some(lab.clone()));
        }
        assert_eq!(Name::from_machine("lab"), None);
    }

    #[test]
    fn a_slip_of_the_finger_finds_what_was_meant() {
        let machines = ["lab-1", "lab-2", "lab-bastion"];
        assert_eq!(nearest("lab1", machines), Some("lab-1"));
        assert_eq!(nearest("lab-bastoin", machines), Some("lab-bastion"));
        assert_eq!(nearest("something-else", machines), None);
    }
}
