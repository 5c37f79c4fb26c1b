//! One machine, its roles and the way to it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::value::{Arch, Bastion, Host, HostKey, Label, LocalPath, Name, Port, Secret, Taint};

/// The role of a machine; it may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the control plane.
    Master,
    /// Runs pods.
    Worker,
    /// Runs a member of etcd.
    Etcd,
    /// Forwards connections to the API servers.
    LoadBalancer,
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Master, Self::Worker, Self::Etcd, Self::LoadBalancer];

    /// The name of the role in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Worker => "worker",
            Self::Etcd => "etcd",
            Self::LoadBalancer => "load balancer",
        }
    }
}

/// A machine of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Machine {
    /// The node's name, and the etcd member's.
    pub name: Name,
    /// Whether the name becomes the machine's host name too.
    pub set_hostname: bool,
    /// The address by which the other machines reach it.
    pub address: IpAddr,
    /// Decides which archive its packages come from.
    pub arch: Arch,
    /// At least one.
    pub roles: BTreeSet<Role>,
    /// How it is reached.
    pub access: Access,
    /// Labels of the node, in addition to those of Kubernetes.
    pub labels: Vec<Label>,
    /// Taints of the node, in addition to the control plane's.
    pub taints: Vec<Taint>,
}

impl Machine {
    /// Whether it has the role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// How a machine is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Access {
    /// The SSH host; by default the machine's address.
    pub host: Host,
    /// The SSH port.
    pub port: Port,
    /// The login user.
    pub user: String,
    /// The login password, also used for sudo.
    pub password: Option<Password>,
    /// The sudo password, where it differs from the login password.
    pub sudo_password: Option<Password>,
    /// The private key; without one, the agent's and the user's default keys.
    pub private_key: Option<LocalPath>,
    /// Jump hosts in the order of the connection.
    pub bastions: Vec<Jump>,
    /// The expected host key.
    pub host_key: Option<HostKey>,
    /// Whether a host key that is neither pinned nor known is refused, also a bastion's.
    pub strict_host_keys: bool,
}

/// A jump host with its credentials. The password of the target machine is never used for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Jump {
    /// Its address and login user.
    pub bastion: Bastion,
    /// Its own login password.
    pub password: Option<Password>,
    /// Its private key; that of the target machine if `None`.
    pub private_key: Option<LocalPath>,
    /// Its expected host key.
    pub host_key: Option<HostKey>,
}

impl From<Bastion> for Jump {
    fn from(bastion: Bastion) -> Self {
        Self {
            bastion,
            password: None,
            private_key: None,
            host_key: None,
        }
    }
}

/// Where a password comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Password {
    /// Given in the deploy file.
    Text(Secret),
    /// In an environment variable of this name.
    Environment(String),
    /// In a file on the control machine, without its last line break.
    File(LocalPath),
}
