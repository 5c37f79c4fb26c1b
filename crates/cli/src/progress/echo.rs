//! A terminal that does not write `^C` into lines that are drawn again.

use std::io;

use rustix::{
    process::getpgrp,
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr},
};

/// The terminal as it was; it is put back when this is dropped.
pub(super) struct Echo {
    before: Termios,
}

impl Echo {
    /// Asks the terminal to be quiet, if there is one and it is ours.
    pub(super) fn off() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHOCTL);
        set(&quiet).then_some(Self { before })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        set(&self.before);
    }
}

/// Who is in the background may not touch the terminal, and would be halted.
fn set(modes: &Termios) -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
        && tcsetattr(io::stdin(), OptionalActions::Now, modes).is_ok()
}
