//! What is wanted: a cluster as its file describes it, with what its packages bring.

use std::collections::BTreeMap;

use hatchery_spec::{Cluster, value::Name};

use crate::{package::Installation, plan::Manifest, versions::Versions};

/// A cluster as it is to be, down to the bytes.
#[derive(Debug)]
pub struct Wanted {
    /// As the file says, with the machines that leave.
    pub cluster: Cluster,
    /// Of what it is made.
    pub versions: Versions,
    /// What is put on each machine that takes part: one that does not answer, or that leaves, has none.
    pub installations: BTreeMap<Name, Installation>,
    /// Manifests that the user brings, in order.
    pub manifests: Vec<Manifest>,
    /// References of all images that the archives bring.
    pub images: Vec<String>,
}
