//! The machine's clock against ours.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// How far a machine's clock is from ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// By how much it is ahead, in microseconds; negative when it is behind.
    pub ahead_micros: i64,
    /// By how much that may be wrong at most, in both directions.
    pub uncertainty_micros: u64,
    /// The time zone, in minutes east of Greenwich.
    pub zone_minutes: Option<i32>,
}

impl Clock {
    /// Whether it is certainly farther off than this.
    pub fn is_off_by_more_than(&self, limit: Duration) -> bool {
        let certain = self
            .ahead_micros
            .unsigned_abs()
            .saturating_sub(self.uncertainty_micros);
        u128::from(certain) > limit.as_micros()
    }
}

/// A reading of the machine's clock, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    time: i128,
    /// How much later it may have been.
    resolution: i128,
}

/// From two readings, one when the script began and one when it ended, as NTP does it: the time
/// the script took does not count against the certainty, only the way there and back.
pub(super) fn clock(answer: &Answer, sent: SystemTime, received: SystemTime) -> Option<Clock> {
    let (sent, received) = (micros(sent)?, micros(received)?);
    if received < sent {
        return None;
    }
    let begin = reading(answer.each("clock-begin").next()?)?;
    let end = answer.each("clock-end").next().and_then(reading);
    let took = end.map(|end| end.time - begin.time);
    let (ahead, uncertainty) = match (end, took) {
        // Whole seconds cannot measure the script; a clock that was set meanwhile neither.
        (Some(end), Some(took))
            if begin.resolution <= 1 && took >= 0 && took <= received - sent =>
        {
            let ahead = i128::midpoint(begin.time - sent, end.time - received);
            (ahead, (received - sent - took) / 2)
        }
        _ => {
            let middle = i128::midpoint(sent, received);
            (begin.time - middle, (received - sent) / 2)
        }
    };
    Some(Clock {
        ahead_micros: i64::try_from(ahead + begin.resolution / 2).ok()?,
        uncertainty_micros: u64::try_from(uncertainty + begin.resolution / 2 + 1).ok()?,
        zone_minutes: answer.each("clock-begin").next().and_then(zone_minutes),
    })
}

pub(super) fn uptime_seconds(answer: &Answer) -> Option<u64> {
    answer
        .value("uptime")?
        .split(['.', ' '])
        .next()?
        .parse()
        .ok()
}

fn micros(time: SystemTime) -> Option<i128> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i128::try_from(since.as_micros()).ok()
}

/// `1794786500.618733613 +0000`, or with something else for a `date` without nanoseconds.
fn reading(line: &str) -> Option<Reading> {
    let (seconds, fraction) = line.split_whitespace().next()?.split_once('.')?;
    let seconds = i128::from(seconds.parse::<i64>().ok()?) * 1_000_000;
    let is_fraction = fraction.len() == 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let nanos = fraction.parse::<i128>().ok().filter(|_| is_fraction);
    Some(match nanos {
        Some(nanos) => Reading {
            time: seconds + nanos / 1000,
            resolution: 1,
        },
        None => Reading {
            time: seconds,
            resolution: 1_000_000,
        },
    })
}

fn zone_minutes(line: &str) -> Option<i32> {
    let zone = line.split_whitespace().nth(1)?;
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let number: i32 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    (number >= 0).then_some(sign * (number / 100 * 60 + number % 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    fn at(micros: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(micros)
    }

    fn measured(begin: &str, end: &str, sent: u64, received: u64) -> Option<(i64, u64)> {
        let sections = [("clock-begin", begin), ("clock-end", end)];
        let clock = clock(&with_sections(&sections), at(sent), at(received))?;
        Some((clock.ahead_micros, clock.uncertainty_micros))
    }

    #[test]
    fn the_script_s_own_time_does_not_blur_the_offset() {
        // 10 ms there, 100 ms of script, 10 ms back; the machine is 5 s ahead.
        let found = measured(
            "105.010000000 +0000\n",
            "105.110000000 +0000\n",
            100_000_000,
            100_120_000,
        );
        assert_eq!(found, Some((5_000_000, 10_001)));
        let found = measured(
            "95.010000000 +0000\n",
            "95.110000000 +0000\n",
            100_000_000,
            100_120_000,
        );
        assert_eq!(found, Some((-5_000_000, 10_001)));
    }

    #[test]
    fn whole_seconds_say_less() {
        let (ahead, uncertainty) =
            measured("105.%N +0000\n", "105.%N +0000\n", 100_000_000, 100_200_000).unwrap();
        assert_eq!((ahead, uncertainty), (5_400_000, 600_001));
    }

    #[test]
    fn a_clock_set_meanwhile_leaves_the_first_reading() {
        let found = measured(
            "105.000000000 +0000\n",
            "3.000000000 +0000\n",
            100_000_000,
            100_200_000,
        );
        assert_eq!(found, Some((4_900_000, 100_001)));
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(measured("", "", 1, 2), None);
        assert_eq!(measured("99999999999999999.0 +0000", "", 1, 2), None);
        assert_eq!(measured("5.000000000 +0000", "", 2, 1), None);
    }

    #[test]
    fn zones_and_limits() {
        assert_eq!(zone_minutes("1 +0530"), Some(330));
        assert_eq!(zone_minutes("1 -0330"), Some(-210));
        assert_eq!(zone_minutes("1 UTC"), None);
        let clock = Clock {
            ahead_micros: -2_000_000,
            uncertainty_micros: 500_000,
            zone_minutes: None,
        };
        assert!(clock.is_off_by_more_than(Duration::from_secs(1)));
        assert!(!clock.is_off_by_more_than(Duration::from_millis(1500)));
    }
}
