//! The runtime, extra arguments, and ports.

use super::Reader;
use crate::cluster::{Component, DOCKER_HUB, OpenPort, Protocol, Role};
use crate::diagnostic::Diagnostic;
use crate::draft::Field;
use crate::keys::report_unknown;
use crate::runtimes::{self, RuntimeKind};
use crate::source::Spanned;
use crate::tree::{Key, Node};
use crate::value::{AbsolutePath, Mismatch, Port};
use crate::walk::{
    boolean, list, nearest, one_of, quoted, report_expected, report_mismatch, section, value,
    values, word,
};

impl Reader<'_> {
    pub(super) fn runtime(&mut self, key: &Key, node: &Node) {
        let d = &mut *self.diagnostics;
        let draft = &mut *self.draft;
        match key.text.as_str() {
            "runtime" => draft.runtime = value(node, "bad-runtime", runtime, d),
            "runtime-endpoint" => draft.runtime_endpoint = value(node, "bad-socket", socket, d),
            "pause-image" => draft.pause_image = value(node, "bad-image", image, d),
            "cni-bin-dir" => {
                let paths = |text: &str| {
                    text.split(',')
                        .map(str::trim)
                        .filter(|one| !one.is_empty())
                        .map(AbsolutePath::parse)
                        .collect()
                };
                draft.cni_bin_dirs = value(node, "bad-path", paths, d);
            }
            "registry-mirrors" => self.registry_mirrors(node),
            "insecure-registries" => {
                draft.insecure_registries = values(node, "bad-registry", registry, d);
            }
            "allow-existing-runtime" => {
                draft.allow_existing_runtime = value(node, "bad-boolean", boolean, d);
            }
            "enable-kubelet-serving" => {
                draft.kubelet_serving = value(node, "bad-boolean", boolean, d);
            }
            _ => {
                let cni = |text: &str| match text.to_ascii_lowercase().as_str() {
                    "cni" => Ok(()),
                    _ => Err(Mismatch::new(
                        "not a supported kind of network plugin",
                        "write cni; the plugin itself is named in network.plugin",
                    )),
                };
                let _ = value(node, "unsupported", cni, d);
            }
        }
    }

    /// A list of mirrors, or registries by name with a list each.
    fn registry_mirrors(&mut self, node: &Node) {
        let d = &mut *self.diagnostics;
        let Some(entries) = node.entries() else {
            self.draft.registry_mirrors = values(node, "bad-registry", registry, d);
            return;
        };
        for (key, node) in entries {
            match registry_name(&key.text) {
                Ok(name) => {
                    for mirror in values(node, "bad-registry", registry, d) {
                        let name = Spanned::new(name.clone(), key.span);
                        self.draft.named_mirrors.push((name, mirror));
                    }
                }
                Err(wrong) => report_mismatch(&key.text, key.span, "bad-registry", wrong, d),
            }
        }
    }

    pub(super) fn extra_args(&mut self, node: &Node) {
        let mut seen: Vec<(Component, crate::source::Span)> = Vec::new();
        for item in list(node, self.diagnostics).unwrap_or_default() {
            let Some(entries) = section(item, self.diagnostics) else {
                continue;
            };
            let mut name = Field::Absent;
            let mut arguments = None;
            for (key, node) in entries {
                match key.text.as_str() {
                    "name" => name = value(node, "bad-component", component, self.diagnostics),
                    "extra-args" => arguments = Some(node),
                    _ => report_unknown(key, &["config-extra-args"], self.diagnostics),
                }
            }
            match name {
                Field::Given(name) => {
                    if let Some((_, first)) = seen.iter().find(|(one, _)| *one == name.value) {
                        let message =
                            format!("the arguments of {} are given twice", name.value.as_str());
                        self.diagnostics.push(
                            Diagnostic::error("said-twice", name.span, message)
                                .related(*first, "first here")
                                .remedy("merge them into one entry"),
                        );
                        continue;
                    }
                    seen.push((name.value, name.span));
                    if let Some(node) = arguments {
                        self.arguments(name.value, node);
                    }
                }
                Field::Absent => self.diagnostics.push(
                    Diagnostic::error("missing-key", item.span, "the entry has no `name`")
                        .remedy("add the name of the component, such as kubelet"),
                ),
                Field::Wrong => {}
            }
        }
    }

    fn arguments(&mut self, component: Component, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let name = &key.text;
            let valid = name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            let remedy = if component == Component::Etcd {
                let bare = name
                    .trim_start_matches('-')
                    .replace('-', "_")
                    .to_ascii_uppercase();
                let is_variable = valid
                    && !name.contains(['-', '.'])
                    && !name.starts_with(|c: char| c.is_ascii_digit());
                (!is_variable).then(|| {
                    format!(
                        "etcd takes environment variables: write ETCD_{}",
                        bare.trim_start_matches("ETCD_")
                    )
                })
            } else {
                let dashed = valid && name.starts_with('-') && name.len() > 1;
                (!dashed).then(|| {
                    format!(
                        "write it with its leading dashes: --{}",
                        name.trim_start_matches('-')
                    )
                })
            };
            if let Some(remedy) = remedy {
                let message = format!(
                    "{} is not an argument of {}",
                    quoted(name),
                    component.as_str()
                );
                self.diagnostics
                    .push(Diagnostic::error("bad-argument", key.span, message).remedy(remedy));
                continue;
            }
            if node.items().is_some() || node.entries().is_some() {
                report_expected("a single value", node, self.diagnostics);
                continue;
            }
            let text = node.text().unwrap_or_default();
            if text.contains(['\n', '\r']) {
                self.diagnostics.push(
                    Diagnostic::error(
                        "bad-argument",
                        node.span,
                        "the argument has more than one line",
                    )
                    .remedy("write it on one line"),
                );
                continue;
            }
            let name = Spanned::new(name.clone(), key.span);
            self.draft
                .extra_args
                .push((component, name, text.to_owned()));
        }
    }

    pub(super) fn open_ports(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let role = match key.text.as_str() {
                "master" => Role::Master,
                "worker" | "node" => {
                    if !self.given_once("the list of the workers' ports", key) {
                        continue;
                    }
                    Role::Worker
                }
                "etcd" => Role::Etcd,
                "loadbalance" => Role::LoadBalancer,
                _ => {
                    report_unknown(key, &["open-ports"], self.diagnostics);
                    continue;
                }
            };
            for item in list(node, self.diagnostics).unwrap_or_default() {
                self.open_port(role, item);
            }
        }
    }

    fn open_port(&mut self, role: Role, node: &Node) {
        let Some(entries) = section(node, self.diagnostics) else {
            return;
        };
        let (mut port, mut protocol) = (Field::Absent, Field::Absent);
        for (key, node) in entries {
            match key.text.as_str() {
                "port" => port = value(node, "bad-port", Port::parse, self.diagnostics),
                "protocol" => {
                    protocol = value(node, "bad-protocol", transport, self.diagnostics);
                }
                _ => report_unknown(key, &["open-ports[]"], self.diagnostics),
            }
        }
        match port {
            Field::Given(port) => {
                let protocol = protocol.unwrap_or(Protocol::Tcp);
                let open = OpenPort {
                    port: port.value,
                    protocol,
                };
                self.draft
                    .open_ports
                    .push((role, Spanned::new(open, port.span)));
            }
            Field::Absent => self.diagnostics.push(
                Diagnostic::error("missing-key", node.span, "the entry has no `port`")
                    .remedy("add the port, such as port: 179"),
            ),
            Field::Wrong => {}
        }
    }
}

fn runtime(text: &str) -> Result<&'static RuntimeKind, Mismatch> {
    RuntimeKind::called(text).ok_or_else(|| {
        Mismatch::new(
            "not a supported container runtime",
            format!("use {}", one_of(&runtimes::names())),
        )
    })
}

fn component(text: &str) -> Result<Component, Mismatch> {
    let names = Component::ALL.map(Component::as_str);
    Component::ALL
        .into_iter()
        .find(|one| one.as_str() == text)
        .ok_or_else(|| {
            let remedy = match nearest(text, names) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("use one of {}", names.join(", ")),
            };
            Mismatch::new("not a component that takes arguments", remedy)
        })
}

fn transport(text: &str) -> Result<Protocol, Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => Err(Mismatch::new("not a protocol", "use tcp or udp")),
    }
}

/// A CRI socket: `unix://` and an absolute path.
fn socket(text: &str) -> Result<String, Mismatch> {
    let wrong = || {
        Mismatch::new(
            "not a socket address",
            "write unix:// and an absolute path, such as unix:///run/containerd/containerd.sock",
        )
    };
    let path = text.strip_prefix("unix://").unwrap_or(text);
    let path = AbsolutePath::parse(path).map_err(|_| wrong())?;
    if path.as_str().contains(char::is_whitespace) {
        return Err(wrong());
    }
    Ok(format!("unix://{path}"))
}

fn image(text: &str) -> Result<String, Mismatch> {
    let text = word(text)?;
    let valid = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b))
        && !text.contains("://");
    if valid {
        Ok(text)
    } else {
        Err(Mismatch::new(
            "not the name of an image",
            "write it as registry/name:tag, without http://",
        ))
    }
}

/// `host`, `host:port`, either with a path, with or without `http://` or `https://`.
pub(crate) fn registry(text: &str) -> Result<String, Mismatch> {
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
    crate::value::Host::parse(host).map_err(|_| wrong())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_images_and_sockets() {
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
        assert!(
            image("k8s.gcr.io/pause:3.2").is_ok()
                && image("a b").is_err()
                && image("http://a").is_err()
        );
        assert_eq!(socket("/run/a.sock").unwrap(), "unix:///run/a.sock");
        assert!(socket("tcp://1.2.3.4").is_err() && socket("unix://a").is_err());
    }
}
