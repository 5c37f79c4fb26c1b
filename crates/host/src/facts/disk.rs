//! File systems that hold data, and how full they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Where it is mounted.
    pub path: String,
    /// The device or the server's share.
    pub source: String,
    /// Its type, such as `xfs`.
    pub kind: String,
    /// Whether it refuses to be written.
    pub read_only: bool,
    /// How full it is; unknown for network file systems, which might not answer.
    pub space: Option<Space>,
}

/// Room on a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Bytes in all.
    pub size: u64,
    /// Bytes that can still be written.
    pub available: u64,
    /// Inodes in all, where they are counted.
    pub inodes: Option<u64>,
    /// Inodes that are free, where they are counted.
    pub inodes_free: Option<u64>,
}

/// A line of mountinfo.
pub(super) struct Mount {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) source: String,
    pub(super) options: String,
    pub(super) super_options: String,
}

pub(super) fn mounts(answer: &Answer) -> impl Iterator<Item = Mount> {
    answer.each("mounts").filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        let mut file_system = file_system.split(' ');
        Some(Mount {
            path: unescape(mount.next()?),
            options: mount.next()?.to_owned(),
            kind: file_system.next()?.to_owned(),
            source: unescape(file_system.next()?),
            super_options: file_system.next().unwrap_or_default().to_owned(),
        })
    })
}

pub(super) fn disks(answer: &Answer) -> Option<Vec<Disk>> {
    answer.lines("mounts")?;
    let spaces: BTreeMap<&str, Space> = answer.each("file-systems").filter_map(space).collect();
    let mut disks: Vec<Disk> = Vec::new();
    for mount in mounts(answer).filter(|mount| !mount.kind.starts_with("cgroup")) {
        let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
        // What is mounted over another hides it.
        disks.retain(|disk| disk.path != mount.path);
        disks.push(Disk {
            read_only: is_read_only(&mount.options) || is_read_only(&mount.super_options),
            space: spaces.get(mount.path.as_str()).cloned(),
            path: mount.path,
            source: mount.source,
            kind: mount.kind,
        });
    }
    Some(disks)
}

/// `4096 66053021 15805175 16777216 16243320 /`: block size, blocks, available, inodes, free, path.
fn space(line: &str) -> Option<(&str, Space)> {
    let mut words = line.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (block, blocks, available) = (number()?, number()?, number()?);
    let (inodes, inodes_free) = (number()?, number()?);
    let counted = inodes > 0;
    let space = Space {
        size: blocks.checked_mul(block)?,
        available: available.checked_mul(block)?,
        inodes: counted.then_some(inodes),
        inodes_free: counted.then_some(inodes_free),
    };
    Some((words.next()?, space))
}

/// The kernel writes blanks and backslashes in paths as octal numbers. What else it may hide so,
/// such as a line's end, stays as it is.
pub(super) fn unescape(path: &str) -> String {
    path.replace("\\040", " ").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn disks_are_read() {
        let mounts = "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
            28 27 8:1 / /srv/two\\040words ro,relatime - xfs /dev/sda1 rw\n\
            29 27 0:9 / /far rw - nfs4 server:/share rw\n\
            30 27 0:7 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
            31 28 8:2 / /far rw - ext4 /dev/sdb ro\n\
            not a mount\n";
        let spaces = "4096 1000 500 0 0 /\n4096 18446744073709551615 1 1 1 /far\n";
        let disks = disks(&with_sections(&[
            ("mounts", mounts),
            ("file-systems", spaces),
        ]))
        .unwrap();
        let paths: Vec<_> = disks.iter().map(|disk| disk.path.as_str()).collect();
        assert_eq!(paths, ["/", "/srv/two words", "/far"]);
        let root = disks[0].space.as_ref().unwrap();
        assert_eq!(
            (root.size, root.available, root.inodes),
            (4_096_000, 2_048_000, None)
        );
        assert!(!disks[0].read_only && disks[1].read_only && disks[2].read_only);
        assert_eq!(disks[2].source, "/dev/sdb");
        assert_eq!(disks[2].space, None);
    }

    #[test]
    fn no_table_is_not_an_empty_one() {
        assert_eq!(disks(&with_sections(&[])), None);
    }
}
