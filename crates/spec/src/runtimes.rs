//! Container runtimes as deploy files know them: a row for each.
//!
//! How one is set up on machines is in the engine's `components/runtime/NAME.rs`.

use serde::{Serialize, Serializer};

use crate::cluster::Item;
use crate::value::Version;
use crate::versions::{Conflict, Feature, Parts, Subject, has};

/// All supported runtimes, in the order in which messages list them.
pub const ALL: [&RuntimeKind; 3] = [&DOCKER, &ISULAD, &CONTAINERD];

/// The default of deploy files.
pub const DEFAULT: &RuntimeKind = &DOCKER;

/// The default of inventories, as in kubespray.
pub(crate) const INVENTORY_DEFAULT: &RuntimeKind = &CONTAINERD;

const DOCKER: RuntimeKind = RuntimeKind {
    name: "docker",
    title: "docker",
    aliases: &[],
    in_kubespray: true,
    registry_variables: RegistryVariables::Lists {
        mirrors: "docker_registry_mirrors",
        insecure: "docker_insecure_registries",
    },
    packages: &["docker-engine"],
    endpoint: None,
    mirrors_any_registry: false,
    built_in: Some(Feature::Dockershim),
    adapter: Some("cri-dockerd"),
    conflict: conflict_of_docker,
};

fn conflict_of_docker(parts: &Parts) -> Option<Conflict> {
    let kubernetes = parts.kubernetes;
    if DOCKER.is_built_into(kubernetes) || parts.runtime_adapter {
        return None;
    }
    Some(Conflict::error(
        Subject::Runtime,
        "runtime-gone",
        format!("Kubernetes {kubernetes} has no built-in support for docker"),
        "use runtime: containerd or isulad, or add cri-dockerd to the container packages; if it is installed already, set \
         runtime-endpoint: unix:///run/cri-dockerd.sock",
    ))
}

const ISULAD: RuntimeKind = RuntimeKind {
    name: "isulad",
    title: "iSulad",
    aliases: &["isula"],
    in_kubespray: false,
    registry_variables: RegistryVariables::Entries("containerd_registries_mirrors"),
    packages: &["iSulad"],
    endpoint: Some("unix:///var/run/isulad.sock"),
    mirrors_any_registry: false,
    built_in: None,
    adapter: None,
    conflict: |_| None,
};

const CONTAINERD: RuntimeKind = RuntimeKind {
    name: "containerd",
    title: "containerd",
    aliases: &[],
    in_kubespray: true,
    registry_variables: RegistryVariables::Entries("containerd_registries_mirrors"),
    packages: &["containerd"],
    endpoint: Some("unix:///run/containerd/containerd.sock"),
    mirrors_any_registry: true,
    built_in: None,
    adapter: None,
    conflict: conflict_of_containerd,
};

fn conflict_of_containerd(parts: &Parts) -> Option<Conflict> {
    let kubernetes = parts.kubernetes;
    let (major, minor) = parts.containerd?;
    let remedy = if major >= 2 && !has(kubernetes, Feature::CriV1) {
        "use containerd 1.6 or 1.7, or Kubernetes 1.23 or later"
    } else if (major, minor) < (1, 6) && has(kubernetes, Feature::CriV1Only) {
        "use containerd 1.6 or later"
    } else {
        return None;
    };
    Some(Conflict::error(
        Subject::Containerd,
        "version-mismatch",
        format!("containerd {major}.{minor} does not work with Kubernetes {kubernetes}"),
        remedy,
    ))
}

/// A container runtime.
#[derive(Debug)]
pub struct RuntimeKind {
    /// Its name in deploy files, in lower case.
    pub name: &'static str,
    /// Its name in messages.
    title: &'static str,
    /// Other names that eggo accepts.
    aliases: &'static [&'static str],
    /// Whether kubespray supports it too.
    in_kubespray: bool,
    /// The variables of an inventory that configure its registries.
    pub(crate) registry_variables: RegistryVariables,
    /// Its packages in openEuler's repositories.
    pub(crate) packages: &'static [&'static str],
    /// Its default CRI socket; `None` if it does not implement CRI itself.
    pub(crate) endpoint: Option<&'static str>,
    /// Whether it supports mirrors of any registry, or of [`DOCKER_HUB`](crate::cluster::DOCKER_HUB) alone.
    pub mirrors_any_registry: bool,
    /// The feature of those releases of Kubernetes whose kubelet has built-in support for it, without CRI.
    built_in: Option<Feature>,
    /// The program through which other kubelets reach it, if it does not implement CRI itself.
    pub adapter: Option<&'static str>,
    /// Finds what is incompatible with it.
    conflict: fn(&Parts) -> Option<Conflict>,
}

/// How an inventory configures registries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegistryVariables {
    /// A list of mirrors of [`DOCKER_HUB`](crate::cluster::DOCKER_HUB), and one of insecure registries.
    Lists {
        mirrors: &'static str,
        insecure: &'static str,
    },
    /// A list of registries, each with its mirrors.
    Entries(&'static str),
}

impl RuntimeKind {
    /// The runtime with this name in a deploy file.
    pub(crate) fn called(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_lowercase();
        let mut all = ALL.into_iter();
        all.find(|kind| kind.names().any(|own| own == name))
    }

    /// The runtime with this name in an inventory.
    pub(crate) fn called_in_inventory(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_lowercase();
        ALL.into_iter().find(|kind| kind.name == name)
    }

    /// The runtime that a socket seems to belong to: the one whose name comes last in the path.
    pub(crate) fn from_socket(path: &str) -> Option<&'static Self> {
        let path = path.to_ascii_lowercase();
        let place = |kind: &&'static Self| kind.names().filter_map(|name| path.rfind(name)).max();
        let all = ALL.into_iter().filter(|kind| place(kind).is_some());
        all.max_by_key(place)
    }

    /// Its name in messages.
    pub fn as_str(&self) -> &'static str {
        self.title
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = self.aliases.iter().copied();
        std::iter::once(self.name).chain(aliases)
    }

    /// Whether the kubelet of this release has built-in support for it.
    pub fn is_built_into(&self, kubernetes: Version) -> bool {
        self.built_in
            .is_some_and(|feature| has(kubernetes, feature))
    }

    /// Whether one of the items installs its [adapter](Self::adapter).
    pub fn installs_adapter<'a>(&self, items: impl IntoIterator<Item = &'a Item>) -> bool {
        items.into_iter().any(|item| match item {
            Item::Repo { name }
            | Item::Pkg { name }
            | Item::Bin { name, .. }
            | Item::Binary { name, .. } => self.adapter.is_some_and(|adapter| name == adapter),
            _ => false,
        })
    }

    /// Whether a socket is that of its [adapter](Self::adapter), which the user runs then.
    pub(crate) fn is_adapter_socket(&self, socket: Option<&str>) -> bool {
        let both = self.adapter.zip(socket);
        both.is_some_and(|(adapter, socket)| socket.contains(adapter))
    }

    /// The incompatibility of these parts with it, if any.
    pub(crate) fn conflict(&self, parts: &Parts) -> Option<Conflict> {
        (self.conflict)(parts)
    }
}

impl PartialEq for RuntimeKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RuntimeKind {}

impl Serialize for RuntimeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// The names of all runtimes, for deploy files.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.map(|kind| kind.name).into()
}

/// The names of those that kubespray has, the usual one first.
pub(crate) fn names_in_kubespray() -> Vec<&'static str> {
    let others = ALL.into_iter().filter(|kind| *kind != INVENTORY_DEFAULT);
    let all = std::iter::once(INVENTORY_DEFAULT).chain(others);
    all.filter(|kind| kind.in_kubespray)
        .map(|kind| kind.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_told_apart() {
        for (place, kind) in ALL.iter().enumerate() {
            assert_eq!(kind.name, kind.title.to_ascii_lowercase());
            assert_eq!(RuntimeKind::called(kind.title), Some(*kind));
            assert_eq!(RuntimeKind::called_in_inventory(kind.title), Some(*kind));
            let mut others = ALL[..place].iter().flat_map(|other| other.names());
            assert!(others.all(|name| kind.names().all(|own| own != name)));
            // What the kubelet does not reach without an adapter has no socket of its own.
            assert_eq!(kind.endpoint.is_none(), kind.adapter.is_some());
        }
        assert_eq!(RuntimeKind::called("isula"), RuntimeKind::called("isulad"));
        assert_eq!(RuntimeKind::called_in_inventory("isula"), None);
    }

    #[test]
    fn the_default_is_the_tables() {
        let mut keys = crate::keys::for_section("");
        let info = keys.find(|info| info.key == "runtime").unwrap();
        assert_eq!(info.default, DEFAULT.name);
    }

    #[test]
    fn a_socket_belongs_to_whose_name_comes_last() {
        for (socket, owner) in [
            ("unix:///var/run/isulad.sock", "isulad"),
            ("unix:///run/containerd/containerd.sock", "containerd"),
            (
                "unix:///run/docker/containerd/containerd.sock",
                "containerd",
            ),
            ("unix:///run/cri-dockerd.sock", "docker"),
            ("unix:///var/run/dockershim.sock", "docker"),
        ] {
            let found = RuntimeKind::from_socket(socket).map(|kind| kind.name);
            assert_eq!(found, Some(owner), "{socket}");
        }
        assert_eq!(RuntimeKind::from_socket("unix:///run/crio/crio.sock"), None);
    }
}
