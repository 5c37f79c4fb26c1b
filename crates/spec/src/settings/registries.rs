//! From which registries and mirrors the images come, and what a runtime can make of that.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::runtime::RuntimeDraft;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::resolve::{RelatedTo as _, distinct};
use crate::runtimes;
use crate::source::Spanned;
use crate::template::page::Page;
use crate::tree::{Key, Node};
use crate::value::{Host, Mismatch, Port};
use crate::walk::{one_of, report_mismatch, values};

/// Kubernetes' own public registries. A list of mirrors that names no registry stands in for the one of them that the
/// pause image comes from, and for no other: a mirror asked for the images of a private registry would learn their
/// names, and could answer with other images.
const KUBERNETES: [&str; 2] = ["k8s.gcr.io", "registry.k8s.io"];

/// Where images come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Registries {
    /// Mirrors that are tried first, by the name of the registry in image references.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Accessed without TLS, or without verification of the certificate.
    pub insecure: Vec<String>,
}

/// The registry of images whose reference names none.
pub const DOCKER_HUB: &str = "docker.io";

impl Registries {
    /// The mirrors of a registry, in the order in which they are tried.
    pub fn mirrors_for(&self, registry: &str) -> &[String] {
        self.mirrors.get(registry).map_or(&[], Vec::as_slice)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RegistriesDraft {
    /// Mirrors without the name of a registry.
    pub(crate) mirrors: Vec<Spanned<String>>,
    /// Pairs of a registry and a mirror of it.
    pub(crate) named_mirrors: Vec<(Spanned<String>, Spanned<String>)>,
    pub(crate) insecure: Vec<Spanned<String>>,
}

impl RegistriesDraft {
    /// Reads a key of the file if it is one of these.
    pub(crate) fn read(&mut self, key: &Key, node: &Node, diagnostics: &mut Diagnostics) -> bool {
        match key.text.as_str() {
            "registry-mirrors" => self.read_mirrors(node, diagnostics),
            "insecure-registries" => {
                self.insecure = values(node, "bad-registry", registry, diagnostics);
            }
            _ => return false,
        }
        true
    }

    /// A list of mirrors, or registries by name with a list each.
    fn read_mirrors(&mut self, node: &Node, diagnostics: &mut Diagnostics) {
        let Some(entries) = node.entries() else {
            self.mirrors = values(node, "bad-registry", registry, diagnostics);
            return;
        };
        for (key, node) in entries {
            match registry_name(&key.text) {
                Ok(name) => {
                    for mirror in values(node, "bad-registry", registry, diagnostics) {
                        let name = Spanned::new(name.clone(), key.span);
                        self.named_mirrors.push((name, mirror));
                    }
                }
                Err(wrong) => {
                    report_mismatch(&key.text, key.span, "bad-registry", wrong, diagnostics);
                }
            }
        }
    }

    pub(super) fn resolve(&self, runtime: &RuntimeDraft) -> Registries {
        let mut mirrors: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut add = |registry: &str, mirror: &str| {
            let known = mirrors.entry(registry.to_owned()).or_default();
            known.push(mirror.to_owned());
        };
        let pause = pause_registry(runtime);
        let any = runtime.kind_or_default().mirrors_any_registry;
        for mirror in &self.mirrors {
            add(DOCKER_HUB, &mirror.value);
            if any && KUBERNETES.contains(&pause.as_str()) {
                add(&pause, &mirror.value);
            }
        }
        for (registry, mirror) in &self.named_mirrors {
            add(&registry.value, &mirror.value);
        }
        for all in mirrors.values_mut() {
            *all = distinct(std::mem::take(all).into_iter());
        }
        Registries {
            mirrors,
            insecure: distinct(self.insecure.iter().map(|one| one.value.clone())),
        }
    }
}

/// Some runtimes support mirrors of docker.io only.
pub(crate) fn check(runtime: &RuntimeDraft, diagnostics: &mut Diagnostics) {
    let kind = runtime.kind_or_default();
    if kind.mirrors_any_registry {
        return;
    }
    let name = kind.as_str();
    let supporting = runtimes::ALL
        .into_iter()
        .filter(|kind| kind.mirrors_any_registry);
    let supporting = one_of(&supporting.map(|kind| kind.name).collect::<Vec<_>>());
    let mut reported: HashSet<&str> = HashSet::new();
    for (registry, _) in &runtime.registries.named_mirrors {
        if registry.value == DOCKER_HUB || !reported.insert(&registry.value) {
            continue;
        }
        let message = format!(
            "{name} supports mirrors of {DOCKER_HUB} only, not of {}",
            registry.value
        );
        diagnostics.push(
            Diagnostic::error("unsupported", registry.span, message)
                .related_to(runtime.kind.span(), "the runtime")
                .remedy(format!("use runtime: {supporting}, or name the mirror in the images themselves, as in pause-image: MIRROR/pause:3.2")),
        );
    }
    let pause = pause_registry(runtime);
    let mirrors = runtime.registries.mirrors.first();
    if let Some(first) = mirrors.filter(|_| pause != DOCKER_HUB) {
        let message = format!(
            "{name} uses mirrors for images of {DOCKER_HUB} only, but the pause image comes from {pause}"
        );
        diagnostics.push(
            Diagnostic::warning("mirror-unused", first.span, message)
                .related_to(runtime.pause_image.span(), "the pause image")
                .remedy(format!("set pause-image to an image that the mirror provides, or add the pause image to the archive; {supporting} uses mirrors for it too")),
        );
    }
}

/// Where the pause image comes from.
fn pause_registry(runtime: &RuntimeDraft) -> String {
    match runtime.pause_image_or_default().split_once('/') {
        // Only a registry has a dot or a port in its name.
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first.to_owned(),
        _ => DOCKER_HUB.to_owned(),
    }
}

/// `host`, `host:port`, either with a path, with or without `http://` or `https://`.
fn registry(text: &str) -> Result<String, Mismatch> {
    let wrong = || {
        Mismatch::new(
            "not a registry",
            "write host, host:port, or a URL beginning with http:// or https://",
        )
    };
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .unwrap_or(text);
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    Host::parse(host).map_err(|_| wrong())?;
    if let Some(port) = port {
        Port::parse(port).map_err(|_| wrong())?;
    }
    let clean = rest
        .bytes()
        .all(|b| b.is_ascii_graphic() && !b"'\"\\`$<>{}|^".contains(&b));
    if clean {
        Ok(text.to_owned())
    } else {
        Err(wrong())
    }
}

/// A registry as images have it in their names: `host` or `host:port`.
pub(crate) fn registry_name(text: &str) -> Result<String, Mismatch> {
    let name = registry(text).ok().filter(|name| !name.contains('/'));
    match name.as_deref() {
        Some("index.docker.io" | "registry-1.docker.io") => Ok(DOCKER_HUB.to_owned()),
        Some(name) => Ok(name.to_owned()),
        None => Err(Mismatch::new(
            "not the name of a registry",
            "write it as in an image's name, such as k8s.gcr.io, without https:// and path",
        )),
    }
}

/// The lines of a new file.
pub(super) fn template(page: &mut Page) {
    page.set("", "registry-mirrors", "[]");
    page.set("", "insecure-registries", "[]");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries() {
        for good in [
            "docker.io",
            "a:5000",
            "https://a.b/c",
            "http://10.0.0.1:5000",
            "[fd00::1]:5000",
        ] {
            assert_eq!(registry(good).unwrap(), good);
        }
        for bad in ["", "ftp://a", "https://", "a:x", "a b", "a/$(id)"] {
            assert!(registry(bad).is_err(), "{bad}");
        }
        assert_eq!(registry_name("a:5000").unwrap(), "a:5000");
        assert_eq!(registry_name("index.docker.io").unwrap(), "docker.io");
        assert!(registry_name("https://a").is_err() && registry_name("a/b").is_err());
    }
}
