//! The two dialects of eggo, which may be mixed: the manual's and the later one.

mod access;
mod arguments;
mod hosts;
pub(crate) mod item_names;
mod items;
mod network;
mod packages;

use crate::cluster::Dialect;
use crate::diagnostic::{Diagnostic, Diagnostics, Topic};
use crate::draft::{Draft, Field};
use crate::keys::{self, report_unknown};
use crate::source::{Input, Span, Spanned};
use crate::tree::{Key, Node};
use crate::value::{Endpoint, Name, Release, Version};
use crate::walk::{boolean, section, value};

/// Whether a file is the manual's eggo dialect, by the keys that only that one has.
fn is_classic(root: &Node) -> bool {
    let has = |section: &str, key: &str| {
        root.get(section)
            .is_some_and(|node| node.get(key).is_some())
    };
    keys::for_section("")
        .filter(|info| info.origin == keys::Origin::Classic)
        .any(|info| root.get(info.key).is_some())
        || has("open-ports", "node")
        || has("network", "plugin-args")
}

/// Reads a tree into a draft.
pub(crate) fn read(root: &Node, input: Input<'_>, diagnostics: &mut Diagnostics) -> Draft {
    let dialect = if is_classic(root) {
        Dialect::Classic
    } else {
        Dialect::Current
    };
    let file = root.span.part(root.span.start, root.span.start);
    let mut draft = Draft::new(dialect, file, input.others_can_read);
    let mut reader = Reader {
        draft: &mut draft,
        diagnostics,
        external_ca: Field::Absent,
        given: Vec::new(),
    };
    for (key, node) in section(root, reader.diagnostics).unwrap_or_default() {
        reader.diagnostics.set_topic(topic(&key.text));
        reader.top_level(key, node);
    }
    reader.diagnostics.set_topic(Topic::Deployment);
    reader.external_ca();
    draft
}

/// What a section is about that is not a setting of a component. Networks are compared with machines' addresses, and a key
/// that is unknown may be meant for either, so both count as needed.
fn topic(key: &str) -> Topic {
    match key {
        "kubernetes-version" | "etcd-version" | "containerd-version" | "coredns-version"
        | "external-ca" | "external-ca-path" | "config-extra-args" | "open-ports" | "install"
        | "package-src" | "pacakges" | "packages" | "addons" => Topic::Deployment,
        _ => Topic::Access,
    }
}

struct Reader<'a> {
    draft: &'a mut Draft,
    diagnostics: &'a mut Diagnostics,
    /// Whether `external-ca` is set; its path alone means nothing.
    external_ca: Field<bool>,
    /// Things that may be said in one of two ways, with the place where they were.
    given: Vec<(&'static str, Span)>,
}

impl Reader<'_> {
    fn top_level(&mut self, key: &Key, node: &Node) {
        let d = &mut *self.diagnostics;
        let draft = &mut *self.draft;
        match key.text.as_str() {
            "cluster-id" => draft.id = value(node, "bad-name", Name::parse, d),
            "kubernetes-version" => {
                draft.kubernetes_version = value(node, "bad-version", Version::parse, d);
            }
            "etcd-version" => draft.etcd_version = value(node, "bad-version", Release::parse, d),
            "containerd-version" => {
                draft.containerd_version = value(node, "bad-version", Release::parse, d);
            }
            "coredns-version" => {
                draft.coredns_program_version = value(node, "bad-version", Release::parse, d);
            }
            "username" | "password" | "password-env" | "password-file" | "private-key-path"
            | "bastion" => access::key(key, node, &mut draft.access, d),
            "host-key-checking" => {
                draft.access.strict_host_keys = value(node, "bad-choice", access::strictness, d);
            }
            "set-hostname" => draft.set_hostname = value(node, "bad-boolean", boolean, d),
            "masters" => self.draft.masters = self.hosts(node),
            "workers" | "nodes" => {
                if self.given_once("the list of workers", key) {
                    self.draft.workers = self.hosts(node);
                }
            }
            "etcds" => self.draft.etcds = self.hosts(node),
            "loadbalance" => self.load_balancer(node),
            "external-ca" => self.external_ca = value(node, "bad-boolean", boolean, d),
            "external-ca-path" => {
                draft.external_ca = value(node, "bad-path", crate::value::LocalPath::parse, d);
            }
            "service" => self.service(node),
            "network" => self.network(node),
            "apiserver-endpoint" => {
                draft.endpoint = value(node, "bad-endpoint", Endpoint::parse, d);
            }
            "dns-vip" => draft.dns_vip = value(node, "bad-address", crate::value::address, d),
            "dns-domain" => {
                draft.dns_domain = value(node, "bad-name", crate::value::DnsName::parse, d);
            }
            "config-extra-args" => self.extra_args(node),
            "open-ports" => self.open_ports(node),
            "install" => self.install(node),
            "package-src" => self.package_src(key, node),
            "pacakges" | "packages" => {
                if self.given_once("the list of packages", key) {
                    self.classic_packages(node);
                }
            }
            "addons" => self.addons(node),
            _ if self.setting(key, node) => {}
            _ => report_unknown(key, &[""], self.diagnostics),
        }
    }

    /// Reads a setting of a component, if the key is one.
    fn setting(&mut self, key: &Key, node: &Node) -> bool {
        let d = &mut *self.diagnostics;
        let draft = &mut *self.draft;
        d.set_topic(Topic::Deployment);
        let is_setting = draft.api_server.read(key, node, d)
            || draft.etcd.read(key, node, d)
            || draft.runtime.read(key, node, d)
            || draft.kubelet.read(key, node, d)
            || draft.kube_proxy.read(key, node, d);
        if !is_setting {
            d.set_topic(topic(&key.text));
        }
        is_setting
    }

    /// Whether a thing that has two names is said for the first time; the second is an error.
    fn given_once(&mut self, what: &'static str, key: &Key) -> bool {
        if let Some((_, first)) = self.given.iter().find(|(given, _)| *given == what) {
            self.diagnostics.push(
                Diagnostic::error("said-twice", key.span, format!("{what} is given twice"))
                    .label("again here")
                    .related(*first, "first here")
                    .remedy("keep one of the two; both names mean the same"),
            );
            return false;
        }
        self.given.push((what, key.span));
        true
    }

    /// A path counts only when `external-ca` asks for it.
    fn external_ca(&mut self) {
        match self.external_ca {
            Field::Given(Spanned { value: true, span }) => {
                if self.draft.external_ca.is_absent() {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "missing-key",
                            span,
                            "`external-ca` needs `external-ca-path`",
                        )
                        .remedy(
                            "add external-ca-path with the directory that holds ca.crt and ca.key",
                        ),
                    );
                }
            }
            Field::Absent | Field::Given(_) => {
                if self.draft.external_ca.given().is_some() {
                    self.draft.external_ca = Field::Absent;
                }
            }
            Field::Wrong => {}
        }
    }
}
