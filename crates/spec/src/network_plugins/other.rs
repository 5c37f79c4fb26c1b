//! Any other plugin: one that brings a manifest and asks nothing else of us.

use super::NetworkPluginKind;

pub(super) const OTHER: NetworkPluginKind = NetworkPluginKind {
    name: "other",
    needs_manifest: true,
};
