//! Each rule on a small archive. `tests/packages.rs` has them all on real ones.

pub(super) mod forge;
mod installing;
mod manifests;
mod opening;
mod packages;
mod versions;

use std::collections::BTreeSet;

use hatchery_host::operation::Operation;
use hatchery_spec::{Cluster, cluster::Role};

use super::{Bundles, Installation, PackageKind};
use crate::finding::Finding;

/// What a machine gets for all its roles.
fn all_of(
    bundles: &Bundles,
    cluster: &Cluster,
    machine: &str,
    kind: PackageKind,
) -> Result<Installation, Vec<Finding>> {
    let machines = cluster.machines();
    let node = machines
        .iter()
        .find(|node| node.name.as_str() == machine)
        .unwrap();
    let roles: BTreeSet<Role> = node.roles.iter().copied().collect();
    bundles.installation(cluster, node, kind, &roles)
}

/// Operations with what tests look at, without the packages that no list was given for.
fn shown(installation: &Installation) -> Vec<String> {
    let operations = installation.operations.iter();
    operations
        .filter(|operation| !is_repository(operation))
        .map(|operation| match operation {
            Operation::File(file) => format!("{} {}", operation.title(), file.access.mode),
            Operation::Directory(one) => format!("{} {}", operation.title(), one.access.mode),
            Operation::Link(link) => format!("{} {}", operation.title(), link.target),
            other => other.title(),
        })
        .collect()
}

fn is_repository(operation: &Operation) -> bool {
    use hatchery_host::operation::{PackageSource, Packages};
    matches!(
        operation,
        Operation::Packages(Packages {
            source: PackageSource::Repository(_)
        })
    )
}

/// The one problem there is, with its remedy.
#[track_caller]
fn only(problems: Vec<Finding>) -> (String, String) {
    let [problem] = <[Finding; 1]>::try_from(problems).unwrap();
    (problem.message, problem.remedy.unwrap_or_default())
}
