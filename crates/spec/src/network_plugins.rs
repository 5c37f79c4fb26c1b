//! Network plugins as deploy files know them, one file for each that is treated specially.
//!
//! How one is set up in the cluster and on machines is in the engine's file of the same name. To add a plugin, add these
//! two files and a line to the list in each crate.

mod calico;
mod flannel;
mod other;

/// All kinds; the last is for plugins without a file of their own.
pub const ALL: [&NetworkPluginKind; 3] = [&flannel::FLANNEL, &calico::CALICO, &other::OTHER];

/// The default of inventories.
pub(crate) const INVENTORY_DEFAULT: &NetworkPluginKind = &flannel::FLANNEL;

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
            .unwrap_or(&other::OTHER)
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
