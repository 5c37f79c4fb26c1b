//! What plans are made from: a deploy file, versions, and machines that were asked once.

use std::{
    collections::BTreeMap,
    iter::repeat_with,
    time::{Duration, UNIX_EPOCH},
};

use hatchery_engine::{
    observed::Observed,
    package::{Bundles, Hook, PackageKind, Release},
    plan::{self, Plan},
    versions::Versions,
    wanted::Wanted,
};
use hatchery_host::{
    content::Content,
    facts::{self, CgroupVersion, Facts},
    machine::Managed,
};
use hatchery_spec::{
    Cluster, Input,
    cluster::{Item, Machine},
    read,
    value::Version,
};
use time::OffsetDateTime;

/// When plans are made.
pub(crate) const NOW: OffsetDateTime =
    OffsetDateTime::UNIX_EPOCH.saturating_add(time::Duration::days(20_600));

const DEBIAN: &[u8] = include_bytes!("../../../host/src/facts/answers/debian.txt");

pub(crate) fn cluster(text: &str) -> Cluster {
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    let said = reading.diagnostics.render(false);
    reading.cluster.unwrap_or_else(|| panic!("{text}\n{said}"))
}

/// A machine of its own, with control groups v2, where nothing runs yet.
pub(crate) fn real_machine() -> Facts {
    let mut facts = sandbox_machine();
    facts.confinement.container = None;
    facts.swap = Some(Vec::new());
    if let Some(groups) = &mut facts.cgroups {
        groups.version = CgroupVersion::V2;
    }
    facts
}

/// The recorded machine, which is a container.
pub(crate) fn sandbox_machine() -> Facts {
    let sent = UNIX_EPOCH + Duration::from_secs(1_794_787_750);
    facts::parse(DEBIAN, sent, sent + Duration::from_secs(20)).unwrap()
}

/// A Kubernetes, with a containerd of its time.
pub(crate) fn versions(kubernetes: &str) -> Versions {
    let kubernetes = Version::parse(kubernetes).unwrap();
    let release = |major, minor| {
        Some(Release {
            major,
            minor,
            patch: 0,
        })
    };
    Versions {
        kubernetes,
        containerd: if kubernetes.at_least(30) {
            release(2, 1)
        } else {
            release(1, 6)
        },
        etcd: release(3, 5),
        coredns: release(1, 8),
    }
}

/// The plan for machines that are all alike and bring nothing with them but what repositories have.
pub(crate) fn plan(cluster: &Cluster, versions: &Versions, facts: &Facts) -> Plan {
    plan_for(cluster, versions, facts, &[])
}

/// The same for machines that have something of ours already.
pub(crate) fn plan_for(
    cluster: &Cluster,
    versions: &Versions,
    facts: &Facts,
    managed: &[Managed],
) -> Plan {
    let bundles = Bundles::default();
    let mut without_scripts = cluster.clone();
    for items in without_scripts.packages.lists.values_mut() {
        items.retain(|item| !matches!(item, Item::Shell { .. }));
    }
    let installations: BTreeMap<_, _> = cluster
        .machines()
        .iter()
        .map(|node| {
            let installation =
                bundles.installation(&without_scripts, node, PackageKind::Deb, &node.roles);
            let mut installation = installation.unwrap_or_default();
            installation.hooks = hooks(cluster, node);
            (node.name.clone(), installation)
        })
        .collect();
    let wanted = Wanted {
        cluster: cluster.clone(),
        versions: *versions,
        installations,
        manifests: Vec::new(),
        images: Vec::new(),
    };
    plan::make(&wanted, &observed(cluster, facts, managed), NOW).unwrap()
}

/// Machines that are all alike, and have these things of ours; none where it is not said.
pub(crate) fn observed(cluster: &Cluster, facts: &Facts, managed: &[Managed]) -> Observed {
    let managed = managed.iter().cloned().chain(repeat_with(Managed::default));
    let machines = cluster.all_machines().zip(managed);
    Observed::new(machines.map(|(node, managed)| (node.name.clone(), Ok((facts.clone(), managed)))))
}

/// The scripts that are listed, as if there were an archive with them.
fn hooks(cluster: &Cluster, node: &Machine) -> Vec<Hook> {
    let roles = node.roles.iter();
    let items = roles.flat_map(|role| cluster.packages.for_role(*role));
    let hooks = items.filter_map(|item| match item {
        Item::Shell {
            name,
            schedule,
            timeout,
        } => Some(Hook {
            schedule: *schedule,
            name: name.clone(),
            content: Content::bytes(format!("echo {name}\n").into_bytes()),
            timeout: timeout.get(),
        }),
        _ => None,
    });
    hooks.collect()
}
