//! Control groups.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{answer::Answer, disk::mounts};

/// How control groups are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// One tree for each controller.
    V1,
    /// One tree.
    V2,
    /// Controllers in trees of their own, beside a unified tree without controllers.
    Hybrid,
}

/// Control groups of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroups {
    /// How they are mounted.
    pub version: CgroupVersion,
    /// Controllers that can be used.
    pub controllers: BTreeSet<String>,
}

/// Controllers of the first version, as they stand among a mount's options.
const CONTROLLERS: [&str; 14] = [
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "net_cls",
    "net_prio",
    "perf_event",
    "hugetlb",
    "rdma",
    "misc",
];

pub(super) fn cgroups(answer: &Answer) -> Option<Cgroups> {
    let mut controllers = BTreeSet::new();
    let mut unified = false;
    for mount in mounts(answer) {
        match mount.kind.as_str() {
            "cgroup2" => unified = true,
            "cgroup" => {
                let known = mount
                    .super_options
                    .split(',')
                    .filter(|o| CONTROLLERS.contains(o));
                controllers.extend(known.map(str::to_owned));
            }
            _ => {}
        }
    }
    let version = match (unified, controllers.is_empty()) {
        (true, true) => CgroupVersion::V2,
        (true, false) => CgroupVersion::Hybrid,
        (false, false) => CgroupVersion::V1,
        (false, true) => return None,
    };
    if version == CgroupVersion::V2 {
        let told = answer.value("cgroup-controllers").unwrap_or_default();
        controllers = told.split_whitespace().map(str::to_owned).collect();
    }
    Some(Cgroups {
        version,
        controllers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    const V1: &str =
        "34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n";
    const SYSTEMD: &str =
        "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn versions_are_told_apart() {
        let version = |mounts: &[&str]| {
            let mounts = mounts.concat();
            let values = "cgroup-controllers cpuset cpu io memory pids\n";
            let groups = cgroups(&with_sections(&[("mounts", &mounts), ("values", values)]))?;
            Some((
                groups.version,
                groups.controllers.into_iter().collect::<Vec<_>>().join(" "),
            ))
        };
        assert_eq!(
            version(&[V1, SYSTEMD]),
            Some((CgroupVersion::V1, "cpu cpuacct".into()))
        );
        assert_eq!(
            version(&[V1, SYSTEMD, V2]),
            Some((CgroupVersion::Hybrid, "cpu cpuacct".into()))
        );
        assert_eq!(
            version(&[V2]),
            Some((CgroupVersion::V2, "cpu cpuset io memory pids".into()))
        );
        assert_eq!(version(&[]), None);
    }
}
