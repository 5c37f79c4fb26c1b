//! Where in an archive a thing lies: in the directory of its type (`pkg/ bin/ file/ dir/ image/`), or as
//! the manual has it, at the top and in `addons/`.

use hatchery_host::archive::{Index, Kind};
use hatchery_spec::cluster::{Item, ManifestSource};

use crate::name_list::NameList;

/// The image archive that is loaded without being listed.
pub(super) const ALL_IMAGES: &str = "images.tar";

/// What kind of thing is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Package,
    Program,
    File,
    Directory,
    /// A file or a directory.
    Either,
    Image,
    Manifest,
    Script,
}

/// Something that was found, after all links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    File(FoundFile<'a>),
    Directory(String),
}

/// A file that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundFile<'a> {
    pub(super) path: &'a str,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) digest: hatchery_host::archive::Digest,
}

impl Sort {
    /// The sort and the name of an item; nothing for what does not come from an archive.
    pub(super) fn from_item(item: &Item) -> Option<(Self, &str)> {
        Some(match item {
            Item::Repo { .. }
            | Item::Yaml {
                source: ManifestSource::Url(_),
            } => return None,
            Item::Pkg { name } => (Self::Package, name),
            Item::Bin { name, .. } => (Self::Program, name),
            Item::File { name, .. } => (Self::File, name),
            Item::Dir { name, .. } => (Self::Directory, name),
            Item::Binary { name, .. } => (Self::Either, name),
            Item::Image { name } => (Self::Image, name),
            Item::Yaml {
                source: ManifestSource::Archive(name),
            } => (Self::Manifest, name),
            Item::Shell { name, .. } => (Self::Script, name),
        })
    }

    /// Where it may lie, the likeliest first; `""` is the top.
    pub(super) fn places(self) -> &'static [&'static str] {
        match self {
            Self::Package => &["pkg", ""],
            Self::Program => &["bin", ""],
            Self::File | Self::Script => &["file", ""],
            Self::Directory => &["dir", ""],
            Self::Either => &["", "bin", "file", "dir"],
            Self::Image => &["image", ""],
            Self::Manifest => &["file", "addons", ""],
        }
    }

    fn takes(self, found: &Found<'_>) -> bool {
        match found {
            Found::File(_) => self != Self::Directory,
            Found::Directory(_) => matches!(self, Self::Directory | Self::Either),
        }
    }
}

/// The thing of this name.
pub(super) fn find<'a>(index: &'a Index, sort: Sort, name: &str) -> Option<Found<'a>> {
    sort.places()
        .iter()
        .filter_map(|place| at(index, &join(place, name)))
        .find(|found| sort.takes(found))
}

/// The file of this name.
pub(super) fn find_file<'a>(index: &'a Index, sort: Sort, name: &str) -> Option<FoundFile<'a>> {
    match find(index, sort, name)? {
        Found::File(file) => Some(file),
        Found::Directory(_) => None,
    }
}

/// What lies at a path.
pub(super) fn at<'a>(index: &'a Index, path: &str) -> Option<Found<'a>> {
    match index.resolve(path) {
        Some(entry) => match &entry.kind {
            Kind::File { size, sha256 } => Some(Found::File(FoundFile {
                path: &entry.path,
                mode: entry.mode,
                size: *size,
                digest: *sha256,
            })),
            Kind::Directory => Some(Found::Directory(entry.path.to_string())),
            Kind::Symlink { .. } => None,
        },
        // Only implied by what lies below it.
        None => index
            .is_directory(path)
            .then(|| Found::Directory(plain(path))),
    }
}

/// The files of packages, and where they lie.
pub(super) fn packages(index: &Index) -> impl Iterator<Item = (&str, String)> {
    Sort::Package.places().iter().flat_map(|place| {
        let packages = index.children(place).into_iter();
        packages
            .filter(|name| name.ends_with(".deb") || name.ends_with(".rpm"))
            .map(|name| (name, join(place, name)))
    })
}

/// What a user may have meant, as the end of a sentence.
pub(super) fn near_misses(index: &Index, sort: Sort, name: &str) -> Option<String> {
    let bare = |text: &str| text.to_ascii_lowercase().replace(['-', '_', '.'], "");
    let wanted = bare(last(name));
    let near: Vec<String> = sort
        .places()
        .iter()
        .flat_map(|place| {
            index
                .children(place)
                .into_iter()
                .map(|one| join(place, one))
        })
        .filter(|path| {
            let other = bare(last(path));
            wanted.len() > 1
                && other.len() > 1
                && (other.contains(&wanted) || wanted.contains(&other))
        })
        .collect();
    (!near.is_empty()).then(|| format!("it holds {}", NameList(&near)))
}

/// The directory that everything lies in, when an archive was packed from outside of it.
pub(super) fn wrapping(index: &Index) -> Option<&str> {
    let top = index.children("");
    let only = top
        .into_iter()
        .next()
        .filter(|_| index.children("").len() == 1)?;
    let known = ["pkg", "bin", "file", "dir", "image", "addons"];
    (!known.contains(&only) && index.is_directory(only)).then_some(only)
}

/// The last component of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(super) fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

fn plain(path: &str) -> String {
    let parts: Vec<_> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    parts.join("/")
}
