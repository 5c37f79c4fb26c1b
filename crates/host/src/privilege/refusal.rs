//! Why root's rights cannot be had.

use std::time::Duration;

use snafu::Snafu;

/// Why a script could not be begun as root.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Refusal {
    /// sudo wants a password and there is none.
    #[snafu(display("sudo asks for a password, and none is known"))]
    NeedsPassword,
    /// sudo rejected the password.
    #[snafu(display("sudo rejected the password"))]
    WrongPassword,
    /// The password cannot be typed.
    #[snafu(display("sudo's password holds a line break"))]
    Unspeakable,
    /// The user may not.
    #[snafu(display("sudo does not allow it: {said}"))]
    NotAllowed {
        /// sudo's output.
        said: String,
    },
    /// sudo works on terminals only.
    #[snafu(display("sudo wants a terminal: {said}"))]
    NeedsTerminal {
        /// sudo's output.
        said: String,
    },
    /// sudo is not installed.
    #[snafu(display("there is no sudo for the login user"))]
    NoSudo,
    /// sudo asks for something other than the password.
    #[snafu(display("sudo asks for something other than a password: '{question}'"))]
    OtherQuestion { question: String },
    /// Neither let in nor refused.
    #[snafu(display("sudo neither let us in nor refused within {} s", after.as_secs()))]
    Silent {
        /// How long was waited.
        after: Duration,
    },
    /// It ended before the script began.
    #[snafu(display("sudo ended with {exit} before the script began: {said}"))]
    Ended {
        /// How it ended: an exit code or a signal.
        exit: String,
        /// What it said.
        said: String,
    },
    /// The script cannot be passed to every shell.
    #[snafu(display("a script must not hold {character:?}, which shells understand differently"))]
    Script { character: char },
    /// The random source of the control machine failed.
    #[snafu(display("cannot read /dev/urandom: {reason}"))]
    NoNonce { reason: String },
}

impl Refusal {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NeedsPassword => {
                "give sudo's password beside the login's, or let the user use sudo without one (NOPASSWD in /etc/sudoers.d)"
            }
            Self::WrongPassword => {
                "correct sudo's password; it is the login user's own unless sudoers says otherwise (targetpw, rootpw)"
            }
            Self::Unspeakable => "give the password without a line break at its end",
            Self::NotAllowed { .. } => {
                "let the user run everything as root: a line 'USER ALL=(ALL) ALL' in /etc/sudoers.d, or log in as root"
            }
            Self::NeedsTerminal { .. } => {
                "remove 'requiretty' from sudoers, or add 'Defaults:USER !requiretty'"
            }
            Self::NoSudo => "install sudo on the machine, or log in as root",
            Self::OtherQuestion { .. } | Self::Silent { .. } => {
                "try 'sudo true' on the machine by hand; a second factor for sudo cannot be answered from here"
            }
            Self::Ended { .. } => "try 'sudo true' on the machine by hand",
            Self::Script { .. } | Self::NoNonce { .. } => "report this as a fault of Hatchery",
        }
    }

    /// From what sudo said before it ended.
    pub(super) fn of_words(said: &str, exit: &str) -> Self {
        let line = |words: &[&str]| {
            let has = |line: &&str| words.iter().any(|word| line.contains(word));
            said.lines().find(has).map(|line| line.trim().to_owned())
        };
        if let Some(said) = line(&["must have a tty", "no tty present", "terminal is required"]) {
            Self::NeedsTerminal { said }
        } else if let Some(said) = line(&[
            "not in the sudoers",
            "is not allowed to",
            "may not run sudo",
            "I'm sorry",
        ]) {
            Self::NotAllowed { said }
        } else if line(&["incorrect password", "Sorry, try again"]).is_some() {
            Self::WrongPassword
        } else if line(&["password is required", "no password was provided"]).is_some() {
            Self::NeedsPassword
        } else if line(&[
            "sudo: not found",
            "sudo: command not found",
            "sudo': No such file",
            "sudo: No such file",
        ])
        .is_some()
            || line(&["sudo’: No such file", "sudo: Permission denied"]).is_some()
        {
            Self::NoSudo
        } else {
            let said = said.trim();
            let from = said.len().saturating_sub(400);
            let from = (from..=said.len()).find(|at| said.is_char_boundary(*at));
            Self::Ended {
                exit: exit.into(),
                said: said[from.unwrap_or_default()..].replace('\n', "; "),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_s_words_are_understood() {
        let of = |said: &str| Refusal::of_words(said, "exit code 1");
        let kind = |said: &str| of(said).remedy();
        for (said, like) in [
            ("env: ‘sudo’: No such file or directory\n", Refusal::NoSudo),
            (
                "env: can't execute 'sudo': No such file or directory\n",
                Refusal::NoSudo,
            ),
            ("sh: 1: sudo: not found", Refusal::NoSudo),
            ("sudo: a password is required\n", Refusal::NeedsPassword),
            (
                "Sorry, try again.\nsudo: 1 incorrect password attempt\n",
                Refusal::WrongPassword,
            ),
            (
                "lecture\nops is not in the sudoers file.  This incident will be reported.\n",
                Refusal::NotAllowed {
                    said: String::new(),
                },
            ),
            (
                "Sorry, user ops is not allowed to execute 'sh' as root on lab-1.",
                Refusal::NotAllowed {
                    said: String::new(),
                },
            ),
            (
                "sudo: sorry, you must have a tty to run sudo\n",
                Refusal::NeedsTerminal {
                    said: String::new(),
                },
            ),
            (
                "sudo: /etc/sudo.conf is wrong",
                Refusal::Ended {
                    exit: String::new(),
                    said: String::new(),
                },
            ),
        ] {
            assert_eq!(kind(said), like.remedy(), "{said}: {:?}", of(said));
        }
        let long = "ä".repeat(1000);
        assert!(of(&long).to_string().len() < 600);
    }
}
