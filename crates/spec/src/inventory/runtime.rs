//! The container runtime, its registries and its pause image.

use super::Reader;
use crate::diagnostic::Diagnostic;
use crate::draft::Field;
use crate::runtimes::{self, RegistryVariables, RuntimeKind};
use crate::settings::registries::registry_name;
use crate::source::Spanned;
use crate::tree::Node;
use crate::value::{Host, Mismatch, Port};
use crate::walk::{boolean, list, one_of, section, value, values};

const PAUSE_REPOSITORY: &str = "registry.k8s.io";
const PAUSE_TAG: &str = "3.10";

impl Reader<'_, '_> {
    pub(super) fn runtime(&mut self) {
        let said = self.cluster_field(&["container_manager"], "unsupported", runtime);
        self.draft.runtime.kind = match said {
            Field::Given(_) => said,
            // An unsupported runtime is not checked as if it were docker.
            Field::Absent | Field::Wrong => self.default_field(runtimes::INVENTORY_DEFAULT),
        };
        self.pause_image();
        // Each runtime has variables of its own; those of the other are without effect.
        let kind = self.draft.runtime.kind.value();
        match kind.map(|kind| kind.registry_variables) {
            Some(RegistryVariables::Lists { mirrors, insecure }) => {
                self.draft.runtime.registries.mirrors = self.registries(mirrors);
                self.draft.runtime.registries.insecure = self.registries(insecure);
            }
            Some(RegistryVariables::Entries(name)) => self.mirrors_by_registry(name),
            None => {}
        }
    }

    fn pause_image(&mut self) {
        let repository = self.cluster_field(&["pod_infra_image_repo"], "bad-image", image_part);
        let registry = self.cluster_field(&["kube_image_repo"], "bad-image", image_part);
        let tags = ["pod_infra_image_tag", "pod_infra_version"];
        let tag = self.cluster_field(&tags, "bad-image", image_part);
        let wrong = [&repository, &registry, &tag].contains(&&Field::Wrong);
        let from = registry.unwrap_or(PAUSE_REPOSITORY.to_owned());
        let name = repository.unwrap_or(format!("{from}/pause"));
        let image = format!("{name}:{}", tag.unwrap_or(PAUSE_TAG.to_owned()));
        let span = repository.span().or(registry.span()).or(tag.span());
        self.draft.runtime.pause_image = if wrong {
            Field::Wrong
        } else {
            Field::Given(Spanned::new(image, span.unwrap_or(self.draft.file)))
        };
    }

    fn registries(&mut self, name: &str) -> Vec<Spanned<String>> {
        match self.node(name) {
            Ok(Some(node)) => values(&node, "bad-registry", registry, self.diagnostics),
            Ok(None) | Err(()) => Vec::new(),
        }
    }

    /// A list of registries, each with the hosts that are asked instead.
    fn mirrors_by_registry(&mut self, name: &str) {
        let Ok(Some(node)) = self.node(name) else {
            return;
        };
        for item in list(&node, self.diagnostics).unwrap_or_default() {
            if section(item, self.diagnostics).is_none() {
                continue;
            }
            let prefix = match item.get("prefix") {
                Some(node) => value(node, "bad-registry", mirrored, self.diagnostics),
                None => Field::Absent,
            };
            let Field::Given(prefix) = prefix else {
                if prefix.is_absent() {
                    self.diagnostics.push(
                        Diagnostic::error("missing-key", item.span, "the entry has no `prefix`")
                            .remedy("add the registry that the mirrors are for, such as prefix: docker.io"),
                    );
                }
                continue;
            };
            let mirrors = item.get("mirrors");
            let mirrors = mirrors.and_then(|node| list(node, self.diagnostics));
            for mirror in mirrors.unwrap_or_default() {
                self.mirror(&prefix, mirror);
            }
        }
    }

    fn mirror(&mut self, prefix: &Spanned<String>, node: &Node) {
        if section(node, self.diagnostics).is_none() {
            return;
        }
        let host = node.get("host").map_or(Field::Absent, |node| {
            value(node, "bad-registry", registry, self.diagnostics)
        });
        let skip = node.get("skip_verify").map_or(Field::Absent, |node| {
            value(node, "bad-boolean", boolean, self.diagnostics)
        });
        let Field::Given(host) = host else {
            return;
        };
        let name = bare(&host.value);
        if skip.unwrap_or(false) || host.value.starts_with("http://") {
            let insecure = Spanned::new(name.to_owned(), host.span);
            self.draft.runtime.registries.insecure.push(insecure);
        }
        if prefix.value == name {
            return;
        }
        self.draft
            .runtime
            .registries
            .named_mirrors
            .push((prefix.clone(), host));
    }
}

/// What mirrors stand in for, as it stands in an image's name. It may be written as a URL, but a part of a registry has no
/// mirrors of its own.
fn mirrored(text: &str) -> Result<String, Mismatch> {
    let name = text.split_once("://").map_or(text, |(_, rest)| rest);
    registry_name(name.trim_end_matches('/'))
}

/// A registry without `http://` and path.
fn bare(registry: &str) -> &str {
    let rest = registry
        .split_once("://")
        .map_or(registry, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

fn runtime(text: &str) -> Result<&'static RuntimeKind, Mismatch> {
    RuntimeKind::called_in_inventory(text).ok_or_else(|| {
        Mismatch::new(
            "not a supported container runtime",
            format!("use {}", one_of(&runtimes::names_in_kubespray())),
        )
    })
}

/// `host` or `host:port`, with or without `http://` or `https://` before and a path behind.
fn registry(text: &str) -> Result<String, Mismatch> {
    let wrong = || {
        Mismatch::new(
            "not a registry",
            "write host, host:port, or a URL beginning with http:// or https://",
        )
    };
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let authority = bare(text);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let clean = text
        .bytes()
        .all(|b| b.is_ascii_graphic() && !b"'\"\\`$<>{}|^".contains(&b));
    let valid = clean
        && scheme.is_none_or(|scheme| matches!(scheme, "http" | "https"))
        && Host::parse(host).is_ok()
        && port.is_none_or(|port| Port::parse(port).is_ok());
    if valid {
        Ok(text.to_owned())
    } else {
        Err(wrong())
    }
}

/// A registry with a path, or a tag.
fn image_part(text: &str) -> Result<String, Mismatch> {
    let valid = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b))
        && !text.contains("://");
    if valid {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err(Mismatch::new(
            "not part of an image's name",
            "write registry/name, or a version alone, without http://",
        ))
    }
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
            "http://[fd00::1]:5000",
            "[fd00::1]",
        ] {
            assert_eq!(registry(good).unwrap(), good);
        }
        for bad in [
            "", "ftp://a", "https://", "a:x", "a b", "a/$(id)", "u:p@a", "a:0",
        ] {
            assert!(registry(bad).is_err(), "{bad}");
        }
        assert_eq!(bare("https://a.b:5000/v2/"), "a.b:5000");
    }
}
