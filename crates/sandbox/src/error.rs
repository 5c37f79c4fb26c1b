//! Failures of the calls of this crate, and what the user can do about them.

use std::{fmt, io};

use snafu::Snafu;

use crate::{
    deploy_file, docker, engine, fault, files, fixtures, image, name, settings, ssh, subnet,
};

/// Why a sandbox could not be created, found, changed or removed.
#[derive(Debug)]
pub struct Error(Box<Problem>);

impl Error {
    /// Whether the input or this machine is unsuitable and nothing was changed.
    pub fn is_refusal(&self) -> bool {
        self.0.is_refusal()
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        self.0.remedy()
    }

    /// No sandbox has a machine of this name.
    pub fn unknown_machine(machine: &str) -> Self {
        Problem::UnknownSandbox {
            name: machine.to_owned(),
            suggestion: None,
        }
        .into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl<E: Into<Problem>> From<E> for Error {
    fn from(problem: E) -> Self {
        Self(Box::new(problem.into()))
    }
}

#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
pub(crate) enum Problem {
    #[snafu(transparent)]
    Name { source: name::Invalid },
    #[snafu(transparent)]
    Settings { source: settings::Error },
    #[snafu(transparent)]
    Layout { source: deploy_file::Error },
    #[snafu(display("a sandbox needs at least one machine"))]
    NoMachines,
    #[snafu(display(
        "{asked} machines are too many: the network of a sandbox has addresses for {}",
        subnet::MAX_MACHINES
    ))]
    TooManyMachines { asked: usize },
    #[snafu(display("sandbox {name} already exists with {what} {has}, not {wanted}"))]
    Conflict {
        name: String,
        what: &'static str,
        has: String,
        wanted: String,
    },
    #[snafu(display("there is no sandbox '{name}'"))]
    UnknownSandbox {
        name: String,
        suggestion: Option<String>,
    },
    #[snafu(display("sandbox {sandbox} has no machine '{machine}'"))]
    UnknownMachine {
        sandbox: String,
        machine: String,
        suggestion: Option<String>,
        known: Vec<String>,
    },
    #[snafu(display("the SSH key for the machines of sandbox {name} is missing in {directory}"))]
    NoAccess { name: String, directory: String },
    #[snafu(display(
        "no free network for the sandbox: this machine's routes and Docker's networks leave no /24 of 10.201.0.0/16, 172.27.0.0/16 or 192.168.128.0/17"
    ))]
    NoSubnet,
    #[snafu(display("the Docker network of sandbox {name} is missing or was changed"))]
    NetworkGone { name: String },
    #[snafu(display("{machine} is not ready after {seconds} s: {state}"))]
    NotReady {
        machine: String,
        seconds: u64,
        state: String,
    },
    #[snafu(display("cannot {what}: {source}"))]
    Local {
        what: &'static str,
        source: io::Error,
    },
    #[snafu(transparent)]
    Engine { source: engine::Error },
    #[snafu(transparent)]
    Docker { source: docker::Error },
    #[snafu(transparent)]
    Image { source: image::Error },
    #[snafu(transparent)]
    Fixtures { source: fixtures::Error },
    #[snafu(transparent)]
    Files { source: files::Error },
    #[snafu(transparent)]
    NoCache { source: files::NoCache },
    #[snafu(transparent)]
    Ssh { source: ssh::Error },
    #[snafu(transparent)]
    Fault { source: fault::Error },
}

impl Problem {
    fn is_refusal(&self) -> bool {
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

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Settings {
                source: settings::Error::SudoForRoot,
            } => "choose another user with --user, or omit --sudo".into(),
            Self::Layout { .. } => "increase --machines, or ask for fewer roles".into(),
            Self::NoMachines => "set their number with --machines".into(),
            Self::TooManyMachines { .. } => "create several sandboxes with different names".into(),
            Self::Conflict { name, .. } => {
                format!("choose another name, or remove it first: 'hatchery sandbox down --name {name}'")
            }
            Self::UnknownSandbox { suggestion, .. } => match suggestion {
                Some(suggestion) => format!("did you mean '{suggestion}'? 'hatchery sandbox list' shows all sandboxes"),
                None => "'hatchery sandbox list' shows all sandboxes".into(),
            },
            Self::UnknownMachine { suggestion, known, .. } => match suggestion {
                Some(suggestion) => format!("did you mean '{suggestion}'?"),
                None => format!("it has {}", known.join(", ")),
            },
            Self::NoAccess { name, .. } => {
                format!("'hatchery sandbox up --name {name}' creates a new one; or use the right --home")
            }
            Self::NoSubnet => "remove sandboxes or Docker networks that are no longer needed ('docker network ls')".into(),
            Self::NetworkGone { name } => {
                format!("remove what is left and create it again: 'hatchery sandbox down --name {name}'")
            }
            Self::NotReady { machine, .. } => format!(
                "look at it with 'docker exec -it {0} journalctl -b' and 'docker logs {0}'; running 'up' again continues from here",
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
