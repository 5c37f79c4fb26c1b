//! Objects to apply, and what of them runs in pods.

use kube::api::DynamicObject;

use super::Error;
use crate::api;

/// Objects to apply, from one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Where they come from.
    pub name: String,
    /// The objects of the manifest, in its order.
    pub objects: Vec<DynamicObject>,
}

/// Something that runs in pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Of which kind.
    pub kind: api::Workload,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Manifest {
    /// One that Hatchery brings. A broken one is an error, since a cluster without it would look whole and have no DNS,
    /// no network or no access rights.
    pub(super) fn of_ours(title: &'static str, text: &str) -> Result<Self, Error> {
        let objects = api::parse(text).map_err(|source| Error::Manifest { title, source })?;
        Ok(Self {
            name: title.to_owned(),
            objects,
        })
    }

    /// Its objects, by kind and name.
    pub fn references(&self) -> Vec<api::ObjectRef> {
        self.objects.iter().filter_map(api::ObjectRef::to).collect()
    }

    /// Labels its objects, so that they are found when they are no longer wanted.
    pub(super) fn label(&mut self) {
        let value = label_value(&self.name);
        for object in &mut self.objects {
            let labels = object.metadata.labels.get_or_insert_default();
            labels.insert(api::ADDON.into(), value.clone());
        }
    }

    /// What of it runs in pods.
    pub(super) fn workloads(&self) -> Vec<Workload> {
        let workload = |object: &DynamicObject| {
            let kind = api::Workload::of_kind(&object.types.as_ref()?.kind)?;
            Some(Workload {
                kind,
                namespace: object
                    .metadata
                    .namespace
                    .clone()
                    .unwrap_or_else(|| "default".into()),
                name: object.metadata.name.clone()?,
            })
        };
        self.objects.iter().filter_map(workload).collect()
    }
}

/// A name as the value of a label: 63 letters, digits, `-`, `_` and `.`, beginning and ending with one of the first two.
fn label_value(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let value: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    let start = value.len().saturating_sub(63);
    value[start..]
        .trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_the_value_of_a_label() {
        assert_eq!(label_value("flannel.yaml"), "flannel.yaml");
        assert_eq!(label_value("cluster DNS"), "cluster_DNS");
        assert_eq!(
            label_value("http://mirror/a b.yaml"),
            "http___mirror_a_b.yaml"
        );
        let long = format!("{}/web.yaml", "x".repeat(100));
        assert_eq!(label_value(&long).len(), 63);
        assert_eq!(label_value("-/-"), "");
        assert_eq!(label_value("ü.yaml"), "yaml");
    }

    #[test]
    fn a_broken_manifest_of_ours_is_told() {
        let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: coredns}\n";
        assert_eq!(
            Manifest::of_ours("cluster DNS", good)
                .unwrap()
                .objects
                .len(),
            1
        );
        let broken = good.replace("{name: coredns}", "{name: coredns");
        let said = Manifest::of_ours("cluster DNS", &broken).unwrap_err();
        let said = said.to_string();
        assert!(
            said.starts_with("the manifest for cluster DNS is broken: document 1, line "),
            "{said}"
        );
    }
}
