//! containerd.

use super::{RegistryVariables, RuntimeKind};
use crate::versions::{Conflict, Feature, Parts, Subject, has};

pub(super) const CONTAINERD: RuntimeKind = RuntimeKind {
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
    conflict,
};

fn conflict(parts: &Parts) -> Option<Conflict> {
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
