//! What a call of this crate can end with, and what the user can do about it.

use std::io;

use snafu::Snafu;

use crate::{
    deploy_file, docker, engine, fault, files, fixtures, image, name, settings, ssh, subnet,
};

/// Why a sandbox could not be made, found, changed or removed.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
pub enum Error {
    /// Not a sandbox's name.
    #[snafu(transparent)]
    Name {
        /// Why.
        source: name::Invalid,
    },
    /// Settings that make no sense.
    #[snafu(transparent)]
    Settings {
        /// Why.
        source: settings::Error,
    },
    /// Roles that the machines cannot have.
    #[snafu(transparent)]
    Layout {
        /// Why.
        source: deploy_file::Error,
    },
    /// No machine asked for.
    #[snafu(display("a sandbox needs at least one machine"))]
    NoMachines,
    /// More machines than addresses.
    #[snafu(display(
        "{asked} machines are too many: a sandbox's network has addresses for {}",
        subnet::MAX_MACHINES
    ))]
    TooManyMachines {
        /// So many were asked for.
        asked: usize,
    },
    /// The sandbox exists with another setting.
    #[snafu(display("sandbox {name} exists with {what} {has}, not {wanted}"))]
    Conflict {
        /// The sandbox.
        name: String,
        /// Which setting.
        what: &'static str,
        /// As it is.
        has: String,
        /// As it was asked for.
        wanted: String,
    },
    /// No such sandbox.
    #[snafu(display("there is no sandbox '{name}'"))]
    UnknownSandbox {
        /// What was asked for.
        name: String,
        /// The nearest one there is.
        meant: Option<String>,
    },
    /// No such machine.
    #[snafu(display("sandbox {sandbox} has no machine '{machine}'"))]
    UnknownMachine {
        /// The sandbox.
        sandbox: String,
        /// What was asked for.
        machine: String,
        /// The nearest one there is.
        meant: Option<String>,
        /// All there are.
        known: Vec<String>,
    },
    /// The machines are there, the files that let us in are not.
    #[snafu(display("the key to the machines of sandbox {name} is not in {directory}"))]
    NoAccess {
        /// The sandbox.
        name: String,
        /// Where it was looked for.
        directory: String,
    },
    /// No network left.
    #[snafu(display(
        "no free network for the sandbox: this machine's routes and Docker's networks leave no /24 of 10.201.0.0/16, 172.27.0.0/16 or 192.168.128.0/17"
    ))]
    NoSubnet,
    /// Somebody removed the network under the machines.
    #[snafu(display("the network of sandbox {name} is gone or not as it was made"))]
    NetworkGone {
        /// The sandbox.
        name: String,
    },
    /// A machine did not boot.
    #[snafu(display("{machine} is not ready after {seconds} s: {state}"))]
    NotReady {
        /// The machine.
        machine: String,
        /// How long it was waited for.
        seconds: u64,
        /// What was seen of it.
        state: String,
    },
    /// Something of the control machine could not be read.
    #[snafu(display("cannot {what}: {source}"))]
    Local {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// No Docker engine.
    #[snafu(transparent)]
    Engine {
        /// Why.
        source: engine::Error,
    },
    /// Docker failed.
    #[snafu(transparent)]
    Docker {
        /// Why.
        source: docker::Error,
    },
    /// The machines' image.
    #[snafu(transparent)]
    Image {
        /// Why.
        source: image::Error,
    },
    /// Fixtures could not be made.
    #[snafu(transparent)]
    Fixtures {
        /// Why.
        source: fixtures::Error,
    },
    /// Files of the control machine.
    #[snafu(transparent)]
    Files {
        /// Why.
        source: files::Error,
    },
    /// No directory for files.
    #[snafu(transparent)]
    NoCache {
        /// Why.
        source: files::NoCache,
    },
    /// SSH.
    #[snafu(transparent)]
    Ssh {
        /// Why.
        source: ssh::Error,
    },
    /// A fault that could not be made or ended.
    #[snafu(transparent)]
    Fault {
        /// Why.
        source: fault::Error,
    },
}

impl Error {
    /// Whether the input or this machine was wrong and nothing was touched.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Name { .. }
            | Self::Settings { .. }
            | Self::Layout { .. }
            | Self::NoMachines
            | Self::TooManyMachines { .. }
            | Self::Conflict { .. }
            | Self::UnknownSandbox { .. }
            | Self::UnknownMachine { .. }
            | Self::NoAccess { .. }
            | Self::NoSubnet
            | Self::NoCache { .. } => true,
            Self::Engine { source } => source.is_refusal(),
            Self::Fixtures { source } => source.is_refusal(),
            Self::Ssh { source } => source.is_refusal(),
            Self::Fault { source } => source.is_refusal(),
            Self::NetworkGone { .. }
            | Self::NotReady { .. }
            | Self::Local { .. }
            | Self::Docker { .. }
            | Self::Image { .. }
            | Self::Files { .. } => false,
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Settings {
                source: settings::Error::SudoForRoot,
            } => "name another user with --user, or leave --sudo out".into(),
            Self::Layout { .. } => "ask for more with --machines, or for fewer roles".into(),
            Self::NoMachines => "ask for some with --machines".into(),
            Self::TooManyMachines { .. } => "make several sandboxes with different names".into(),
            Self::Conflict { name, .. } => {
                format!("choose another name, or remove it first: 'hatchery sandbox down --name {name}'")
            }
            Self::UnknownSandbox { meant, .. } => match meant {
                Some(meant) => format!("did you mean '{meant}'? 'hatchery sandbox list' shows all there are"),
                None => "'hatchery sandbox list' shows all there are".into(),
            },
            Self::UnknownMachine { meant, known, .. } => match meant {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!("it has {}", known.join(", ")),
            },
            Self::NoAccess { name, .. } => {
                format!("'hatchery sandbox up --name {name}' makes a new one; or name the right --home")
            }
            Self::NoSubnet => "remove sandboxes or Docker networks that are no longer needed ('docker network ls')".into(),
            Self::NetworkGone { name } => {
                format!("remove what is left and make it anew: 'hatchery sandbox down --name {name}'")
            }
            Self::NotReady { machine, .. } => format!(
                "look at it with 'docker exec -it {0} journalctl -b' and 'docker logs {0}'; running 'up' again goes on from here",
                name::container(machine)
            ),
            Self::NoCache { .. } => "set HOME or HATCHERY_CACHE".into(),
            Self::Engine { source } => return source.remedy(),
            Self::Fixtures { source } => return source.remedy(),
            Self::Ssh { source } => return source.remedy(),
            Self::Fault { source } => return source.remedy(),
            Self::Docker { source } => return source.remedy(),
            Self::Image { source } => return source.remedy(),
            Self::Files { source } => return source.remedy(),
            Self::Name { .. } | Self::Settings { .. } | Self::Local { .. } => return None,
        })
    }
}
