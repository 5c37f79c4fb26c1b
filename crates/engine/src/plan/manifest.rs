//! Objects to apply, and what of them runs in pods.

use kube::api::DynamicObject;

use crate::api;

/// Objects to apply, from one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Where they come from.
    pub name: String,
    /// The objects.
    pub objects: Vec<DynamicObject>,
}

/// Something that runs in pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Of which kind.
    pub kind: api::Workload,
    /// Where.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Manifest {
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
