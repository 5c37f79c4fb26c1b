//! Docker.

use super::{RegistryVariables, RuntimeKind};
use crate::versions::{Conflict, Feature, Parts, Subject};

pub(super) const DOCKER: RuntimeKind = RuntimeKind {
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
    conflict,
};

fn conflict(parts: &Parts) -> Option<Conflict> {
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
