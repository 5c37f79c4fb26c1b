//! What a long call reports while it runs. The library never prints: the caller decides.

use std::{fmt, net::Ipv4Addr, sync::Arc, time::Duration};

/// A progress event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A sentence, for example that Docker is being installed.
    Note(String),
    /// A line of the fixtures script.
    Fixture(String),
    /// A machine answers on SSH and systemd has finished booting.
    Ready {
        /// The machine's name.
        machine: String,
        /// The machine's address.
        address: Ipv4Addr,
        /// The time since the call began.
        after: Duration,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) | Self::Fixture(text) => f.write_str(text),
            Self::Ready {
                machine,
                address,
                after,
            } => write!(
                f,
                "  {machine:<16} {address:<15} ready after {:.1} s",
                after.as_secs_f64()
            ),
        }
    }
}

/// Where events go. Cheap to clone.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Event) + Send + Sync>);

impl Progress {
    /// Hands every event to `sink`.
    pub fn new(sink: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// One line per event on standard error.
    pub fn stderr() -> Self {
        Self::new(|event| eprintln!("{event}"))
    }

    /// Progress that nobody sees.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    pub(crate) fn send(&self, event: Event) {
        (self.0)(event);
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.send(Event::Note(text.into()));
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
