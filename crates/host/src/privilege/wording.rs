//! The command for the login shell, and the marks that separate its output from the script's.

use std::{fs::File, io::Read as _};

use super::Refusal;

/// One command's words. The marks hold a nonce, so that nothing a login shell prints by itself
/// is taken for one.
#[derive(Clone, Debug)]
pub(super) struct Wording {
    nonce: String,
    script: String,
}

impl Wording {
    pub(super) fn new(script: &str) -> Result<Self, Refusal> {
        if let Some(character) = script.chars().find(|c| "!\\\n\r\0".contains(*c)) {
            return Err(Refusal::Script { character });
        }
        Ok(Self {
            nonce: nonce().map_err(|error| Refusal::NoNonce {
                reason: error.to_string(),
            })?,
            script: script.into(),
        })
    }

    /// Asked for by sudo as prompt.
    pub(super) fn prompt(&self) -> String {
        format!("hatchery-asks-{}:", self.nonce)
    }

    /// Printed when the wrapper runs, as a line.
    pub(super) fn mark(&self) -> String {
        format!("hatchery-ready-{}\n", self.nonce)
    }

    /// The line behind which the script begins.
    pub(super) fn go(&self) -> String {
        format!("hatchery-go-{}\n", self.nonce)
    }

    /// Says that it runs, waits for the go line, and becomes the script. `read` takes one byte
    /// at a time from a stream, so that it takes nothing of the payload.
    fn wrapped(&self) -> String {
        let wrapper = format!(
            "unset LC_ALL; echo hatchery-ready-{nonce}; l=; until [ \"$l\" = hatchery-go-{nonce} ]; do read -r l || exit 97; done; unset l; {script}",
            nonce = self.nonce,
            script = self.script,
        );
        // A single quote inside is said in double quotes, which all shells understand alike.
        format!("sh -c '{}'", wrapper.replace('\'', "'\"'\"'"))
    }

    pub(super) fn as_root(&self) -> String {
        self.wrapped()
    }

    /// In the C locale, so that we understand what sudo says.
    pub(super) fn with_sudo(&self) -> String {
        format!(
            "env LC_ALL=C sudo -S -p {} -- {}",
            self.prompt(),
            self.wrapped()
        )
    }

    /// Fails rather than asks: it never reads from the script's input.
    pub(super) fn with_free_sudo(&self) -> String {
        format!("env LC_ALL=C sudo -n -- {}", self.wrapped())
    }
}

fn nonce() -> std::io::Result<String> {
    let mut bytes = [0_u8; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_agree_about_every_character() {
        let wording = Wording::new("printf %s \"$HOME\" 'it'").unwrap();
        for command in [
            wording.as_root(),
            wording.with_sudo(),
            wording.with_free_sudo(),
        ] {
            assert!(!command.contains(['!', '\\', '\n', '`']), "{command}");
        }
        for bad in ["test ! -e x", "printf '\\n'", "one\ntwo"] {
            assert!(
                matches!(Wording::new(bad), Err(Refusal::Script { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn no_two_commands_share_a_mark() {
        let [one, other] = ["true", "true"].map(|script| Wording::new(script).unwrap());
        assert_ne!(one.mark(), other.mark());
        assert_ne!(one.go(), other.go());
    }
}
