//! Which package file of an archive a name means for a machine.

use hatchery_host::{operation::PackageFile, package_format, package_manager::PackageManager};
use hatchery_spec::{package_name, value::Arch};

use super::{
    architecture,
    bundle::Bundle,
    layout::{self, Sort},
};
use crate::{finding::Finding, name_list::NameList};

/// Which package files a machine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageKind {
    /// Debian packages, `.deb`.
    Deb,
    /// Those of rpm.
    Rpm,
    /// The machine has no package manager.
    None,
}

impl PackageKind {
    fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Deb => Some(".deb"),
            Self::Rpm => Some(".rpm"),
            Self::None => None,
        }
    }
}

impl From<Option<&PackageManager>> for PackageKind {
    fn from(found: Option<&PackageManager>) -> Self {
        match found {
            Some(manager) if *manager.format == package_format::DEB => Self::Deb,
            Some(_) => Self::Rpm,
            None => Self::None,
        }
    }
}

/// The package files that a name may mean, of any kind and processor, with where they lie. Those in `pkg/`
/// come before those at the top, which count only where there are none.
pub(super) fn candidates<'a>(bundle: &'a Bundle, name: &str) -> Vec<(&'a str, String)> {
    let mut found: Vec<_> = layout::packages(bundle.index())
        .filter(|(file, _)| package_name::matches(name, file) || *file == name)
        .collect();
    if found.iter().any(|(_, path)| path.contains('/')) {
        found.retain(|(_, path)| path.contains('/'));
    }
    found
}

/// The one package file that a name means.
pub(super) fn package(
    bundle: &Bundle,
    name: &str,
    kind: PackageKind,
    arch: Arch,
) -> Result<PackageFile, Finding> {
    let Some(suffix) = kind.suffix() else {
        return Err(Finding::package(
            format!("the package {name} is listed, but the machine has no package manager"),
            "list its programs with type bin instead, or install dpkg or rpm",
        ));
    };
    let all = candidates(bundle, name);
    let files = |found: &[(&str, String)]| {
        let names: Vec<_> = found.iter().map(|(file, _)| (*file).to_owned()).collect();
        NameList(&names).to_string()
    };
    if all.is_empty() {
        let near = layout::near_misses(bundle.index(), Sort::Package, name);
        return Err(bundle.problem(
            format!("holds no package {name}"),
            format!(
                "add NAME-VERSION{suffix} to pkg/ or to the top of the archive, or correct the name in the list{}",
                near.map(|near| format!("; {near}")).unwrap_or_default()
            ),
        ));
    }
    let mut fit = all.clone();
    fit.retain(|(file, _)| file.ends_with(suffix));
    if fit.is_empty() {
        return Err(bundle.problem(
            format!("holds no {suffix} of {name}, but {}", files(&all)),
            format!("add the {suffix} file; this machine takes no other"),
        ));
    }
    let of_kind = fit.clone();
    fit.retain(|(file, _)| architecture::of_package(file).is_none_or(|one| one == arch));
    if fit.is_empty() {
        return Err(bundle.problem(
            format!(
                "holds {name} for another processor than {arch}: {}",
                files(&of_kind)
            ),
            format!("put the package for {arch} into the archive for {arch}"),
        ));
    }
    if fit.len() > 1 {
        let several = files(&fit);
        fit.retain(|(file, _)| *file == name || is_exactly(file, name));
        if fit.len() != 1 {
            return Err(bundle.problem(
                format!("holds several packages that {name} may mean: {several}"),
                "leave only the one that is wanted, or write its file name into the list",
            ));
        }
    }
    let Some((file, path)) = fit.first() else {
        return Err(bundle.problem(format!("holds no package {name}"), "add it"));
    };
    PackageFile::new(file, bundle.content(path)?).map_err(|error| {
        bundle.problem(
            format!("holds a package whose file name does not contain its version: {error}"),
            "give the file its original name",
        )
    })
}

fn is_exactly(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| rest.starts_with(['-', '_']))
}
