//! Which versions machines would install from their repositories.

use std::collections::{BTreeMap, BTreeSet};

use hatchery_host::operation::{Operation, PackageName, PackageSource, Packages};
use hatchery_spec::{
    cluster::Machine,
    value::{Release, Version},
};

use super::{
    choice::PackageKind,
    installation::Installation,
    problem::Problem,
    version::{self, CONTAINERD, COREDNS, ETCD, KUBERNETES, Software, Versions},
};
use crate::name_list::NameList;

/// What to ask one machine, by its place: each package once for each kind of package manager.
pub fn questions<'a>(
    installations: impl Iterator<Item = (usize, PackageKind, &'a Installation)>,
) -> Vec<(usize, Vec<PackageName>)> {
    let mut asked = BTreeSet::new();
    let mut questions = Vec::new();
    for (place, kind, installation) in installations {
        let listed = installation.operations.iter().flat_map(from_repository);
        let new: Vec<_> = listed
            .filter(|name| matters(name) && asked.insert((kind == PackageKind::Deb, name.as_str())))
            .cloned()
            .collect();
        if !new.is_empty() {
            questions.push((place, new));
        }
    }
    questions
}

/// What the machines' answers mean.
///
/// # Errors
/// When machines would get different versions of Kubernetes, or one that nothing is known of.
pub fn versions(
    answers: &[(&Machine, BTreeMap<PackageName, String>)],
) -> Result<Versions, Problem> {
    let found = |software: &Software| -> Vec<(String, Release)> {
        let all = answers.iter().flat_map(|(machine, offered)| {
            let ours = offered.iter();
            ours.filter(|(name, _)| software.packages.contains(&name.as_str()))
                .map(move |(name, version)| (*machine, name, version))
        });
        all.filter_map(|(machine, name, version)| {
            let release = version::leading(version)?;
            Some((format!("{name} {release} on {}", machine.name), release))
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
                return Err(Problem::new(
                    format!(
                        "repositories bring different versions of Kubernetes: {}",
                        NameList(&names)
                    ),
                    "give all machines repositories of one version",
                ));
            }
            let version = Version::parse(&first.to_string()).map_err(|wrong| {
                Problem::new(
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

fn matters(name: &PackageName) -> bool {
    [&KUBERNETES, &ETCD, &CONTAINERD, &COREDNS]
        .iter()
        .any(|software| software.packages.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::forge, *};

    const FILE: &str = "cluster-id: demo\nmasters: [{name: m0, ip: 10.201.1.11}]\n\
        workers: [{name: m0, ip: 10.201.1.11}, {name: w0, ip: 10.201.1.12}]\n";

    fn judged(answers: [&[(&str, &str)]; 2]) -> Result<Versions, Problem> {
        let cluster = forge::parse(FILE);
        let answers: Vec<_> = cluster
            .machines()
            .iter()
            .zip(answers)
            .map(|(machine, offered)| {
                let offered = offered
                    .iter()
                    .map(|(name, version)| (PackageName::new(*name).unwrap(), (*version).into()));
                (machine, offered.collect())
            })
            .collect();
        versions(&answers)
    }

    #[test]
    fn each_package_is_asked_for_once() {
        let package = |names: &[&str]| Installation {
            operations: vec![Operation::Packages(Packages {
                source: PackageSource::Repository(
                    names
                        .iter()
                        .map(|name| PackageName::new(*name).unwrap())
                        .collect(),
                ),
            })],
            ..Installation::default()
        };
        let master = package(&["kubernetes-master", "etcd", "socat"]);
        let worker = package(&["kubernetes-kubelet", "containerd"]);
        let (deb, rpm) = (PackageKind::Deb, PackageKind::Rpm);
        let machines = [
            (0, deb, &master),
            (1, deb, &master),
            (2, deb, &worker),
            (3, rpm, &worker),
        ];
        let questions = questions(machines.into_iter());
        let shown: Vec<_> = questions
            .iter()
            .map(|(place, names)| format!("{place} {}", names.len()))
            .collect();
        assert_eq!(shown, ["0 2", "2 2", "3 2"]);
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
