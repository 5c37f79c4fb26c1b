//! What packages bring: archives are opened, repositories asked, versions decided.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use hatchery_spec::{Cluster, value::Name};

use crate::{
    api,
    api_access::Machines,
    components::{network_plugin, runtime},
    fetch::Fetcher,
    finding::Finding,
    observed::Observed,
    package::{
        self, Bundles, Installation, Learned, Manifest as Source, PackageKind, Versions as Brought,
        repository,
    },
    plan::Manifest,
    reach::Environment,
    versions::Versions,
};

/// Archives that were opened, and what they say of themselves.
#[derive(Debug)]
pub(super) struct Opened {
    bundles: Bundles,
    learned: Learned,
}

/// Opens the archives of a cluster, in a thread of its own.
pub(super) async fn open(
    cluster: Cluster,
    base: PathBuf,
    environment: Environment,
) -> Result<Opened, Vec<Finding>> {
    let opened = tokio::task::spawn_blocking(move || {
        let cluster = with_whole_paths(cluster, &environment);
        let bundles = Bundles::open(&cluster, &base, &environment.cache)?;
        let learned = bundles.versions(&cluster, environment.launcher.as_ref())?;
        Ok(Opened { bundles, learned })
    });
    opened
        .await
        .unwrap_or_else(|error| Err(vec![Finding::package(error.to_string(), "report this")]))
}

/// The cluster with archives that begin with `~/` where they are.
fn with_whole_paths(mut cluster: Cluster, environment: &Environment) -> Cluster {
    for archive in cluster.packages.archives.values_mut() {
        // Where there is no home, the path stays as it is written and is not found.
        if let Ok(path) = environment.expand(&archive.path) {
            archive.path = path.to_string_lossy().into_owned();
        }
    }
    cluster
}

impl Opened {
    /// What is put on each machine that answered.
    pub(super) fn installations(
        &self,
        cluster: &Cluster,
        observed: &Observed,
    ) -> Result<BTreeMap<Name, Installation>, Vec<Finding>> {
        let mut problems = Vec::new();
        let mut installations = BTreeMap::new();
        for node in cluster.machines() {
            let Some(facts) = observed.facts(&node.name) else {
                continue;
            };
            let kind = PackageKind::from(facts.package_manager);
            match self.bundles.installation(cluster, node, kind, &node.roles) {
                Ok(installation) => {
                    installations.insert(node.name.clone(), installation);
                }
                Err(more) => problems.extend(more),
            }
        }
        match problems.is_empty() {
            true => Ok(installations),
            false => Err(problems),
        }
    }

    /// Manifests of the archives and of the web.
    pub(super) async fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, Vec<Finding>> {
        let mut manifests = Vec::new();
        let mut problems = Vec::new();
        for source in self.bundles.manifests(cluster)? {
            let (name, text) = match source {
                Source::Text { name, text } => (name, text),
                Source::Url(url) => match fetch(&url).await {
                    Ok(text) => (
                        url.split(['?', '#']).next().unwrap_or(&url).to_owned(),
                        text,
                    ),
                    Err(problem) => {
                        problems.push(problem);
                        continue;
                    }
                },
            };
            match api::parse(&text) {
                Ok(objects) => manifests.push(Manifest { name, objects }),
                Err(error) => problems.push(Finding::package(
                    format!("{name}: {error}"),
                    "correct the manifest",
                )),
            }
        }
        if problems.is_empty() {
            problems.extend(network_plugin::lacks_manifest(cluster, &manifests));
        }
        match problems.is_empty() {
            true => Ok(manifests),
            false => Err(problems),
        }
    }

    /// What the archives say of their versions.
    pub(super) fn versions(&self) -> Brought {
        self.learned.versions
    }

    /// Programs whose version is unknown, a sentence each.
    pub(super) fn unknown_versions(&self) -> Vec<String> {
        let unknown = self.learned.unknown.iter();
        unknown.map(ToString::to_string).collect()
    }
}

async fn fetch(url: &str) -> Result<String, Finding> {
    Fetcher::new()?.text(url).await
}

/// The time that a machine has to say what its repositories hold.
const REPOSITORIES: Duration = Duration::from_secs(60);

/// What would come from the machines' repositories. For a machine that does not answer the deploy file decides.
pub(super) async fn ask_repositories(
    machines: &Machines,
    installations: &BTreeMap<Name, Installation>,
    observed: &Observed,
) -> Result<Brought, Vec<Finding>> {
    let installations = installations.iter().filter_map(|(name, installation)| {
        let kind = PackageKind::from(observed.facts(name)?.package_manager);
        Some((name, kind, observed.managed(name)?, installation))
    });
    let questions = repository::questions(installations);
    let questions = questions.into_iter().map(|(name, packages)| async move {
        let machine = machines.get(name)?;
        let offered = machine.offered(&packages, REPOSITORIES).await.ok()?;
        Some((name, offered))
    });
    let answers = futures::future::join_all(questions).await;
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    repository::versions(&answers).map_err(|problem| vec![problem])
}

/// Versions are decided once: what the file says, else what the packages say.
pub(super) fn resolve(
    cluster: &Cluster,
    archived: Brought,
    offered: Brought,
) -> Result<Versions, Vec<Finding>> {
    if let (Some(one), Some(other)) = (archived.kubernetes, offered.kubernetes)
        && one.minor != other.minor
    {
        return Err(vec![Finding::package(
            format!("the archives bring Kubernetes {one}, and repositories {other}"),
            "take all of Kubernetes from the archives, or all of it from repositories",
        )]);
    }
    let companions = [offered.etcd, offered.containerd, offered.coredns];
    let contradictions = package::contradictions(cluster, companions, "repositories");
    if !contradictions.is_empty() {
        return Err(contradictions);
    }
    let brought = Brought {
        kubernetes: archived.kubernetes.or(offered.kubernetes),
        etcd: archived.etcd.or(offered.etcd),
        containerd: archived.containerd.or(offered.containerd),
        coredns: archived.coredns.or(offered.coredns),
    };
    let wanted = cluster.kubernetes_version;
    if let (Some(wanted), Some(found)) = (wanted, brought.kubernetes)
        && (wanted.minor != found.minor
            || wanted.patch.is_some_and(|patch| found.patch != Some(patch)))
    {
        return Err(vec![Finding::package(
            format!("the file wants Kubernetes {wanted}, and its packages are {found}"),
            "change kubernetes-version, or use other packages",
        )]);
    }
    let Some(kubernetes) = brought.kubernetes.or(wanted) else {
        return Err(vec![Finding::package(
            "neither the deploy file nor the packages say which version of Kubernetes is installed",
            "write kubernetes-version: 1.NN into the deploy file",
        )]);
    };
    let versions = Versions {
        kubernetes,
        containerd: brought.containerd,
        etcd: brought.etcd,
        coredns: brought.coredns,
    };
    versions.check(cluster)?;
    Ok(versions)
}

/// All images, by the names that the cluster's runtime gives them.
pub(super) fn images<'a>(
    cluster: &Cluster,
    installations: impl Iterator<Item = &'a Installation>,
) -> Vec<String> {
    let runtime = runtime::for_cluster(cluster);
    let archives = installations.flat_map(|installation| &installation.images);
    let references = archives.flat_map(|archive| &archive.references);
    let mut images: Vec<_> = references
        .map(|full| runtime.listed(full).to_owned())
        .collect();
    images.sort();
    images.dedup();
    images
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;
    use crate::package::Release;

    #[test]
    fn what_the_file_says_is_held_against_repositories() {
        let text = "cluster-id: demo\nruntime: containerd\nkubernetes-version: 1.29\netcd-version: 3.5.9\n\
            masters: [{name: m0, ip: 10.0.0.1, arch: amd64}]\n";
        let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
        let cluster = cluster.unwrap();
        let archived = Brought {
            etcd: cluster.companion_versions.etcd,
            ..Brought::default()
        };
        let offered = |etcd: &str| Brought {
            etcd: Some(Release::parse(etcd).unwrap()),
            ..Brought::default()
        };
        assert!(resolve(&cluster, archived, offered("3.5.1")).is_ok());
        let refused = resolve(&cluster, archived, offered("3.4.14")).unwrap_err();
        assert_eq!(
            refused[0].message,
            "the file says that etcd is 3.5.9, and repositories bring 3.4.14"
        );
    }

    #[test]
    fn archives_may_lie_in_the_users_home() {
        let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1, arch: amd64}]\ninstall:\n  package-source:\n    \
            srcpath: {amd64: ~/a.tar.gz, arm64: b.tar.gz}\n";
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        let environment = Environment::new("/state".into(), Some("/home/me".into()), |_| None);
        let cluster = with_whole_paths(reading.cluster.unwrap(), &environment);
        let archives = cluster.packages.archives.values();
        let paths: Vec<_> = archives.map(|archive| archive.path.as_str()).collect();
        assert_eq!(paths, ["/home/me/a.tar.gz", "b.tar.gz"]);
    }
}
