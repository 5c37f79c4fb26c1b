//! Any other plugin: one that brings a manifest and asks nothing else of us.

use super::NetworkPlugin;

pub(super) struct Other;

impl NetworkPlugin for Other {
    fn name(&self) -> &'static str {
        "other"
    }

    fn interfaces(&self) -> &'static [&'static str] {
        // cilium's and kube-router's.
        &["cilium*", "kube-bridge", "lxc*"]
    }

    fn programs(&self) -> &'static [&'static str] {
        &[
            "cilium-cni",
            "weave-net",
            "weave-ipam",
            "multus",
            "multus-shim",
            "whereabouts",
            "kube-ovn",
            "antrea",
            "kube-router",
            "istio-cni",
        ]
    }
}
