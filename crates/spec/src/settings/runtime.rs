//! Settings of the container runtime.

use serde::Serialize;

use super::registries::{Registries, RegistriesDraft};
use crate::cluster::Dialect;
use crate::diagnostic::Diagnostics;
use crate::draft::Field;
use crate::runtimes::{self, RuntimeKind};
use crate::template::page::Page;
use crate::tree::{Key, Node};
use crate::value::{AbsolutePath, Mismatch};
use crate::walk::{boolean, one_of, value, word};

/// The pause image unless the file names one.
const PAUSE_IMAGE: &str = "k8s.gcr.io/pause:3.2";

/// The container runtime and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Runtime {
    /// The runtime to install.
    pub kind: &'static RuntimeKind,
    /// Its CRI socket; docker has none of its own.
    pub endpoint: Option<String>,
    /// Where images come from.
    pub registries: Registries,
    /// The image that holds a pod's namespaces.
    pub pause_image: String,
    /// Where CNI plugins are.
    pub cni_bin_dirs: Vec<AbsolutePath>,
    /// Whether a runtime that a machine already uses for something else may be shared with it.
    pub allow_existing: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RuntimeDraft {
    pub(crate) kind: Field<&'static RuntimeKind>,
    pub(crate) endpoint: Field<String>,
    pub(crate) registries: RegistriesDraft,
    pub(crate) pause_image: Field<String>,
    pub(crate) cni_bin_dirs: Field<Vec<AbsolutePath>>,
    pub(crate) allow_existing: Field<bool>,
}

impl RuntimeDraft {
    /// Reads a key of the file if it is one of these.
    pub(crate) fn read(&mut self, key: &Key, node: &Node, diagnostics: &mut Diagnostics) -> bool {
        let d = diagnostics;
        match key.text.as_str() {
            "runtime" => self.kind = value(node, "bad-runtime", kind, d),
            "runtime-endpoint" => self.endpoint = value(node, "bad-socket", socket, d),
            "pause-image" => self.pause_image = value(node, "bad-image", image, d),
            "network-plugin" => {
                let _ = value(node, "unsupported", cni, d);
            }
            "cni-bin-dir" => self.cni_bin_dirs = value(node, "bad-path", paths, d),
            "allow-existing-runtime" => {
                self.allow_existing = value(node, "bad-boolean", boolean, d);
            }
            _ => return self.registries.read(key, node, d),
        }
        true
    }

    /// The one that is named, or the default.
    pub(crate) fn kind_or_default(&self) -> &'static RuntimeKind {
        self.kind.unwrap_or(runtimes::DEFAULT)
    }

    pub(crate) fn pause_image_or_default(&self) -> &str {
        self.pause_image.value().map_or(PAUSE_IMAGE, String::as_str)
    }

    pub(crate) fn resolve(&self, dialect: Dialect) -> Option<Runtime> {
        let kind = self.kind_or_default();
        let endpoint = self.endpoint.value().cloned();
        Some(Runtime {
            kind,
            endpoint: endpoint.or_else(|| kind.endpoint.map(str::to_owned)),
            registries: self.registries.resolve(self),
            pause_image: self.pause_image_or_default().to_owned(),
            cni_bin_dirs: self.cni_bin_dirs(dialect)?,
            allow_existing: self.allow_existing.unwrap_or(false),
        })
    }

    fn cni_bin_dirs(&self, dialect: Dialect) -> Option<Vec<AbsolutePath>> {
        if let Some(given) = self.cni_bin_dirs.value() {
            return Some(given.clone());
        }
        let usual = match dialect {
            Dialect::Classic => "/usr/libexec/cni",
            Dialect::Current | Dialect::Inventory => "/opt/cni/bin",
        };
        AbsolutePath::parse(usual).ok().map(|path| vec![path])
    }
}

fn kind(text: &str) -> Result<&'static RuntimeKind, Mismatch> {
    RuntimeKind::called(text).ok_or_else(|| {
        Mismatch::new(
            "not a supported container runtime",
            format!("use {}", one_of(&runtimes::names())),
        )
    })
}

/// The one kind of network plugin that there is.
fn cni(text: &str) -> Result<(), Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "cni" => Ok(()),
        _ => Err(Mismatch::new(
            "not a supported kind of network plugin",
            "write cni; the plugin itself is named in network.plugin",
        )),
    }
}

fn paths(text: &str) -> Result<Vec<AbsolutePath>, Mismatch> {
    text.split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .map(AbsolutePath::parse)
        .collect()
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

/// The first lines of a new file: what pods need of the runtime.
pub(crate) fn template_for_pods(page: &mut Page, classic: bool) {
    page.set("", "pause-image", "k8s.gcr.io/pause:3.2");
    page.set("", "network-plugin", "cni");
    let usual = "/opt/cni/bin";
    let both = "/usr/libexec/cni,/opt/cni/bin";
    page.set("", "cni-bin-dir", if classic { both } else { usual });
}

/// The other lines of a new file.
pub(crate) fn template(page: &mut Page, classic: bool) {
    page.set("", "runtime", if classic { "docker" } else { "containerd" });
    if !classic {
        let socket = "unix:///run/containerd/containerd.sock";
        page.disabled("", "runtime-endpoint", socket);
    }
    super::registries::template(page);
    page.disabled("", "allow-existing-runtime", "true");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_sockets() {
        assert!(
            image("k8s.gcr.io/pause:3.2").is_ok()
                && image("a b").is_err()
                && image("http://a").is_err()
        );
        assert_eq!(socket("/run/a.sock").unwrap(), "unix:///run/a.sock");
        assert!(socket("tcp://1.2.3.4").is_err() && socket("unix://a").is_err());
    }
}
