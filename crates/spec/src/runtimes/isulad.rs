//! iSulad.

use super::{RegistryVariables, RuntimeKind};

pub(super) const ISULAD: RuntimeKind = RuntimeKind {
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
