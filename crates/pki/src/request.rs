//! The contents of a leaf certificate to be issued.

use std::collections::BTreeSet;
use std::net::IpAddr;

use time::Duration;

/// The default lifetime of a leaf certificate.
pub const LEAF_LIFETIME: Duration = Duration::days(365);

/// The side of a TLS connection that a certificate may be used on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Usage {
    /// Authenticates a client.
    Client,
    /// Authenticates a server.
    Server,
    /// Both, as etcd members and the API server need.
    Both,
}

impl Usage {
    pub(crate) fn client(self) -> bool {
        matches!(self, Self::Client | Self::Both)
    }

    pub(crate) fn server(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }
}

/// A certificate to issue. It contains no key and no secret, so it can be printed, compared and kept in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The subject's common name: for Kubernetes the user.
    pub common_name: String,
    /// The subject's organization: for Kubernetes the group. No component needs more than one.
    pub organization: Option<String>,
    /// The server's DNS names.
    pub dns_names: BTreeSet<String>,
    /// The server's IP addresses.
    pub ips: BTreeSet<IpAddr>,
    /// Its extended key usage.
    pub usage: Usage,
    /// How long it is valid; shortened where its authority expires earlier.
    pub lifetime: Duration,
}

impl Request {
    /// A certificate for a client with this common name.
    pub fn client(common_name: impl Into<String>) -> Self {
        Self::new(common_name, Usage::Client)
    }

    /// A certificate for a server with this common name; add the names and addresses it is reached by.
    pub fn server(common_name: impl Into<String>) -> Self {
        Self::new(common_name, Usage::Server)
    }

    /// A certificate for a server that is also a client.
    pub fn server_and_client(common_name: impl Into<String>) -> Self {
        Self::new(common_name, Usage::Both)
    }

    fn new(common_name: impl Into<String>, usage: Usage) -> Self {
        Self {
            common_name: common_name.into(),
            organization: None,
            dns_names: BTreeSet::new(),
            ips: BTreeSet::new(),
            usage,
            lifetime: LEAF_LIFETIME,
        }
    }

    /// Sets the organization, which Kubernetes reads as the user's group.
    #[must_use]
    pub fn in_group(mut self, organization: impl Into<String>) -> Self {
        self.organization = Some(organization.into());
        self
    }

    /// Adds DNS names.
    #[must_use]
    pub fn with_dns_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.dns_names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds IP addresses to the subject alternative names.
    #[must_use]
    pub fn with_ips<A: Into<IpAddr>>(mut self, ips: impl IntoIterator<Item = A>) -> Self {
        self.ips.extend(ips.into_iter().map(Into::into));
        self
    }

    /// Sets the lifetime.
    #[must_use]
    pub fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// A certificate with less than this left is renewed: a third of its lifetime, so that a cluster maintained a few times
    /// a year never has an expired one.
    pub fn renewal_margin(&self) -> Duration {
        self.lifetime / 3
    }
}
