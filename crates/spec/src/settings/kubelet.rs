//! Settings of the kubelets.

use serde::Serialize;

use crate::diagnostic::Diagnostics;
use crate::draft::Field;
use crate::template::page::Page;
use crate::tree::{Key, Node};
use crate::walk::{boolean, value};

/// Settings of the kubelets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kubelet {
    /// Whether its serving certificate is signed by the cluster's authority, and verified by the API server.
    pub serving_certificate: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct KubeletDraft {
    pub(crate) serving_certificate: Field<bool>,
}

impl KubeletDraft {
    /// Reads a key of the file if it is one of these.
    pub(crate) fn read(&mut self, key: &Key, node: &Node, diagnostics: &mut Diagnostics) -> bool {
        match key.text.as_str() {
            "enable-kubelet-serving" => {
                self.serving_certificate = value(node, "bad-boolean", boolean, diagnostics);
            }
            _ => return false,
        }
        true
    }

    pub(crate) fn resolve(&self) -> Kubelet {
        Kubelet {
            serving_certificate: self.serving_certificate.unwrap_or(true),
        }
    }
}

/// The lines of a new file.
pub(crate) fn template(page: &mut Page, classic: bool) {
    if !classic {
        page.set("", "enable-kubelet-serving", true);
    }
}
