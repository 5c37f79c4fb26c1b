//! Room for what a machine's roles need: processors, memory, swap, disks.

use std::collections::BTreeMap;

use hatchery_host::facts::Disk;
use hatchery_spec::cluster::Role;

use super::{
    Severity::{Error, Warning},
    subject::{Subject, gibibytes},
};
use crate::{components::runtime, finding::Findings};

const MIB: u64 = 1 << 20;

/// What a role wants to itself.
struct Want {
    role: Role,
    cpus: u32,
    memory: u64,
}

/// With half the memory nothing starts; with a 2 GiB machine one master that does everything is content.
const WANTS: [Want; 4] = [
    Want {
        role: Role::Master,
        cpus: 2,
        memory: 1024 * MIB,
    },
    Want {
        role: Role::Etcd,
        cpus: 2,
        memory: 448 * MIB,
    },
    Want {
        role: Role::Worker,
        cpus: 1,
        memory: 384 * MIB,
    },
    Want {
        role: Role::LoadBalancer,
        cpus: 1,
        memory: 128 * MIB,
    },
];

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    memory(subject, findings);
    swap(subject, findings);
    read_only(subject, findings);
    disks(subject, findings);
    pressure(subject, findings);
}

fn memory(subject: &Subject<'_>, findings: &mut Findings) {
    let own = || WANTS.iter().filter(|want| subject.is(want.role));
    let roles: Vec<_> = own().map(|want| want.role.as_str()).collect();
    let roles = roles.join(" and ");
    let wanted: u64 = own().map(|want| want.memory).sum();
    if let Some(memory) = &subject.facts.memory
        && memory.total < wanted
    {
        let severity = if memory.total < wanted / 2 {
            Error
        } else {
            Warning
        };
        subject.say(
            findings,
            (severity, "memory"),
            format!(
                "has {} of memory; as {roles} it needs {}",
                gibibytes(memory.total),
                gibibytes(wanted)
            ),
            "give it more memory or fewer roles",
        );
    }
    let wanted = own().map(|want| want.cpus).max().unwrap_or_default();
    if let Some(cpus) = subject.facts.cpus
        && cpus < wanted
    {
        subject.say(
            findings,
            (Warning, "cpus"),
            format!("has {cpus} CPU; as {roles} it needs {wanted}"),
            "give it more processors or fewer roles",
        );
    }
}

fn swap(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(swaps) = subject
        .facts
        .swap
        .as_ref()
        .filter(|swaps| !swaps.is_empty())
    else {
        return;
    };
    if subject.is(Role::Worker) {
        let paths: Vec<_> = swaps.iter().map(|swap| swap.path.as_str()).collect();
        subject.say(
            findings,
            (Warning, "swap"),
            format!("swaps to {}; the kubelet requires swap to be off", paths.join(", ")),
            "run 'swapoff -a' there and take swap out of /etc/fstab, or it is back after the next boot",
        );
    }
}

/// Where the roles of a machine keep things, and how much room each of these takes: at least, and for a while.
fn places(subject: &Subject<'_>) -> Vec<(String, u64, u64)> {
    let mut places = vec![("/etc", 1, 10), ("/usr", 256, 1024), ("/var/lib", 16, 128)];
    if subject.is(Role::Etcd) {
        places.push(("/var/lib/etcd", 512, 4096));
    }
    if subject.is(Role::Master) {
        places.push(("/var/log", 128, 1024));
    }
    if subject.is(Role::Worker) {
        let images = runtime::for_cluster(subject.cluster).data();
        places.extend([
            ("/var/lib/kubelet", 128, 1024),
            (images, 1024, 10 * 1024),
            ("/var/log", 64, 512),
        ]);
    }
    let mut places: Vec<_> = places
        .into_iter()
        .map(|(path, least, wanted)| (path.to_owned(), least * MIB, wanted * MIB))
        .collect();
    if subject.is(Role::Worker) {
        let plugins = subject.cluster.runtime.cni_bin_dirs.iter();
        places.extend(plugins.map(|directory| (directory.to_string(), 64 * MIB, 128 * MIB)));
    }
    places
}

/// The file system that holds a path.
fn disk_of<'a>(disks: &'a [Disk], path: &str) -> Option<&'a Disk> {
    let holds = |disk: &&Disk| {
        let mount = disk.path.trim_end_matches('/');
        path.strip_prefix(mount)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    disks
        .iter()
        .filter(holds)
        .max_by_key(|disk| disk.path.len())
}

fn read_only(subject: &Subject<'_>, findings: &mut Findings) {
    let disks = subject.facts.disks.as_deref().unwrap_or_default();
    let mut mounts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, ..) in places(subject) {
        if let Some(disk) = disk_of(disks, &path).filter(|disk| disk.read_only) {
            mounts.entry(&disk.path).or_default().push(path);
        }
    }
    for (mount, mut paths) in mounts {
        paths.dedup();
        subject.say(
            findings,
            (Error, "read-only"),
            format!(
                "has {mount} mounted read-only, and {} must be written",
                paths.join(", ")
            ),
            format!("mount it so that it can be written: mount -o remount,rw {mount}"),
        );
    }
}

fn disks(subject: &Subject<'_>, findings: &mut Findings) {
    // What a cluster that is there already uses is no longer free.
    if subject.ours {
        return;
    }
    let disks = subject.facts.disks.as_deref().unwrap_or_default();
    let mut wanted: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (path, least, enough) in places(subject) {
        if let Some(disk) = disk_of(disks, &path) {
            let sum = wanted.entry(&disk.path).or_default();
            *sum = (sum.0 + least, sum.1 + enough);
        }
    }
    for disk in disks {
        let (Some((least, enough)), Some(space)) = (wanted.get(disk.path.as_str()), &disk.space)
        else {
            continue;
        };
        if space.available < *enough {
            let severity = if space.available < *least {
                Error
            } else {
                Warning
            };
            subject.say(
                findings,
                (severity, "disk"),
                format!(
                    "has {} left on {}; its roles need {}",
                    gibibytes(space.available),
                    disk.path,
                    gibibytes(*enough)
                ),
                "free some space there, or mount a larger disk",
            );
        }
    }
}

/// The kubelet turns pods away from a disk with less than a tenth left, or a twentieth of its inodes.
fn pressure(subject: &Subject<'_>, findings: &mut Findings) {
    let disks = subject.facts.disks.as_deref().unwrap_or_default();
    if !subject.is(Role::Worker) {
        return;
    }
    let Some((disk, space)) =
        disk_of(disks, "/var/lib/kubelet").and_then(|disk| Some((disk, disk.space.as_ref()?)))
    else {
        return;
    };
    let scarce = |free: u64, all: u64, part: u64| all > 0 && free < all / part;
    let inodes = space.inodes.zip(space.inodes_free);
    let what = if scarce(space.available, space.size, 10) {
        "a tenth of its space"
    } else if inodes.is_some_and(|(all, free)| scarce(free, all, 20)) {
        "a twentieth of its inodes"
    } else {
        return;
    };
    subject.say(
        findings,
        (Warning, "disk-pressure"),
        format!(
            "has less than {what} left on {}: the kubelet would accept no pods",
            disk.path
        ),
        "free some space there, or mount a larger disk on /var/lib/kubelet",
    );
}
