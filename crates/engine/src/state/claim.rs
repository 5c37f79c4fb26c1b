//! Machines that a cluster has, or may have, touched: each is remembered until it is clean again.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use hatchery_spec::{
    Cluster,
    cluster::{Machine, Role},
};
use serde::{Deserialize, Serialize};

/// A machine on which a run may have left something. It is written down before the machine is touched.
///
/// Name and address together say which machine it is. Passwords and keys are not here: they are those of the remembered
/// deploy file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The node's name.
    pub name: String,
    /// Where the other machines reach it.
    pub address: IpAddr,
    /// The port of its sshd.
    pub host: String,
    /// The SSH port.
    pub port: u16,
    /// The login user.
    pub user: String,
    /// What it does in the cluster.
    pub roles: BTreeSet<Role>,
}

impl Claim {
    /// The claim on a machine of a deploy file.
    pub fn on(machine: &Machine) -> Self {
        Self {
            name: machine.name.to_string(),
            address: machine.address,
            host: machine.access.host.to_string(),
            port: machine.access.port.number(),
            user: machine.access.user.clone(),
            roles: machine.roles.clone(),
        }
    }

    /// Claims on all machines of a cluster.
    pub fn on_all(cluster: &Cluster) -> Vec<Self> {
        cluster.machines().iter().map(Self::on).collect()
    }

    /// Whether it is on this very machine.
    pub fn is_on(&self, machine: &Machine) -> bool {
        self.address == machine.address && self.name == machine.name.as_str()
    }

    /// Whether the machine has the role.
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

impl fmt::Display for Claim {
    /// Where it is reached: `m0 (root@10.0.0.1, port 22)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            user,
            host,
            port,
            ..
        } = self;
        write!(f, "{name} ({user}@{host}, port {port})")
    }
}
