//! From which mirrors the images of a registry come, and what a runtime can make of that.

use std::collections::{BTreeMap, HashSet};

use super::RelatedTo as _;
use crate::cluster::{DOCKER_HUB, Registries};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::Draft;
use crate::runtimes;
use crate::walk::one_of;

/// The pause image unless the file names one.
pub(super) const PAUSE_IMAGE: &str = "k8s.gcr.io/pause:3.2";

/// Kubernetes' own public registries. A list of mirrors that names no registry stands in for the one of them that the
/// pause image comes from, and for no other: a mirror asked for the images of a private registry would learn their
/// names, and could answer with images of somebody else's.
const KUBERNETES: [&str; 2] = ["k8s.gcr.io", "registry.k8s.io"];

pub(super) fn derive(draft: &Draft) -> Registries {
    let mut mirrors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |registry: &str, mirror: &str| {
        let known = mirrors.entry(registry.to_owned()).or_default();
        known.push(mirror.to_owned());
    };
    let pause = pause_registry(draft);
    for mirror in &draft.registry_mirrors {
        add(DOCKER_HUB, &mirror.value);
        if KUBERNETES.contains(&pause.as_str()) && draft.runtime_kind().mirrors_any_registry {
            add(&pause, &mirror.value);
        }
    }
    for (registry, mirror) in &draft.named_mirrors {
        add(&registry.value, &mirror.value);
    }
    for all in mirrors.values_mut() {
        *all = super::distinct(std::mem::take(all).into_iter());
    }
    Registries {
        mirrors,
        insecure: super::distinct(
            draft
                .insecure_registries
                .iter()
                .map(|one| one.value.clone()),
        ),
    }
}

/// Some runtimes support mirrors of docker.io only.
pub(super) fn check(draft: &Draft, diagnostics: &mut Diagnostics) {
    let runtime = draft.runtime_kind();
    if runtime.mirrors_any_registry {
        return;
    }
    let name = runtime.as_str();
    let supporting = runtimes::ALL
        .into_iter()
        .filter(|kind| kind.mirrors_any_registry);
    let supporting = one_of(&supporting.map(|kind| kind.name).collect::<Vec<_>>());
    let mut reported: HashSet<&str> = HashSet::new();
    for (registry, _) in &draft.named_mirrors {
        if registry.value == DOCKER_HUB || !reported.insert(&registry.value) {
            continue;
        }
        let message = format!(
            "{name} supports mirrors of {DOCKER_HUB} only, not of {}",
            registry.value
        );
        diagnostics.push(
            Diagnostic::error("unsupported", registry.span, message)
                .related_to(draft.runtime.span(), "the runtime")
                .remedy(format!("use runtime: {supporting}, or name the mirror in the images themselves, as in pause-image: MIRROR/pause:3.2")),
        );
    }
    let pause = pause_registry(draft);
    let mirrors = draft.registry_mirrors.first();
    if let Some(first) = mirrors.filter(|_| pause != DOCKER_HUB) {
        let message = format!(
            "{name} uses mirrors for images of {DOCKER_HUB} only, but the pause image comes from {pause}"
        );
        diagnostics.push(
            Diagnostic::warning("mirror-unused", first.span, message)
                .related_to(draft.pause_image.span(), "the pause image")
                .remedy(format!("set pause-image to an image that the mirror provides, or add the pause image to the archive; {supporting} uses mirrors for it too")),
        );
    }
}

/// Where the pause image comes from.
fn pause_registry(draft: &Draft) -> String {
    let image = draft
        .pause_image
        .value()
        .map_or(PAUSE_IMAGE, String::as_str);
    match image.split_once('/') {
        // Only a registry has a dot or a port in its name.
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first.to_owned(),
        _ => DOCKER_HUB.to_owned(),
    }
}
