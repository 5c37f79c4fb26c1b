//! The pauses between two looks: short at first, since what is waited for is often there in a moment.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that grow, up to a deadline.
pub(super) struct Pace {
    pause: Duration,
    end: Instant,
}

impl Pace {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            pause: FIRST,
            end: Instant::now() + deadline,
        }
    }

    /// Pauses. False, and at once, when the deadline is over; the last pause ends with the deadline, so that there
    /// is a look at the very end.
    pub(super) async fn rest(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.end {
            return false;
        }
        sleep_until((now + self.pause).min(self.end)).await;
        self.pause = (self.pause * 3 / 2).min(LONGEST);
        true
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
        let mut pace = Pace::new(Duration::from_millis(300));
        let mut looks = 0;
        while pace.rest().await {
            looks += 1;
        }
        assert!((1..=3).contains(&looks), "{looks} looks");
        assert!(begin.elapsed() >= Duration::from_millis(300));
        assert_eq!(pace.left(), Duration::ZERO);
    }
}
