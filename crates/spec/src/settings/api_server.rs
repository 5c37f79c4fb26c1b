//! Settings of the API server.

use std::net::IpAddr;

use serde::Serialize;

use crate::diagnostic::Diagnostics;
use crate::draft::Field;
use crate::keys::report_unknown;
use crate::resolve::distinct;
use crate::source::Spanned;
use crate::template::page::Page;
use crate::tree::{Key, Node};
use crate::value::{DnsName, GoDuration, address};
use crate::walk::{section, value, values};

/// How long the API server works at one request unless said.
const REQUEST_TIMEOUT: GoDuration = GoDuration::seconds(120);

/// Settings of the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApiServer {
    /// Additional DNS names for its certificate.
    pub extra_names: Vec<DnsName>,
    /// Additional addresses for its certificate.
    pub extra_addresses: Vec<IpAddr>,
    /// The value of `--request-timeout`.
    pub request_timeout: GoDuration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ApiServerDraft {
    pub(crate) extra_names: Vec<Spanned<DnsName>>,
    pub(crate) extra_addresses: Vec<Spanned<IpAddr>>,
    pub(crate) request_timeout: Field<GoDuration>,
}

impl ApiServerDraft {
    /// Reads a key of the file if it is one of these.
    pub(crate) fn read(&mut self, key: &Key, node: &Node, diagnostics: &mut Diagnostics) -> bool {
        match key.text.as_str() {
            "apiserver-cert-sans" => self.certificate_names(node, diagnostics),
            "apiserver-timeout" => {
                self.request_timeout = value(node, "bad-duration", GoDuration::parse, diagnostics);
            }
            _ => return false,
        }
        true
    }

    fn certificate_names(&mut self, node: &Node, diagnostics: &mut Diagnostics) {
        for (key, node) in section(node, diagnostics).unwrap_or_default() {
            match key.text.as_str() {
                "dnsnames" => {
                    self.extra_names =
                        values(node, "bad-name", DnsName::parse_wildcard, diagnostics);
                }
                "ips" => self.extra_addresses = values(node, "bad-address", address, diagnostics),
                _ => report_unknown(key, &["apiserver-cert-sans"], diagnostics),
            }
        }
    }

    pub(crate) fn resolve(&self) -> ApiServer {
        ApiServer {
            extra_names: distinct(self.extra_names.iter().map(|one| one.value.clone())),
            extra_addresses: distinct(self.extra_addresses.iter().map(|one| one.value)),
            request_timeout: self.request_timeout.unwrap_or(REQUEST_TIMEOUT),
        }
    }
}

/// The lines of a new file.
pub(crate) fn template(page: &mut Page) {
    page.set("", "apiserver-cert-sans", "");
    page.set("apiserver-cert-sans", "dnsnames", "[]");
    page.set("apiserver-cert-sans", "ips", "[]");
    page.set("", "apiserver-timeout", "120s");
}
