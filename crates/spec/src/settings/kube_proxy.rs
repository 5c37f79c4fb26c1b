//! Settings of kube-proxy.

use serde::Serialize;

use crate::diagnostic::Diagnostics;
use crate::draft::Field;
use crate::keys::report_unknown;
use crate::template::page::Page;
use crate::tree::{Key, Node};
use crate::value::Mismatch;
use crate::walk::{section, value};

/// Settings of kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KubeProxy {
    /// The proxy mode.
    pub mode: KubeProxyMode,
}

/// The proxy mode of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KubeProxyMode {
    /// Services are iptables rules.
    Iptables,
    /// The kernel's IP Virtual Server.
    Ipvs,
    /// Services are nftables rules.
    Nftables,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct KubeProxyDraft {
    pub(crate) mode: Field<KubeProxyMode>,
}

impl KubeProxyDraft {
    /// Reads a key of the file if it is one of these.
    pub(crate) fn read(&mut self, key: &Key, node: &Node, diagnostics: &mut Diagnostics) -> bool {
        if key.text != "kube-proxy" {
            return false;
        }
        for (key, node) in section(node, diagnostics).unwrap_or_default() {
            match key.text.as_str() {
                "mode" => self.mode = value(node, "bad-mode", mode, diagnostics),
                _ => report_unknown(key, &["kube-proxy"], diagnostics),
            }
        }
        true
    }

    pub(crate) fn resolve(&self) -> KubeProxy {
        KubeProxy {
            mode: self.mode.unwrap_or(KubeProxyMode::Iptables),
        }
    }
}

pub(crate) fn mode(text: &str) -> Result<KubeProxyMode, Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "iptables" => Ok(KubeProxyMode::Iptables),
        "ipvs" => Ok(KubeProxyMode::Ipvs),
        "nftables" => Ok(KubeProxyMode::Nftables),
        _ => Err(Mismatch::new(
            "not a mode of kube-proxy",
            "use iptables, ipvs or nftables",
        )),
    }
}

/// The lines of a new file.
pub(crate) fn template(page: &mut Page) {
    page.disabled("", "kube-proxy", "{mode: iptables}");
}
