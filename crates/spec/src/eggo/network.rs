//! Addresses of Services and pods, DNS.

use super::Reader;
use crate::diagnostic::{Diagnostic, Topic};
use crate::keys::report_unknown;
use crate::network_plugins;
use crate::tree::{Key, Node};
use crate::value::{AbsolutePath, Cidrs, Mismatch, address};
use crate::walk::{quoted, section, value};

/// The plugin argument that names its manifest.
const MANIFEST: &str = "NetworkYamlPath";

impl Reader<'_> {
    pub(super) fn service(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let d = &mut *self.diagnostics;
            match key.text.as_str() {
                "cidr" => self.draft.service_cidrs = value(node, "bad-network", Cidrs::parse, d),
                "dnsaddr" => self.draft.dns_address = value(node, "bad-address", address, d),
                "gateway" => self.draft.service_gateway = value(node, "bad-address", address, d),
                "dns" => self.dns(node),
                _ => report_unknown(key, &["service"], d),
            }
        }
    }

    fn dns(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let d = &mut *self.diagnostics;
            match key.text.as_str() {
                "corednstype" => {
                    self.draft.coredns_in_pods = value(node, "bad-coredns-type", in_pods, d);
                }
                "imageversion" => {
                    self.draft.coredns_version = value(node, "bad-image-version", image_tag, d);
                }
                "replicas" => {
                    // eggo takes 0 for "not said".
                    if node.text() != Some("0") {
                        self.draft.coredns_replicas = value(node, "bad-number", replicas, d);
                    }
                }
                _ => report_unknown(key, &["service.dns"], d),
            }
        }
    }

    pub(super) fn network(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let d = &mut *self.diagnostics;
            d.set_topic(match key.text.as_str() {
                "plugin" | "pluginargs" | "plugin-args" => Topic::Deployment,
                _ => Topic::Access,
            });
            match key.text.as_str() {
                "podcidr" => self.draft.pod_cidrs = value(node, "bad-network", Cidrs::parse, d),
                "plugin" => {
                    self.draft.network_plugin = value(node, "bad-plugin", network_plugins::name, d);
                }
                "pluginargs" | "plugin-args" => self.plugin_arguments(key, node),
                _ => report_unknown(key, &["network"], d),
            }
        }
    }

    fn plugin_arguments(&mut self, key: &Key, node: &Node) {
        if !self.given_once("the list of the network plugin's arguments", key) {
            return;
        }
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            if key.text == MANIFEST {
                self.draft.network_manifest =
                    value(node, "bad-path", AbsolutePath::parse, self.diagnostics);
            } else {
                let message = format!(
                    "the network plugin's argument {} is not supported: only {MANIFEST} is",
                    quoted(&key.text)
                );
                self.diagnostics.push(
                    Diagnostic::error("unsupported", key.span, message)
                        .remedy("remove it, and set it in the plugin's manifest"),
                );
            }
        }
    }
}

fn in_pods(text: &str) -> Result<bool, Mismatch> {
    match text.to_ascii_lowercase().as_str() {
        "pod" => Ok(true),
        "binary" => Ok(false),
        _ => Err(Mismatch::new(
            "not a valid CoreDNS type",
            "write pod (in the cluster) or binary (as a service on the masters)",
        )),
    }
}

fn replicas(text: &str) -> Result<u32, Mismatch> {
    text.parse()
        .ok()
        .filter(|number| (1..=1000).contains(number))
        .ok_or_else(|| Mismatch::new("not a number of pods", "use a number from 1 to 1000"))
}

fn image_tag(text: &str) -> Result<String, Mismatch> {
    let valid = text.len() <= 128
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && !text.starts_with(['.', '-']);
    if valid {
        Ok(text.to_owned())
    } else {
        Err(Mismatch::new(
            "not an image tag",
            "write only the tag, such as 1.8.4",
        ))
    }
}
