//! What Kubernetes left on a machine, or runs there, whoever installed it.

use std::collections::BTreeMap;

use hatchery_host::facts::{DirectorySetting, Facts, Questions, Unit};

use crate::components::{etcd::Directories, runtime};

const CONFIGURATION: &str = "/etc/kubernetes";
const MANIFESTS: &str = "/etc/kubernetes/manifests";
const DATA: [&str; 3] = ["/var/lib/etcd", "/var/lib/kubelet", "/var/lib/rancher"];
const MEMBER_OF_OURS: &str = "/var/lib/etcd/default.etcd";
const ETCD_CONFIGURATION: &str = "/etc/etcd/etcd.conf";
const ETCD_DATA: &str = "ETCD_DATA_DIR";
const ETCD_WAL: &str = "ETCD_WAL_DIR";
const UNITS: [&str; 5] = [
    "etcd.service",
    "k3s.service",
    "kube-apiserver.service",
    "kubelet.service",
    "rke2-server.service",
];

/// What machines are asked for this, and for container runtimes.
pub(crate) fn questions() -> Questions {
    Questions {
        entries: &[
            CONFIGURATION,
            MANIFESTS,
            DATA[0],
            DATA[1],
            DATA[2],
            MEMBER_OF_OURS,
        ],
        units: &UNITS,
        directories: &ETCD_SETTINGS,
        busy_mounts: &["/var/lib/kubelet/pods", "/var/lib/kubelet/plugins"],
        runtimes: &runtime::QUESTIONS,
    }
}

const ETCD_SETTINGS: [DirectorySetting; 2] = [etcd_setting(ETCD_DATA), etcd_setting(ETCD_WAL)];

const fn etcd_setting(name: &'static str) -> DirectorySetting {
    DirectorySetting {
        file: ETCD_CONFIGURATION,
        name,
        // The unit's working directory.
        base: "/var/lib/etcd",
        contains: "member",
    }
}

/// Signs of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KubernetesTraces {
    /// Files in `/etc/kubernetes` and its `manifests`.
    pub(crate) configuration: Vec<String>,
    /// Directories with data of etcd, the kubelet or a packaged Kubernetes.
    pub(crate) data: Vec<String>,
    /// Where the data of an etcd member lies, when there is any.
    pub(crate) etcd: Option<Directories>,
    /// Units, by name, that exist.
    pub(crate) units: BTreeMap<String, Unit>,
}

impl KubernetesTraces {
    pub(crate) fn from_facts(facts: &Facts) -> Self {
        let below = |directory: &'static str| {
            facts.entries.iter().filter(move |path| {
                let name = path
                    .strip_prefix(directory)
                    .and_then(|rest| rest.strip_prefix('/'));
                // A directory of the list itself, or what mkfs puts on every disk, says nothing.
                name.is_some_and(|name| {
                    !name.is_empty() && name != "manifests" && name != "lost+found"
                })
            })
        };
        Self {
            configuration: below(CONFIGURATION).cloned().collect(),
            data: DATA
                .into_iter()
                .filter(|&directory| below(directory).next().is_some())
                .map(str::to_owned)
                .collect(),
            etcd: etcd(facts),
            units: UNITS
                .into_iter()
                .filter_map(|name| {
                    Some((name.to_owned(), facts.units.as_ref()?.get(name)?.clone()))
                })
                .collect(),
        }
    }

    pub(crate) fn has_active_unit(&self) -> bool {
        self.units.values().any(Unit::is_active)
    }
}

/// Where etcd's configuration says, or in our usual place where it says nothing.
fn etcd(facts: &Facts) -> Option<Directories> {
    match facts.directories.get(ETCD_DATA) {
        Some(data) => {
            let wal = facts.directories.get(ETCD_WAL);
            data.is_used
                .then(|| Directories::new(&data.path, wal.map(|wal| wal.path.as_str())))
        }
        None => {
            let member = format!("{MEMBER_OF_OURS}/member");
            facts
                .entries
                .contains(&member)
                .then(|| Directories::new(MEMBER_OF_OURS, None))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hatchery_host::facts::{self, ConfiguredDirectory};

    use super::*;

    fn traces(entries: &[&str], settings: &[(&str, &str, bool)]) -> KubernetesTraces {
        let answer = include_bytes!("../../host/src/facts/answers/debian.txt");
        let now = SystemTime::now();
        let mut facts = facts::parse(answer, now, now).unwrap();
        facts.entries = entries.iter().map(|&entry| entry.to_owned()).collect();
        let settings = settings.iter().map(|&(name, path, is_used)| {
            let path = path.to_owned();
            (name.to_owned(), ConfiguredDirectory { path, is_used })
        });
        facts.directories = settings.collect();
        KubernetesTraces::from_facts(&facts)
    }

    #[test]
    fn empty_directories_are_no_cluster() {
        let found = traces(
            &["/etc/kubernetes/manifests", "/var/lib/etcd/lost+found"],
            &[],
        );
        assert_eq!(found, KubernetesTraces::default());
    }

    #[test]
    fn data_and_configuration_are_traces() {
        let etcd = traces(&["/var/lib/etcd/member"], &[]);
        assert_eq!(etcd.data, ["/var/lib/etcd"]);
        assert_eq!(etcd.etcd, None);
        let entries = [
            "/etc/kubernetes/manifests",
            "/etc/kubernetes/manifests/etcd.yaml",
        ];
        let manifest = traces(&entries, &[]);
        assert_eq!(manifest.configuration, &entries[1..]);
    }

    #[test]
    fn an_etcd_has_its_data_where_its_configuration_says() {
        let usual = [
            "/var/lib/etcd/default.etcd",
            "/var/lib/etcd/default.etcd/member",
        ];
        let place = |data, wal| Some(Directories::new(data, wal));
        assert_eq!(traces(&usual, &[]).etcd, place(MEMBER_OF_OURS, None));
        let empty = (ETCD_DATA, "/srv/etcd", false);
        assert_eq!(traces(&usual, &[empty]).etcd, None);
        let data = (ETCD_DATA, "/srv/etcd/", true);
        assert_eq!(traces(&[], &[data]).etcd, place("/srv/etcd", None));
        let wal = (ETCD_WAL, "/wal", false);
        assert_eq!(
            traces(&[], &[data, wal]).etcd,
            place("/srv/etcd", Some("/wal"))
        );
        assert_eq!(traces(&[], &[wal]).etcd, None);
    }
}
