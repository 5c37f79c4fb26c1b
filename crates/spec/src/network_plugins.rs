//! Network plugins, as far as a deploy file has to do with them: a file for each that has something of its own.
//!
//! What is done with one in the cluster and on machines is in the engine's file of the same name. A new plugin is these two
//! files and a line in the list of each crate.

mod calico;
mod flannel;
mod other;

/// All that there are; the last serves whatever has no file of its own.
pub const ALL: [&NetworkPluginKind; 3] = [&flannel::FLANNEL, &calico::CALICO, &other::OTHER];

/// What an inventory gets that names none.
pub(crate) const INVENTORY_DEFAULT: &NetworkPluginKind = &flannel::FLANNEL;

/// A network plugin, or all that are treated alike.
#[derive(Debug)]
pub struct NetworkPluginKind {
    /// Its name in deploy files, manifests and archives, in lower case.
    pub name: &'static str,
    /// Whether the user has to bring its manifest: there is none of ours.
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

/// The names of those that need no manifest of the user's.
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
