//! A sandbox as its user sees it: a name, machines, and what can be done with them.

use std::{
    net::Ipv4Addr,
    ops::Deref,
    path::{Path, PathBuf},
};

use serde::Serialize;
use snafu::{OptionExt as _, ensure};

pub use crate::{
    down::down,
    error::Error,
    up::{Options, up},
};
use crate::{
    engine,
    error::{self, Problem},
    inventory::{Container, Inventory, State},
    name::{self, Name},
    settings::{Role, Settings},
    ssh::Remote,
    ssh_directory::Directory,
    subnet::Subnet,
};

/// An existing sandbox.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The name of the sandbox.
    pub name: Name,
    /// What its machines have in common.
    pub settings: Settings,
    /// The subnet of its network.
    pub subnet: Subnet,
    /// Its machines in order, without the bastion.
    pub machines: Vec<Machine>,
    /// The only way to the machines, if there is one.
    pub bastion: Option<Machine>,
    pub(crate) directory: Directory,
}

/// A machine of a sandbox. What can be done over SSH is in [`Remote`].
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its host name.
    pub name: String,
    /// Its address in the sandbox's network.
    pub address: Ipv4Addr,
    /// What it was doing when the sandbox was opened.
    pub state: State,
    remote: Remote,
}

impl Machine {
    fn from_container(container: &Container, directory: &Directory) -> Self {
        Self {
            name: container.machine.clone(),
            address: container.address,
            state: container.state,
            remote: Remote::new(&container.machine, directory),
        }
    }

    /// The Docker container that it is.
    pub fn container(&self) -> String {
        name::container(&self.name)
    }
}

impl Deref for Machine {
    type Target = Remote;

    fn deref(&self) -> &Remote {
        &self.remote
    }
}

/// One sandbox in a list.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The sandbox's name.
    pub name: String,
    /// What its machines have in common; `None` when the sandbox is incomplete.
    #[serde(flatten)]
    pub settings: Option<Settings>,
    /// The subnet of its network, in CIDR notation.
    pub network: Option<String>,
    /// Its machines, the bastion among them.
    pub machines: Vec<MachineSummary>,
}

/// One machine in a list.
#[derive(Clone, Debug, Serialize)]
pub struct MachineSummary {
    /// Its host name.
    pub name: String,
    /// Its address in the sandbox's network.
    pub address: Ipv4Addr,
    /// What it is doing.
    pub state: State,
}

/// The directory of a sandbox's files under Hatchery's home.
pub(crate) fn directory(home: &Path, name: &Name) -> Directory {
    Directory::new(home.join("sandbox").join(name.as_str()))
}

/// Held while a sandbox is made or removed.
pub(crate) fn lock_path(home: &Path, name: &Name) -> PathBuf {
    home.join("sandbox").join(format!(".{name}.lock"))
}

/// All sandboxes on this machine, whoever made them.
pub async fn list() -> Result<Vec<Summary>, Error> {
    engine::require().await?;
    let all = Inventory::read(None).await?;
    let summary = |name: String| {
        let own = all.for_sandbox(&name);
        let shown = own.containers.iter().filter(|c| c.role != Role::Outside);
        let machines = shown.map(|container| MachineSummary {
            name: container.machine.clone(),
            address: container.address,
            state: container.state,
        });
        let subnet = own.networks.first().and_then(|network| network.subnet);
        Summary {
            settings: own.settings(),
            network: subnet.map(|subnet| subnet.network().to_string()),
            machines: machines.collect(),
            name,
        }
    };
    Ok(all.sandboxes().into_iter().map(summary).collect())
}

/// Finds a sandbox by its name. `home` is Hatchery's home, where [`up`] wrote its files.
pub async fn open(name: &Name, home: &Path) -> Result<Lab, Error> {
    engine::require().await?;
    let directory = directory(home, name);
    let all = Inventory::read(None).await?;
    let own = all.for_sandbox(name.as_str());
    if own.is_empty() {
        return Err(unknown(name, &all));
    }
    Lab::from_inventory(name, &own, directory)
}

pub(crate) fn unknown(name: &Name, all: &Inventory) -> Error {
    let known = all.sandboxes();
    let suggestion = name::nearest(name.as_str(), known.iter().map(String::as_str));
    Problem::UnknownSandbox {
        name: name.to_string(),
        suggestion: suggestion.map(str::to_owned),
    }
    .into()
}

impl Lab {
    pub(crate) fn from_inventory(
        name: &Name,
        own: &Inventory,
        directory: Directory,
    ) -> Result<Self, Error> {
        let gone = error::NetworkGoneSnafu {
            name: name.as_str(),
        };
        let subnet = own.networks.first().and_then(|network| network.subnet);
        let machine = |container| Machine::from_container(container, &directory);
        Ok(Self {
            subnet: subnet.context(gone)?,
            settings: own.settings().context(error::NetworkGoneSnafu {
                name: name.as_str(),
            })?,
            machines: own.machines().map(machine).collect(),
            bastion: own.with_role(Role::Bastion).map(machine).next(),
            name: name.clone(),
            directory,
        })
    }

    /// A machine, or the bastion, by its host name.
    pub fn machine(&self, machine: &str) -> Result<&Machine, Error> {
        let all = || self.machines.iter().chain(&self.bastion);
        let found = all().find(|m| m.name == machine).with_context(|| {
            let known: Vec<_> = all().map(|m| m.name.clone()).collect();
            let suggestion = name::nearest(machine, known.iter().map(String::as_str));
            error::UnknownMachineSnafu {
                sandbox: self.name.to_string(),
                machine,
                suggestion: suggestion.map(str::to_owned),
                known: known.clone(),
            }
        });
        Ok(found?)
    }

    /// Fails when the SSH key or configuration of the machines is missing.
    pub fn require_access(&self) -> Result<(), Error> {
        let complete = self.directory.access()?.is_some()
            && self.directory.config().is_file()
            && self.directory.known_hosts().is_file();
        ensure!(
            complete,
            error::NoAccessSnafu {
                name: self.name.as_str(),
                directory: self.directory.path().display().to_string(),
            }
        );
        Ok(())
    }

    /// The login user's password on every machine, which is also sudo's.
    pub fn password(&self) -> Result<String, Error> {
        let access = self.directory.access()?;
        let access = access.context(error::NoAccessSnafu {
            name: self.name.as_str(),
            directory: self.directory.path().display().to_string(),
        })?;
        Ok(access.password)
    }

    /// The private key of the login user.
    pub fn key(&self) -> PathBuf {
        self.directory.key()
    }

    /// For `ssh -F`.
    pub fn ssh_config(&self) -> PathBuf {
        self.directory.config()
    }

    /// The machines' host keys, by name and by address.
    pub fn known_hosts(&self) -> PathBuf {
        self.directory.known_hosts()
    }

    /// The ready `deploy.yaml`.
    pub fn deploy_file(&self) -> PathBuf {
        self.directory.path().join("deploy.yaml")
    }
}
