//! flannel, whose manifest Hatchery has.

use super::NetworkPluginKind;

pub(super) const FLANNEL: NetworkPluginKind = NetworkPluginKind {
    name: "flannel",
    needs_manifest: false,
};
