//! How long each step may take, and how much is done at once.

use std::time::Duration;

/// Deadlines and limits of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a TCP connection.
    pub connect: Duration,
    /// From there until the host key was checked.
    pub handshake: Duration,
    /// For logging in.
    pub authentication: Duration,
    /// For a command or a stream to be begun.
    pub channel: Duration,
    /// For being let in again and again where sshd turns us away because it is busy.
    pub busy: Duration,
    /// The time without traffic after which a keepalive request is sent.
    pub keep_alive: Duration,
    /// The number of unanswered keepalive requests after which a machine counts as dead.
    pub unanswered: usize,
    /// The time after which a command whose output is not read is given up.
    pub unread: Duration,
    /// Commands on one connection at the same time; sshd's usual MaxSessions is 10.
    pub sessions: usize,
}

impl Default for Timeouts {
    /// A dead machine is noticed after 40 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(20),
            authentication: Duration::from_secs(30),
            channel: Duration::from_secs(30),
            busy: Duration::from_secs(60),
            keep_alive: Duration::from_secs(10),
            unanswered: 3,
            unread: Duration::from_secs(60),
            sessions: 8,
        }
    }
}

impl Timeouts {
    /// The time after the last traffic at which a machine counts as dead.
    pub fn silence(&self) -> Duration {
        let questions = u32::try_from(self.unanswered).unwrap_or(u32::MAX);
        self.keep_alive.saturating_mul(questions.saturating_add(1))
    }
}

/// Growing pauses between attempts: a fiftieth of a second at first, a second at most. `seed`
/// keeps those who were turned away together from coming back together.
pub(super) fn pause(attempt: u32, seed: u64) -> Duration {
    let longest = 50 * (1_u64 << attempt.min(5));
    let longest = longest.min(1000);
    Duration::from_millis(longest / 2 + seed % (longest / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_machine_is_noticed_within_forty_five_seconds() {
        let silence = Timeouts::default().silence();
        assert!((30..=45).contains(&silence.as_secs()), "{silence:?}");
    }

    #[test]
    fn pauses_grow_to_a_second_and_differ() {
        assert!(pause(0, 1) < Duration::from_millis(50));
        assert!(pause(40, 999) <= Duration::from_secs(1));
        assert!(pause(40, 0) >= Duration::from_millis(500));
        assert_ne!(pause(3, 17), pause(3, 18));
    }
}
