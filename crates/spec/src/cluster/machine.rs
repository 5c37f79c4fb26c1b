//! One machine, its roles and the way to it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::value::{Arch, Bastion, Host, HostKey, Label, LocalPath, Name, Port, Secret, Taint};

/// What a machine does in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the control plane.
    Master,
    /// Runs pods.
    Worker,
    /// Keeps the state.
    Etcd,
    /// Stands in front of the masters.
    LoadBalancer,
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Master, Self::Worker, Self::Etcd, Self::LoadBalancer];

    /// In a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Worker => "worker",
            Self::Etcd => "etcd",
            Self::LoadBalancer => "load balancer",
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Machine {
    /// The node's name, and the etcd member's.
    pub name: Name,
    /// Whether the name becomes the machine's host name too.
    pub set_hostname: bool,
    /// Where the other machines reach it.
    pub address: IpAddr,
    /// Its processor.
    pub arch: Arch,
    /// What it does; at least one.
    pub roles: BTreeSet<Role>,
    /// How it is reached.
    pub access: Access,
    /// The node's labels beside Kubernetes' own.
    pub labels: Vec<Label>,
    /// The node's taints beside the master's.
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
    /// Where SSH listens: the machine's address unless said otherwise.
    pub host: Host,
    /// The SSH port.
    pub port: Port,
    /// The login user.
    pub user: String,
    /// The login password, which is sudo's too.
    pub password: Option<Password>,
    /// sudo's password where it is another.
    pub sudo_password: Option<Password>,
    /// The private key; without one, the agent's and the user's usual keys.
    pub private_key: Option<LocalPath>,
    /// Machines on the way, in the order of the way.
    pub bastions: Vec<Jump>,
    /// What the machine's host key must be.
    pub host_key: Option<HostKey>,
    /// Whether a host key that is neither pinned nor known is refused, also a bastion's.
    pub strict_host_keys: bool,
}

/// A machine on the way, with what lets us in there. The password of the machine behind it is never its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Jump {
    /// Where it is, and who logs in.
    pub bastion: Bastion,
    /// Its login password; it has none unless said.
    pub password: Option<Password>,
    /// The private key for it; that of the machine behind it unless said.
    pub private_key: Option<LocalPath>,
    /// What its host key must be.
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
    /// It stands in the file.
    Text(Secret),
    /// In an environment variable of this name.
    Environment(String),
    /// In a file on the control machine, without its last line break.
    File(LocalPath),
}
