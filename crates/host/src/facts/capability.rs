//! What even root may not do, as in a container.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// Linux capabilities by number, without their `CAP_`.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What processes of the machine can have at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Capabilities that the kernel knows and no process can have, such as `SYS_RESOURCE`.
    pub missing: BTreeSet<String>,
}

impl Capabilities {
    /// Whether a process of root can have it.
    pub fn has(&self, name: &str) -> bool {
        !self.missing.contains(name)
    }
}

pub(super) fn capabilities(answer: &Answer) -> Option<Capabilities> {
    let bounding = status(answer, "CapBnd")?;
    let bounding = u64::from_str_radix(bounding, 16).ok()?;
    let mut settings = answer.each("sysctls");
    let last = settings.find_map(|line| line.strip_prefix("/proc/sys/kernel/cap_last_cap:"))?;
    let last: u32 = last.trim().parse().ok().filter(|&last| last < 64)?;
    let missing = (0..=last).filter(|number| bounding & (1 << number) == 0);
    let name = |number: u32| {
        let known = usize::try_from(number)
            .ok()
            .and_then(|number| NAMES.get(number));
        known.map_or_else(|| number.to_string(), |&name| name.to_owned())
    };
    Some(Capabilities {
        missing: missing.map(name).collect(),
    })
}

pub(super) fn is_root(answer: &Answer) -> Option<bool> {
    let effective = status(answer, "Uid")?.split_whitespace().nth(1)?;
    Some(effective.parse::<u32>().ok()? == 0)
}

fn status<'a>(answer: &'a Answer, key: &str) -> Option<&'a str> {
    let mut lines = answer.each("status");
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    fn missing(bounding: &str, last: &str) -> Option<Vec<String>> {
        let status = format!("Uid:\t1000\t0\t0\t0\nCapBnd:\t{bounding}\n");
        let last = format!("/proc/sys/kernel/cap_last_cap:{last}\n");
        let answer = with_sections(&[("status", &status), ("sysctls", &last)]);
        assert_eq!(is_root(&answer), Some(true));
        Some(capabilities(&answer)?.missing.into_iter().collect())
    }

    #[test]
    fn missing_ones_are_named() {
        assert_eq!(missing("000001fffeffffff", "40").unwrap(), ["SYS_RESOURCE"]);
        assert_eq!(missing("000001ffffffffff", "40").unwrap(), [""; 0]);
        // An old kernel lacks what it does not know; that is no lack.
        assert_eq!(missing("0000001fffffffff", "36").unwrap(), [""; 0]);
        assert_eq!(missing("000001ffffffffff", "41").unwrap(), ["41"]);
        assert_eq!(missing("what", "40"), None);
        assert_eq!(missing("000001ffffffffff", "99"), None);
    }
}
