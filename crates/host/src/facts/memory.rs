//! Memory, swap and processors.

use serde::{Deserialize, Serialize};

use super::{answer::Answer, disk::unescape};

/// Memory in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// What programs could still have.
    pub available: Option<u64>,
}

/// A device or file that is swapped to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Where it is.
    pub path: String,
    /// `partition` or `file`.
    pub kind: String,
    /// The size in bytes.
    pub size: u64,
    /// Bytes in use.
    pub used: u64,
}

pub(super) fn memory(answer: &Answer) -> Option<Memory> {
    let bytes = |key: &str| {
        let mut lines = answer.each("memory");
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        kibibytes(value.trim().strip_suffix("kB")?.trim())
    };
    Some(Memory {
        total: bytes("MemTotal")?,
        available: bytes("MemAvailable"),
    })
}

pub(super) fn swap(answer: &Answer) -> Option<Vec<Swap>> {
    let lines = answer.lines("swaps").filter(|lines| !lines.is_empty())?;
    let swap = |line: &String| {
        let mut words = line.split_whitespace();
        Some(Swap {
            path: unescape(words.next()?),
            kind: words.next()?.to_owned(),
            size: kibibytes(words.next()?)?,
            used: kibibytes(words.next()?)?,
        })
    };
    // The first line names the columns.
    Some(lines.iter().skip(1).filter_map(swap).collect())
}

/// `0-3,5` is five processors.
pub(super) fn cpus(answer: &Answer) -> Option<u32> {
    let online = answer.value("cpus")?;
    online.split(',').try_fold(0_u32, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

fn kibibytes(number: &str) -> Option<u64> {
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn sizes_are_bytes() {
        let answer =
            with_sections(&[("memory", "MemTotal:       2048 kB\nMemAvailable:   1 kB\n")]);
        assert_eq!(
            memory(&answer),
            Some(Memory {
                total: 2 << 20,
                available: Some(1024)
            })
        );
        assert_eq!(
            memory(&with_sections(&[(
                "memory",
                "MemTotal: 99999999999999999999 kB\n"
            )])),
            None
        );
    }

    #[test]
    fn no_swap_is_known_to_be_none() {
        let title = "Filename\tType\tSize\tUsed\tPriority\n";
        assert_eq!(swap(&with_sections(&[("swaps", title)])), Some(vec![]));
        assert_eq!(swap(&with_sections(&[])), None);
        let one = format!("{title}/swap\\040file   file\t\t1024\t\t0\t\t-2\n");
        let found = swap(&with_sections(&[("swaps", &one)])).unwrap();
        assert_eq!(
            (found[0].path.as_str(), found[0].size),
            ("/swap file", 1 << 20)
        );
    }

    #[test]
    fn processors_are_counted() {
        let cpus = |online: &str| cpus(&with_sections(&[("values", &format!("cpus {online}\n"))]));
        assert_eq!(cpus("0"), Some(1));
        assert_eq!(cpus("0-3,5"), Some(5));
        assert_eq!(cpus("3-0"), None);
        assert_eq!(cpus("0-4294967295"), None);
    }
}
