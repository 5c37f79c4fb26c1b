//! Which versions a cluster is made of.
//!
//! What changed from one Kubernetes to another, and what goes with what, is the table of [`hatchery_spec::versions`],
//! which `check` uses too.

use hatchery_spec::{
    Cluster, Severity,
    value::Version,
    versions::{self as policy, Parts},
};

pub use hatchery_spec::versions::Feature;

use crate::{finding::Finding, package::Release};

/// Versions, as far as they are known before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version of Kubernetes.
    pub kubernetes: Version,
    /// The version of containerd, where it is known.
    pub containerd: Option<Release>,
    /// The version of etcd, where it is known.
    pub etcd: Option<Release>,
    /// The version of CoreDNS, where it is known.
    pub coredns: Option<Release>,
}

impl Versions {
    /// Whether this Kubernetes has it.
    pub fn has(&self, feature: Feature) -> bool {
        policy::has(self.kubernetes, feature)
    }

    /// Combinations that cannot work, by name.
    ///
    /// # Errors
    /// All of them.
    pub fn check(&self, cluster: &Cluster) -> Result<(), Vec<Finding>> {
        let numbers = |release: Release| (release.major, release.minor);
        let parts = Parts {
            containerd: self.containerd.map(numbers),
            etcd: self.etcd.map(numbers),
            coredns: self.coredns.map(numbers),
            ..Parts::from_cluster(cluster, self.kubernetes)
        };
        let conflicts = policy::conflicts(&parts).into_iter();
        let findings: Vec<_> = conflicts
            .filter(|conflict| conflict.severity == Severity::Error)
            .map(|conflict| Finding::package(conflict.message, conflict.remedy))
            .collect();
        if findings.is_empty() {
            Ok(())
        } else {
            Err(findings)
        }
    }
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    fn with(minor: u32) -> Versions {
        Versions {
            kubernetes: Version {
                major: 1,
                minor,
                patch: None,
            },
            containerd: None,
            etcd: None,
            coredns: None,
        }
    }

    fn refused(minor: u32, more: &str) -> Vec<String> {
        let text = format!(
            "cluster-id: demo\nruntime: containerd\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: []\n{more}"
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        let cluster = reading.cluster.unwrap();
        let findings = with(minor).check(&cluster).err().unwrap_or_default();
        findings.into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn what_a_version_lacks_is_refused() {
        let nftables = "kube-proxy: {mode: nftables}\n";
        assert_eq!(
            refused(30, nftables),
            ["kube-proxy of Kubernetes 1.30 does not support nftables by default"]
        );
        assert_eq!(refused(31, nftables), [""; 0]);
        let dual = "network: {podcidr: '10.244.0.0/16,fd00:2::/56'}\nservice: {cidr: '10.32.0.0/16,fd00:1::/112'}\n";
        assert_eq!(
            refused(20, dual),
            ["dual-stack is not enabled by default in Kubernetes 1.20"]
        );
        assert_eq!(refused(21, dual), [""; 0]);
        assert_eq!(refused(20, ""), [""; 0]);
    }

    /// What a file is refused for when it names the version, it is refused for when the packages do, and the reverse.
    #[test]
    fn the_file_and_the_packages_are_judged_alike() {
        let settings = [
            "runtime: docker\n",
            "runtime: docker\nruntime-endpoint: unix:///run/cri-dockerd.sock\n",
            "runtime: docker\ninstall: {container: [{name: 'docker-ce,cri-dockerd', type: repo}]}\n",
            "runtime: isulad\n",
            "runtime: containerd\nkube-proxy: {mode: nftables}\n",
            "runtime: containerd\nnetwork: {podcidr: '10.244.0.0/16,fd00:2::/56'}\n\
             service: {cidr: '10.32.0.0/16,fd00:1::/112'}\n",
        ];
        let (mut good, mut bad) = (0, 0);
        for setting in settings {
            let text = format!(
                "cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\nworkers: []\n{setting}"
            );
            let read = |text: &str| read(Input::private("deploy.yaml", text.as_bytes()));
            let cluster = read(&text).cluster.unwrap();
            for minor in Version::OLDEST.minor..40 {
                let named = read(&format!("{text}kubernetes-version: 1.{minor}\n"));
                let by_file: Vec<_> = named
                    .diagnostics
                    .sorted()
                    .into_iter()
                    .filter(|one| one.severity == Severity::Error)
                    .map(|one| one.message.clone())
                    .collect();
                let by_packages = with(minor).check(&cluster).err().unwrap_or_default();
                let by_packages: Vec<_> = by_packages.into_iter().map(|one| one.message).collect();
                assert_eq!(by_file, by_packages, "1.{minor} with {setting}");
                if by_file.is_empty() {
                    good += 1;
                } else {
                    bad += 1;
                }
            }
        }
        assert!(good > 20 && bad > 20, "{good} good, {bad} bad");
    }
}
