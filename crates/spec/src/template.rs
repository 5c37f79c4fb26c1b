//! A commented deploy file to start with: the requested machines, and every other key either set or
//! commented out, with its explanation from the [table](crate::keys).

mod networks;
mod packages;
pub(crate) mod page;
mod text;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use snafu::{Snafu, ensure};

use crate::value::{Name, Secret};

/// One of the lists of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// The control plane.
    Masters,
    /// The workers.
    Workers,
    /// The etcd members.
    Etcds,
    /// The load balancer, at most one.
    LoadBalancer,
}

/// Why no deploy file can be written for these machines.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("{address} is given twice"))]
    Duplicate { list: List, address: IpAddr },
    #[snafu(display("{address} and {first} are an IPv4 and an IPv6 address"))]
    MixedFamilies {
        list: List,
        address: IpAddr,
        first: IpAddr,
    },
    #[snafu(display("other machines are given, but no master"))]
    NoMaster,
}

impl Error {
    /// The list that is wrong.
    pub fn list(&self) -> List {
        match self {
            Self::Duplicate { list, .. } | Self::MixedFamilies { list, .. } => *list,
            Self::NoMaster => List::Masters,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "name each machine once per role",
            Self::MixedFamilies { .. } => "use addresses of one family",
            Self::NoMaster => "name at least one master",
        }
    }
}

/// The machines of a new deploy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    masters: Vec<IpAddr>,
    workers: Vec<IpAddr>,
    etcds: Vec<IpAddr>,
    load_balancer: Option<IpAddr>,
}

impl Machines {
    /// The machines named. Without any, those of an example; without workers, the masters are
    /// workers, since a cluster without any runs nothing.
    pub fn new(
        masters: Vec<IpAddr>,
        mut workers: Vec<IpAddr>,
        etcds: Vec<IpAddr>,
        load_balancer: Option<IpAddr>,
    ) -> Result<Self, Error> {
        let Some(&first) = masters.first() else {
            ensure!(
                workers.is_empty() && etcds.is_empty() && load_balancer.is_none(),
                NoMasterSnafu
            );
            return Ok(Self::example());
        };
        let lists = [
            (List::Masters, masters.as_slice()),
            (List::Workers, workers.as_slice()),
            (List::Etcds, etcds.as_slice()),
            (List::LoadBalancer, load_balancer.as_slice()),
        ];
        for (list, addresses) in lists {
            let mut seen = HashSet::new();
            for &address in addresses {
                ensure!(seen.insert(address), DuplicateSnafu { list, address });
                ensure!(
                    address.is_ipv4() == first.is_ipv4(),
                    MixedFamiliesSnafu {
                        list,
                        address,
                        first
                    }
                );
            }
        }
        if workers.is_empty() {
            workers.clone_from(&masters);
        }
        Ok(Self {
            masters,
            workers,
            etcds,
            load_balancer,
        })
    }

    /// Eggo's example, with the master as worker too, as its manual recommends.
    fn example() -> Self {
        let address = |last| IpAddr::from([192, 168, 0, last]);
        Self {
            masters: vec![address(2)],
            workers: vec![address(2), address(3), address(4)],
            etcds: Vec::new(),
            load_balancer: Some(address(1)),
        }
    }

    /// The machines of a list.
    pub fn list(&self, list: List) -> &[IpAddr] {
        match list {
            List::Masters => &self.masters,
            List::Workers => &self.workers,
            List::Etcds => &self.etcds,
            List::LoadBalancer => self.load_balancer.as_slice(),
        }
    }

    /// Every machine with its name; the first list that names it decides.
    fn names(&self) -> HashMap<IpAddr, String> {
        let mut names = HashMap::new();
        for (list, role) in [
            (List::Masters, "k8s-master-"),
            (List::Workers, "k8s-worker-"),
            (List::Etcds, "etcd-"),
        ] {
            let mut number = 0;
            for address in self.list(list) {
                names.entry(*address).or_insert_with(|| {
                    number += 1;
                    format!("{role}{}", number - 1)
                });
            }
        }
        if let Some(address) = &self.load_balancer {
            names
                .entry(*address)
                .or_insert_with(|| "k8s-loadbalance".to_owned());
        }
        names
    }
}

/// The contents of a new deploy file.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster's name.
    pub name: Name,
    /// The SSH user.
    pub user: String,
    /// The SSH password; without one the file shows the safer alternatives, commented out.
    pub password: Option<Secret>,
    /// At least one master.
    pub machines: Machines,
    /// Whether the manual's keys are used instead of the current ones.
    pub classic: bool,
}

/// The file's text.
pub fn render(options: &Options) -> String {
    text::render(options)
}
