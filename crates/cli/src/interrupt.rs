//! Ctrl-C: once to stop in a clean state, twice to leave at once.

use std::{pin::pin, process::ExitCode};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::progress::Progress;

/// What a shell expects of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Requests to stop, from the terminal or from a service manager.
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

    /// Waits for work that stops in a clean state on request. The second Ctrl-C leaves at once.
    pub(crate) async fn stopping<T>(
        &mut self,
        stop: &watch::Sender<bool>,
        progress: &Progress<'_>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.next() => {
                    if stop.send_replace(true) {
                        progress.end();
                        progress.say("left at once; run the same command again to go on");
                        std::process::exit(INTERRUPTED.into());
                    }
                    progress.say("stopping: no new task begins, what is under way is finished; Ctrl-C again leaves at once");
                }
            }
        }
    }

    /// Executes something that changes nothing, or gives it up.
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
