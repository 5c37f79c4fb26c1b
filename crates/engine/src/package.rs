//! What a deploy file's package lists and archives mean for a machine.
//!
//! [`Bundles::open`] reads the archive of each architecture in use, once: what it finds is kept on disk. From then
//! on every question is answered from memory: what a machine gets ([`Bundles::installation`]), what is applied to the
//! cluster ([`Bundles::manifests`]), and which versions all this is of ([`Bundles::versions`]).
//!
//! Opening an archive for the first time and asking its programs for their versions takes seconds and blocks:
//! callers in async code use a thread for it.

mod architecture;
mod bundle;
mod cache;
mod choice;
mod image;
mod installation;
mod layout;
mod manifest;
mod placing;
mod problem;
mod program;
mod reference;
pub mod repository;
#[cfg(test)]
mod tests;
mod tree;
mod version;
mod version_list;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use hatchery_spec::{
    Cluster,
    cluster::{Item, Machine, Role},
    value::Arch,
};

pub(crate) use self::reference::{full as full_reference, without_docker_hub};
pub(crate) use self::version::contradictions;
use self::{
    bundle::{Bundle, Question},
    layout::{ALL_IMAGES, Found, FoundFile, Sort},
    problem::tell,
};
pub use self::{
    choice::PackageKind,
    installation::{Hook, ImageArchive, Installation},
    manifest::Manifest,
    version::{Learned, Unknown, Versions},
};
use crate::{confinement::Launcher, finding::Finding, name_list::NameList};
pub use hatchery_spec::value::Release;

/// The archives of a cluster, by architecture; none for an installation from repositories only.
#[derive(Clone, Debug, Default)]
pub struct Bundles {
    bundles: BTreeMap<Arch, Arc<Bundle>>,
}

impl Bundles {
    /// Opens the archives of all architectures in use. Paths that are not absolute are taken from `base`; what
    /// is found out is kept in the directory `cache`.
    ///
    /// An archive for another architecture, or without anything that is listed, is refused. All problems of all
    /// archives are returned.
    pub fn open(cluster: &Cluster, base: &Path, cache: &Path) -> Result<Self, Vec<Finding>> {
        let mut paths: BTreeMap<PathBuf, BTreeSet<Arch>> = BTreeMap::new();
        for machine in cluster.machines() {
            if let Some(archive) = cluster.packages.archives.get(&machine.arch) {
                paths
                    .entry(base.join(&archive.path))
                    .or_default()
                    .insert(machine.arch);
            }
        }
        let opened: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = paths
                .iter()
                .map(|(path, archs)| scope.spawn(move || open(cluster, path, archs, cache)))
                .collect();
            threads
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect()
        });
        let (mut bundles, mut problems) = (BTreeMap::new(), Vec::new());
        for ((path, archs), opened) in paths.iter().zip(opened) {
            match opened {
                Ok(Ok(bundle)) => {
                    bundles.extend(archs.iter().map(|arch| (*arch, Arc::clone(&bundle))));
                }
                Ok(Err(more)) => problems.extend(more),
                Err(_) => problems.push(Finding::in_archive(
                    path,
                    "could not be read",
                    "report this",
                )),
            }
        }
        if problems.is_empty() {
            Ok(Self { bundles })
        } else {
            Err(problems)
        }
    }

    /// What the lists of these roles put on a machine that takes packages of this kind.
    pub fn installation(
        &self,
        cluster: &Cluster,
        node: &Machine,
        kind: PackageKind,
        roles: &BTreeSet<Role>,
    ) -> Result<Installation, Vec<Finding>> {
        let bundle = self.bundles.get(&node.arch).map(Arc::as_ref);
        installation::gather(cluster, node, bundle, kind, roles)
    }

    /// What is applied to the cluster when it runs: the network plugin's manifest, addons, and what is listed.
    pub fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, Vec<Finding>> {
        manifest::read(cluster, &self.masters_first(cluster))
    }

    /// The versions of what is listed from archives. Where neither a package's name nor the archive's `versions.yaml`
    /// gives them, the launcher runs programs for that; without a launcher none is run.
    pub fn versions(
        &self,
        cluster: &Cluster,
        launcher: Option<&Launcher>,
    ) -> Result<Learned, Vec<Finding>> {
        let bundles: Vec<_> = self
            .bundles
            .iter()
            .map(|(arch, bundle)| (*arch, &**bundle))
            .collect();
        version::versions(cluster, &bundles, launcher)
    }

    fn masters_first(&self, cluster: &Cluster) -> Vec<&Bundle> {
        let first = cluster.first_master().arch;
        let others = self.bundles.iter().filter(|(arch, _)| **arch != first);
        let others = others.map(|(_, bundle)| bundle);
        self.bundles
            .get(&first)
            .into_iter()
            .chain(others)
            .map(Arc::as_ref)
            .collect()
    }
}

/// The roles that machines of an architecture have.
fn roles_on(cluster: &Cluster, arch: Arch) -> BTreeSet<Role> {
    let machines = cluster
        .machines()
        .iter()
        .filter(|machine| machine.arch == arch);
    machines
        .flat_map(|machine| machine.roles.iter().copied())
        .collect()
}

fn open(
    cluster: &Cluster,
    path: &Path,
    archs: &BTreeSet<Arch>,
    cache: &Path,
) -> Result<Arc<Bundle>, Vec<Finding>> {
    let bundle = Bundle::open(path, cache).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    for arch in archs {
        let roles = roles_on(cluster, *arch);
        let items: Vec<&Item> = installation::items(cluster, &roles).collect();
        let questions = questions(cluster, &bundle, &items);
        bundle
            .find_out(&questions)
            .map_err(|problem| vec![problem])?;
        if let Some(problem) = holds_nothing(&bundle, &items) {
            tell(&mut problems, problem);
        } else if let Some(problem) = is_for_another(&bundle, *arch, &items) {
            tell(&mut problems, problem);
        }
    }
    if problems.is_empty() {
        Ok(Arc::new(bundle))
    } else {
        Err(problems)
    }
}

/// All that there will be to know about the contents of an archive.
fn questions<'a>(
    cluster: &Cluster,
    bundle: &'a Bundle,
    items: &[&Item],
) -> Vec<(FoundFile<'a>, Question)> {
    let index = bundle.index();
    let listed = items.iter().filter_map(|item| {
        let (sort, name) = Sort::from_item(item)?;
        let question = match sort {
            Sort::Program | Sort::Either => Question::Processor,
            Sort::Image => Question::Images,
            _ => return None,
        };
        Some((layout::find_file(index, sort, name)?, question))
    });
    let images = match layout::at(index, ALL_IMAGES) {
        Some(Found::File(file)) => Some((file, Question::Images)),
        _ => None,
    };
    let manifests = manifest::wanted(cluster, bundle).into_iter();
    let manifests = manifests.map(|file| (file, Question::Manifest));
    let versions = version_list::file(bundle).map(|file| (file, Question::Manifest));
    listed
        .chain(images)
        .chain(manifests)
        .chain(versions)
        .collect()
}

fn holds_nothing(bundle: &Bundle, items: &[&Item]) -> Option<Finding> {
    let listed: Vec<_> = items
        .iter()
        .filter_map(|item| Sort::from_item(item))
        .collect();
    let is_there = |(sort, name): &(Sort, &str)| match sort {
        Sort::Package => !choice::candidates(bundle, name).is_empty(),
        sort => layout::find(bundle.index(), *sort, name).is_some(),
    };
    if listed.is_empty() || listed.iter().any(is_there) {
        return None;
    }
    let names: Vec<_> = listed.iter().map(|(_, name)| (*name).to_owned()).collect();
    let remedy = match layout::wrapping(bundle.index()) {
        Some(directory) => format!(
            "everything lies in {directory}/: pack it from inside of it (tar -C {directory} -czf ARCHIVE .)"
        ),
        None => {
            "name the archive that holds them; 'tar -tf ARCHIVE' lists what is there".to_owned()
        }
    };
    Some(bundle.problem(
        format!("holds nothing of what is listed: {}", NameList(&names)),
        remedy,
    ))
}

fn is_for_another(bundle: &Bundle, arch: Arch, items: &[&Item]) -> Option<Finding> {
    let mut foreign: Vec<String> = Vec::new();
    let mut processors = BTreeSet::new();
    let mut add = |name: String, processor: Arch| {
        processors.insert(processor.as_str());
        if !foreign.contains(&name) {
            foreign.push(name);
        }
    };
    for (sort, name) in items.iter().filter_map(|item| Sort::from_item(item)) {
        if sort == Sort::Package {
            let files = choice::candidates(bundle, name);
            let processors: Vec<_> = files
                .iter()
                .map(|(file, _)| architecture::of_package(file))
                .collect();
            let fits = processors
                .iter()
                .any(|one| one.is_none_or(|one| one == arch));
            if let (false, Some((file, _)), Some(Some(processor))) =
                (fits, files.first(), processors.first())
            {
                add((*file).to_owned(), *processor);
            }
        } else if let Some(file) = layout::find_file(bundle.index(), sort, name)
            && let Some(processor) = bundle.processor(&file).filter(|one| *one != arch)
        {
            add(file.path.to_owned(), processor);
        }
    }
    if foreign.is_empty() {
        return None;
    }
    let processors: Vec<_> = processors.into_iter().collect();
    Some(bundle.problem(
        format!(
            "is named for {arch}, but what it holds is for {}: {}",
            processors.join(" and "),
            NameList(&foreign)
        ),
        format!("name the archive for {arch}, or correct the arch of the machines"),
    ))
}
