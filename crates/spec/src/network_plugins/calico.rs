//! calico.

use super::NetworkPluginKind;

pub(super) const CALICO: NetworkPluginKind = NetworkPluginKind {
    name: "calico",
    needs_manifest: true,
};
