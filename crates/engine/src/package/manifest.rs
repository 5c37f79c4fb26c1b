//! The manifests that are applied to a new cluster, in their order.

use std::collections::BTreeSet;

use hatchery_host::archive::Index;
use hatchery_spec::{
    Cluster,
    cluster::{Item, ManifestSource, PackageList},
    value::AbsolutePath,
};

use super::{
    bundle::Bundle,
    installation::missing,
    layout::{self, Found, FoundFile, Sort},
    placing,
    problem::tell,
};
use crate::{finding::Finding, name_list::NameList};

/// A manifest to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// From an archive.
    Text {
        /// Its file name.
        name: String,
        /// What it says.
        text: String,
    },
    /// From the web.
    Url(String),
}

/// What a file asks for.
#[derive(Clone, Copy, Debug)]
enum Requested<'a> {
    /// The network plugin's, by its path on the masters.
    Network(&'a AbsolutePath),
    /// The network plugin's, by the plugin's name; it may come from elsewhere.
    Plugin(&'a str),
    Addon(&'a str),
    Listed(&'a str),
    Url(&'a str),
}

/// The network first, since nothing else runs without it.
fn requests(cluster: &Cluster) -> Vec<Requested<'_>> {
    let network = cluster.pods.plugin.as_ref();
    let network = network.and_then(|plugin| match &plugin.manifest {
        Some(path) => Some(Requested::Network(path)),
        // Built in.
        None if !plugin.kind().needs_manifest => None,
        None => Some(Requested::Plugin(&plugin.name)),
    });
    let addons = cluster.packages.addons.iter();
    let listed = PackageList::ALL.into_iter();
    let listed = listed.filter_map(|list| cluster.packages.lists.get(&list));
    let listed = listed.flatten().filter_map(|item| match item {
        Item::Yaml {
            source: ManifestSource::Archive(name),
        } => Some(Requested::Listed(name)),
        Item::Yaml {
            source: ManifestSource::Url(url),
        } => Some(Requested::Url(url)),
        _ => None,
    });
    let addons = addons.map(|name| Requested::Addon(name));
    network.into_iter().chain(addons).chain(listed).collect()
}

/// The manifests that an archive holds, to be read with it.
pub(super) fn wanted<'a>(cluster: &Cluster, bundle: &'a Bundle) -> Vec<FoundFile<'a>> {
    let found = requests(cluster)
        .into_iter()
        .filter_map(|requested| find(cluster, bundle, requested).ok());
    found.flatten().collect()
}

/// All manifests, from the first of the archives that holds each.
pub(super) fn read(cluster: &Cluster, bundles: &[&Bundle]) -> Result<Vec<Manifest>, Vec<Finding>> {
    let (mut manifests, mut problems) = (Vec::new(), Vec::new());
    // One file may be meant twice, as the network's and as an addon.
    let mut taken = BTreeSet::new();
    for requested in requests(cluster) {
        if let Requested::Url(url) = requested {
            if taken.insert(url.to_owned()) {
                manifests.push(Manifest::Url(url.to_owned()));
            }
            continue;
        }
        if matches!(requested, Requested::Plugin(_)) && !is_held(cluster, bundles, requested) {
            continue;
        }
        match one(cluster, bundles, requested) {
            Ok((digest, manifest)) if taken.insert(digest.clone()) => manifests.push(manifest),
            Ok(_) => {}
            Err(problem) => tell(&mut problems, problem),
        }
    }
    if problems.is_empty() {
        Ok(manifests)
    } else {
        Err(problems)
    }
}

fn is_held(cluster: &Cluster, bundles: &[&Bundle], requested: Requested<'_>) -> bool {
    let mut bundles = bundles.iter();
    bundles.any(|bundle| matches!(find(cluster, bundle, requested), Ok(Some(_))))
}

fn one(
    cluster: &Cluster,
    bundles: &[&Bundle],
    requested: Requested<'_>,
) -> Result<(String, Manifest), Finding> {
    for bundle in bundles {
        let Some(file) = find(cluster, bundle, requested)? else {
            continue;
        };
        let name = layout::last(file.path).to_owned();
        let read = bundle
            .manifest(&file)
            .unwrap_or_else(|| Err("was not read".to_owned()));
        return match read {
            Ok(text) => Ok((file.digest.to_string(), Manifest::Text { name, text })),
            Err(why) => Err(bundle.problem(
                format!("holds {}, which {why}", file.path),
                "put a manifest in its place and pack the archive again",
            )),
        };
    }
    Err(absent(bundles, requested))
}

fn absent(bundles: &[&Bundle], requested: Requested<'_>) -> Finding {
    let (name, what) = match requested {
        Requested::Network(path) => (layout::last(path.as_str()), "the network plugin's manifest"),
        Requested::Addon(name) => (name, "the addon"),
        Requested::Plugin(name) => (name, "the network plugin's manifest"),
        Requested::Listed(name) | Requested::Url(name) => (name, "the manifest"),
    };
    match bundles.first() {
        None => Finding::package(
            format!("{what} {name} comes from an archive, but no archive is given"),
            "name the archives, or list the manifest by its URL",
        ),
        Some(bundle) => match requested {
            Requested::Listed(name) => missing(bundle, Sort::Manifest, name),
            _ => bundle.problem(
                format!("holds no {name}, {what}"),
                format!("put it there as addons/{name} or file/{name}, or correct its name in the deploy file"),
            ),
        },
    }
}

/// The file that is meant; nothing if this archive does not hold it.
fn find<'a>(
    cluster: &Cluster,
    bundle: &'a Bundle,
    requested: Requested<'_>,
) -> Result<Option<FoundFile<'a>>, Finding> {
    let index = bundle.index();
    let file = |path: &str| match layout::at(index, path)? {
        Found::File(file) => Some(file),
        Found::Directory(_) => None,
    };
    Ok(match requested {
        Requested::Url(_) => None,
        Requested::Listed(name) => layout::find_file(index, Sort::Manifest, name),
        Requested::Addon(name) => file(&format!("addons/{name}"))
            .or_else(|| layout::find_file(index, Sort::Manifest, name)),
        Requested::Plugin(name) => {
            let addon = |name: &str| file(&format!("addons/{name}"));
            let usual = |name: &str| layout::find_file(index, Sort::Manifest, name);
            let name = name.to_ascii_lowercase();
            let names = [format!("{name}.yaml"), format!("{name}.yml")];
            names
                .iter()
                .find_map(|name| addon(name).or_else(|| usual(name)))
        }
        Requested::Network(path) => {
            let name = layout::last(path.as_str());
            let addon = || file(&format!("addons/{name}"));
            let usual = || layout::find_file(index, Sort::Manifest, name);
            match installed_at(cluster, index, path)
                .or_else(addon)
                .or_else(usual)
            {
                Some(found) => Some(found),
                None => anywhere(bundle, name)?,
            }
        }
    })
}

/// The file that the masters' lists put at this path.
fn installed_at<'a>(
    cluster: &Cluster,
    index: &'a Index,
    path: &AbsolutePath,
) -> Option<FoundFile<'a>> {
    let lists = [PackageList::KubernetesMaster, PackageList::AdditionMaster];
    let items = lists
        .iter()
        .filter_map(|list| cluster.packages.lists.get(list))
        .flatten();
    items
        .filter_map(|item| {
            let (Item::Bin { name, destination }
            | Item::File { name, destination }
            | Item::Dir { name, destination }
            | Item::Binary { name, destination }) = item
            else {
                return None;
            };
            let (sort, _) = Sort::from_item(item)?;
            let place = placing::place(destination, name).ok()?;
            let below = path.as_str().strip_prefix(place.as_str())?;
            match (layout::find(index, sort, name)?, below.strip_prefix('/')) {
                (Found::File(file), None) if below.is_empty() => Some(file),
                (Found::Directory(directory), Some(below)) => {
                    match layout::at(index, &layout::join(&directory, below))? {
                        Found::File(file) => Some(file),
                        Found::Directory(_) => None,
                    }
                }
                _ => None,
            }
        })
        .next()
}

/// The only file of this name, wherever it lies.
fn anywhere<'a>(bundle: &'a Bundle, name: &str) -> Result<Option<FoundFile<'a>>, Finding> {
    let found: Vec<FoundFile<'a>> = bundle
        .index()
        .entries()
        .iter()
        .filter(|entry| layout::last(&entry.path) == name)
        .filter_map(|entry| match layout::at(bundle.index(), &entry.path)? {
            Found::File(file) => Some(file),
            Found::Directory(_) => None,
        })
        .collect();
    let Some(first) = found.first() else {
        return Ok(None);
    };
    if found.iter().any(|other| other.digest != first.digest) {
        let paths: Vec<_> = found.iter().map(|file| file.path.to_owned()).collect();
        return Err(bundle.problem(
            format!(
                "holds several files {name}, which differ: {}",
                NameList(&paths)
            ),
            format!("put the one that is meant into addons/{name}"),
        ));
    }
    Ok(Some(*first))
}
