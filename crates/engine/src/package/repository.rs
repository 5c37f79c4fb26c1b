//! Which versions machines would install from their repositories.

use std::collections::{BTreeMap, BTreeSet};

use hatchery_host::{
    machine::Managed,
    operation::{Operation, PackageName, PackageSource, Packages},
};
use hatchery_spec::value::{Name, Release, Version};

use super::{
    choice::PackageKind,
    installation::Installation,
    version::{self, CONTAINERD, COREDNS, ETCD, KUBERNETES, Software, Versions},
};
use crate::{finding::Finding, name_list::NameList};

/// What to ask which machine: each package once for each kind of package manager, of a machine that has it
/// and of one that gets it. Repositories may have moved on since the first were installed.
pub fn questions<'a>(
    installations: impl Iterator<Item = (&'a Name, PackageKind, &'a Managed, &'a Installation)>,
) -> Vec<(&'a Name, Vec<PackageName>)> {
    let mut asked = BTreeSet::new();
    let mut questions = Vec::new();
    for (machine, kind, managed, installation) in installations {
        let is_deb = kind == PackageKind::Deb;
        // A package that was there before the machine was the cluster's is not in its record.
        let is_held = managed.cluster.is_some();
        let mut is_new = |name: &PackageName| {
            let is_recorded = is_recorded(managed, name);
            matters(name) && asked.insert((is_deb, is_held, is_recorded, name.as_str().to_owned()))
        };
        let listed = installation.operations.iter().flat_map(from_repository);
        let new: Vec<_> = listed.filter(|name| is_new(name)).cloned().collect();
        if !new.is_empty() {
            questions.push((machine, new));
        }
    }
    questions
}

/// What the machines' answers mean.
///
/// # Errors
/// When machines would get different versions of Kubernetes, or one that nothing is known of.
pub fn versions(answers: &[(&Name, BTreeMap<PackageName, String>)]) -> Result<Versions, Finding> {
    let found = |software: &Software| -> Vec<(String, Release)> {
        let all = answers.iter().flat_map(|(machine, offered)| {
            let ours = offered.iter();
            ours.filter(|(name, _)| software.packages.contains(&name.as_str()))
                .map(move |(name, version)| (*machine, name, version))
        });
        all.filter_map(|(machine, name, version)| {
            let release = version::leading(version)?;
            Some((format!("{name} {release} on {machine}"), release))
        })
        .collect()
    };
    let oldest = |software| found(software).into_iter().map(|(_, one)| one).min();
    let kubernetes = found(&KUBERNETES);
    let version = match kubernetes.first() {
        None => None,
        Some((_, first)) => {
            let differs = |(_, other): &(String, Release)| {
                (other.major, other.minor) != (first.major, first.minor)
            };
            if kubernetes.iter().any(differs) {
                let names: Vec<_> = kubernetes.iter().map(|(name, _)| name.clone()).collect();
                return Err(Finding::package(
                    format!(
                        "repositories bring different versions of Kubernetes: {}",
                        NameList(&names)
                    ),
                    "give all machines repositories of one version",
                ));
            }
            let version = Version::parse(&first.to_string()).map_err(|wrong| {
                Finding::package(
                    format!(
                        "repositories bring Kubernetes {first}, which is {}",
                        wrong.problem
                    ),
                    wrong.remedy,
                )
            })?;
            Some(version)
        }
    };
    Ok(Versions {
        kubernetes: version,
        etcd: oldest(&ETCD),
        containerd: oldest(&CONTAINERD),
        coredns: oldest(&COREDNS),
    })
}

fn from_repository(operation: &Operation) -> &[PackageName] {
    match operation {
        Operation::Packages(Packages {
            source: PackageSource::Repository(names),
        }) => names,
        _ => &[],
    }
}

fn is_recorded(managed: &Managed, name: &PackageName) -> bool {
    let mut resources = managed.resources.iter();
    resources.any(|one| one.kind == "package" && one.name == name.as_str())
}

fn matters(name: &PackageName) -> bool {
    [&KUBERNETES, &ETCD, &CONTAINERD, &COREDNS]
        .iter()
        .any(|software| software.packages.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use hatchery_host::machine::ManagedResource;

    use super::{super::tests::forge, *};

    const FILE: &str = "cluster-id: demo\nmasters: [{name: m0, ip: 10.201.1.11}]\n\
        workers: [{name: m0, ip: 10.201.1.11}, {name: w0, ip: 10.201.1.12}]\n";

    fn judged(answers: [&[(&str, &str)]; 2]) -> Result<Versions, Finding> {
        let cluster = forge::parse(FILE);
        let answers: Vec<_> = cluster
            .machines()
            .iter()
            .zip(answers)
            .map(|(machine, offered)| {
                let offered = offered
                    .iter()
                    .map(|(name, version)| (PackageName::new(*name).unwrap(), (*version).into()));
                (&machine.name, offered.collect())
            })
            .collect();
        versions(&answers)
    }

    fn packages(names: &[&str]) -> Installation {
        let names = names.iter().map(|name| PackageName::new(*name).unwrap());
        let source = PackageSource::Repository(names.collect());
        Installation {
            operations: vec![Operation::Packages(Packages { source })],
            ..Installation::default()
        }
    }

    /// A machine of the cluster on which Hatchery installed these.
    fn held(names: &[&str]) -> Managed {
        let package = |name: &&str| ManagedResource {
            key: hatchery_host::script::RecordKey::parse("k").unwrap(),
            kind: "package".into(),
            name: (*name).into(),
            state: None,
            size: None,
            put: None,
            text: None,
            owners: vec!["worker".into()],
        };
        Managed {
            cluster: Some(("c1".into(), "demo".into())),
            resources: names.iter().map(package).collect(),
        }
    }

    /// Machines that are called by their places, each with the number of packages that it is asked for.
    fn asked(machines: &[(PackageKind, &Managed, &Installation)]) -> Vec<String> {
        let names: Vec<_> = (0..machines.len())
            .map(|place| Name::parse(&place.to_string()).unwrap())
            .collect();
        let machines = names.iter().zip(machines);
        questions(machines.map(|(name, (kind, managed, all))| (name, *kind, *managed, *all)))
            .iter()
            .map(|(name, names)| format!("{name} {}", names.len()))
            .collect()
    }

    #[test]
    fn each_package_is_asked_for_once() {
        let master = packages(&["kubernetes-master", "etcd", "socat"]);
        let worker = packages(&["kubernetes-kubelet", "containerd"]);
        let (deb, rpm) = (PackageKind::Deb, PackageKind::Rpm);
        let new = Managed::default();
        let machines = [
            (deb, &new, &master),
            (deb, &new, &master),
            (deb, &new, &worker),
            (rpm, &new, &worker),
        ];
        assert_eq!(asked(&machines), ["0 2", "2 2", "3 2"]);
    }

    #[test]
    fn a_machine_that_has_a_package_and_one_that_gets_it_are_both_asked() {
        let worker = packages(&["kubernetes-kubelet", "containerd"]);
        let rpm = PackageKind::Rpm;
        let new = Managed::default();
        // Its containerd was there before Hatchery came, and is left at its version.
        let old = held(&["kubernetes-kubelet"]);
        let machines = [(rpm, &old, &worker), (rpm, &new, &worker)];
        assert_eq!(asked(&machines), ["0 2", "1 2"]);
        let machines = [(rpm, &new, &worker), (rpm, &old, &worker)];
        assert_eq!(asked(&machines), ["0 2", "1 2"]);
        // The machine is held, but its last deployment did not come as far as the packages.
        let begun = held(&[]);
        let machines = [
            (rpm, &begun, &worker),
            (rpm, &begun, &worker),
            (rpm, &old, &worker),
            (rpm, &old, &worker),
        ];
        assert_eq!(asked(&machines), ["0 2", "2 1"]);
    }

    #[test]
    fn the_oldest_counts_and_kubernetes_agrees() {
        let found = judged([
            &[
                ("kubernetes-master", "1.29.1-4.oe2403"),
                ("etcd", "3.4.14-2"),
            ],
            &[
                ("kubernetes-kubelet", "1.29.3-1"),
                ("containerd", "2:1.6.20~ds1-1"),
            ],
        ]);
        let found = found.unwrap();
        assert_eq!(found.kubernetes.unwrap().to_string(), "1.29.1");
        assert_eq!(found.etcd.unwrap().to_string(), "3.4.14");
        assert_eq!(found.containerd.unwrap().to_string(), "1.6.20");
        assert_eq!(judged([&[], &[]]), Ok(Versions::default()));
        let differ = judged([
            &[("kubernetes-master", "1.29.1-4")],
            &[("kubernetes-kubelet", "1.28.1-1")],
        ]);
        let message = differ.unwrap_err().message;
        assert!(
            message.contains("kubernetes-master 1.29.1 on m0"),
            "{message}"
        );
        let ancient = judged([&[("kubelet", "0.9.1")], &[]]);
        assert!(ancient.unwrap_err().message.contains("Kubernetes 0.9.1"));
    }
}
