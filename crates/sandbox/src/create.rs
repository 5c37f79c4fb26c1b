//! The part of `up` that changes Docker: network and containers, each made unless it is there.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use snafu::{OptionExt as _, ResultExt as _, ensure};

use crate::{
    capabilities, docker,
    error::{self, Error},
    fixtures::{self, Fixtures},
    image::{self, Images},
    inventory::{self, Inventory, State},
    machine::{self, Access, ContainerSpec},
    progress::Progress,
    settings::{Role, SANDBOX, Settings, System},
    ssh_directory::Directory,
    subnet::{self, Subnet},
    up::{Goal, Options},
};

/// Containers made at the same time; more only wait for each other.
const AT_ONCE: usize = 8;

/// Everything that a sandbox consists of, made and started.
pub(crate) struct Created {
    /// All containers, old and new.
    pub(crate) containers: Vec<ContainerSpec>,
    /// Those that never booted before.
    pub(crate) fresh: BTreeSet<String>,
    /// What lets us in.
    pub(crate) access: Access,
}

/// Makes and starts what is missing.
pub(crate) async fn make(
    options: &Options,
    goal: &Goal,
    found: &Inventory,
    directory: &Directory,
) -> Result<Created, Error> {
    // A root file system that cannot be had ends a new sandbox before anything of it is made.
    let open = || Builder::open(&goal.settings, &options.progress);
    let mut builder = match found.networks.is_empty() {
        true => Some(open().await?),
        false => None,
    };
    let subnet = ensure_network(options, goal, found).await?;
    let access = directory.ensure_access(options.name.as_str()).await?;
    let containers = machine::containers(
        &options.name,
        &goal.settings,
        subnet,
        goal.machines,
        &options.labels,
    );
    let states: BTreeMap<_, _> = found
        .containers
        .iter()
        .map(|c| (c.machine.as_str(), c.state))
        .collect();
    let is_made =
        |container_spec: &ContainerSpec| states.contains_key(container_spec.machine.as_str());
    if builder.is_none() && !containers.iter().all(is_made) {
        builder = Some(open().await?);
    }
    let each = containers.iter().map(|container_spec| {
        let state = states.get(container_spec.machine.as_str()).copied();
        make_one(container_spec, state, builder.as_ref(), &access)
    });
    stream::iter(each)
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    let fresh = containers
        .iter()
        .map(|container_spec| &container_spec.machine);
    let fresh = fresh
        .filter(|machine| matches!(states.get(machine.as_str()), None | Some(State::Unfinished)));
    Ok(Created {
        fresh: fresh.cloned().collect(),
        containers,
        access,
    })
}

async fn ensure_network(
    options: &Options,
    goal: &Goal,
    found: &Inventory,
) -> Result<Subnet, Error> {
    let name = options.name.as_str();
    if let Some(network) = found.networks.first() {
        return Ok(network.subnet.context(error::NetworkGoneSnafu { name })?);
    }
    // Machines that were on another network cannot be moved to a new one.
    ensure!(
        found.containers.is_empty(),
        error::NetworkGoneSnafu { name }
    );
    let mut labels = goal.settings.labels();
    labels.extend(options.labels.clone());
    labels.insert(SANDBOX.to_owned(), name.to_owned());
    let mut taken = subnet::routed();
    loop {
        taken.extend(inventory::docker_subnets().await?);
        let subnet = subnet::choose(&taken).context(error::NoSubnetSnafu)?;
        let mut arguments = vec!["network".to_owned(), "create".to_owned()];
        arguments.extend(
            labels
                .iter()
                .map(|(key, value)| format!("--label={key}={value}")),
        );
        arguments.push(format!("--subnet={}", subnet.network()));
        arguments.push(format!("--gateway={}", subnet.gateway()));
        arguments.push(options.name.network());
        match docker::run(&arguments).await {
            Ok(_) => return Ok(subnet),
            // Another sandbox took it between our look and our grasp.
            Err(error)
                if error.mentions("pool overlaps") || error.mentions("conflicts with network") =>
            {
                taken.push(subnet.network());
            }
            // The last call of a run that was killed may have come through only now.
            Err(error) if error.mentions("already exists") => {
                let now = Inventory::read(Some(name)).await?;
                let network = now.networks.first();
                let subnet = network.and_then(|network| network.subnet);
                return Ok(subnet.context(error::NetworkGoneSnafu { name })?);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What is needed to make containers.
struct Builder {
    fixtures: Fixtures,
    machine_image: String,
    /// Bastion and outside are Debian's always: the other system forbids forwarding.
    service_image: String,
    _images: Images,
    capabilities: Vec<&'static str>,
}

impl Builder {
    async fn open(settings: &Settings, progress: &Progress) -> Result<Self, Error> {
        let mut systems = vec![System::Debian, settings.system];
        systems.dedup();
        let names: Vec<_> = systems.iter().map(|system| system.fixture()).collect();
        let fixtures = fixtures::ensure_with(&names, progress).await?;
        Ok(Self {
            _images: image::ensure(&systems, &fixtures, progress).await?,
            machine_image: image::tag(settings.system, &fixtures)?,
            service_image: image::tag(System::Debian, &fixtures)?,
            capabilities: capabilities::available().context(error::LocalSnafu {
                what: "read this machine's capabilities",
            })?,
            fixtures,
        })
    }

    async fn create(&self, container_spec: &ContainerSpec) -> Result<(), docker::Error> {
        let image = match container_spec.role {
            Role::Machine => &self.machine_image,
            Role::Bastion | Role::Outside => &self.service_image,
        };
        let items = self.fixtures.items();
        let arguments = container_spec.create_arguments(image, &self.capabilities, items);
        match docker::run(&arguments).await {
            // The last call of a run that was killed may have come through only now.
            Err(error) if error.is_conflict() => Ok(()),
            result => result.map(drop),
        }
    }
}

async fn make_one(
    container_spec: &ContainerSpec,
    state: Option<State>,
    builder: Option<&Builder>,
    access: &Access,
) -> Result<(), Error> {
    let container = container_spec.container();
    if let (None, Some(builder)) = (state, builder) {
        builder.create(container_spec).await?;
    }
    match state {
        None | Some(State::Unfinished) => {
            let files = container_spec
                .boot_files(access)
                .context(error::LocalSnafu {
                    what: "pack the machine's first files",
                })?;
            if let Some(files) = files {
                docker::run_with_input(&["cp", "-", &format!("{container}:/")], &files).await?;
            }
            docker::run(&["start", &container]).await?;
        }
        Some(State::Stopped) => {
            docker::run(&["start", &container]).await?;
        }
        Some(State::Paused) => {
            docker::run(&["unpause", &container]).await?;
        }
        Some(State::Running) => {}
    }
    Ok(())
}
