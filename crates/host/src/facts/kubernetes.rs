//! What an earlier installation of Kubernetes left on a machine, or runs there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{answer::Answer, service::Unit};

/// Signs of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesTraces {
    /// Files in `/etc/kubernetes` and its `manifests`, at most 64 of each.
    pub configuration: Vec<String>,
    /// Configurations of the pod network in `/etc/cni/net.d`.
    pub cni: Vec<String>,
    /// Directories with data of etcd, the kubelet or a packaged Kubernetes.
    pub data: Vec<String>,
    /// Whether there is the data of an etcd member where `/etc/etcd/etcd.conf` says that it is, or in
    /// `/var/lib/etcd/default.etcd` where it says nothing.
    #[serde(default)]
    pub etcd_member: bool,
    /// Where `/etc/etcd/etcd.conf` says that etcd keeps its data.
    #[serde(default)]
    pub etcd_directories: Option<EtcdDirectories>,
    /// Programs, by path.
    pub programs: Vec<String>,
    /// Units, by name, that exist.
    pub units: BTreeMap<String, Unit>,
}

/// Where etcd keeps its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdDirectories {
    /// Its data directory.
    pub data: String,
    /// That of its write-ahead log, where it is told apart.
    pub wal: Option<String>,
}

impl KubernetesTraces {
    /// Whether the machine never saw a cluster, as far as can be seen. Programs alone are no
    /// sign: an image may bring them.
    pub fn is_untouched(&self) -> bool {
        self.configuration.is_empty()
            && self.data.is_empty()
            && !self.units.values().any(Unit::is_active)
    }
}

const PROGRAMS: [&str; 6] = ["etcd", "k3s", "kubeadm", "kubectl", "kubelet", "rke2"];
const UNITS: [&str; 5] = [
    "etcd.service",
    "k3s.service",
    "kube-apiserver.service",
    "kubelet.service",
    "rke2-server.service",
];
const DATA: [&str; 3] = ["/var/lib/etcd", "/var/lib/kubelet", "/var/lib/rancher"];
const ETCD_MEMBER: &str = "/var/lib/etcd/default.etcd/member";

pub(super) fn traces(
    answer: &Answer,
    programs: &BTreeMap<String, String>,
    units: Option<&BTreeMap<String, Unit>>,
) -> KubernetesTraces {
    let entries = || answer.each("entries");
    let below = |directory: &'static str| {
        entries().filter(move |path| {
            let name = path
                .strip_prefix(directory)
                .and_then(|rest| rest.strip_prefix('/'));
            // A directory of the list itself, or what mkfs puts on every disk, says nothing.
            name.is_some_and(|name| !name.is_empty() && name != "manifests" && name != "lost+found")
        })
    };
    let owned = |paths: &mut dyn Iterator<Item = &str>| paths.map(str::to_owned).collect();
    KubernetesTraces {
        configuration: owned(&mut below("/etc/kubernetes")),
        cni: owned(&mut below("/etc/cni/net.d")),
        data: owned(
            &mut DATA
                .into_iter()
                .filter(|&directory| below(directory).next().is_some()),
        ),
        etcd_member: match answer.each("etcd-data").next() {
            Some(said) => said == "member",
            None => entries().any(|path| path == ETCD_MEMBER),
        },
        etcd_directories: etcd_directories(answer),
        programs: PROGRAMS
            .iter()
            .filter_map(|&name| programs.get(name).cloned())
            .collect(),
        units: UNITS
            .iter()
            .filter_map(|&name| Some((name.to_owned(), units?.get(name)?.clone())))
            .collect(),
    }
}

fn etcd_directories(answer: &Answer) -> Option<EtcdDirectories> {
    let said = |name: &str| {
        let mut lines = answer.each("etcd-data");
        lines.find_map(|line| line.strip_prefix(name).map(unescaped))
    };
    Some(EtcdDirectories {
        data: said("data ")?,
        wal: said("wal "),
    })
}

/// As systemd reads what stands between quotes.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::of;

    #[test]
    fn empty_directories_and_programs_are_no_cluster() {
        let entries = "/etc/kubernetes/manifests\n/var/lib/etcd/lost+found\n/etc/cni/net.d/87-podman.conflist\n";
        let programs = BTreeMap::from([("kubelet".to_owned(), "/usr/bin/kubelet".to_owned())]);
        let found = traces(&of(&[("entries", entries)]), &programs, None);
        assert!(found.is_untouched());
        assert_eq!(found.programs, ["/usr/bin/kubelet"]);
        assert_eq!(found.cni.len(), 1);
    }

    #[test]
    fn an_etcd_says_where_its_data_lies() {
        let directories = |said: &str| {
            let answer = of(&[("etcd-data", said)]);
            let found = traces(&answer, &BTreeMap::new(), None).etcd_directories;
            found.map(|found| (found.data, found.wal))
        };
        assert_eq!(directories("member\n"), None);
        assert_eq!(
            directories("member\ndata /srv/etcd/\n"),
            Some(("/srv/etcd/".into(), None))
        );
        assert_eq!(
            directories("empty\ndata /a b\\\"\\\\c\nwal /wal\n"),
            Some(("/a b\"\\c".into(), Some("/wal".into())))
        );
    }

    #[test]
    fn data_and_configuration_are_traces() {
        let etcd = traces(
            &of(&[("entries", "/var/lib/etcd/member\n")]),
            &BTreeMap::new(),
            None,
        );
        assert_eq!(etcd.data, ["/var/lib/etcd"]);
        assert!(!etcd.is_untouched());
        assert!(!etcd.etcd_member);
        let entries = "/var/lib/etcd/default.etcd\n/var/lib/etcd/default.etcd/member\n";
        let member = traces(&of(&[("entries", entries)]), &BTreeMap::new(), None);
        assert!(member.etcd_member);
        for (said, is_member) in [("member\n", true), ("empty\n", false)] {
            let elsewhere = of(&[("entries", entries), ("etcd-data", said)]);
            let elsewhere = traces(&elsewhere, &BTreeMap::new(), None);
            assert_eq!(elsewhere.etcd_member, is_member);
        }
        assert_eq!(member.data, ["/var/lib/etcd"]);
        let entries = "/etc/kubernetes/manifests\n/etc/kubernetes/manifests/etcd.yaml\n";
        let manifest = traces(&of(&[("entries", entries)]), &BTreeMap::new(), None);
        assert_eq!(
            manifest.configuration,
            ["/etc/kubernetes/manifests/etcd.yaml"]
        );
        assert!(!manifest.is_untouched());
    }
}
