//! How a plan is executed.

use std::{num::NonZeroUsize, str::FromStr, time::Duration};

use hatchery_spec::value::Name;

use crate::api::Drain;

/// How a plan is executed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum number of machines worked on concurrently.
    pub parallel: usize,
    /// How many of the nodes that live are changed at the same time.
    pub max_unavailable: MaxUnavailable,
    /// How long is waited for a node, or the pods of an addon, once all that it needs is done.
    pub ready: Duration,
    /// How long is waited for a service that was restarted, before the next one is.
    pub restart: Duration,
    /// How nodes that leave are drained.
    pub drain: Drain,
    /// Where some machines are named, pods of the others are neither deleted nor left when a drain would do so.
    pub named: Option<Vec<Name>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallel: 32,
            max_unavailable: MaxUnavailable::default(),
            ready: Duration::from_secs(300),
            restart: Duration::from_secs(120),
            drain: Drain {
                deadline: Duration::from_secs(300),
                force: false,
                skip: false,
                is_silent: false,
            },
            named: None,
        }
    }
}

/// A number of nodes, or a percentage of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxUnavailable {
    /// A number of nodes.
    Count(NonZeroUsize),
    /// A share of all workers, from 1 to 100; at least one of them.
    Percent(u8),
}

impl Default for MaxUnavailable {
    fn default() -> Self {
        Self::Percent(10)
    }
}

impl MaxUnavailable {
    /// How many of this number of workers may be unavailable; at least one.
    pub fn for_workers(self, workers: usize) -> usize {
        match self {
            Self::Count(count) => count.get(),
            Self::Percent(percent) => (workers * usize::from(percent) / 100).max(1),
        }
    }
}

impl FromStr for MaxUnavailable {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "write a number of nodes such as 2, or a share of them from 1% to 100%";
        match text.strip_suffix('%') {
            Some(percent) => match percent.parse() {
                Ok(percent @ 1..=100) => Ok(Self::Percent(percent)),
                _ => Err(EXPECTED),
            },
            None => text.parse().map(Self::Count).map_err(|_| EXPECTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_nothing() {
        let count = |text: &str, workers| {
            text.parse::<MaxUnavailable>()
                .map(|one| one.for_workers(workers))
        };
        assert_eq!(count("10%", 3), Ok(1));
        assert_eq!(count("10%", 1000), Ok(100));
        assert_eq!(count("100%", 7), Ok(7));
        assert_eq!(count("25%", 0), Ok(1));
        assert_eq!(count("3", 1), Ok(3));
        for bad in ["", "0", "-1", "0%", "101%", "1.5", "x", "%"] {
            assert!(bad.parse::<MaxUnavailable>().is_err(), "{bad}");
        }
    }
}
