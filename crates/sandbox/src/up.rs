//! Makes a sandbox, or goes on with one: whatever a killed run left is used.

use std::{net::Ipv4Addr, path::Path, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use snafu::ensure;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{
    boot::{self, Booted, Booting, KnownHosts},
    create::{self, Created},
    deploy_file::Layout,
    engine,
    error::{self, Error, Problem},
    fault, files, inotify,
    inventory::{Inventory, State},
    lab::{self, Lab},
    lab_files,
    machine::ContainerSpec,
    name::Name,
    progress::{Event, Progress},
    settings::{Labels, RequestedSettings, Role, Settings},
    ssh,
    ssh_directory::Directory,
    subnet,
};

/// Machines looked at at the same time, below what a bastion's sshd admits by default.
const LOOKS_AT_ONCE: usize = 8;

/// A request for a sandbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// The sandbox's name.
    pub name: Name,
    /// The number of machines; `None` keeps that of an existing sandbox, and creates a new one with one.
    pub machines: Option<usize>,
    /// What they have in common.
    pub settings: RequestedSettings,
    /// The number of masters in `deploy.yaml`; `None` keeps it, at first one.
    pub masters: Option<usize>,
    /// Whether the last machine is a load balancer; `None` keeps it as it was, at first not.
    pub loadbalance: Option<bool>,
    /// Labels beside our own.
    pub labels: Labels,
    /// Receives progress events.
    pub progress: Progress,
}

impl Options {
    /// A sandbox of `machines` machines, everything else as usual.
    pub fn new(name: Name, machines: usize) -> Self {
        Self {
            name,
            machines: Some(machines),
            settings: RequestedSettings::default(),
            masters: None,
            loadbalance: None,
            labels: Labels::new(),
            progress: Progress::silent(),
        }
    }
}

/// The wanted state; every check that needs no change is behind us.
pub(crate) struct Goal {
    pub(crate) settings: Settings,
    pub(crate) machines: usize,
    pub(crate) layout: Layout,
}

/// Makes the sandbox as asked for, or completes it, and waits until every machine is ready. Its files are written below
/// `home`, Hatchery's home.
pub async fn up(options: &Options, home: &Path) -> Result<Lab, Error> {
    let started = Instant::now();
    let progress = &options.progress;
    let name = &options.name;
    options.settings.resolve()?;
    if let Some(asked) = options.machines {
        ensure!(asked > 0, error::NoMachinesSnafu);
        ensure!(
            asked <= subnet::MAX_MACHINES,
            error::TooManyMachinesSnafu { asked }
        );
        options.layout(Layout::default()).check(asked)?;
    }
    let directory = lab::directory(home, name);
    // Refused before anything is installed or made, if it has to be.
    let found = match engine::require().await {
        Ok(()) => Inventory::read(Some(name.as_str())).await?,
        Err(_) => Inventory::default(),
    };
    options.goal(&found, &directory)?;
    ssh::ensure_client(progress).await?;
    engine::ensure(progress).await?;
    inotify::raise_limit(progress);

    let held_by = format!("another process working on sandbox {name}");
    let _lock = files::Lock::exclusive(&lab::lock_path(home, name), &held_by, progress).await?;
    let found = Inventory::read(Some(name.as_str())).await?;
    let goal = options.goal(&found, &directory)?;
    if let Some(asked) = options.machines.filter(|asked| *asked < goal.machines) {
        let has = goal.machines;
        progress.note(format!(
            "sandbox {name} already has {has} machines; {asked} were requested, none is removed"
        ));
    }
    let made = create::make(options, &goal, &found, &directory).await?;
    lab_files::write_ssh_config(&directory, &goal.settings, &made.containers)?;
    heal(&found).await?;
    wait(options, &goal, &made, &directory, started).await?;

    let own = Inventory::read(Some(name.as_str())).await?;
    let lab = Lab::from_inventory(name, &own, directory)?;
    if let Some(beside) = lab_files::write_deploy_file(&lab, goal.layout)? {
        let (changed, beside) = (lab.deploy_file(), beside.display().to_string());
        progress.note(format!(
            "{} was changed by hand and is kept; the new version is {beside}",
            changed.display()
        ));
    }
    Ok(lab)
}

impl Options {
    fn layout(&self, remembered: Layout) -> Layout {
        Layout {
            masters: self.masters.unwrap_or(remembered.masters),
            loadbalance: self.loadbalance.unwrap_or(remembered.loadbalance),
        }
    }

    fn goal(&self, found: &Inventory, directory: &Directory) -> Result<Goal, Error> {
        let settings = match found.settings() {
            Some(settings) => {
                if let Some((what, has, wanted)) = self.settings.conflict(&settings) {
                    return Err(Problem::Conflict {
                        name: self.name.to_string(),
                        what,
                        has,
                        wanted,
                    }
                    .into());
                }
                settings
            }
            None => self.settings.resolve()?,
        };
        // The highest number counts: a machine in between that is gone is made again.
        let numbers = found
            .machines()
            .filter_map(|m| m.machine.rsplit_once('-')?.1.parse().ok());
        let existing = numbers.max().unwrap_or(0);
        let machines = self.machines.unwrap_or(1).max(existing);
        let remembered =
            lab_files::read_layout(directory)?.filter(|layout| layout.check(machines).is_ok());
        let layout = self.layout(remembered.unwrap_or_default());
        layout.check(machines)?;
        Ok(Goal {
            settings,
            machines,
            layout,
        })
    }
}

/// Ends the cuts of machines that kept running. A start has ended those of the others.
async fn heal(found: &Inventory) -> Result<(), Error> {
    let kept = |state| matches!(state, State::Running | State::Paused);
    let cuttable = found
        .containers
        .iter()
        .filter(|c| c.role != Role::Outside && kept(c.state));
    let each = cuttable.map(|container| fault::heal_if_cut(&container.machine));
    stream::iter(each)
        .buffer_unordered(LOOKS_AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn wait(
    options: &Options,
    goal: &Goal,
    made: &Created,
    directory: &Directory,
    started: Instant,
) -> Result<(), Error> {
    let within = boot::deadline(made.containers.len());
    let known_hosts = KnownHosts::open(directory)?;
    let wait_one = async |container_spec: &ContainerSpec| -> Result<(), Error> {
        let ContainerSpec {
            machine, address, ..
        } = container_spec;
        if container_spec.role == Role::Outside {
            return wait_for_outside(machine, *address, within).await;
        }
        let booting = Booting {
            machine,
            address: *address,
            user: &goal.settings.user,
            access: &made.access,
            known_hosts: &known_hosts,
            within,
            fresh: made.fresh.contains(machine),
        };
        let booted = booting.wait().await?;
        options.progress.send(Event::Ready {
            machine: machine.clone(),
            address: *address,
            after: started.elapsed(),
        });
        if let Booted::Degraded(units) = booted {
            options
                .progress
                .note(format!("  {machine} has failed units: {units}"));
        }
        Ok(())
    };
    // Behind a bastion nobody gets in before the bastion is up.
    let (first, rest): (Vec<_>, Vec<_>) = made
        .containers
        .iter()
        .partition(|b| b.role != Role::Machine);
    for group in [first, rest] {
        let each = group.into_iter().map(&wait_one);
        stream::iter(each)
            .buffer_unordered(LOOKS_AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
    }
    Ok(())
}

async fn wait_for_outside(machine: &str, address: Ipv4Addr, within: Duration) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        let web = tokio::time::timeout(Duration::from_secs(1), TcpStream::connect((address, 80)));
        let dns = tokio::time::timeout(Duration::from_secs(1), TcpStream::connect((address, 53)));
        if let (Ok(Ok(_)), Ok(Ok(_))) = tokio::join!(web, dns) {
            return Ok(());
        }
        ensure!(
            started.elapsed() < within,
            error::NotReadySnafu {
                machine,
                seconds: within.as_secs(),
                state: "its resolver and web server do not answer",
            }
        );
        sleep(Duration::from_millis(200)).await;
    }
}
