//! The cluster's name and version, its network plugin, and where its API is reached.

use super::Reader;
use crate::cluster::{Item, ManifestSource, PackageList};
use crate::diagnostic::Diagnostic;
use crate::draft::{Field, ListDraft};
use crate::eggo::item_names::{is_url, url};
use crate::network_plugins::{self, INVENTORY_DEFAULT, NetworkPluginKind};
use crate::settings::kube_proxy;
use crate::source::Spanned;
use crate::tree::Node;
use crate::value::{
    AbsolutePath, DnsName, Endpoint, GoDuration, Host, Mismatch, Name, Port, Version,
};
use crate::walk::{boolean, one_of, section, value, values};

/// The domain that every cluster of kubespray has unless another is set: it names no cluster.
const USUAL_DOMAIN: &str = "cluster.local";
/// kubespray's words for "none".
const NO_PLUGIN: [&str; 2] = ["cni", "none"];

impl Reader<'_, '_> {
    /// Inventories need no name for the cluster, but a state directory does.
    pub(super) fn id(&mut self, given: Option<&Name>) {
        if let Some(name) = given {
            self.draft.id = self.default_field(name.clone());
            return;
        }
        let own = self.cluster_field(&["hatchery_cluster_id"], "bad-name", Name::parse);
        let by_domain = match self.scope.any_value("cluster_name") {
            Some(entry) if own.is_absent() && entry.node.text() != Some(USUAL_DOMAIN) => {
                self.cluster_field(&["cluster_name"], "bad-name", Name::parse)
            }
            _ => Field::Absent,
        };
        self.draft.id = own.or(by_domain);
        if self.draft.id.is_absent() {
            self.draft.id = Field::Wrong;
            let said = self
                .scope
                .any_value("cluster_name")
                .map(|entry| entry.node.span);
            let message = match said {
                Some(_) => {
                    "the cluster has no unique name: cluster.local is the default of every cluster"
                }
                None => "the cluster has no name",
            };
            self.diagnostics.push(
                Diagnostic::error("missing-key", said.unwrap_or(self.draft.file), message)
                    .remedy("add the variable hatchery_cluster_id, such as hatchery_cluster_id: k8s-cluster"),
            );
        }
    }

    pub(super) fn settings(&mut self) {
        self.draft.kubernetes_version =
            self.cluster_field(&["kube_version"], "bad-version", Version::parse);
        self.draft.kube_proxy.mode =
            self.cluster_field(&["kube_proxy_mode"], "bad-mode", kube_proxy::mode);
        self.draft.kubelet.serving_certificate = self.cluster_field(
            &["kubelet_rotate_server_certificates"],
            "bad-boolean",
            boolean,
        );
        let existing = ["hatchery_allow_existing_runtime"];
        self.draft.runtime.allow_existing = self.cluster_field(&existing, "bad-boolean", boolean);
        let timeout = ["kube_apiserver_request_timeout"];
        self.draft.api_server.request_timeout =
            self.cluster_field(&timeout, "bad-duration", GoDuration::parse);
        self.plugin();
        self.certificate_names();
    }

    fn plugin(&mut self) {
        let manifest = self.cluster_field(&["hatchery_network_manifest"], "bad-manifest", manifest);
        let said = self.cluster_field(
            &["kube_network_plugin"],
            "bad-plugin",
            network_plugins::name,
        );
        match said {
            Field::Wrong => {}
            Field::Absent => {
                let usual = INVENTORY_DEFAULT.name;
                self.diagnostics.push(
                    Diagnostic::warning("network-plugin", self.draft.file, format!("no network plugin is named: {usual} is used, where kubespray would use calico"))
                        .remedy(format!("set kube_network_plugin: {usual}, or calico together with hatchery_network_manifest")),
                );
                self.draft.network_plugin = self.default_field(usual.to_owned());
            }
            Field::Given(plugin) if NO_PLUGIN.contains(&plugin.value.as_str()) => {}
            Field::Given(plugin) => {
                if NetworkPluginKind::called(&plugin.value).needs_manifest && manifest.is_absent() {
                    let built_in = one_of(&network_plugins::built_in());
                    let message = format!("{} cannot be set up without its manifest", plugin.value);
                    self.diagnostics.push(
                        Diagnostic::error("network-plugin", plugin.span, message)
                            .remedy(format!("add hatchery_network_manifest with its URL, or with its path on the masters when the archive holds it; or use kube_network_plugin: {built_in}")),
                    );
                }
                self.draft.network_plugin = Field::Given(plugin);
            }
        }
        match manifest {
            Field::Given(Spanned {
                value: Manifest::Path(path),
                span,
            }) => {
                self.draft.network_manifest = Field::Given(Spanned::new(path, span));
            }
            Field::Given(Spanned {
                value: Manifest::Url(url),
                span,
            }) => {
                let source = ManifestSource::Url(url);
                self.draft.lists.push(ListDraft {
                    list: PackageList::AdditionMaster,
                    items: vec![Spanned::new(Item::Yaml { source }, span)],
                });
            }
            Field::Absent | Field::Wrong => {}
        }
    }

    /// The user's own load balancer.
    pub(super) fn endpoint(&mut self) {
        let Ok(Some(node)) = self.node("loadbalancer_apiserver") else {
            return;
        };
        let Some(entries) = section(&node, self.diagnostics) else {
            self.draft.endpoint = Field::Wrong;
            return;
        };
        let (mut host, mut port) = (Field::Absent, Field::Absent);
        for (key, node) in entries {
            match key.text.as_str() {
                "address" => host = value(node, "bad-address", Host::parse, self.diagnostics),
                "port" => port = value(node, "bad-port", Port::parse, self.diagnostics),
                _ => {
                    let message =
                        format!("`loadbalancer_apiserver` has no key `{}`", shown(&key.text));
                    self.diagnostics.push(
                        Diagnostic::error("unknown-key", key.span, message)
                            .remedy("valid keys: address, port"),
                    );
                }
            }
        }
        self.draft.endpoint = match (host, port) {
            (Field::Given(host), Field::Given(port)) => Field::Given(Spanned::new(
                Endpoint {
                    host: host.value,
                    port: port.value,
                },
                host.span,
            )),
            (Field::Wrong, _) | (_, Field::Wrong) => Field::Wrong,
            (Field::Absent, Field::Absent) if entries.is_empty() => Field::Absent,
            (host, _) => {
                let lacks = if host.is_absent() { "address" } else { "port" };
                self.lacks(&node, lacks);
                Field::Wrong
            }
        };
    }

    fn lacks(&mut self, node: &Node, key: &str) {
        let message = format!("`loadbalancer_apiserver` has no `{key}`");
        self.diagnostics.push(
            Diagnostic::error("missing-key", node.span, message)
                .remedy("give both address and port"),
        );
    }

    fn certificate_names(&mut self) {
        let domain = ["apiserver_loadbalancer_domain_name"];
        if let Field::Given(name) = self.cluster_field(&domain, "bad-name", DnsName::parse) {
            self.draft.api_server.extra_names.push(name);
        }
        let Ok(Some(node)) = self.node("supplementary_addresses_in_ssl_keys") else {
            return;
        };
        for host in values(&node, "bad-name", host_or_wildcard, self.diagnostics) {
            let span = host.span;
            match host.value {
                Host::Address(address) => {
                    self.draft
                        .api_server
                        .extra_addresses
                        .push(Spanned::new(address, span));
                }
                Host::Name(name) => self
                    .draft
                    .api_server
                    .extra_names
                    .push(Spanned::new(name, span)),
            }
        }
    }
}

enum Manifest {
    Url(String),
    Path(AbsolutePath),
}

fn manifest(text: &str) -> Result<Manifest, Mismatch> {
    if is_url(text) {
        url(text).map(Manifest::Url)
    } else {
        AbsolutePath::parse(text).map(Manifest::Path)
    }
}

fn host_or_wildcard(text: &str) -> Result<Host, Mismatch> {
    if text.starts_with("*.") {
        return DnsName::parse_wildcard(text).map(Host::Name);
    }
    Host::parse(text)
}

fn shown(key: &str) -> String {
    key.chars().filter(|c| !c.is_control()).take(60).collect()
}
