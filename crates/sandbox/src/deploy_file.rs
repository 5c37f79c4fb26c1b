//! The ready `deploy.yaml` of a sandbox, in the current dialect of eggo.

use std::{fmt::Write as _, net::Ipv4Addr, path::Path};

use snafu::{Snafu, ensure};

use crate::settings::System;

/// Machines cannot be given the roles asked for.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[allow(
    missing_docs,
    reason = "the messages say what each variant and field is"
)]
pub enum Error {
    #[snafu(display("a cluster needs at least one master"))]
    NoMaster,
    #[snafu(display("{masters} master{}{} need {needed} machines, not {machines}",
        if *masters == 1 { "" } else { "s" },
        if *loadbalance { " and a load balancer" } else { "" }))]
    TooFew {
        masters: usize,
        loadbalance: bool,
        needed: usize,
        machines: usize,
    },
}

/// Which machines get which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Layout {
    /// The number of masters, which are workers too: the first machines.
    pub masters: usize,
    /// Whether the last machine is a load balancer and nothing else.
    pub loadbalance: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            masters: 1,
            loadbalance: false,
        }
    }
}

impl Layout {
    /// Whether this number of machines can have these roles.
    pub(crate) fn check(self, machines: usize) -> Result<(), Error> {
        let Self {
            masters,
            loadbalance,
        } = self;
        ensure!(masters > 0, NoMasterSnafu);
        let needed = masters + usize::from(loadbalance);
        ensure!(
            needed <= machines,
            TooFewSnafu {
                masters,
                loadbalance,
                needed,
                machines
            }
        );
        Ok(())
    }
}

/// What the file says.
#[derive(Clone, Copy, Debug)]
pub struct DeployFile<'a> {
    /// The sandbox, and so the cluster's id.
    pub name: &'a str,
    /// What the machines are.
    pub system: System,
    /// The login user.
    pub user: &'a str,
    /// The login user's password, when sudo asks for it.
    pub password: Option<&'a str>,
    /// The private key.
    pub key: &'a Path,
    /// The machines with their addresses.
    pub machines: &'a [(String, Ipv4Addr)],
    /// Their roles; checked against the number of machines.
    pub layout: Layout,
    /// The only way to the machines.
    pub bastion: Option<(&'a str, Ipv4Addr)>,
    /// `amd64` or `arm64`.
    pub arch: &'a str,
    /// The offline package.
    pub archive: &'a Path,
}

impl DeployFile<'_> {
    /// The file's text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Layout {
            masters,
            loadbalance,
        } = self.layout;
        let split = self.machines.len() - usize::from(loadbalance);
        let (nodes, balancer) = self.machines.split_at(split.min(self.machines.len()));

        writeln!(
            out,
            "# The machines of sandbox {0}, written by 'hatchery sandbox up --name {0}'.",
            self.name
        )?;
        writeln!(out, "cluster-id: {}", self.name)?;
        writeln!(out, "username: {}", self.user)?;
        if let Some(password) = self.password {
            writeln!(out, "password: {}", quoted(password))?;
        }
        writeln!(
            out,
            "private-key-path: {}",
            quoted(&self.key.to_string_lossy())
        )?;
        if let Some((bastion, address)) = self.bastion {
            writeln!(out, "# The machines can be reached only through {bastion}.")?;
            writeln!(out, "bastion: {}@{address}:22", self.user)?;
        }
        writeln!(out, "masters:")?;
        self.hosts(out, &nodes[..masters.min(nodes.len())])?;
        writeln!(out, "workers:")?;
        self.hosts(out, nodes)?;
        if let [(name, address)] = balancer {
            writeln!(out, "loadbalance:")?;
            writeln!(
                out,
                "  name: {name}\n  ip: {address}\n  port: 22\n  arch: {}\n  bind-port: 8443",
                self.arch
            )?;
        }
        out.push_str(CLUSTER);
        writeln!(
            out,
            "install:\n  package-source:\n    type: tar.gz\n    srcpath:"
        )?;
        writeln!(
            out,
            "      {}: {}",
            self.arch,
            quoted(&self.archive.to_string_lossy())
        )?;
        out.push_str(INSTALL);
        if !balancer.is_empty() {
            // The archive's packages are Debian's; the other system's come from a repository.
            let kind = match self.system {
                System::Debian => "pkg",
                System::Rpm => "repo",
            };
            writeln!(out, "  loadbalance:\n    - {{name: nginx, type: {kind}}}")?;
        }
        Ok(())
    }

    fn hosts(&self, out: &mut String, hosts: &[(String, Ipv4Addr)]) -> std::fmt::Result {
        for (name, address) in hosts {
            writeln!(
                out,
                "  - {{name: {name}, ip: {address}, port: 22, arch: {}}}",
                self.arch
            )?;
        }
        Ok(())
    }
}

/// JSON's strings are YAML's too, whatever is in them.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const CLUSTER: &str = "\
service:
  cidr: 10.32.0.0/16
  dnsaddr: 10.32.0.10
  gateway: 10.32.0.1
  dns:
    corednstype: binary
network:
  podcidr: 10.244.0.0/16
  plugin: flannel
dns-vip: 10.32.0.10
dns-domain: cluster.local
pause-image: registry.k8s.io/pause:3.10
network-plugin: cni
cni-bin-dir: /opt/cni/bin
runtime: containerd
runtime-endpoint: unix:///run/containerd/containerd.sock
";

/// What the archive holds, by role.
const INSTALL: &str = "  \
  etcd:
    - {name: \"etcd,etcdctl\", type: bin, dst: /usr/bin}
  kubernetes-master:
    - {name: \"kube-apiserver,kube-controller-manager,kube-scheduler,kubectl\", type: bin, dst: /usr/bin}
  kubernetes-worker:
    - {name: \"kubelet,kube-proxy,kubectl\", type: bin, dst: /usr/bin}
  container:
    - {name: \"containerd,containerd-shim-runc-v2,ctr,runc\", type: bin, dst: /usr/bin}
  network:
    - {name: \"bridge,host-local,loopback,portmap\", type: bin, dst: /opt/cni/bin}
  image:
    - {name: images.tar, type: image}
  dns:
    - {name: coredns, type: bin, dst: /usr/bin}
  addition:
    master:
      - {name: flannel.yaml, type: yaml}
";

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(count: u8) -> Vec<(String, Ipv4Addr)> {
        (1..=count)
            .map(|n| (format!("lab-{n}"), Ipv4Addr::new(10, 201, 0, 10 + n)))
            .collect()
    }

    fn file(machines: &[(String, Ipv4Addr)]) -> DeployFile<'_> {
        DeployFile {
            name: "lab",
            system: System::Debian,
            user: "root",
            password: None,
            key: Path::new("/home/me/.hatchery/sandbox/lab/id_ed25519"),
            machines,
            layout: Layout::default(),
            bastion: None,
            arch: "amd64",
            archive: Path::new("/home/me/.cache/hatchery/items/packages-new/current.tar.gz"),
        }
    }

    #[test]
    fn the_first_machine_is_the_master_and_all_are_workers() {
        insta::assert_snapshot!(file(&machines(3)).render());
    }

    #[test]
    fn the_last_machine_balances_the_load() {
        let machines = machines(5);
        let file = DeployFile {
            user: "ops",
            password: Some("a\"b: #c"),
            layout: Layout {
                masters: 3,
                loadbalance: true,
            },
            bastion: Some(("lab-bastion", Ipv4Addr::new(10, 201, 0, 10))),
            ..file(&machines)
        };
        insta::assert_snapshot!(file.render());
    }

    #[test]
    fn roles_need_machines() {
        let layout = |masters, loadbalance| Layout {
            masters,
            loadbalance,
        };
        assert!(layout(3, true).check(4).is_ok());
        assert!(layout(3, true).check(3).is_err());
        assert_eq!(
            layout(2, false).check(1).unwrap_err().to_string(),
            "2 masters need 2 machines, not 1"
        );
        assert_eq!(layout(0, false).check(1), Err(Error::NoMaster));
    }
}
