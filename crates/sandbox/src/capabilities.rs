//! Capabilities for the container of a machine: all that this machine has itself.
//!
//! `--privileged` asks for every capability and fails where the outer machine lacks one, so
//! they are named one by one.

use std::{fs, io};

/// Linux capabilities by number, as `docker --cap-add` spells them.
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

/// Unknown to Docker 20.10, and nothing on a machine needs them beside SYS_ADMIN.
const UNKNOWN_TO_DOCKER: [&str; 3] = ["PERFMON", "BPF", "CHECKPOINT_RESTORE"];

/// Those that this process, and so a container started from here, may have at most.
pub(crate) fn available() -> io::Result<Vec<&'static str>> {
    let status = fs::read_to_string("/proc/self/status")?;
    bounding_set(&status).ok_or_else(|| io::Error::other("/proc/self/status has no CapBnd"))
}

fn bounding_set(status: &str) -> Option<Vec<&'static str>> {
    let hex = status
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))?;
    let bits = u64::from_str_radix(hex.trim(), 16).ok()?;
    let has = |(number, _): &(usize, &&str)| bits & (1 << number) != 0;
    let names = NAMES.iter().enumerate().filter(has).map(|(_, name)| *name);
    Some(
        names
            .filter(|name| !UNKNOWN_TO_DOCKER.contains(name))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_is_left_out() {
        let names = bounding_set("Name:\tx\nCapBnd:\t000001fffeffffff\n").unwrap();
        assert!(!names.contains(&"SYS_RESOURCE"));
        assert!(names.contains(&"SYS_ADMIN") && names.contains(&"AUDIT_READ"));
        assert_eq!(names.len(), 41 - 1 - 3);
    }

    #[test]
    fn the_usual_container_s_set_is_read() {
        let names = bounding_set("CapBnd:\t00000000a80425fb").unwrap();
        assert_eq!(names.len(), 14);
        assert!(names.contains(&"SETFCAP") && !names.contains(&"SYS_ADMIN"));
        assert_eq!(bounding_set("CapBnd:\tnothing"), None);
    }
}
