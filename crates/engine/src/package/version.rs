//! Which versions the archives bring: as the names of packages say, else as the programs themselves do.

use std::{collections::BTreeSet, fmt};

use hatchery_host::operation::PackageFile;
use hatchery_spec::{
    Cluster,
    cluster::{Item, Role},
    value::{Arch, Version},
};

use super::{
    architecture,
    bundle::Bundle,
    choice, installation,
    layout::{self, FoundFile, Sort},
    problem::Problem,
    program,
};
use crate::name_list::NameList;

/// The version of a program beside Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
    /// The third; 0 where none is said.
    pub patch: u32,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Release {
    /// Reads the numbers that a text begins with: `1.20.2-4.oe1`, `2:1.6.20~ds1-1`, `v3.5.0`.
    pub(super) fn leading(text: &str) -> Option<Self> {
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
        Some(Self {
            major: numbers.next()??,
            minor: numbers.next()??,
            patch: numbers.next().unwrap_or(Some(0))?,
        })
    }

    /// Finds the version in what a program prints.
    fn said(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.strip_prefix("CoreDNS-").unwrap_or(word);
            Self::leading(word)
        })
    }
}

/// What the archives bring; nothing for what comes from repositories, or cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Kubernetes itself.
    pub kubernetes: Option<Version>,
    /// The store.
    pub etcd: Option<Release>,
    /// The runtime, alone or beneath Docker.
    pub containerd: Option<Release>,
    /// The cluster's DNS, where it is no pod.
    pub coredns: Option<Release>,
}

/// Something whose version matters.
pub(super) struct Software {
    pub(super) packages: &'static [&'static str],
    programs: &'static [&'static str],
    flag: &'static str,
}

pub(super) const KUBERNETES: Software = Software {
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
    packages: &["etcd", "etcd-server"],
    programs: &["etcd"],
    flag: "--version",
};
pub(super) const CONTAINERD: Software = Software {
    packages: &["containerd", "containerd.io"],
    programs: &["containerd"],
    flag: "--version",
};
pub(super) const COREDNS: Software = Software {
    packages: &["coredns"],
    programs: &["coredns"],
    flag: "-version",
};

/// What the archives of a cluster bring.
pub(super) fn versions(
    cluster: &Cluster,
    bundles: &[(Arch, &Bundle)],
) -> Result<Versions, Vec<Problem>> {
    let all = [&KUBERNETES, &ETCD, &CONTAINERD, &COREDNS];
    let mut found: [Vec<(Arch, Release)>; 4] = Default::default();
    let mut problems = Vec::new();
    for (arch, bundle) in bundles {
        match releases(cluster, *arch, bundle, all) {
            Ok(releases) => {
                for (all, one) in found.iter_mut().zip(releases) {
                    all.extend(one.map(|release| (*arch, release)));
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    let [kubernetes, companions @ ..] = found;
    let kubernetes = match agreed(&kubernetes) {
        Ok(version) => version,
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    // Where these differ by processor, what the older one can do is what there is.
    let [etcd, containerd, coredns] =
        companions.map(|found| found.into_iter().map(|(_, release)| release).min());
    Ok(Versions {
        kubernetes,
        etcd,
        containerd,
        coredns,
    })
}

/// One version of Kubernetes in all archives.
fn agreed(found: &[(Arch, Release)]) -> Result<Option<Version>, Problem> {
    let Some((_, first)) = found.first() else {
        return Ok(None);
    };
    if found.iter().any(|(_, release)| release != first) {
        let found: Vec<_> = found
            .iter()
            .map(|(arch, release)| format!("{release} for {arch}"))
            .collect();
        return Err(Problem::new(
            format!(
                "the archives bring different versions of Kubernetes: {}",
                NameList(&found)
            ),
            "pack archives of one version for all processors",
        ));
    }
    let version = Version::parse(&first.to_string()).map_err(|wrong| {
        Problem::new(
            format!(
                "the archives bring Kubernetes {first}, which is {}",
                wrong.problem
            ),
            wrong.remedy,
        )
    })?;
    Ok(Some(version))
}

fn releases(
    cluster: &Cluster,
    arch: Arch,
    bundle: &Bundle,
    all: [&Software; 4],
) -> Result<[Option<Release>; 4], Problem> {
    let roles: BTreeSet<Role> = super::roles_on(cluster, arch);
    let items: Vec<&Item> = installation::items(cluster, &roles).collect();
    let mut found = [None; 4];
    let mut unknown: Vec<(usize, FoundFile<'_>, &str)> = Vec::new();
    for (number, software) in all.iter().enumerate() {
        found[number] = packaged(bundle, arch, &items, software)?;
        if found[number].is_none() && architecture::own() == Some(arch) {
            let file = listed_program(bundle, &items, software);
            unknown.extend(file.map(|file| (number, file, software.flag)));
        }
    }
    let programs: Vec<_> = unknown
        .iter()
        .map(|(_, file, flag)| (*file, *flag))
        .collect();
    let answers = program::ask(bundle, &programs)?;
    for ((number, file, flag), answer) in unknown.iter().zip(answers) {
        let said = answer
            .and_then(|text| Release::said(&text).ok_or_else(|| "it names no version".to_owned()));
        match said {
            Ok(release) => found[*number] = Some(release),
            // Only of Kubernetes must the version be known, and the file may say it too.
            Err(why) if *number == 0 && cluster.kubernetes_version.is_none() => {
                return Err(bundle.problem(
                    format!(
                        "holds {}, which does not tell its version ({flag}): {why}",
                        file.path
                    ),
                    "write kubernetes-version into the deploy file",
                ));
            }
            Err(_) => {}
        }
    }
    Ok(found)
}

/// As the names of listed package files say.
fn packaged(
    bundle: &Bundle,
    arch: Arch,
    items: &[&Item],
    software: &Software,
) -> Result<Option<Release>, Problem> {
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
            let release = package.and_then(|package| Release::leading(&package.version));
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
                let sort = Sort::of(item)?.0;
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
            assert_eq!(
                Release::leading(text).unwrap().to_string(),
                expected,
                "{text}"
            );
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
            assert_eq!(Release::said(text).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(Release::said("no version here"), None);
        assert_eq!(Release::leading("99999999999.1"), None);
    }

    proptest! {
        #[test]
        fn any_words_are_survived(text in "\\PC{0,60}") {
            let _ = Release::said(&text);
        }
    }
}
