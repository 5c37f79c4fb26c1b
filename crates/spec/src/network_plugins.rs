//! Network plugins as deploy files know them: a row for each that is treated specially.
//!
//! How one is set up in the cluster and on machines is in the engine's `components/network_plugin/NAME.rs`.

use crate::value::Mismatch;
use crate::walk::word;

/// All kinds; the last is for plugins without a row of their own.
pub const ALL: [&NetworkPluginKind; 3] = [&FLANNEL, &CALICO, &OTHER];

const FLANNEL: NetworkPluginKind = NetworkPluginKind {
    name: "flannel",
    needs_manifest: false,
};

const CALICO: NetworkPluginKind = NetworkPluginKind {
    name: "calico",
    needs_manifest: true,
};

const OTHER: NetworkPluginKind = NetworkPluginKind {
    name: "other",
    needs_manifest: true,
};

/// The default of inventories.
pub(crate) const INVENTORY_DEFAULT: &NetworkPluginKind = &FLANNEL;

/// The name of a plugin, in lower case as manifests and archives write it.
pub(crate) fn name(text: &str) -> Result<String, Mismatch> {
    let text = word(text)?;
    if text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(Mismatch::new(
            "not the name of a network plugin",
            "write only its name, such as calico or flannel",
        ))
    }
}

/// A network plugin, or several that are treated alike.
#[derive(Debug)]
pub struct NetworkPluginKind {
    /// Its name in deploy files, manifests and archives, in lower case.
    pub name: &'static str,
    /// Whether the user has to provide its manifest, because Hatchery has none.
    pub needs_manifest: bool,
}

impl NetworkPluginKind {
    /// The kind that a plugin of this name belongs to.
    pub fn called(name: &str) -> &'static Self {
        let mut all = ALL.into_iter();
        all.find(|kind| kind.name.eq_ignore_ascii_case(name))
            .unwrap_or(&OTHER)
    }
}

/// The names of the plugins whose manifest Hatchery has.
pub fn built_in() -> Vec<&'static str> {
    let built_in = ALL.into_iter().filter(|kind| !kind.needs_manifest);
    built_in.map(|kind| kind.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_a_plugin() {
        for (name, kind, needs_manifest) in [
            ("flannel", "flannel", false),
            ("Calico", "calico", true),
            ("cilium", "other", true),
        ] {
            let found = NetworkPluginKind::called(name);
            assert_eq!((found.name, found.needs_manifest), (kind, needs_manifest));
        }
        assert!(built_in().contains(&INVENTORY_DEFAULT.name));
    }
}
