//! Which versions the archives bring: as the names of packages say, else the archive's own list (`versions.yaml`), else
//! the programs themselves, which are run confined for that. What the deploy file says is held against it.

use std::{collections::BTreeSet, fmt};

use hatchery_host::operation::PackageFile;
use hatchery_spec::{
    Cluster,
    cluster::{Item, Role},
    value::{Arch, Release, Version},
};

use super::{
    architecture,
    bundle::Bundle,
    choice, installation,
    layout::{self, FoundFile, Sort},
    program, version_list,
};
use crate::{confinement::Launcher, finding::Finding, name_list::NameList};

/// Reads the numbers that a text begins with: `1.20.2-4.oe1`, `2:1.6.20~ds1-1`, `v3.5.0`.
pub(super) fn leading(text: &str) -> Option<Release> {
    let text = match text.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => text,
    };
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let mut numbers = text[..end]
        .trim_end_matches('.')
        .split('.')
        .map(|part| part.parse().ok());
    Some(Release {
        major: numbers.next()??,
        minor: numbers.next()??,
        patch: numbers.next().unwrap_or(Some(0))?,
    })
}

/// Finds the version in what a program prints.
fn said(text: &str) -> Option<Release> {
    text.split_whitespace().find_map(|word| {
        let word = word.strip_prefix("CoreDNS-").unwrap_or(word);
        leading(word)
    })
}

/// What the archives bring; nothing for what comes from repositories, or cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The version of Kubernetes.
    pub kubernetes: Option<Version>,
    /// The version of etcd.
    pub etcd: Option<Release>,
    /// The runtime, alone or beneath Docker.
    pub containerd: Option<Release>,
    /// The version of CoreDNS, where it is not a pod.
    pub coredns: Option<Release>,
}

/// What was found out about the versions in archives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// What is known.
    pub versions: Versions,
    /// What is not, though archives hold it.
    pub unknown: Vec<Unknown>,
}

/// A program whose version is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The program in the archive.
    program: String,
    /// Why its version is unknown.
    reason: String,
    /// The key of the deploy file that would.
    key: &'static str,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            reason,
            key,
        } = self;
        write!(
            f,
            "the version of {program} is not known: {reason}; write {key} into the deploy file, or pack versions.yaml"
        )
    }
}

/// Something whose version matters.
pub(super) struct Software {
    /// Its name in `versions.yaml`.
    name: &'static str,
    /// The key of the deploy file that sets its version.
    key: &'static str,
    pub(super) packages: &'static [&'static str],
    programs: &'static [&'static str],
    flag: &'static str,
}

pub(super) const KUBERNETES: Software = Software {
    name: "kubernetes",
    key: "kubernetes-version",
    packages: &[
        "kubernetes-master",
        "kubernetes-kubelet",
        "kubernetes-node",
        "kube-apiserver",
        "kubelet",
        "kubernetes",
        "kubernetes-server",
    ],
    programs: &["kube-apiserver", "kubelet"],
    flag: "--version",
};
pub(super) const ETCD: Software = Software {
    name: "etcd",
    key: "etcd-version",
    packages: &["etcd", "etcd-server"],
    programs: &["etcd"],
    flag: "--version",
};
pub(super) const CONTAINERD: Software = Software {
    name: "containerd",
    key: "containerd-version",
    packages: &["containerd", "containerd.io"],
    programs: &["containerd"],
    flag: "--version",
};
pub(super) const COREDNS: Software = Software {
    name: "coredns",
    key: "coredns-version",
    packages: &["coredns"],
    programs: &["coredns"],
    flag: "-version",
};

/// All of it, Kubernetes first.
const ALL: [&Software; 4] = [&KUBERNETES, &ETCD, &CONTAINERD, &COREDNS];

/// The names that a list of versions may have.
pub(super) fn names() -> [&'static str; 4] {
    ALL.map(|software| software.name)
}

/// What the archives of a cluster bring.
pub(super) fn versions(
    cluster: &Cluster,
    bundles: &[(Arch, &Bundle)],
    launcher: Option<&Launcher>,
) -> Result<Learned, Vec<Finding>> {
    let mut found: [Vec<(Arch, Release)>; 4] = Default::default();
    let mut unknown: Vec<(usize, Unknown)> = Vec::new();
    let mut problems = Vec::new();
    for (arch, bundle) in bundles {
        match releases(cluster, *arch, bundle, launcher) {
            Ok((releases, more)) => {
                for (all, one) in found.iter_mut().zip(releases) {
                    all.extend(one.map(|release| (*arch, release)));
                }
                unknown.extend(more);
            }
            Err(problem) => problems.push(problem),
        }
    }
    unknown.retain(|(number, _)| found[*number].is_empty());
    let [kubernetes, companions @ ..] = found;
    let kubernetes = match agreed(&kubernetes) {
        Ok(version) => version,
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    // Where these differ by processor, what the older one can do is what there is.
    let companions = companions.map(|found| found.into_iter().map(|(_, release)| release).min());
    let written = written(cluster);
    problems.extend(contradictions(cluster, companions, "the archives"));
    if !problems.is_empty() {
        return Err(problems);
    }
    let [etcd, containerd, coredns] = companions;
    let versions = Versions {
        kubernetes,
        etcd: etcd.or(written[0]),
        containerd: containerd.or(written[1]),
        coredns: coredns.or(written[2]),
    };
    Ok(Learned {
        versions,
        unknown: unknown.into_iter().map(|(_, one)| one).collect(),
    })
}

/// What the deploy file says of all but Kubernetes.
fn written(cluster: &Cluster) -> [Option<Release>; 3] {
    let written = cluster.companion_versions;
    [written.etcd, written.containerd, written.coredns]
}

/// Where the file says another version of etcd, containerd or CoreDNS, in this order, than what is brought. Patches may
/// differ; nothing is decided by them.
pub(crate) fn contradictions(
    cluster: &Cluster,
    brought: [Option<Release>; 3],
    by: &str,
) -> Vec<Finding> {
    let all = ALL[1..].iter().zip(brought).zip(written(cluster));
    all.filter_map(|((software, found), written)| {
        let (found, written) = found.zip(written)?;
        let is_other = (found.major, found.minor) != (written.major, written.minor);
        is_other.then(|| {
            Finding::package(
                format!(
                    "the file says that {} is {written}, and {by} bring {found}",
                    software.name
                ),
                format!("change or remove {}, or use other packages", software.key),
            )
        })
    })
    .collect()
}

/// One version of Kubernetes in all archives.
fn agreed(found: &[(Arch, Release)]) -> Result<Option<Version>, Finding> {
    let Some((_, first)) = found.first() else {
        return Ok(None);
    };
    if found.iter().any(|(_, release)| release != first) {
        let found: Vec<_> = found
            .iter()
            .map(|(arch, release)| format!("{release} for {arch}"))
            .collect();
        return Err(Finding::package(
            format!(
                "the archives bring different versions of Kubernetes: {}",
                NameList(&found)
            ),
            "pack archives of one version for all processors",
        ));
    }
    let version = Version::parse(&first.to_string()).map_err(|wrong| {
        Finding::package(
            format!(
                "the archives bring Kubernetes {first}, which is {}",
                wrong.problem
            ),
            wrong.remedy,
        )
    })?;
    Ok(Some(version))
}

type Releases = ([Option<Release>; 4], Vec<(usize, Unknown)>);

fn releases(
    cluster: &Cluster,
    arch: Arch,
    bundle: &Bundle,
    launcher: Option<&Launcher>,
) -> Result<Releases, Finding> {
    let roles: BTreeSet<Role> = super::roles_on(cluster, arch);
    let items: Vec<&Item> = installation::items(cluster, &roles).collect();
    let list = version_list::read(bundle)?;
    let written = written(cluster);
    let mut found = [None; 4];
    let mut asked: Vec<(usize, FoundFile<'_>, &str)> = Vec::new();
    let mut unknown = Vec::new();
    for (number, software) in ALL.into_iter().enumerate() {
        let listed = list.get(software.name).copied();
        found[number] = packaged(bundle, arch, &items, software)?.or(listed);
        let is_written = number > 0 && written[number - 1].is_some();
        if found[number].is_some() || is_written {
            continue;
        }
        let Some(file) = listed_program(bundle, &items, software) else {
            continue;
        };
        if architecture::own() == Some(arch) {
            asked.push((number, file, software.flag));
        } else if number > 0 || cluster.kubernetes_version.is_none() {
            let reason = format!("it is for {arch}, which this machine cannot run");
            unknown.push((number, not_told(file, reason, software)));
        }
    }
    let programs: Vec<_> = asked.iter().map(|(_, file, flag)| (*file, *flag)).collect();
    let answers = program::ask(bundle, &programs, launcher)?;
    for ((number, file, flag), answer) in asked.into_iter().zip(answers) {
        let release =
            answer.and_then(|text| said(&text).ok_or_else(|| "it names no version".to_owned()));
        match release {
            Ok(release) => found[number] = Some(release),
            // Only of Kubernetes must the version be known, and the file may say it too.
            Err(why) if number == 0 && cluster.kubernetes_version.is_none() => {
                return Err(bundle.problem(
                    format!(
                        "holds {}, which does not print its version ({flag}): {why}",
                        file.path
                    ),
                    "write kubernetes-version into the deploy file, or pack versions.yaml",
                ));
            }
            Err(_) if number == 0 => {}
            Err(why) => unknown.push((number, not_told(file, why, ALL[number]))),
        }
    }
    Ok((found, unknown))
}

fn not_told(file: FoundFile<'_>, reason: String, software: &Software) -> Unknown {
    Unknown {
        program: file.path.to_owned(),
        reason,
        key: software.key,
    }
}

/// As the names of listed package files say.
fn packaged(
    bundle: &Bundle,
    arch: Arch,
    items: &[&Item],
    software: &Software,
) -> Result<Option<Release>, Finding> {
    let mut found: Vec<(&str, Release)> = Vec::new();
    let listed = |name: &&&str| {
        items
            .iter()
            .any(|item| matches!(item, Item::Pkg { name: one } if one == **name))
    };
    for name in software.packages.iter().filter(listed) {
        for (file, path) in choice::candidates(bundle, name) {
            if architecture::of_package(file).is_some_and(|one| one != arch) {
                continue;
            }
            let package = PackageFile::new(file, bundle.content(&path)?).ok();
            let release = package.and_then(|package| leading(&package.version));
            found.extend(release.map(|release| (file, release)));
        }
    }
    let Some((_, first)) = found.first() else {
        return Ok(None);
    };
    // Patches may differ; a kubelet of another minor version would be configured for the wrong one.
    if found
        .iter()
        .any(|(_, other)| (other.major, other.minor) != (first.major, first.minor))
    {
        let files: Vec<_> = found.iter().map(|(file, _)| (*file).to_owned()).collect();
        return Err(bundle.problem(
            format!("holds packages of different versions: {}", NameList(&files)),
            "pack one version of each",
        ));
    }
    Ok(Some(*first))
}

/// The listed program that can be asked.
fn listed_program<'a>(
    bundle: &'a Bundle,
    items: &[&Item],
    software: &Software,
) -> Option<FoundFile<'a>> {
    software.programs.iter().find_map(|program| {
        items.iter().find_map(|item| match item {
            Item::Bin { name, .. } | Item::Binary { name, .. }
                if layout::last(name) == *program =>
            {
                let sort = Sort::from_item(item)?.0;
                layout::find_file(bundle.index(), sort, name)
            }
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_found_in_names_and_words() {
        for (text, expected) in [
            ("1.20.2-4.oe1", "1.20.2"),
            ("2:1.6.20~ds1-1", "1.6.20"),
            ("3.4-1", "3.4.0"),
            ("v1.37.0", "1.37.0"),
        ] {
            assert_eq!(leading(text).unwrap().to_string(), expected, "{text}");
        }
        for (text, expected) in [
            ("Kubernetes v1.37.0\n", "1.37.0"),
            ("Kubernetes v1.20.2-dirty+x\n", "1.20.2"),
            (
                "containerd github.com/containerd/containerd/v2 v2.4.2 abc\n",
                "2.4.2",
            ),
            (
                "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1\n",
                "1.6.20",
            ),
            (
                "etcd Version: 3.7.3\nGit SHA: 1.2\nGo Version: go1.25\n",
                "3.7.3",
            ),
            ("CoreDNS-1.15.0\nlinux/amd64, go1.25.1,\n", "1.15.0"),
        ] {
            assert_eq!(said(text).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(said("no version here"), None);
        assert_eq!(leading("99999999999.1"), None);
    }

    proptest! {
        #[test]
        fn any_words_are_survived(text in "\\PC{0,60}") {
            let _ = said(&text);
        }
    }
}
