//! The pauses between two attempts: short at first, since what is waited for is often there in a moment.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep_until};

/// Pauses that grow, up to a deadline.
pub(super) struct Pauses {
    lengths: ExponentialBackoff,
    end: Instant,
}

impl Pauses {
    pub(super) fn new(deadline: Duration) -> Self {
        let lengths = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(100))
            .with_factor(1.5)
            .with_max_delay(Duration::from_secs(1))
            .without_max_times();
        Self {
            lengths: lengths.build(),
            end: Instant::now() + deadline,
        }
    }

    /// Pauses. False, and at once, when the deadline is over; the last pause ends with the deadline, so that there
    /// is an attempt at the very end.
    pub(super) async fn pause(&mut self) -> bool {
        let left = self.left();
        let length = self.lengths.next().unwrap_or(left).min(left);
        sleep_until(Instant::now() + length).await;
        !left.is_zero()
    }

    /// How much time is left.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pauses_grow_and_end_with_the_deadline() {
        let begin = Instant::now();
        let mut pauses = Pauses::new(Duration::from_millis(300));
        let mut attempts = 0;
        while pauses.pause().await {
            attempts += 1;
        }
        assert!((1..=3).contains(&attempts), "{attempts} attempts");
        assert!(begin.elapsed() >= Duration::from_millis(300));
        assert_eq!(pauses.left(), Duration::ZERO);
    }
}
