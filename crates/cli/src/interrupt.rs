//! Ctrl-C: once to stop in a clean state, twice to leave at once.

use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a shell expects of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Requests to stop, from the terminal or from whoever ends services.
pub(crate) struct Interrupts {
    terminal: Signal,
    service: Signal,
}

impl Interrupts {
    /// From now on they are ours to obey.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminal: signal(SignalKind::interrupt())?,
            service: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminal.recv() => {}
            _ = self.service.recv() => {}
        }
    }

    /// Carries something out that changes nothing, or gives it up.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.next() => None,
        }
    }
}

/// Says that a command was given up before it changed anything.
pub(crate) fn untouched() -> ExitCode {
    eprintln!("\nstopped; nothing was changed");
    ExitCode::from(INTERRUPTED)
}
