//! Durations as Go writes them: `120s`, `1h15m`, `300ms`.

use std::fmt;
use std::time::Duration;

use super::Mismatch;

/// A duration of more than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(Duration);

/// Units with their nanoseconds; longer names first, so that `ms` is not read as `m`.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl GoDuration {
    /// A number of seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Parses a duration.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let expected = "write a number with a unit (ms, s, m, h), such as 120s or 1h30m";
        let wrong = |problem: &str| Mismatch::new(problem, expected);
        let mut total: u64 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .ok_or_else(|| wrong("a duration without a unit"))?;
            let (number, behind) = rest.split_at(end);
            let (unit, nanoseconds) = UNITS
                .iter()
                .find(|(unit, _)| behind.starts_with(unit))
                .ok_or_else(|| wrong("not a duration"))?;
            let part = fraction(number, *nanoseconds).ok_or_else(|| wrong("not a duration"))?;
            total = total.checked_add(part).ok_or_else(|| wrong("too long"))?;
            rest = &behind[unit.len()..];
        }
        if total == 0 {
            return Err(wrong("not a duration greater than zero"));
        }
        Ok(Self(Duration::from_nanos(total)))
    }

    /// As the standard library's type.
    pub fn get(self) -> Duration {
        self.0
    }
}

/// A decimal number of units, in nanoseconds.
fn fraction(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    let mut sum = whole.checked_mul(unit)?;
    let mut scale = unit;
    for digit in part.chars() {
        scale /= 10;
        sum = sum.checked_add(u64::from(digit.to_digit(10)?) * scale)?;
    }
    Some(sum)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.0.as_secs(), self.0.subsec_nanos());
        if nanoseconds == 0 {
            write!(f, "{seconds}s")
        } else {
            let part = format!("{nanoseconds:09}");
            write!(f, "{seconds}.{}s", part.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, shown) in [
            ("120s", "120s"),
            ("1h15m30.5s", "4530.5s"),
            ("300ms", "0.3s"),
            (".5m", "30s"),
            ("1m1us", "60.000001s"),
            ("5.s", "5s"),
        ] {
            assert_eq!(GoDuration::parse(text).unwrap().to_string(), shown);
        }
        for bad in [
            "",
            "120",
            "s",
            ".s",
            "1.2.3s",
            "-5s",
            "5 s",
            "5d",
            "0s",
            "99999999999999999999h",
            "9999999999h",
        ] {
            assert!(GoDuration::parse(bad).is_err(), "{bad}");
        }
    }
}
