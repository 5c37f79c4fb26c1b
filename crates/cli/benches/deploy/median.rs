//! Several measurements of the same thing.

use std::{env, fmt};

/// How many measurements are made.
pub(crate) fn rounds() -> usize {
    env::var("HATCHERY_ROUNDS").map_or(5, |text| text.parse().unwrap())
}

/// Durations in seconds.
pub(crate) struct Times {
    what: &'static str,
    seconds: Vec<f64>,
}

impl Times {
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            seconds: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, seconds: f64) {
        self.seconds.push(seconds);
        self.seconds.sort_by(f64::total_cmp);
    }

    pub(crate) fn median(&self) -> f64 {
        self.seconds[self.seconds.len() / 2]
    }
}

impl fmt::Display for Times {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.seconds[0], self.seconds[self.seconds.len() - 1]);
        write!(
            out,
            "{}: median {:.1} s of {} ({least:.1} to {most:.1})",
            self.what,
            self.median(),
            self.seconds.len()
        )
    }
}
