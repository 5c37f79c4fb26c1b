//! The settings of a sandbox, and the Docker labels that store them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::Serialize;
use snafu::{Snafu, ensure};

/// Label: the sandbox that a container or network belongs to.
pub const SANDBOX: &str = "hatchery.sandbox";
/// Label: the machine's host name.
pub const MACHINE: &str = "hatchery.machine";
/// Label: what the container is for, see [`Role`].
pub const ROLE: &str = "hatchery.role";
/// Label: the machine's fixed address.
pub const ADDRESS: &str = "hatchery.address";
/// Label: the test process that owns the sandbox, see [`crate::test_lab`].
pub const TEST: &str = "hatchery.test-pid";
const SYSTEM: &str = "hatchery.system";
const USER: &str = "hatchery.user";
const SUDO: &str = "hatchery.sudo";
const BASTION: &str = "hatchery.bastion";

/// Labels of Docker objects, by key.
pub type Labels = BTreeMap<String, String>;

/// The word is not a valid value of the setting.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("'{word}' is not one of {known}"))]
pub struct UnknownWord {
    word: String,
    known: &'static str,
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ }, $known:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $type { $($(#[$vdoc])* $variant),+ }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;
            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => UnknownWordSnafu { word, known: $known }.fail(),
                }
            }
        }
    };
}

words!(
    /// The distribution that machines stand for.
    System {
        /// Debian: apt, `/bin/sh` is dash.
        Debian = "debian",
        /// openEuler: dnf and rpm, `/bin/sh` is bash, sshd forbids forwarding.
        Rpm = "rpm"
    },
    "debian, rpm"
);

words!(
    /// How the login user becomes root.
    Sudo {
        /// Without being asked.
        Nopasswd = "nopasswd",
        /// With the login password.
        Password = "password"
    },
    "nopasswd, password"
);

words!(
    /// What a container of a sandbox is for.
    Role {
        /// A machine to deploy on.
        Machine = "machine",
        /// The only way to the machines, when asked for.
        Bastion = "bastion",
        /// Resolver and web server that stand for the world outside.
        Outside = "outside"
    },
    "machine, bastion, outside"
);

impl System {
    /// The fixture that holds its root file system.
    pub fn fixture(self) -> &'static str {
        match self {
            Self::Debian => "rootfs-debian",
            Self::Rpm => "rootfs-rpm",
        }
    }
}

/// What was wrong with the settings asked for.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display(
        "'{user}' is not a valid user name: use 1 to 32 lower-case letters, digits, '-' and '_', starting with a letter"
    ))]
    User { user: String },
    #[snafu(display("root needs no sudo password"))]
    SudoForRoot,
}

/// What all machines of a sandbox have in common; fixed when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The distribution of the machines.
    pub system: System,
    /// The login user.
    pub user: String,
    /// How that user becomes root.
    pub sudo: Sudo,
    /// Whether the machines can be reached only through a bastion.
    pub bastion: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system: System::Debian,
            user: "root".into(),
            sudo: Sudo::Nopasswd,
            bastion: false,
        }
    }
}

/// Requested settings. What is `None` keeps its value in an existing sandbox, and has its default in a new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedSettings {
    /// The distribution of the machines.
    pub system: Option<System>,
    /// The login user.
    pub user: Option<String>,
    /// How that user becomes root.
    pub sudo: Option<Sudo>,
    /// Whether the machines can be reached only through a bastion.
    pub bastion: Option<bool>,
}

impl RequestedSettings {
    /// The settings of a new sandbox.
    pub(crate) fn resolve(&self) -> Result<Settings, Error> {
        let default = Settings::default();
        let user = self.user.clone().unwrap_or(default.user);
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        ensure!(
            (1..=32).contains(&user.len())
                && user.starts_with(|c: char| c.is_ascii_lowercase())
                && user.chars().all(good),
            UserSnafu { user }
        );
        ensure!(
            user != "root" || self.sudo != Some(Sudo::Password),
            SudoForRootSnafu
        );
        Ok(Settings {
            system: self.system.unwrap_or(default.system),
            user,
            sudo: self.sudo.unwrap_or(default.sudo),
            bastion: self.bastion.unwrap_or(default.bastion),
        })
    }

    /// The first setting asked for that an existing sandbox does not have: which one, as it is,
    /// as it was asked for.
    pub(crate) fn conflict(&self, with: &Settings) -> Option<(&'static str, String, String)> {
        fn differs<T: ToString + PartialEq>(
            what: &'static str,
            is: &T,
            wanted: Option<&T>,
        ) -> Option<(&'static str, String, String)> {
            let wanted = wanted.filter(|wanted| *wanted != is)?;
            Some((what, is.to_string(), wanted.to_string()))
        }
        differs("system", &with.system, self.system.as_ref())
            .or_else(|| differs("user", &with.user, self.user.as_ref()))
            .or_else(|| differs("sudo", &with.sudo, self.sudo.as_ref()))
            .or_else(|| differs("bastion", &with.bastion, self.bastion.as_ref()))
    }
}

impl Settings {
    /// As labels of the network and of every container.
    pub(crate) fn labels(&self) -> Labels {
        [
            (SYSTEM, self.system.to_string()),
            (USER, self.user.clone()),
            (SUDO, self.sudo.to_string()),
            (BASTION, self.bastion.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// From labels; `None` when they are not a sandbox's.
    pub(crate) fn from_labels(labels: &Labels) -> Option<Self> {
        Some(Self {
            system: labels.get(SYSTEM)?.parse().ok()?,
            user: labels.get(USER)?.clone(),
            sudo: labels.get(SUDO)?.parse().ok()?,
            bastion: labels.get(BASTION)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_remember_the_settings() {
        let settings = Settings {
            system: System::Rpm,
            user: "ops".into(),
            sudo: Sudo::Password,
            bastion: true,
        };
        assert_eq!(Settings::from_labels(&settings.labels()), Some(settings));
        assert_eq!(Settings::from_labels(&Labels::new()), None);
    }

    #[test]
    fn only_a_setting_that_was_asked_for_can_conflict() {
        let is = Settings {
            user: "ops".into(),
            ..Settings::default()
        };
        assert_eq!(RequestedSettings::default().conflict(&is), None);
        let requested = RequestedSettings {
            system: Some(System::Debian),
            user: Some("root".into()),
            ..RequestedSettings::default()
        };
        let (what, has, wanted) = requested.conflict(&is).unwrap();
        assert_eq!(
            (what, has.as_str(), wanted.as_str()),
            ("user", "ops", "root")
        );
    }

    #[test]
    fn senseless_wishes_are_refused() {
        let requested = |user: &str, sudo| RequestedSettings {
            user: Some(user.into()),
            sudo,
            ..RequestedSettings::default()
        };
        assert!(requested("ops", Some(Sudo::Password)).resolve().is_ok());
        assert_eq!(
            requested("root", Some(Sudo::Password)).resolve(),
            Err(Error::SudoForRoot)
        );
        for bad in ["", "Ops", "0ps", "a b", "o/ps", "$(id)", &"a".repeat(33)] {
            assert!(requested(bad, None).resolve().is_err(), "{bad}");
        }
    }
}
