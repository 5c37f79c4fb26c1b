//! What is to be done, in which order: a graph, not a list of barriers.
//!
//! [`make`] is a pure function of the cluster, its versions, what its packages bring and what its machines are like.
//! A task names what it needs; whatever needs nothing that is unfinished may run.

mod graph;
mod hooks;
mod manifest;
mod note;

use std::collections::BTreeMap;

use hatchery_host::{facts::Facts, path::Word};
use hatchery_spec::{
    Cluster,
    cluster::{CoreDns, Machine, Role, RuntimeKind},
    value::{Label, Taint},
};
use snafu::Snafu;

use self::graph::Graph;
pub use self::{
    graph::{Task, TaskId},
    manifest::{Manifest, Workload},
};

use crate::{
    api,
    components::{
        Site, authority, containerd, control_plane, coredns, docker, etcd, isulad, kube_proxy,
        kubelet, load_balancer, machine, network, pods, rbac,
    },
    package::Installation,
    taints,
    versions::{Feature, Versions},
    wish::{self, Wish, Wishes},
};

/// Everything that a plan is made from.
#[derive(Clone, Copy)]
pub struct Basis<'a> {
    /// What is wanted.
    pub cluster: &'a Cluster,
    /// Of what.
    pub versions: &'a Versions,
    /// What was found out about each machine that answered, by its place in the cluster's list.
    pub sites: &'a BTreeMap<usize, (Facts, Installation)>,
    /// Manifests that the user brings, in order.
    pub manifests: &'a [Manifest],
    /// References of all images that the archives bring.
    pub images: &'a [String],
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Tasks; each stands behind those it needs.
    pub tasks: Vec<Task>,
    /// What the user should know of how it is done.
    pub notes: Vec<String>,
}

/// What a task does.
#[derive(Clone, Debug)]
pub enum Work {
    /// Makes a machine so.
    Machine {
        /// Its place in the cluster's list.
        machine: usize,
        /// On whose behalf.
        owner: Word,
        /// How it is to be.
        wishes: Vec<Wish>,
    },
    /// Has the cluster's API do something.
    Api(ApiWork),
}

/// Something for the cluster's API.
#[derive(Clone, Debug)]
pub enum ApiWork {
    /// Objects are to be so.
    Apply(Vec<Manifest>),
    /// Nodes are waited for, except those whose machine failed.
    Nodes(Vec<Node>),
    /// What was applied is waited for.
    RolledOut(Vec<Workload>),
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The task that starts its kubelet.
    pub task: TaskId,
    /// Labels that it is to have.
    pub labels: Vec<Label>,
    /// Taints that it is to have.
    pub taints: Vec<Taint>,
}

/// Why there is no plan.
#[derive(Debug, Snafu)]
#[snafu(display("{machine}: {source}"))]
pub struct Error {
    machine: String,
    source: wish::Error,
}

/// Makes a plan for the machines that answered.
///
/// # Errors
/// When a value of the deploy file cannot be told to a machine.
pub fn make(basis: &Basis<'_>) -> Result<Plan, Error> {
    let mut maker = Maker {
        basis: *basis,
        graph: Graph::default(),
        notes: note::archived_images(basis).into_iter().collect(),
    };
    maker.foundation()?;
    let mut workloads = Vec::new();
    let applied = maker.objects(&mut workloads);
    maker.others(&applied)?;
    let ready = maker.nodes(&applied, workloads);
    maker.postjoin(ready)?;
    Ok(Plan {
        tasks: maker.graph.tasks,
        notes: maker.notes,
    })
}

struct Maker<'a> {
    basis: Basis<'a>,
    graph: Graph,
    notes: Vec<String>,
}

/// A part of what a machine needs.
type Part = fn(&Site<'_>, &mut Wishes) -> Result<(), wish::Error>;

impl<'a> Maker<'a> {
    /// What comes before anybody can ask the API for something.
    fn foundation(&mut self) -> Result<(), Error> {
        for (place, node) in self.present(|_| true) {
            self.prepare(place, node)?;
            self.hooks(place, node)?;
        }
        // Members wait for each other, so none begins before all have their programs.
        let members = self.present(|node| node.is(Role::Etcd)).into_iter();
        let members: Vec<_> = members
            .flat_map(|(place, _)| self.prepared(place))
            .collect();
        for (place, node) in self.present(|node| node.is(Role::Etcd)) {
            self.add(place, node, "etcd", &members, &[etcd::wishes])?;
        }
        for (place, node) in self.present(|node| node.is(Role::LoadBalancer)) {
            let needs = self.prepared(place);
            self.add(
                place,
                node,
                "load-balancer",
                &needs,
                &[load_balancer::wishes],
            )?;
        }
        // One API server fills the empty database; several would wait for each other. It begins as soon as etcd does, since
        // everybody waits for it.
        if let Some((place, node)) = self.masters().first() {
            self.master(*place, node, &[])?;
        }
        Ok(())
    }

    /// Nodes, and masters beside the first. A machine does one thing at a time, and a cluster can do without a second
    /// master for a while: images and kubelets come before it.
    fn others(&mut self, applied: &[TaskId]) -> Result<(), Error> {
        let (cluster, versions) = (self.basis.cluster, self.basis.versions);
        let up = self.api_server();
        for (place, node) in self.present(|node| node.is(Role::Worker)) {
            let needs = [
                self.prepared(place),
                self.of("etcd", place),
                self.of("master", place),
            ]
            .concat();
            self.add(place, node, "pods", &needs, &[pods::wishes])?;
            let needs = self.of("pods", place);
            self.add(
                place,
                node,
                "runtime",
                &needs,
                &[network::wishes, runtime(cluster)],
            )?;
            // A kubelet that finds the API at once is ready sooner than one that has to try again.
            let balancers = self.all("load-balancer", Role::LoadBalancer);
            let needs = [self.of("runtime", place), balancers, up.clone()].concat();
            let parts: [Part; 3] = if versions.has(Feature::ProxyWantsNode) {
                [authority, kubelet::wishes, kube_proxy::wishes]
            } else {
                // A pod that asks for a Service before there is one is not answered, and tries again much later.
                [authority, kube_proxy::wishes, kubelet::wishes]
            };
            self.add(place, node, "worker", &needs, &parts)?;
        }
        for (place, node) in self.masters().into_iter().skip(1) {
            let api = applied.first().copied().into_iter().collect();
            let after = [up.clone(), api, self.of("worker", place)].concat();
            self.master(place, node, &after)?;
        }
        Ok(())
    }

    fn masters(&self) -> Vec<(usize, &'a Machine)> {
        self.present(|node| node.is(Role::Master))
    }

    fn master(&mut self, place: usize, node: &Machine, after: &[TaskId]) -> Result<(), Error> {
        let needs = [self.prepared(place), self.all("etcd", Role::Etcd)].concat();
        let mut parts: Vec<Part> = vec![control_plane::wishes];
        if self.basis.cluster.dns.coredns == CoreDns::Binary {
            parts.push(coredns::wishes);
        }
        self.add(place, node, "master", &needs, &parts)?;
        if let Some(task) = self.graph.tasks.last_mut() {
            task.after = after.to_vec();
        }
        Ok(())
    }

    /// The first master that there is.
    fn api_server(&self) -> Vec<TaskId> {
        let masters = self.masters();
        masters
            .first()
            .map(|(place, _)| self.of("master", *place))
            .unwrap_or_default()
    }

    /// What the API is told, our own first.
    fn objects(&mut self, workloads: &mut Vec<Workload>) -> Vec<TaskId> {
        let (cluster, versions) = (self.basis.cluster, self.basis.versions);
        let up = self.api_server();
        let mut own = vec![("access rights", rbac::manifest())];
        let user: Vec<_> = self.basis.manifests.to_vec();
        let plugin = cluster.pods.plugin.as_ref();
        // The user's own manifest of a plugin counts.
        let has_own = user
            .iter()
            .any(|manifest| manifest.name.contains("flannel"));
        if plugin.is_some_and(|plugin| plugin.name == "flannel" && plugin.manifest.is_none())
            && !has_own
        {
            own.push(("pod network", network::flannel(cluster, self.basis.images)));
        }
        own.push((
            "cluster DNS",
            coredns::manifest(cluster, versions, self.basis.images),
        ));
        let mut applied = Vec::new();
        for (title, text) in own {
            // Ours are right: a test reads them all.
            let objects = api::parse(&text).unwrap_or_default();
            let manifest = Manifest {
                name: title.to_owned(),
                objects,
            };
            workloads.extend(manifest.workloads());
            applied.push(self.graph.api(title, &up, ApiWork::Apply(vec![manifest])));
        }
        for mut manifest in user {
            self.notes
                .extend(network::fit(cluster, &mut manifest.objects));
            workloads.extend(manifest.workloads());
            let title = format!("addon {}", manifest.name);
            applied.push(self.graph.api(&title, &up, ApiWork::Apply(vec![manifest])));
        }
        applied
    }

    /// Gives the task that waits for the nodes.
    fn nodes(&mut self, applied: &[TaskId], workloads: Vec<Workload>) -> Option<TaskId> {
        let (cluster, versions) = (self.basis.cluster, self.basis.versions);
        let mut nodes = Vec::new();
        for (place, node) in self.present(|node| node.is(Role::Worker)) {
            nodes.extend(self.of("worker", place).into_iter().map(|task| Node {
                name: node.name.to_string(),
                task,
                labels: taints::labels(versions, node),
                taints: taints::of(cluster, versions, node),
            }));
        }
        if nodes.is_empty() {
            return None;
        }
        if let Some(note) = note::missing_load_balancer(&self.basis) {
            self.notes.push(note);
            return None;
        }
        let workers: Vec<_> = nodes.iter().map(|node| node.task).collect();
        let nodes = self
            .graph
            .api_after("nodes ready", applied, &workers, ApiWork::Nodes(nodes));
        if !workloads.is_empty() {
            self.graph
                .api("pods ready", &[nodes], ApiWork::RolledOut(workloads));
        }
        Some(nodes)
    }

    /// Programs and packages, and what every machine needs.
    fn prepare(&mut self, place: usize, node: &Machine) -> Result<(), Error> {
        let Some((_, installation)) = self.basis.sites.get(&place) else {
            return Ok(());
        };
        let mut wishes = Wishes::default();
        for operation in &installation.operations {
            wishes.operation(operation.clone());
        }
        self.push(place, node, "prepare", &[], wishes, &[machine::wishes])
    }

    fn add(
        &mut self,
        place: usize,
        node: &Machine,
        owner: &'static str,
        needs: &[TaskId],
        parts: &[Part],
    ) -> Result<(), Error> {
        self.push(place, node, owner, needs, Wishes::default(), parts)
    }

    fn push(
        &mut self,
        place: usize,
        node: &Machine,
        owner: &'static str,
        needs: &[TaskId],
        mut wishes: Wishes,
        parts: &[Part],
    ) -> Result<(), Error> {
        let Some((facts, installation)) = self.basis.sites.get(&place) else {
            return Ok(());
        };
        let site = Site {
            cluster: self.basis.cluster,
            versions: self.basis.versions,
            node,
            facts,
            installation,
        };
        let context = |source| Error {
            machine: node.name.to_string(),
            source,
        };
        for part in parts {
            part(&site, &mut wishes).map_err(context)?;
        }
        if owner == "runtime" {
            for archive in &installation.images {
                wishes.operation(hatchery_host::operation::Operation::Images(archive.clone()));
            }
        }
        let word = wish::word(owner).map_err(context)?;
        self.graph
            .machine(place, owner, node.name.as_str(), word, needs, wishes.0);
        Ok(())
    }

    /// Machines that answered.
    fn present(&self, wanted: impl Fn(&Machine) -> bool) -> Vec<(usize, &'a Machine)> {
        let Basis { cluster, sites, .. } = self.basis;
        let machines = cluster.machines().iter().enumerate();
        machines
            .filter(|(place, node)| sites.contains_key(place) && wanted(node))
            .collect()
    }

    fn of(&self, owner: &'static str, place: usize) -> Vec<TaskId> {
        self.graph.find(owner, place).into_iter().collect()
    }

    fn all(&self, owner: &'static str, role: Role) -> Vec<TaskId> {
        let places = self.present(|node| node.is(role));
        places
            .into_iter()
            .flat_map(|(place, _)| self.of(owner, place))
            .collect()
    }
}

fn runtime(cluster: &Cluster) -> Part {
    match cluster.runtime.kind {
        RuntimeKind::Containerd => containerd::wishes,
        RuntimeKind::Docker => docker::wishes,
        RuntimeKind::Isulad => isulad::wishes,
    }
}
