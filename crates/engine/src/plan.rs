//! What is to be done, in which order: a graph, not a list of barriers.
//!
//! [`make`] is a pure function of the cluster, its versions, what its packages bring and what its machines are like.
//! A task names what it needs; whatever needs nothing that is unfinished may run.

mod control_plane;
mod graph;
mod hooks;
mod leave;
mod manifest;
mod nodes;
mod note;
mod release;
mod running;

use std::collections::BTreeMap;

use hatchery_host::{facts::Facts, machine::Managed, operation::Operation, path::Word};
use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role, RuntimeKind},
    value::{Label, Taint},
};
use snafu::Snafu;
use time::OffsetDateTime;

use self::graph::Graph;
pub use self::{
    graph::{Concurrency, Lane, Subject, Task, TaskId},
    manifest::{Manifest, Workload},
    release::Released,
    running::runs,
};

use crate::{
    api,
    components::{
        NodeContext, authority, containerd, coredns, docker, isulad, kube_proxy, kubelet,
        load_balancer, machine, network, pods, rbac,
    },
    package::Installation,
    resource::{self, Resource, Resources},
    versions::{Feature, Versions},
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
    /// What each machine has of ours, in the order of [`Cluster::all_machines`]; empty for a cluster that is not there yet.
    pub managed: &'a [Managed],
    /// Machines that did not answer.
    pub missing: &'a [usize],
    /// Manifests that the user brings, in order.
    pub manifests: &'a [Manifest],
    /// References of all images that the archives bring.
    pub images: &'a [String],
    /// Certificates that end before are of no use.
    pub now: OffsetDateTime,
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
        resources: Vec<Resource>,
    },
    /// Puts back what a machine has of an earlier file and nobody wants any more.
    Release {
        /// Its place in the cluster's list.
        machine: usize,
        /// What is given up, and by whom.
        released: Vec<Released>,
    },
    /// Puts a machine back as it was found. It is no longer the cluster's afterwards.
    Leave {
        /// Its place in the cluster's list.
        machine: usize,
    },
    /// Has the cluster's API do something.
    Api(ApiWork),
}

impl Work {
    /// The machine that it is done on.
    pub fn machine(&self) -> Option<usize> {
        match self {
            Self::Machine { machine, .. }
            | Self::Release { machine, .. }
            | Self::Leave { machine } => Some(*machine),
            Self::Api(_) => None,
        }
    }
}

/// Something for the cluster's API.
#[derive(Clone, Debug)]
pub enum ApiWork {
    /// The API has to answer before anything else is asked of it.
    Ready,
    /// These objects are going to be applied by addons.
    ListAddons(Vec<api::ObjectRef>),
    /// Objects are to be so.
    Apply(Vec<Manifest>),
    /// Of what addons have ever applied only these objects are still wanted.
    PruneAddons(Vec<api::ObjectRef>),
    /// A node is waited for, and gets its labels and taints.
    Node(Node),
    /// Pods leave a node, and no new ones come.
    Drain(Departure),
    /// A node is forgotten.
    DeleteNode(Departure),
    /// What was applied is waited for.
    RolledOut {
        /// The manifest's name.
        addon: String,
        /// What of it runs in pods.
        workloads: Vec<Workload>,
    },
}

/// A node that the cluster loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its name.
    pub name: String,
    /// Its machine, by its place in the cluster's list.
    pub machine: usize,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its machine, by its place in the cluster's list.
    pub machine: usize,
    /// Labels that it is to have.
    pub labels: Vec<Label>,
    /// Taints that it is to have.
    pub taints: Vec<Taint>,
}

/// Why there is no plan.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A value of the deploy file cannot be told to a machine.
    #[snafu(display("{machine}: {source}"))]
    Machine {
        /// The machine's name.
        machine: String,
        /// What cannot be told.
        source: resource::Error,
    },
    /// A task of a machine contradicts itself.
    #[snafu(display("{machine}: {source}"))]
    Task {
        /// The machine's name.
        machine: String,
        /// How.
        source: hatchery_host::task::Error,
    },
    /// A manifest of Hatchery's own cannot be read, with what this cluster put into it.
    #[snafu(display("the manifest for {title} is broken: {source}"))]
    Manifest {
        /// What it is for.
        title: &'static str,
        /// Where it is broken.
        source: api::manifest::Error,
    },
}

/// Makes a plan for the machines that answered.
///
/// # Errors
/// When a value of the deploy file cannot be told to a machine, or a manifest of our own is broken.
pub fn make(basis: &Basis<'_>) -> Result<Plan, Error> {
    let mut maker = Maker {
        basis: *basis,
        graph: Graph::default(),
        api_ready: None,
        references: Vec::new(),
        new_nodes: Vec::new(),
        notes: note::archived_images(basis).into_iter().collect(),
    };
    maker.foundation()?;
    let addons = maker.objects()?;
    maker.others(&addons)?;
    let nodes = maker.nodes(&addons);
    maker.postjoin(&nodes)?;
    maker.prune(&addons);
    maker.new_nodes = maker.joining(&nodes);
    maker.releases()?;
    maker.departures();
    Ok(Plan {
        tasks: maker.graph.tasks,
        notes: maker.notes,
    })
}

struct Maker<'a> {
    basis: Basis<'a>,
    graph: Graph,
    /// The task after which the API answers.
    api_ready: Option<TaskId>,
    /// All that addons bring.
    references: Vec<api::ObjectRef>,
    /// Nodes that were none before: they take what others leave.
    new_nodes: Vec<TaskId>,
    notes: Vec<String>,
}

/// A manifest that is applied.
struct Addon {
    title: String,
    name: String,
    workloads: Vec<Workload>,
    applied: TaskId,
}

/// What a task waits for.
#[derive(Clone, Debug, Default)]
struct Edges {
    /// Has to have succeeded.
    needs: Vec<TaskId>,
    /// Has to have ended.
    after: Vec<TaskId>,
}

impl Edges {
    fn needs(needs: Vec<TaskId>) -> Self {
        Self {
            needs,
            after: Vec::new(),
        }
    }

    /// What a cluster that is being made cannot do without, and one that lives can: there, one machine's failure keeps
    /// nobody else.
    fn on(living: bool, tasks: Vec<TaskId>) -> Self {
        match living {
            true => Self {
                needs: Vec::new(),
                after: tasks,
            },
            false => Self::needs(tasks),
        }
    }

    fn and(mut self, other: Self) -> Self {
        self.needs.extend(other.needs);
        self.after.extend(other.after);
        self
    }
}

/// A part of what a machine needs.
type Part = fn(&NodeContext<'_>, &mut Resources) -> Result<(), resource::Error>;

impl<'a> Maker<'a> {
    /// What comes before anybody can ask the API for something.
    fn foundation(&mut self) -> Result<(), Error> {
        for (place, node) in self.present(|_| true) {
            self.prepare(place, node)?;
            self.hooks(place, node)?;
        }
        self.etcd()?;
        for (place, node) in self.present(|node| node.is(Role::LoadBalancer)) {
            let needs = self.prepared(place);
            self.add(
                place,
                node,
                "load-balancer",
                &needs,
                &[load_balancer::resources],
            )?;
        }
        self.first_masters()
    }

    /// Nodes, and masters beside the first. A machine does one thing at a time, and a cluster can do without a second
    /// master for a while: images and kubelets come before it.
    fn others(&mut self, addons: &[Addon]) -> Result<(), Error> {
        let (cluster, versions) = (self.basis.cluster, self.basis.versions);
        let up = self.api_server();
        for (place, node) in self.present(|node| node.is(Role::Worker)) {
            let own = Edges::on(
                self.api_lives(),
                [self.of("etcd", place), self.of("master", place)].concat(),
            );
            let edges = Edges::needs(self.prepared(place)).and(own);
            self.add(place, node, "pods", &edges.needs, &[pods::resources])?;
            self.graph.last_comes_after(&edges.after);
            let needs = self.of("pods", place);
            self.add(
                place,
                node,
                "runtime",
                &needs,
                &[network::resources, runtime(cluster)],
            )?;
            // A kubelet that finds the API at once is ready sooner than one that has to try again.
            let balancers = self.all("load-balancer", Role::LoadBalancer);
            let edges = Edges::needs(self.of("runtime", place))
                .and(Edges::on(self.api_lives(), balancers))
                .and(up.clone());
            let parts: [Part; 3] = if versions.has(Feature::KubeProxyNeedsNode) {
                [authority, kubelet::resources, kube_proxy::resources]
            } else {
                // A pod that asks for a Service before there is one is not answered, and tries again much later.
                [authority, kube_proxy::resources, kubelet::resources]
            };
            self.add(place, node, "worker", &edges.needs, &parts)?;
            self.graph.last_comes_after(&edges.after);
        }
        self.other_masters(addons)
    }

    /// What the API is told, our own first.
    fn objects(&mut self) -> Result<Vec<Addon>, Error> {
        let (cluster, versions) = (self.basis.cluster, self.basis.versions);
        let up = self.api_server();
        let ready = self
            .graph
            .api_after("API ready", &up.needs, &up.after, ApiWork::Ready);
        self.api_ready = Some(ready);
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
        let mut manifests = Vec::new();
        for (title, text) in own {
            manifests.push((title.to_owned(), Manifest::of_ours(title, &text)?));
        }
        for mut manifest in user {
            self.notes
                .extend(network::fit(cluster, &mut manifest.objects));
            manifests.push((format!("addon {}", manifest.name), manifest));
        }
        let references = manifests.iter().flat_map(|(_, one)| one.references());
        self.references = references.collect();
        // Endpoints of pods stay in the Service when the pods go and it has no selector any more: then they had better stay.
        let dns = coredns::manifest_of_pods(cluster, self.basis.images);
        let dns = Manifest::of_ours("cluster DNS", &dns)?.references();
        self.references.extend(dns);
        let list = ApiWork::ListAddons(self.references.clone());
        let listed = self.graph.api("list of addons", &[ready], list);
        let mut addons = Vec::new();
        for (title, mut manifest) in manifests {
            manifest.label();
            addons.push(self.addon(&title, manifest, listed));
        }
        Ok(addons)
    }

    /// What comes under another name runs before its former self goes.
    fn prune(&mut self, addons: &[Addon]) {
        let applied = addons.iter().map(|addon| addon.applied);
        let needs: Vec<_> = applied.chain(self.graph.rolled_out()).collect();
        let prune = ApiWork::PruneAddons(std::mem::take(&mut self.references));
        self.graph.api("addons no longer wanted", &needs, prune);
    }

    fn addon(&mut self, title: &str, manifest: Manifest, ready: TaskId) -> Addon {
        Addon {
            title: title.to_owned(),
            name: manifest.name.clone(),
            workloads: manifest.workloads(),
            applied: self
                .graph
                .api(title, &[ready], ApiWork::Apply(vec![manifest])),
        }
    }

    /// Programs and packages, and what every machine needs. Packages come by themselves to a machine whose services must
    /// not be restarted together: their own scripts may do that.
    fn prepare(&mut self, place: usize, node: &Machine) -> Result<(), Error> {
        let Some((_, installation)) = self.basis.sites.get(&place) else {
            return Ok(());
        };
        let mut resources = Resources::default();
        if node.is(Role::Worker) {
            pods::before(&mut resources).map_err(|source| Error::Machine {
                machine: node.name.to_string(),
                source,
            })?;
        }
        let lane = self.lane(place);
        let operations = installation.operations.iter().cloned();
        let (packages, others): (Vec<_>, Vec<_>) =
            operations.partition(|one| lane.is_some() && matches!(one, Operation::Packages(_)));
        if let (Some(lane), false) = (lane, packages.is_empty()) {
            packages
                .into_iter()
                .for_each(|one| resources.operation(one));
            let first = std::mem::take(&mut resources);
            self.push(place, node, "packages", &[], first, &[])?;
            self.graph.last_runs(Concurrency::OneByOne(lane));
        }
        others.into_iter().for_each(|one| resources.operation(one));
        let needs = self.of("packages", place);
        self.push(
            place,
            node,
            "prepare",
            &needs,
            resources,
            &[machine::resources],
        )
    }

    fn add(
        &mut self,
        place: usize,
        node: &Machine,
        owner: &'static str,
        needs: &[TaskId],
        parts: &[Part],
    ) -> Result<(), Error> {
        self.push(place, node, owner, needs, Resources::default(), parts)
    }

    fn push(
        &mut self,
        place: usize,
        node: &Machine,
        owner: &'static str,
        needs: &[TaskId],
        mut resources: Resources,
        parts: &[Part],
    ) -> Result<(), Error> {
        let Some((facts, installation)) = self.basis.sites.get(&place) else {
            return Ok(());
        };
        let node_context = NodeContext {
            cluster: self.basis.cluster,
            versions: self.basis.versions,
            node,
            facts,
            installation,
        };
        let context = |source| Error::Machine {
            machine: node.name.to_string(),
            source,
        };
        for part in parts {
            part(&node_context, &mut resources).map_err(context)?;
        }
        if owner == "runtime" {
            for archive in &installation.images {
                resources.operation(Operation::Images(archive.clone()));
            }
        }
        let word = match owner {
            "packages" => "prepare",
            other => other,
        };
        let word = resource::word(word).map_err(context)?;
        self.graph
            .machine(place, owner, node.name.as_str(), word, needs, resources.0);
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
        RuntimeKind::Containerd => containerd::resources,
        RuntimeKind::Docker => docker::resources,
        RuntimeKind::Isulad => isulad::resources,
    }
}
