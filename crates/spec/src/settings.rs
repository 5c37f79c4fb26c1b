//! Settings of the components, a file for each: what a deploy file may say, how it is read, the defaults, what the
//! [`Cluster`](crate::Cluster) has of it, and the lines of a new deploy file.
//!
//! A further setting of a component is in its file alone, beside its row in [`keys`](crate::keys) and what the engine does
//! with it. Inventories fill the same drafts.

pub(crate) mod api_server;
pub(crate) mod etcd;
pub(crate) mod kube_proxy;
pub(crate) mod kubelet;
pub(crate) mod registries;
pub(crate) mod runtime;
