//! Network plugins: a file for each, and what the other components ask of it.
//!
//! What a deploy file may say of one is its row in [`hatchery_spec::network_plugins`].

mod calico;
mod flannel;
mod other;

use std::fmt::Write as _;

use hatchery_host::operation::Protocol;
use hatchery_spec::{Cluster, cluster::Dialect, network_plugins};
use kube::api::DynamicObject;

use crate::{finding::Finding, plan::Manifest};

/// All that there are.
pub(crate) const ALL: [&dyn NetworkPlugin; 3] = [&flannel::Flannel, &calico::Calico, &other::Other];

/// A network plugin, or all that are treated alike.
pub(crate) trait NetworkPlugin: Sync {
    /// The name of its [`NetworkPluginKind`](network_plugins::NetworkPluginKind).
    fn name(&self) -> &'static str;

    /// Kernel modules without which it does not work.
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }

    /// Ports at which nodes reach each other.
    fn ports(&self) -> &'static [(u16, Protocol)] {
        &[]
    }

    /// Its interfaces, which NetworkManager has to leave alone.
    fn interfaces(&self) -> &'static [&'static str] {
        &[]
    }

    /// The programs that it puts beside the usual ones of CNI.
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Our manifest of it, where there is one, with its images as far as they are among these.
    fn manifest(&self, _: &Cluster, _: &[String]) -> Option<String> {
        None
    }

    /// Sets the cluster's networks in an object of its manifest; returns what was changed.
    fn fit(&self, _: &Cluster, _: &mut DynamicObject) -> Vec<String> {
        Vec::new()
    }

    /// What it leaves on a machine.
    fn leftovers(&self) -> Leftovers {
        Leftovers::default()
    }
}

/// What a plugin leaves on a machine. Patterns are extended regular expressions without a backslash.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// Files and directories outside those of CNI.
    places: &'static [&'static str],
    /// Patterns for interfaces as `ip -o link` shows them: the name with the `@` or `:` behind it.
    links: &'static [&'static str],
    /// Patterns for the beginnings of iptables' chains.
    chains: &'static [&'static str],
    /// Patterns for the beginnings of comments by which its rules in the kernel's own chains are known.
    comments: &'static [&'static str],
    /// Patterns for the beginnings of sets of addresses.
    sets: &'static [&'static str],
    /// The nftables tables that it creates.
    tables: &'static [&'static str],
    /// Shell functions for what else is listed ahead of the cluster: `NAME_before`. Like all shell text in Rust it begins
    /// with a line for shellcheck, by which `dev/check-scripts` finds it.
    before: &'static str,
    /// Shell functions for what else is removed: `NAME_end`; `NAME_link_stays LINK` when that cannot be deleted.
    end: &'static str,
}

/// The plugin of a cluster.
pub(crate) fn for_cluster(cluster: &Cluster) -> Option<&'static dyn NetworkPlugin> {
    let kind = cluster.pods.plugin.as_ref()?.kind();
    let mut all = ALL.into_iter();
    all.find(|plugin| plugin.name() == kind.name)
}

/// Our manifest of the cluster's plugin. The user's own manifest of it counts more.
pub(crate) fn built_in(
    cluster: &Cluster,
    manifests: &[Manifest],
    images: &[String],
) -> Option<String> {
    let plugin = cluster.pods.plugin.as_ref()?;
    let mut manifests = manifests.iter();
    let is_brought = manifests.any(|manifest| manifest.name.contains(&plugin.name));
    if plugin.manifest.is_some() || is_brought {
        return None;
    }
    for_cluster(cluster)?.manifest(cluster, images)
}

/// Manifests of plugins name a network of their own, which is seldom the cluster's. Gives what was changed.
pub(crate) fn fit(cluster: &Cluster, objects: &mut [DynamicObject]) -> Vec<String> {
    let mut notes = Vec::new();
    for object in objects {
        for plugin in ALL {
            notes.extend(plugin.fit(cluster, object));
        }
    }
    notes
}

/// What is wrong when a plugin is named, and nothing that is applied is its manifest: nodes would never become ready.
pub(crate) fn lacks_manifest(cluster: &Cluster, manifests: &[Manifest]) -> Option<Finding> {
    let plugin = cluster.pods.plugin.as_ref()?;
    let name = plugin.name.to_ascii_lowercase();
    // An inventory's manifest may be called anything, and is known to be there.
    let is_given = plugin.manifest.is_some() || cluster.dialect == Dialect::Inventory;
    if !plugin.kind().needs_manifest || is_given || cluster.workers().len() == 0 {
        return None;
    }
    let speaks_of = |text: &str| text.to_ascii_lowercase().contains(&name);
    let is_its_own = |manifest: &Manifest| {
        let mut objects = manifest.objects.iter();
        speaks_of(&manifest.name)
            || objects.any(|object| object.metadata.name.as_deref().is_some_and(speaks_of))
    };
    if manifests.iter().any(is_its_own) {
        return None;
    }
    Some(Finding::package(
        format!(
            "the network plugin {name} has no manifest: neither an archive nor a list brings one"
        ),
        format!(
            "put it into the archive as addons/{name}.yaml or file/{name}.yaml, or list it in install.addition.master \
             with type yaml (a URL will do); plugin: {} needs none",
            network_plugins::built_in().join(" or ")
        ),
    ))
}

/// What `pods_before.sh` has to know of all plugins.
pub(crate) fn before() -> String {
    let all = ALL.map(NetworkPlugin::leftovers);
    let mut text = "plugin_places() {\n".to_owned();
    for place in all.iter().flat_map(|one| one.places) {
        let _ = writeln!(text, "  echo '{place}'");
    }
    text += "}\n";
    let functions: String = all.iter().map(|one| one.before).collect();
    text + &functions + &for_each("before", &functions)
}

/// What `pods.sh` has to know of all plugins beside that.
pub(crate) fn end() -> String {
    let all = ALL.map(NetworkPlugin::leftovers);
    let mut text = String::new();
    let mut list = |name, between, part: fn(&Leftovers) -> &'static [&'static str]| {
        let words: Vec<_> = all.iter().flat_map(part).copied().collect();
        let _ = writeln!(text, "plugin_{name}='{}'", words.join(between));
    };
    list("links", "|", |one| one.links);
    list("chains", "|", |one| one.chains);
    list("comments", "|", |one| one.comments);
    list("sets", "|", |one| one.sets);
    list("tables", " ", |one| one.tables);
    let functions: String = all.iter().map(|one| one.end).collect();
    text + &functions + &for_each("end", &functions) + &for_each("link_stays", &functions)
}

/// A shell function that calls the function of this name of every plugin that has one.
fn for_each(name: &str, functions: &str) -> String {
    let own = ALL.map(|plugin| format!("{}_{name}", plugin.name()));
    let own = own
        .iter()
        .filter(|own| functions.contains(&format!("{own}() {{\n")));
    let calls: String = own.map(|own| format!("  {own} \"$@\"\n")).collect();
    format!("plugins_{name}() {{\n  :\n{calls}}}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hatchery_spec::{Input, read};

    use super::*;
    use crate::api;

    #[test]
    fn each_plugin_has_its_twin() {
        let here: BTreeSet<_> = ALL.iter().map(|plugin| plugin.name()).collect();
        let in_files: BTreeSet<_> = network_plugins::ALL.iter().map(|kind| kind.name).collect();
        assert_eq!(here, in_files);
        assert_eq!(here.len(), ALL.len());
    }

    #[test]
    fn what_needs_no_manifest_has_one_of_ours() {
        for kind in network_plugins::ALL {
            let text = format!(
                "cluster-id: demo\nruntime: containerd\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: []\n\
                 network: {{plugin: {}}}\n",
                kind.name
            );
            let reading = read(Input::private("deploy.yaml", text.as_bytes()));
            let ours = built_in(&reading.cluster.unwrap(), &[], &[]);
            assert_eq!(ours.is_none(), kind.needs_manifest, "{}", kind.name);
        }
    }

    /// They are words of a script, between single quotes, and what every awk and grep reads alike.
    #[test]
    fn leftovers_are_plain_words() {
        for one in ALL.map(NetworkPlugin::leftovers) {
            let patterns = [one.links, one.chains, one.comments, one.sets];
            let words = patterns.into_iter().chain([one.places, one.tables]);
            for word in words.flatten() {
                assert!(
                    !word.is_empty() && !word.contains(['\'', '\\', '{']),
                    "{word}"
                );
            }
            for functions in [one.before, one.end] {
                assert!(functions.is_empty() || functions.starts_with("# shellcheck shell=sh\n"));
            }
        }
        // An empty list would be a pattern that fits everything.
        let text = end();
        assert!(!text.contains("=''") && text.matches("\nplugin_").count() == 4);
        assert!(text.contains("plugins_end() {\n  :\n  calico_end \"$@\"\n}\n"));
    }

    #[test]
    fn a_plugin_without_a_manifest_is_refused() {
        let cluster = |plugin: &str| {
            let text = format!(
                "cluster-id: demo\nruntime: containerd\nmasters: [{{name: m0, ip: 10.0.0.1}}]\n\
                 workers: [{{name: m0, ip: 10.0.0.1}}]\nnetwork: {plugin}\n"
            );
            let reading = read(Input::private("deploy.yaml", text.as_bytes()));
            reading.cluster.unwrap()
        };
        let manifest = |name: &str, object: &str| {
            let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {object}}}\n");
            Manifest {
                name: name.to_owned(),
                objects: api::parse(&text).unwrap(),
            }
        };
        let calico = cluster("{plugin: calico}");
        let refused = lacks_manifest(&calico, &[manifest("other.yaml", "other")]).unwrap();
        assert_eq!(
            refused.message,
            "the network plugin calico has no manifest: neither an archive nor a list brings one"
        );
        assert!(refused.remedy.unwrap().contains("addons/calico.yaml"));
        for brought in [
            manifest("calico.yaml", "a"),
            manifest("https://example.org/Calico/v3.yaml", "a"),
            manifest("network.yaml", "calico-node"),
        ] {
            assert_eq!(lacks_manifest(&calico, &[brought]), None);
        }
        for fine in [
            "{plugin: flannel}",
            "{podcidr: 10.1.0.0/16}",
            "{plugin: calico, pluginargs: {NetworkYamlPath: /etc/kubernetes/a.yaml}}",
        ] {
            assert_eq!(lacks_manifest(&cluster(fine), &[]), None, "{fine}");
        }
    }
}
