//! Any other plugin, which needs nothing but the user's manifest.

use super::NetworkPluginKind;

pub(super) const OTHER: NetworkPluginKind = NetworkPluginKind {
    name: "other",
    needs_manifest: true,
};
