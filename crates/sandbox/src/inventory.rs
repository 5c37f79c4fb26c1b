//! What exists: sandboxes, their networks and machines, from Docker's labels.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::{
    docker,
    settings::{ADDRESS, Labels, MACHINE, ROLE, Role, SANDBOX, Settings, TEST},
    subnet::Subnet,
};

/// What a container is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Created, never started: a run that was killed left it, the next one goes on.
    Unfinished,
    /// The machine is up.
    Running,
    /// Frozen by a fault.
    Paused,
    /// The machine is switched off.
    Stopped,
}

impl State {
    fn from_status(status: &str) -> Self {
        match status {
            "created" => Self::Unfinished,
            "running" | "restarting" => Self::Running,
            "paused" => Self::Paused,
            _ => Self::Stopped,
        }
    }

    /// The word shown to users.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
        }
    }
}

/// One container of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The id of the container.
    pub id: String,
    /// The sandbox that it belongs to.
    pub sandbox: String,
    /// The machine's host name.
    pub machine: String,
    /// What it is for.
    pub role: Role,
    /// Its fixed address.
    pub address: Ipv4Addr,
    /// What it is doing.
    pub state: State,
    /// The image it was made from, by id.
    pub image: String,
    settings: Option<Settings>,
    test: Option<String>,
}

/// The network of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The id of the network.
    pub id: String,
    /// The sandbox that it belongs to.
    pub sandbox: String,
    /// The subnet of its addresses.
    pub subnet: Option<Subnet>,
    settings: Option<Settings>,
    test: Option<String>,
}

/// Everything that belongs to sandboxes, or to one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Networks, by sandbox.
    pub networks: Vec<Network>,
    /// Containers, by sandbox, machines in their numbers' order.
    pub containers: Vec<Container>,
}

impl Inventory {
    /// Asks Docker about one sandbox, or about all.
    pub async fn read(sandbox: Option<&str>) -> Result<Self, docker::Error> {
        let filter = match sandbox {
            Some(name) => format!("label={SANDBOX}={name}"),
            None => format!("label={SANDBOX}"),
        };
        let containers = ["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter];
        let networks = [
            "network",
            "ls",
            "--quiet",
            "--no-trunc",
            "--filter",
            &filter,
        ];
        let (containers, networks) = tokio::try_join!(ids(&containers), ids(&networks))?;
        let (containers, networks) = tokio::try_join!(
            docker::inspect::<RawContainer>("container", &containers),
            docker::inspect::<RawNetwork>("network", &networks),
        )?;
        Ok(Self::from_raw(containers, networks))
    }

    fn from_raw(containers: Vec<RawContainer>, networks: Vec<RawNetwork>) -> Self {
        let mut containers: Vec<_> = containers
            .into_iter()
            .filter_map(Container::from_raw)
            .collect();
        containers.sort_by_key(|c| (c.sandbox.clone(), c.role != Role::Machine, c.address));
        let mut networks: Vec<_> = networks.into_iter().filter_map(Network::from_raw).collect();
        networks.sort_by(|a, b| a.sandbox.cmp(&b.sandbox));
        Self {
            networks,
            containers,
        }
    }

    /// Whether Docker holds nothing of it.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.containers.is_empty()
    }

    /// The names of all sandboxes that Docker holds something of.
    pub(crate) fn sandboxes(&self) -> Vec<String> {
        let networks = self.networks.iter().map(|network| &network.sandbox);
        let containers = self.containers.iter().map(|container| &container.sandbox);
        let mut names: Vec<_> = networks.chain(containers).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// The part that belongs to one sandbox.
    pub(crate) fn for_sandbox(&self, sandbox: &str) -> Self {
        let networks = self.networks.iter().filter(|n| n.sandbox == sandbox);
        let containers = self.containers.iter().filter(|c| c.sandbox == sandbox);
        Self {
            networks: networks.cloned().collect(),
            containers: containers.cloned().collect(),
        }
    }

    /// The settings that the (one) sandbox was made with.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let networks = self.networks.iter().map(|network| &network.settings);
        let containers = self.containers.iter().map(|container| &container.settings);
        networks.chain(containers).flatten().next().cloned()
    }

    /// The test process that owns the (one) sandbox.
    pub(crate) fn test_owner(&self) -> Option<&str> {
        let networks = self.networks.iter().map(|network| &network.test);
        let containers = self.containers.iter().map(|container| &container.test);
        networks
            .chain(containers)
            .flatten()
            .next()
            .map(String::as_str)
    }

    /// Its machines, without bastion and outside.
    pub fn machines(&self) -> impl Iterator<Item = &Container> {
        self.with_role(Role::Machine)
    }

    /// Its containers of one role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(move |c| c.role == role)
    }

    /// A container by its host name.
    pub fn container(&self, machine: &str) -> Option<&Container> {
        self.containers.iter().find(|c| c.machine == machine)
    }
}

async fn ids(arguments: &[&str]) -> Result<Vec<String>, docker::Error> {
    let output = docker::run(arguments).await?;
    Ok(output.split_whitespace().map(str::to_owned).collect())
}

/// Every IPv4 network that Docker has given away, ours or not.
pub(crate) async fn docker_subnets() -> Result<Vec<Ipv4Net>, docker::Error> {
    let networks = ids(&["network", "ls", "--quiet", "--no-trunc"]).await?;
    let networks: Vec<RawNetwork> = docker::inspect("network", &networks).await?;
    Ok(networks.iter().flat_map(RawNetwork::subnets).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawContainer {
    id: String,
    image: String,
    state: RawState,
    config: RawConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawState {
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawConfig {
    labels: Option<Labels>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawNetwork {
    id: String,
    labels: Option<Labels>,
    #[serde(rename = "IPAM")]
    ipam: RawIpam,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawIpam {
    config: Option<Vec<RawIpamConfig>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawIpamConfig {
    subnet: Option<String>,
}

impl RawNetwork {
    fn subnets(&self) -> Vec<Ipv4Net> {
        let configs = self.ipam.config.iter().flatten();
        configs
            .filter_map(|config| config.subnet.as_ref()?.parse().ok())
            .collect()
    }
}

impl Container {
    fn from_raw(raw: RawContainer) -> Option<Self> {
        let labels = raw.config.labels.unwrap_or_default();
        Some(Self {
            id: raw.id,
            sandbox: labels.get(SANDBOX)?.clone(),
            machine: labels.get(MACHINE)?.clone(),
            role: labels.get(ROLE)?.parse().ok()?,
            address: labels.get(ADDRESS)?.parse().ok()?,
            state: State::from_status(&raw.state.status),
            image: raw.image,
            settings: Settings::from_labels(&labels),
            test: labels.get(TEST).cloned(),
        })
    }
}

impl Network {
    fn from_raw(raw: RawNetwork) -> Option<Self> {
        let subnet = raw
            .subnets()
            .first()
            .copied()
            .and_then(Subnet::from_network);
        let labels = raw.labels.unwrap_or_default();
        Some(Self {
            id: raw.id,
            sandbox: labels.get(SANDBOX)?.clone(),
            subnet,
            settings: Settings::from_labels(&labels),
            test: labels.get(TEST).cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(machine: &str, role: &str, address: &str, status: &str) -> RawContainer {
        let text = format!(
            r#"{{"Id":"{machine}","Image":"sha256:1","State":{{"Status":"{status}"}},"Config":{{"Labels":{{
               "hatchery.sandbox":"lab","hatchery.machine":"{machine}","hatchery.role":"{role}",
               "hatchery.address":"{address}","hatchery.system":"rpm","hatchery.user":"ops",
               "hatchery.sudo":"password","hatchery.bastion":"true"}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn machines_come_in_the_order_of_their_numbers() {
        let inventory = Inventory::from_raw(
            vec![
                container("lab-bastion", "bastion", "10.201.0.10", "running"),
                container("lab-10", "machine", "10.201.0.20", "created"),
                container("lab-2", "machine", "10.201.0.12", "exited"),
                container("lab-1", "machine", "10.201.0.11", "paused"),
            ],
            vec![],
        );
        let seen: Vec<_> = inventory
            .machines()
            .map(|m| (m.machine.as_str(), m.state))
            .collect();
        assert_eq!(
            seen,
            [
                ("lab-1", State::Paused),
                ("lab-2", State::Stopped),
                ("lab-10", State::Unfinished)
            ]
        );
        assert_eq!(inventory.settings().unwrap().user, "ops");
        assert_eq!(inventory.sandboxes(), ["lab"]);
    }

    #[test]
    fn containers_that_are_not_ours_are_left_alone() {
        let other =
            r#"{"Id":"x","Image":"i","State":{"Status":"running"},"Config":{"Labels":null}}"#;
        let network = r#"{"Id":"n","Labels":{},"IPAM":{"Config":[{"Subnet":"172.17.0.0/16"}]}}"#;
        let network: RawNetwork = serde_json::from_str(network).unwrap();
        assert_eq!(network.subnets()[0].to_string(), "172.17.0.0/16");
        let inventory =
            Inventory::from_raw(vec![serde_json::from_str(other).unwrap()], vec![network]);
        assert!(inventory.is_empty());
    }
}
