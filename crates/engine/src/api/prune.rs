//! Objects that a cluster's addons made, remembered in the cluster itself, and removed when no addon names them any more.
//!
//! Which kinds an addon brings is not known beforehand, so a list of objects lies in a ConfigMap; a label on each object
//! says that it is still ours. What holds data or other people's objects is never removed: namespaces, volumes and
//! definitions of kinds.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Api, FIELD_MANAGER,
    discovery::path_segment,
    error::{Error, Operation, if_found},
};

/// The label of objects that an addon made, with the addon's name.
pub const ADDON: &str = "hatchery/addon";

/// The ConfigMap that lists the objects of all addons.
const LIST: &str = "hatchery-addons";
const LIST_NAMESPACE: &str = "kube-system";

/// Of these kinds nothing is removed.
const KEPT: [&str; 4] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
];

/// An object, by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// For example `apps/v1`.
    pub api_version: String,
    /// For example `Deployment`.
    pub kind: String,
    /// As the manifest gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl ObjectRef {
    /// Nothing for one without kind or name, which cannot be applied either.
    pub fn to(object: &DynamicObject) -> Option<Self> {
        let types = object.types.as_ref()?;
        Some(Self {
            api_version: types.api_version.clone(),
            kind: types.kind.clone(),
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone()?,
        })
    }

    fn operation(&self, verb: &'static str) -> Operation {
        Operation::on(verb, &self.kind, self.namespace.as_deref(), &self.name)
    }
}

/// Listed and not wanted. What controllers of an addon look after goes before these do.
fn unwanted(listed: &BTreeSet<ObjectRef>, wanted: &[ObjectRef]) -> Vec<ObjectRef> {
    let unwanted = listed.iter().filter(|one| !wanted.contains(one)).cloned();
    let (others, of_kubernetes): (Vec<_>, Vec<_>) = unwanted.partition(|one| {
        let group = one
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        group.contains('.') && !group.ends_with(".k8s.io")
    });
    [others, of_kubernetes].concat()
}

impl Api {
    /// Adds objects to the list that are about to be applied, so that none is forgotten when the run dies.
    ///
    /// # Errors
    /// When the API server cannot be asked or refuses.
    pub async fn list_addon_objects(&self, wanted: &[ObjectRef]) -> Result<(), Error> {
        let listed = self.addon_objects().await?;
        let all: BTreeSet<_> = listed.iter().flatten().chain(wanted).cloned().collect();
        match listed.as_ref() == Some(&all) {
            true => Ok(()),
            false => self.write_addon_objects(&all).await,
        }
    }

    /// What [`Api::prune_addons`] would remove.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn would_prune_addons(&self, wanted: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
        let listed = self.addon_objects().await?.unwrap_or_default();
        let mut gone = Vec::new();
        for object in unwanted(&listed, wanted) {
            if self.removable(&object, wanted).await?.is_some() {
                gone.push(object);
            }
        }
        Ok(gone)
    }

    /// Removes the listed objects that are no longer wanted; returns which.
    ///
    /// # Errors
    /// When the API server cannot be asked or refuses: the first reason, after all others were tried. What could not be
    /// removed stays listed.
    pub async fn prune_addons(&self, wanted: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
        let listed = self.addon_objects().await?.unwrap_or_default();
        let mut left: BTreeSet<_> = wanted.iter().cloned().collect();
        let (mut gone, mut failed) = (Vec::new(), None);
        for object in unwanted(&listed, wanted) {
            let removed = match self.removable(&object, wanted).await {
                Ok(None) => continue,
                Ok(Some(objects)) => self.remove(&object, &objects).await,
                Err(error) => Err(error),
            };
            match removed {
                Ok(()) => gone.push(object),
                Err(error) => {
                    left.insert(object);
                    failed.get_or_insert(error);
                }
            }
        }
        if left != listed {
            self.write_addon_objects(&left).await?;
        }
        failed.map_or(Ok(gone), Err)
    }

    /// Where an object is reached that is there, bears our label, may be removed and is not a wanted one in other words: of
    /// another version of its kind, or with the namespace that it has anyway.
    async fn removable(
        &self,
        object: &ObjectRef,
        wanted: &[ObjectRef],
    ) -> Result<Option<kube::Api<DynamicObject>>, Error> {
        if KEPT.contains(&object.kind.as_str()) {
            return Ok(None);
        }
        let served = self.served_kind(&object.api_version, &object.kind).await?;
        let Some(kind) = served else {
            return Ok(None);
        };
        let namespace = object.namespace.as_deref();
        let is_same = |one: &ObjectRef| {
            (&one.kind, &one.name) == (&object.kind, &object.name)
                && kind.namespace(one.namespace.as_deref()) == kind.namespace(namespace)
        };
        if wanted.iter().any(is_same) {
            return Ok(None);
        }
        let objects = kind.objects(self.client(), namespace);
        let (operation, name) = (object.operation("get"), path_segment(&object.name));
        let found = self.request(&operation, || objects.get_metadata(&name));
        let is_ours =
            if_found(found.await)?.is_some_and(|found| found.labels().contains_key(ADDON));
        Ok(is_ours.then_some(objects))
    }

    async fn remove(
        &self,
        object: &ObjectRef,
        objects: &kube::Api<DynamicObject>,
    ) -> Result<(), Error> {
        let (operation, name) = (object.operation("delete"), path_segment(&object.name));
        let parameters = DeleteParams::background();
        let removed = self.request(&operation, || objects.delete(&name, &parameters));
        if_found(removed.await).map(drop)
    }

    /// The list, where there is one. A list that cannot be read counts as empty, and is written anew.
    async fn addon_objects(&self) -> Result<Option<BTreeSet<ObjectRef>>, Error> {
        let operation = Operation::on("get", "ConfigMap", Some(LIST_NAMESPACE), LIST);
        let maps = kube::Api::<ConfigMap>::namespaced(self.client(), LIST_NAMESPACE);
        let map = if_found(self.request(&operation, || maps.get(LIST)).await)?;
        Ok(map.map(|map| {
            let text = map.data.unwrap_or_default().remove("objects");
            serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
        }))
    }

    async fn write_addon_objects(&self, objects: &BTreeSet<ObjectRef>) -> Result<(), Error> {
        let operation = Operation::on("apply", "ConfigMap", Some(LIST_NAMESPACE), LIST);
        let maps = kube::Api::<ConfigMap>::namespaced(self.client(), LIST_NAMESPACE);
        let map = Patch::Apply(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": LIST, "namespace": LIST_NAMESPACE},
            "data": {"objects": json!(objects).to_string()},
        }));
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let written = self.request(&operation, || maps.patch(LIST, &parameters, &map));
        written.await.map(drop)
    }
}
