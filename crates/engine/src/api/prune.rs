//! Objects that a cluster's addons made, remembered in the cluster itself, and removed when no addon names them any more.
//!
//! Which kinds an addon brings is not known beforehand, so a list of objects lies in a ConfigMap; a label on each object
//! says that it is still ours. What holds data or other people's objects is never removed: namespaces, volumes and
//! definitions of kinds.

use std::collections::BTreeSet;

use http::Method;
use kube::core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Api, FIELD_MANAGER,
    error::{Asked, Error},
};

/// The label of objects that an addon made, with the addon's name.
pub const ADDON: &str = "hatchery/addon";

const LIST: &str = "/api/v1/namespaces/kube-system/configmaps/hatchery-addons";

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
    /// Of its kind.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// As the manifest says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
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
}

/// Listed and not wanted. What controllers of an addon look after goes before these do.
fn unwanted<'a>(listed: &'a Listed, wanted: &[ObjectRef]) -> Vec<&'a ObjectRef> {
    let unwanted = listed.objects.iter().filter(|one| !wanted.contains(one));
    let (others, of_kubernetes): (Vec<_>, Vec<_>) = unwanted.partition(|one| {
        let group = one
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        group.contains('.') && !group.ends_with(".k8s.io")
    });
    [others, of_kubernetes].concat()
}

/// The list as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Listed {
    objects: BTreeSet<ObjectRef>,
    exists: bool,
}

impl Api {
    /// Adds objects to the list that are about to be applied, so that none is forgotten when the run dies.
    ///
    /// # Errors
    /// When the API server cannot be asked or refuses.
    pub async fn list_addon_objects(&self, wanted: &[ObjectRef]) -> Result<(), Error> {
        let listed = self.addon_objects().await?;
        let all: BTreeSet<_> = listed.objects.iter().chain(wanted).cloned().collect();
        match listed.exists && all == listed.objects {
            true => Ok(()),
            false => self.write_addon_objects(&all).await,
        }
    }

    /// What [`Api::prune_addons`] would remove.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn would_prune_addons(&self, wanted: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
        let listed = self.addon_objects().await?;
        let mut gone = Vec::new();
        for object in unwanted(&listed, wanted) {
            if self.removable(object, wanted).await?.is_some() {
                gone.push(object.clone());
            }
        }
        Ok(gone)
    }

    /// Removes the listed objects that are not wanted any more; tells which.
    ///
    /// # Errors
    /// When the API server cannot be asked or refuses: the first reason, after all others were tried. What could not be
    /// removed stays listed.
    pub async fn prune_addons(&self, wanted: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
        let listed = self.addon_objects().await?;
        let mut left: BTreeSet<_> = wanted.iter().cloned().collect();
        let (mut gone, mut failed) = (Vec::new(), None);
        for object in unwanted(&listed, wanted) {
            let removed = match self.removable(object, wanted).await {
                Ok(None) => continue,
                Ok(Some(path)) => self.remove_object(object, &path).await,
                Err(error) => Err(error),
            };
            match removed {
                Ok(()) => gone.push(object.clone()),
                Err(error) => {
                    left.insert(object.clone());
                    failed.get_or_insert(error);
                }
            }
        }
        if left != listed.objects {
            self.write_addon_objects(&left).await?;
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(gone),
        }
    }

    /// The path of an object that is there, bears our label, may be removed and is not a wanted one in other words: of another
    /// version of its kind, or with the namespace that it has anyway.
    async fn removable(
        &self,
        object: &ObjectRef,
        wanted: &[ObjectRef],
    ) -> Result<Option<String>, Error> {
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
        let path = kind.path(namespace, &object.name);
        let asked = Asked::of("get", object.kind.as_str()).named(namespace, &object.name);
        let found: Option<Value> = self.find(&asked, &path).await?;
        let label = found.map(|found| found["metadata"]["labels"][ADDON].is_string());
        Ok((label == Some(true)).then_some(path))
    }

    async fn remove_object(&self, object: &ObjectRef, path: &str) -> Result<(), Error> {
        let asked = Asked::of("delete", object.kind.as_str())
            .named(object.namespace.as_deref(), &object.name);
        let path = format!("{path}?propagationPolicy=Background");
        let removed = self
            .insist(async || self.ask(&asked, Method::DELETE, &path, None).await)
            .await;
        match removed {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    async fn addon_objects(&self) -> Result<Listed, Error> {
        let asked = Asked::of("get", "ConfigMap").named(Some("kube-system"), "hatchery-addons");
        let Some(found) = self.find::<Value>(&asked, LIST).await? else {
            return Ok(Listed::default());
        };
        let text = found["data"]["objects"].as_str().unwrap_or("[]");
        // One that somebody spoiled is written anew.
        let objects = serde_json::from_str(text).unwrap_or_default();
        Ok(Listed {
            objects,
            exists: true,
        })
    }

    async fn write_addon_objects(&self, objects: &BTreeSet<ObjectRef>) -> Result<(), Error> {
        let asked = Asked::of("apply", "ConfigMap").named(Some("kube-system"), "hatchery-addons");
        let text = serde_json::to_string(objects).unwrap_or_default();
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "hatchery-addons", "namespace": "kube-system"},
            "data": {"objects": text},
        });
        let path = format!("{LIST}?fieldManager={FIELD_MANAGER}&force=true");
        let map = map.to_string().into_bytes();
        let written = self.insist(async || {
            let content = ("application/apply-patch+yaml", map.clone());
            self.ask(&asked, Method::PATCH, &path, Some(content)).await
        });
        written.await.map(drop)
    }
}
