//! The pods' network: flannel built in, other plugins by the user's manifests.

use hatchery_spec::Cluster;
use kube::api::DynamicObject;
use serde_json::Value;

use super::Site;
use crate::wish::{Error, Wishes};

/// What plugins leave on a machine belongs to the cluster.
pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    for directory in ["/etc/cni/net.d", "/var/lib/cni"] {
        wishes.own_directory(directory, 0o755)?;
    }
    for directory in &site.cluster.runtime.cni_bin_dirs {
        wishes.own_directory(directory.as_str(), 0o755)?;
    }
    Ok(())
}

/// The image of flannel when no archive brings one.
const FLANNEL_IMAGE: &str = "docker.io/flannel/flannel:v0.26.7";

/// flannel's manifest for this cluster. Of the images that the archives bring, one that is called so is taken.
pub(crate) fn flannel(cluster: &Cluster, images: &[String]) -> String {
    let ours = images.iter().find(|image| {
        let path = image
            .rsplit_once(':')
            .map_or(image.as_str(), |(path, _)| path);
        path.rsplit('/').next() == Some("flannel")
    });
    include_str!("../../../../fixtures/addons/flannel.yaml")
        .replace("__POD_CIDR__", &cluster.pods.cidrs.primary.to_string())
        .replace(
            "__FLANNEL_IMAGE__",
            ours.map_or(FLANNEL_IMAGE, String::as_str),
        )
}

/// Manifests of calico and flannel name a network of their own, which is seldom the cluster's. Gives what was changed.
pub(crate) fn fit(cluster: &Cluster, objects: &mut [DynamicObject]) -> Vec<String> {
    let cidr = cluster.pods.cidrs.primary.to_string();
    let mut notes = Vec::new();
    for object in objects {
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        let is_calico = object.metadata.name.as_deref() == Some("calico-node");
        if kind == Some("DaemonSet") && is_calico && set_pool(&mut object.data, &cidr) {
            notes.push(format!(
                "calico's address pool is {cidr}, as the cluster's pods'"
            ));
        }
        let network = object.data.pointer_mut("/data/net-conf.json");
        if let Some(Value::String(text)) = network
            && let Ok(mut net) = serde_json::from_str::<Value>(text)
            && net
                .get("Network")
                .and_then(Value::as_str)
                .is_some_and(|network| network != cidr)
        {
            net["Network"] = cidr.clone().into();
            *text = format!("{net:#}");
            notes.push(format!(
                "flannel's network is {cidr}, as the cluster's pods'"
            ));
        }
    }
    notes
}

/// Whether anything had to be changed.
fn set_pool(daemon_set: &mut Value, cidr: &str) -> bool {
    const NAME: &str = "CALICO_IPV4POOL_CIDR";
    let containers = daemon_set.pointer_mut("/spec/template/spec/containers");
    let Some(Value::Array(containers)) = containers else {
        return false;
    };
    let mut changed = false;
    for container in containers {
        if container.get("name").and_then(|name| name.as_str()) != Some("calico-node") {
            continue;
        }
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let variables = container
            .entry("env")
            .or_insert_with(|| Value::Array(Vec::new()));
        let Some(variables) = variables.as_array_mut() else {
            continue;
        };
        let wanted = serde_json::json!({"name": NAME, "value": cidr});
        match variables.iter_mut().find(|one| one["name"] == NAME) {
            Some(one) if *one == wanted => {}
            Some(one) => {
                *one = wanted;
                changed = true;
            }
            None => {
                variables.push(wanted);
                changed = true;
            }
        }
    }
    changed
}
