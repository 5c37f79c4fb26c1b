//! What is installed where nothing was said.

use std::collections::BTreeMap;

use crate::cluster::{Archive, Item, ManifestSource, PackageList, Packages};
use crate::draft::Draft;
use crate::runtimes::RuntimeKind;

pub(super) fn packages(draft: &Draft) -> Packages {
    let runtime = draft.runtime.kind_or_default();
    let mut lists: BTreeMap<PackageList, Vec<Item>> = BTreeMap::new();
    for list in &draft.lists {
        let items = list.items.iter().map(|item| item.value.clone());
        lists.entry(list.list).or_default().extend(items);
    }
    if draft.default_lists {
        for list in PackageList::ALL {
            let items = lists.entry(list).or_default();
            if items.is_empty() {
                items.extend(usual(list, runtime).iter().map(|name| Item::Repo {
                    name: (*name).to_owned(),
                }));
            }
        }
    }
    // Some lists belong to a part that this cluster does not have.
    lists.retain(|list, items| {
        let wanted = match list {
            PackageList::Dns => !draft.coredns_in_pods.unwrap_or(false),
            PackageList::Loadbalance | PackageList::AdditionLoadbalance => {
                draft.load_balancer.is_some()
            }
            _ => true,
        };
        wanted && !items.is_empty()
    });
    Packages {
        archives: draft
            .archives
            .iter()
            .map(|(arch, path)| {
                let path = path.value.clone();
                (arch.value, Archive { path })
            })
            .collect(),
        directory: draft.package_directory.value().cloned(),
        lists,
        addons: draft
            .addons
            .iter()
            .map(|addon| addon.value.clone())
            .collect(),
    }
}

/// The packages of openEuler's repositories.
fn usual(list: PackageList, runtime: &RuntimeKind) -> &'static [&'static str] {
    match list {
        PackageList::KubernetesMaster => &["kubernetes-client", "kubernetes-master"],
        PackageList::KubernetesWorker => {
            &["kubernetes-client", "kubernetes-node", "kubernetes-kubelet"]
        }
        PackageList::Network => &["containernetworking-plugins"],
        PackageList::Etcd => &["etcd"],
        PackageList::Loadbalance => &["nginx"],
        PackageList::Container => runtime.packages,
        PackageList::Dns => &["coredns"],
        PackageList::Image
        | PackageList::AdditionMaster
        | PackageList::AdditionWorker
        | PackageList::AdditionEtcd
        | PackageList::AdditionLoadbalance => &[],
    }
}

/// Whether it comes from an archive.
pub(super) fn needs_archive(item: &Item) -> bool {
    !matches!(
        item,
        Item::Repo { .. }
            | Item::Yaml {
                source: ManifestSource::Url(_)
            }
    )
}
