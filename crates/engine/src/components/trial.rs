//! A machine to try a component on.

use std::time::{Duration, UNIX_EPOCH};

use hatchery_host::{
    facts::{self, Confinement, Facts},
    operation::Operation,
};
use hatchery_spec::{Cluster, Input, read, value::Version};

use super::NodeContext;
use crate::{
    package::Installation,
    resource::{Error, Resource, Resources},
    versions::Versions,
};

/// A machine that is master and worker.
pub(crate) struct Trial {
    pub(crate) cluster: Cluster,
    pub(crate) versions: Versions,
    pub(crate) facts: Facts,
    pub(crate) installation: Installation,
}

impl Trial {
    /// Of a cluster of Kubernetes 1.`minor` whose file says `more`.
    pub(crate) fn new(minor: u32, more: &str) -> Self {
        Self::with_workers(minor, more, "{name: m0, ip: 10.0.0.1}")
    }

    /// The same with these entries as its workers.
    pub(crate) fn with_workers(minor: u32, more: &str, workers: &str) -> Self {
        let text = format!(
            "cluster-id: demo\n{more}\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: [{workers}]\n"
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        let rendered = reading.diagnostics.render(false);
        let answer = include_bytes!("../../../host/src/facts/answers/debian.txt");
        let sent = UNIX_EPOCH + Duration::from_secs(1_794_787_750);
        let mut facts = facts::parse(answer, sent, sent).unwrap();
        facts.confinement = Confinement::default();
        Self {
            cluster: reading.cluster.unwrap_or_else(|| panic!("{rendered}")),
            versions: Versions {
                kubernetes: Version {
                    major: 1,
                    minor,
                    patch: None,
                },
                containerd: None,
                etcd: None,
                coredns: None,
            },
            facts,
            installation: Installation::default(),
        }
    }

    pub(crate) fn node_context(&self) -> NodeContext<'_> {
        NodeContext {
            cluster: &self.cluster,
            versions: &self.versions,
            node: self.cluster.first_master(),
            facts: &self.facts,
            installation: &self.installation,
        }
    }

    /// Paths of files and directories that a component wants.
    pub(crate) fn paths(
        &self,
        component: fn(&NodeContext<'_>, &mut Resources) -> Result<(), Error>,
    ) -> impl Iterator<Item = String> {
        let mut resources = Resources::default();
        component(&self.node_context(), &mut resources).unwrap();
        resources
            .0
            .into_iter()
            .filter_map(|resource| match resource {
                Resource::Operation(Operation::File(file)) => Some(file.path.to_string()),
                Resource::Operation(Operation::Directory(directory)) => {
                    Some(directory.path.to_string())
                }
                _ => None,
            })
    }
}
