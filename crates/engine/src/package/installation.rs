//! What the lists of a machine's roles put on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use hatchery_host::{
    content::Content,
    operation::{Operation, PackageFile, PackageName, PackageSource, Packages},
    path::{self, MachinePath},
};
use hatchery_spec::{
    Cluster,
    cluster::{CoreDns, Item, Machine, PackageList, Role, Schedule},
    value::AbsolutePath,
};

use super::{
    bundle::Bundle,
    choice::{self, PackageKind},
    layout::{self, ALL_IMAGES, Found, FoundFile, Sort},
    placing::{self, Placing},
    problem::tell,
    tree,
};
use crate::finding::Finding;

/// What is installed on a machine.
#[derive(Debug, Default)]
pub struct Installation {
    /// Packages first, then directories, files and links, in the order of the lists.
    pub operations: Vec<Operation>,
    /// Loaded when the runtime runs.
    pub images: Vec<ImageArchive>,
    /// Where programs are put, by name.
    pub programs: BTreeMap<String, MachinePath>,
    /// The user's scripts, in the order of the lists.
    pub hooks: Vec<Hook>,
}

/// An archive of images, as `docker save` writes it.
#[derive(Clone, Debug)]
pub struct ImageArchive {
    /// The archive itself.
    pub content: Content,
    /// The full names of its images.
    pub references: Vec<String>,
}

/// A script of the user's.
#[derive(Clone, Debug)]
pub struct Hook {
    /// When it runs.
    pub schedule: Schedule,
    /// Its path in the archive, without the directory of its type.
    pub name: String,
    /// What it says.
    pub content: Content,
    /// How long it may run.
    pub timeout: Duration,
}

impl Installation {
    /// Where a program is: where it was put, or where packages have theirs.
    pub fn program_path(&self, name: &str) -> Result<MachinePath, path::Error> {
        match self.programs.get(name) {
            Some(path) => Ok(path.clone()),
            None => MachinePath::new(format!("/usr/bin/{name}")),
        }
    }
}

/// The directories of the manual's list that hold programs.
const PROGRAM_DIRECTORIES: [&str; 4] = [
    "/usr/bin",
    "/usr/local/bin",
    "/opt/cni/bin",
    "/usr/libexec/cni",
];

/// The items of these roles, list by list.
pub(super) fn items<'a>(
    cluster: &'a Cluster,
    roles: &'a BTreeSet<Role>,
) -> impl Iterator<Item = &'a Item> {
    PackageList::ALL
        .into_iter()
        .filter(|list| roles.contains(&list.role()))
        .filter_map(|list| cluster.packages.lists.get(&list))
        .flatten()
}

/// The manual allows to leave CoreDNS out of the archive when it runs in pods, and still to list it.
pub(super) fn may_be_missing(cluster: &Cluster, name: &str) -> bool {
    name == "coredns" && matches!(cluster.dns.coredns, CoreDns::Pod { .. })
}

pub(super) fn gather(
    cluster: &Cluster,
    node: &Machine,
    bundle: Option<&Bundle>,
    kind: PackageKind,
    roles: &BTreeSet<Role>,
) -> Result<Installation, Vec<Finding>> {
    let mut gathering = Gathering {
        cluster,
        node,
        kind,
        repository: Vec::new(),
        files: Vec::new(),
        placing: Placing::default(),
        images: Vec::new(),
        loaded: BTreeSet::new(),
        programs: BTreeMap::new(),
        hooks: Vec::new(),
    };
    for item in items(cluster, roles) {
        if let Err(problem) = gathering.take(item, bundle) {
            tell(&mut gathering.placing.problems, problem);
        }
    }
    // A classic archive's images belong to every machine that runs pods, listed or not.
    let classic = bundle.filter(|_| roles.contains(&Role::Worker));
    if let Some((bundle, Found::File(file))) =
        classic.and_then(|bundle| Some((bundle, layout::at(bundle.index(), ALL_IMAGES)?)))
        && let Err(problem) = gathering.load(bundle, &file)
    {
        tell(&mut gathering.placing.problems, problem);
    }
    gathering.finish()
}

struct Gathering<'a> {
    cluster: &'a Cluster,
    node: &'a Machine,
    kind: PackageKind,
    repository: Vec<PackageName>,
    files: Vec<PackageFile>,
    placing: Placing,
    images: Vec<ImageArchive>,
    loaded: BTreeSet<hatchery_host::archive::Digest>,
    programs: BTreeMap<String, MachinePath>,
    hooks: Vec<Hook>,
}

impl Gathering<'_> {
    fn take(&mut self, item: &Item, bundle: Option<&Bundle>) -> Result<(), Finding> {
        if let Item::Repo { name } = item {
            return self.repository_package(name);
        }
        if matches!(item, Item::Yaml { .. }) {
            return Ok(());
        }
        let Some((sort, name)) = Sort::from_item(item) else {
            return Ok(());
        };
        let Some(bundle) = bundle else {
            return Err(Finding::package(
                format!(
                    "{} needs {name}, but there is no archive for {}",
                    self.node.name, self.node.arch
                ),
                format!(
                    "name an archive for {}, or list {name} with type repo",
                    self.node.arch
                ),
            ));
        };
        if sort == Sort::Package {
            if may_be_missing(self.cluster, name) && choice::candidates(bundle, name).is_empty() {
                return Ok(());
            }
            return self.package_file(bundle, name);
        }
        let Some(found) = layout::find(bundle.index(), sort, name) else {
            if may_be_missing(self.cluster, name) {
                return Ok(());
            }
            return Err(missing(bundle, sort, name));
        };
        match (item, found) {
            (Item::Bin { destination, .. }, Found::File(file)) => {
                self.program(bundle, name, destination, &file)
            }
            (Item::Binary { destination, .. }, Found::File(file))
                if file.mode & 0o111 != 0 || holds_programs(destination) =>
            {
                self.program(bundle, name, destination, &file)
            }
            (
                Item::File { destination, .. } | Item::Binary { destination, .. },
                Found::File(file),
            ) => {
                let path = placing::place(destination, name)?;
                let (content, mode) =
                    (bundle.content(file.path)?, placing::mode_of_file(file.mode));
                self.placing.file(path, content, mode, file.path);
                Ok(())
            }
            (
                Item::Dir { destination, .. } | Item::Binary { destination, .. },
                Found::Directory(directory),
            ) => {
                let path = placing::place(destination, name)?;
                tree::plant(bundle, &directory, &path, &mut self.placing);
                Ok(())
            }
            (Item::Image { .. }, Found::File(file)) => self.load(bundle, &file),
            (
                Item::Shell {
                    schedule, timeout, ..
                },
                Found::File(file),
            ) => {
                let hook = Hook {
                    schedule: *schedule,
                    name: name.to_owned(),
                    content: bundle.content(file.path)?,
                    timeout: timeout.get(),
                };
                // One that several roles of the machine ask for runs once.
                let is_same =
                    |other: &Hook| other.schedule == hook.schedule && other.name == hook.name;
                if !self.hooks.iter().any(is_same) {
                    self.hooks.push(hook);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn repository_package(&mut self, name: &str) -> Result<(), Finding> {
        if self.kind == PackageKind::None {
            return Err(Finding::package(
                format!(
                    "the package {name} is listed, but {} has no package manager",
                    self.node.name
                ),
                "list its programs with type bin instead",
            ));
        }
        let name = PackageName::new(name).map_err(|error| {
            Finding::package(error.to_string(), "write the package's name alone")
        })?;
        if !self.repository.contains(&name) {
            self.repository.push(name);
        }
        Ok(())
    }

    fn package_file(&mut self, bundle: &Bundle, name: &str) -> Result<(), Finding> {
        let file = choice::package(bundle, name, self.kind, self.node.arch)?;
        let known = self.files.iter().any(|other| other.name == file.name);
        // One archive, one file per name: what is listed twice is the same file.
        if !known {
            self.files.push(file);
        }
        Ok(())
    }

    fn program(
        &mut self,
        bundle: &Bundle,
        name: &str,
        destination: &AbsolutePath,
        file: &FoundFile<'_>,
    ) -> Result<(), Finding> {
        let path = placing::place(destination, name)?;
        self.placing
            .file(path.clone(), bundle.content(file.path)?, 0o755, file.path);
        self.programs
            .entry(layout::last(name).to_owned())
            .or_insert(path);
        Ok(())
    }

    fn load(&mut self, bundle: &Bundle, file: &FoundFile<'_>) -> Result<(), Finding> {
        if !self.loaded.insert(file.digest) {
            return Ok(());
        }
        let refused = |why: &str| {
            bundle.problem(
                format!(
                    "holds {}, which is not an archive of images: {why}",
                    file.path
                ),
                "save the images again by name: docker save -o FILE NAME:TAG…",
            )
        };
        let known = bundle
            .images(file)
            .unwrap_or_else(|| Err("it was not read".to_owned()));
        let references = known.map_err(|why| refused(&why))?;
        self.images.push(ImageArchive {
            content: bundle.content(file.path)?,
            references: references.clone(),
        });
        Ok(())
    }

    fn finish(self) -> Result<Installation, Vec<Finding>> {
        let (placed, problems) = self.placing.finish();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut operations = Vec::new();
        let mut install = |source| operations.push(Operation::Packages(Packages { source }));
        if !self.repository.is_empty() {
            install(PackageSource::Repository(self.repository));
        }
        if !self.files.is_empty() {
            install(PackageSource::Files(self.files));
        }
        operations.extend(placed);
        Ok(Installation {
            operations,
            images: self.images,
            programs: self.programs,
            hooks: self.hooks,
        })
    }
}

fn holds_programs(directory: &AbsolutePath) -> bool {
    PROGRAM_DIRECTORIES
        .iter()
        .any(|known| directory.is_within(known))
}

/// Something that is listed and not there, or there as something else.
pub(super) fn missing(bundle: &Bundle, sort: Sort, name: &str) -> Finding {
    let index = bundle.index();
    let other = sort
        .places()
        .iter()
        .map(|place| layout::join(place, name))
        .find(|path| layout::at(index, path).is_some());
    if let Some(path) = other {
        let (is, fit) = match sort {
            Sort::Directory => ("file", "bin or file"),
            _ => ("directory", "dir"),
        };
        return bundle.problem(
            format!("holds {path}, but it is a {is}"),
            format!("list it with type {fit}"),
        );
    }
    let what = match sort {
        Sort::Package => "package",
        Sort::Program => "program",
        Sort::File => "file",
        Sort::Directory => "directory",
        Sort::Either => "file or directory",
        Sort::Image => "image archive",
        Sort::Manifest => "manifest",
        Sort::Script => "script",
    };
    let places: Vec<_> = sort
        .places()
        .iter()
        .map(|place| layout::join(place, name))
        .collect();
    let near = layout::near_misses(index, sort, name);
    bundle.problem(
        format!("holds no {what} {name}"),
        format!(
            "put it there as {}, or correct its name in the list{}",
            places.join(" or "),
            near.map(|near| format!("; {near}")).unwrap_or_default()
        ),
    )
}
