//! The two sets of fixtures: which programs and images they hold, and what differs between
//! their versions.

use std::path::PathBuf;

use hatchery_sandbox::fixtures::Fixtures;

/// A set of fixtures.
pub(crate) struct Set {
    fixtures: Fixtures,
    name: &'static str,
}

impl Set {
    /// Kubernetes 1.37 and what is current with it.
    pub(crate) fn new(fixtures: Fixtures) -> Self {
        Self {
            fixtures,
            name: "new",
        }
    }

    /// Kubernetes 1.20 and companions of its age.
    pub(crate) fn classic(fixtures: Fixtures) -> Self {
        Self {
            fixtures,
            name: "classic",
        }
    }

    pub(crate) fn is_classic(&self) -> bool {
        self.name == "classic"
    }

    /// The directory of this set's `what`.
    pub(crate) fn path(&self, what: &str) -> PathBuf {
        self.fixtures.path(&format!("{what}-{}", self.name))
    }

    /// The directory of a fixture that is in no set.
    pub(crate) fn shared(&self, what: &str) -> PathBuf {
        self.fixtures.path(what)
    }

    pub(crate) fn pause_image(&self) -> String {
        if self.is_classic() {
            format!("k8s.gcr.io/pause:{}", version("PAUSE_CLASSIC"))
        } else {
            format!("registry.k8s.io/pause:{}", version("PAUSE_NEW"))
        }
    }

    pub(crate) fn coredns_image(&self) -> String {
        let pinned = if self.is_classic() {
            "COREDNS_CLASSIC"
        } else {
            "COREDNS_NEW"
        };
        format!("coredns/coredns:{}", version(pinned))
    }

    pub(crate) fn agnhost_image(&self) -> String {
        format!("hatchery/agnhost:{}", version("KUBERNETES_NEW"))
    }

    pub(crate) fn flannel_image(&self) -> String {
        format!("hatchery/flannel:v{}", version("FLANNEL"))
    }
}

/// A version as it is pinned.
fn version(key: &str) -> &'static str {
    include_str!("../../../../fixtures/versions.env")
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("{key} is not pinned"))
}
