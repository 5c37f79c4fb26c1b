//! The tasks of a change and their order: a graph, not a list of barriers.
//!
//! [`make`] is a pure function of what is wanted and what was observed, [`remove`] of the machines that are cleaned.
//! A task names what it needs; whatever needs nothing that is unfinished may run.

mod control_plane;
mod graph;
mod hash;
mod hooks;
mod leave;
mod manifest;
mod nodes;
mod note;
mod release;
mod remove;

use hatchery_host::operation::Operation;
use hatchery_spec::{
    cluster::{Machine, Role},
    value::{Label, Name, Taint},
};
use snafu::Snafu;
use time::OffsetDateTime;

use self::graph::{Graph, Part};
pub use self::{
    graph::{Concurrency, Lane, Subject, Task, TaskId},
    manifest::{Manifest, Workload},
    release::Released,
    remove::{SCRIPTS_BEFORE_CLEANUP, remove, remove_returned},
};

use crate::{
    api,
    components::{
        NodeContext, authority, coredns, kube_proxy, kubelet, load_balancer, machine, network,
        network_plugin, pods, rbac, runtime,
    },
    observed::{KUBELET, Observed},
    owner::Owner,
    resource::{self, Resource, Resources},
    versions::Feature,
    wanted::Wanted,
};

/// A graph of tasks, with what the user should know about it.
#[derive(Clone, Debug, Default)]
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
        /// The machine that is changed.
        machine: Name,
        /// On whose behalf.
        owner: Owner,
        /// The wanted state.
        resources: Vec<Resource>,
    },
    /// Puts back what a machine has of an earlier file and no longer needs.
    Release {
        /// The machine that it concerns.
        machine: Name,
        /// What is given up, and by whom.
        released: Vec<Released>,
    },
    /// Runs the user's scripts for a machine that is about to be put back.
    BeforeUndo {
        /// The machine that it concerns.
        machine: Name,
    },
    /// Puts a machine back as it was found. It no longer belongs to the cluster afterwards.
    Undo {
        /// The machine that it concerns.
        machine: Name,
        /// Whether it leaves a cluster that stays.
        leaves: bool,
    },
    /// Has the cluster's API do something.
    Api(ApiWork),
}

impl Work {
    /// The machine that it is done on.
    pub fn machine(&self) -> Option<&Name> {
        match self {
            Self::Machine { machine, .. }
            | Self::Release { machine, .. }
            | Self::BeforeUndo { machine }
            | Self::Undo { machine, .. } => Some(machine),
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
    /// Applies objects.
    Apply(Vec<Manifest>),
    /// Of what addons have ever applied only these objects are still wanted.
    PruneAddons(Vec<api::ObjectRef>),
    /// A node is waited for, and gets its labels and taints.
    Node(Node),
    /// Pods leave the node of this name, and no new ones come.
    Drain(Name),
    /// The node of this name is forgotten.
    DeleteNode(Name),
    /// What was applied is waited for.
    RolledOut {
        /// The manifest's name.
        addon: String,
        /// What of it runs in pods.
        workloads: Vec<Workload>,
    },
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, which is that of its machine.
    pub name: Name,
    /// Labels that are set on it.
    pub labels: Vec<Label>,
    /// Taints that are set on it.
    pub taints: Vec<Taint>,
}

/// Why a plan cannot be made.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A value of the deploy file cannot be used on a machine.
    #[snafu(display("{machine}: {source}"))]
    Machine {
        /// The machine that it concerns.
        machine: Name,
        /// The value, and what is wrong with it.
        source: resource::Error,
    },
    /// A task of a machine contradicts itself.
    #[snafu(display("{machine}: {source}"))]
    Task {
        /// The machine whose task it is.
        machine: Name,
        /// What is wrong with the task.
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

impl Error {
    /// The machine that it is about, if it is about one.
    pub(crate) fn machine(&self) -> Option<&Name> {
        match self {
            Self::Machine { machine, .. } | Self::Task { machine, .. } => Some(machine),
            Self::Manifest { .. } => None,
        }
    }

    /// What is wrong, without the machine's name.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Machine { source, .. } => source.to_string(),
            Self::Task { source, .. } => source.to_string(),
            Self::Manifest { .. } => self.to_string(),
        }
    }
}

/// Makes a plan for the machines that answered. Certificates that end before `now` are of no use.
///
/// # Errors
/// When a value of the deploy file cannot be used on a machine, or a manifest of our own is broken.
pub fn make(wanted: &Wanted, observed: &Observed, now: OffsetDateTime) -> Result<Plan, Error> {
    let mut maker = Maker {
        wanted,
        observed,
        now,
        graph: Graph::default(),
        api_ready: None,
        references: Vec::new(),
        new_nodes: Vec::new(),
        notes: note::archived_images(wanted).into_iter().collect(),
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
    wanted: &'a Wanted,
    observed: &'a Observed,
    now: OffsetDateTime,
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

/// Something that runs on a machine, as what the machine needs of it.
type Component = fn(&NodeContext<'_>, &mut Resources) -> Result<(), resource::Error>;

impl<'a> Maker<'a> {
    /// What comes before anybody can ask the API for something.
    fn foundation(&mut self) -> Result<(), Error> {
        for node in self.present(|_| true) {
            self.prepare(node)?;
            self.hooks(node)?;
        }
        self.etcd()?;
        for node in self.present(|node| node.is(Role::LoadBalancer)) {
            let needs = self.prepared(&node.name);
            self.add(
                node,
                Owner::LoadBalancer,
                &needs,
                &[load_balancer::resources],
            )?;
        }
        self.first_masters()
    }

    /// Nodes, and masters beside the first. A machine does one thing at a time, and a cluster can do without a second
    /// master for a while: images and kubelets come before it.
    fn others(&mut self, addons: &[Addon]) -> Result<(), Error> {
        let versions = &self.wanted.versions;
        let lives = self.api_lives();
        // A kubelet that finds the API at once is ready sooner than one that has to try again. One that lives must not be moved to
        // a balancer that does not serve.
        let balancers = self.all(Owner::LoadBalancer, Role::LoadBalancer);
        let up = Edges::needs(balancers).and(self.api_server());
        for node in self.present(|node| node.is(Role::Worker)) {
            let name = &node.name;
            let own = [
                self.tasks_of(Owner::Etcd, name),
                self.tasks_of(Owner::Master, name),
            ];
            let own = Edges::on(lives, own.concat());
            let edges = Edges::needs(self.prepared(name)).and(own);
            self.add(node, Owner::Pods, &edges.needs, &[pods::resources])?;
            self.graph.last_comes_after(&edges.after);
            let needs = self.tasks_of(Owner::Pods, name);
            let parts = [network::resources, runtime::resources];
            self.add(node, Owner::Runtime, &needs, &parts)?;
            self.in_turn(name);
            let edges = Edges::needs(self.tasks_of(Owner::Runtime, name)).and(up.clone());
            let parts: [Component; 3] = if versions.has(Feature::KubeProxyNeedsNode) {
                [authority, kubelet::resources, kube_proxy::resources]
            } else {
                // A pod that asks for a Service before there is one is not answered, and tries again much later.
                [authority, kube_proxy::resources, kubelet::resources]
            };
            self.add(node, Owner::Worker, &edges.needs, &parts)?;
            self.graph.last_comes_after(&edges.after);
            self.in_turn(name);
        }
        self.other_masters(addons)
    }

    /// The task that was added last may end the pods of a node that lives, so few of them run at the same time.
    fn in_turn(&mut self, machine: &Name) {
        if self.observed.runs(machine, KUBELET) {
            self.graph.last_runs(Concurrency::OneByOne(Lane::Workers));
        }
    }

    /// The objects that are applied, our own first.
    fn objects(&mut self) -> Result<Vec<Addon>, Error> {
        let Wanted {
            cluster,
            versions,
            images,
            manifests: user,
            ..
        } = self.wanted;
        let up = self.api_server();
        let ready = self
            .graph
            .api_after("API ready", &up.needs, &up.after, ApiWork::Ready);
        self.api_ready = Some(ready);
        let mut own = vec![("access rights", rbac::manifest())];
        let network = network_plugin::built_in(cluster, user, images);
        own.extend(network.map(|text| ("pod network", text)));
        let dns = coredns::manifest(cluster, versions, images);
        own.push(("cluster DNS", dns));
        let mut manifests = Vec::new();
        for (title, text) in own {
            let mut manifest = Manifest::of_ours(title, &text)?;
            // Of our own nobody need be told.
            let notes = network_plugin::fit(cluster, &mut manifest.objects);
            manifests.push((title.to_owned(), manifest, !notes.is_empty()));
        }
        for mut manifest in user.iter().cloned() {
            let notes = network_plugin::fit(cluster, &mut manifest.objects);
            let title = format!("addon {}", manifest.name);
            manifests.push((title, manifest, !notes.is_empty()));
            self.notes.extend(notes);
        }
        let references = manifests.iter().flat_map(|(_, one, _)| one.references());
        self.references = references.collect();
        // Endpoints of pods stay in the Service when the pods go and it has no selector any more: then they had better stay.
        let dns = coredns::manifest_of_pods(cluster, images);
        let dns = Manifest::of_ours("cluster DNS", &dns)?.references();
        self.references.extend(dns);
        let list = ApiWork::ListAddons(self.references.clone());
        let listed = self.graph.api("list of addons", &[ready], list);
        let balancers = self.all(Owner::LoadBalancer, Role::LoadBalancer);
        let mut addons = Vec::new();
        for (title, mut manifest, is_fitted) in manifests {
            manifest.label();
            let mut needs = vec![listed];
            // Its pods ask the API where the kubelets do, and not before that is served.
            if is_fitted {
                needs.extend(&balancers);
            }
            addons.push(self.addon(&title, manifest, &needs));
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

    fn addon(&mut self, title: &str, manifest: Manifest, needs: &[TaskId]) -> Addon {
        Addon {
            title: title.to_owned(),
            name: manifest.name.clone(),
            workloads: manifest.workloads(),
            applied: self.graph.api(title, needs, ApiWork::Apply(vec![manifest])),
        }
    }

    /// Programs and packages, and what every machine needs. Packages come by themselves to a machine whose services must
    /// not be restarted together: their own scripts may do that.
    fn prepare(&mut self, node: &Machine) -> Result<(), Error> {
        let name = &node.name;
        let Some(installation) = self.wanted.installations.get(name) else {
            return Ok(());
        };
        let mut resources = Resources::default();
        if node.is(Role::Worker) {
            pods::before(&mut resources).map_err(|source| Error::Machine {
                machine: name.clone(),
                source,
            })?;
        }
        let lane = self.lane(name);
        let operations = installation.operations.iter().cloned();
        let (packages, others): (Vec<_>, Vec<_>) =
            operations.partition(|one| lane.is_some() && matches!(one, Operation::Packages(_)));
        if let (Some(lane), false) = (lane, packages.is_empty()) {
            packages
                .into_iter()
                .for_each(|one| resources.operation(one));
            let first = std::mem::take(&mut resources);
            self.push(node, Part::Packages, &[], first, &[])?;
            self.graph.last_runs(Concurrency::OneByOne(lane));
        }
        others.into_iter().for_each(|one| resources.operation(one));
        let needs = self.graph.find(Part::Packages, name).into_iter();
        let needs: Vec<_> = needs.collect();
        let part = Part::Of(Owner::Prepare);
        self.push(node, part, &needs, resources, &[machine::resources])
    }

    fn add(
        &mut self,
        node: &Machine,
        owner: Owner,
        needs: &[TaskId],
        components: &[Component],
    ) -> Result<(), Error> {
        let part = Part::Of(owner);
        self.push(node, part, needs, Resources::default(), components)
    }

    fn push(
        &mut self,
        node: &Machine,
        part: Part,
        needs: &[TaskId],
        mut resources: Resources,
        components: &[Component],
    ) -> Result<(), Error> {
        let (wanted, name) = (self.wanted, &node.name);
        let (Some(facts), Some(installation)) =
            (self.observed.facts(name), wanted.installations.get(name))
        else {
            return Ok(());
        };
        let node_context = NodeContext {
            cluster: &wanted.cluster,
            versions: &wanted.versions,
            node,
            facts,
            installation,
        };
        for component in components {
            component(&node_context, &mut resources).map_err(|source| Error::Machine {
                machine: name.clone(),
                source,
            })?;
        }
        if part == Part::Of(Owner::Runtime) {
            let runtime = node_context.runtime();
            for archive in &installation.images {
                let images =
                    runtime::images(runtime, archive).map_err(|source| Error::Machine {
                        machine: name.clone(),
                        source,
                    })?;
                resources.operation(Operation::Images(images));
            }
        }
        self.graph.machine(name, part, needs, resources.0);
        Ok(())
    }

    /// Machines that take part.
    fn present(&self, wanted: impl Fn(&Machine) -> bool) -> Vec<&'a Machine> {
        let Wanted {
            cluster,
            installations,
            ..
        } = self.wanted;
        let machines = cluster.machines().iter();
        machines
            .filter(|node| installations.contains_key(&node.name) && wanted(node))
            .collect()
    }

    fn tasks_of(&self, owner: Owner, machine: &Name) -> Vec<TaskId> {
        let found = self.graph.find(Part::Of(owner), machine);
        found.into_iter().collect()
    }

    fn all(&self, owner: Owner, role: Role) -> Vec<TaskId> {
        let nodes = self.present(|node| node.is(role));
        nodes
            .into_iter()
            .flat_map(|node| self.tasks_of(owner, &node.name))
            .collect()
    }
}
