//! From a deploy file to a plan: everything is looked at, nothing is changed.

mod comparison;
#[cfg(test)]
mod comparison_tests;
mod leaving;
mod missing;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use hatchery_host::{
    facts::Facts,
    machine::{Machine, Managed},
    script::Identity,
    transport::ssh::Timeouts,
};
use hatchery_spec::Cluster;
use time::OffsetDateTime;

use self::comparison::Observed;
pub use self::leaving::{known, leaving};
use crate::{
    api,
    components::network_plugin,
    confinement::Launcher,
    fetch::Fetcher,
    package::{
        self, Bundles, Installation, Learned, Manifest as Brought, PackageKind, Problem, repository,
    },
    plan::{self, Basis, Manifest, Plan},
    preflight::{self, AskOptions, Finding, Reply, Severity},
    reach::{self, Environment},
    state::Record,
    versions::Versions,
};

/// What is needed to look at a cluster.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The cluster that is wanted.
    pub cluster: &'a Cluster,
    /// For whom its machines are held.
    pub identity: &'a Identity,
    /// What is remembered of the cluster, where it exists already.
    pub remembered: Option<&'a Record>,
    /// The control machine.
    pub environment: &'a Environment,
    /// Where paths begin that are not absolute.
    pub base: PathBuf,
    /// So many machines at the same time.
    pub parallel: usize,
}

/// What was found.
pub struct Survey {
    /// The machines in the order of [`Cluster::all_machines`], connected where they answered.
    pub machines: Vec<Arc<Machine>>,
    /// What they answered.
    pub replies: Vec<Reply>,
    /// What there is to say about them.
    pub findings: Vec<Finding>,
    /// What each has of ours.
    pub managed: Vec<Managed>,
    /// What the cluster is made of.
    pub versions: Versions,
    /// What is to be done.
    pub plan: Plan,
    /// Machines that are left out, since they did not answer and the others can do without.
    pub missing: Vec<usize>,
    /// Whether the control plane was begun before.
    pub formed: bool,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum Refusal {
    /// The cluster that is there cannot become the one of the file.
    Living(Vec<Finding>),
    /// Something is missing on the control machine.
    Reach(Vec<reach::Error>),
    /// Machines are not as they must be.
    Machines(Vec<Reply>, Vec<Finding>),
    /// Archives are not as they must be, or versions do not go together.
    Packages(Vec<Problem>),
    /// A value cannot be told to a machine.
    Plan(plan::Error),
}

/// Looks at everything. `heard` is told of each machine's answer as it comes.
///
/// # Errors
/// All that stands against making the cluster, of the first kind that does.
pub async fn survey(
    request: &Request<'_>,
    heard: impl FnMut(usize, &Reply),
) -> Result<Survey, Refusal> {
    let cluster = request.cluster;
    // What is known without asking is said without asking.
    if request.remembered.is_some_and(|one| one.formed) {
        request.compare(None, &[])?;
    }
    let timeouts = Timeouts::default();
    let machines = reach::machines(cluster, request.identity, request.environment, &timeouts)
        .map_err(Refusal::Reach)?;
    let options = AskOptions {
        parallel: request.parallel,
        stay: true,
        ..AskOptions::default()
    };
    let asking = preflight::ask(&machines, options, heard);
    let opening = open(
        with_whole_paths(cluster, request.environment),
        request.base.clone(),
        request.environment.home.join("cache"),
        request.environment.launcher.clone(),
    );
    let (replies, opened) = tokio::join!(asking, opening);
    let observed = replies.iter();
    let observed: Vec<_> = observed
        .map(|reply| Observed::new(request.identity, reply))
        .collect();
    request.compare(None, &observed)?;
    let formed = request
        .remembered
        .is_some_and(|one| comparison::is_formed(one, &observed));
    let answers: Vec<_> = cluster.machines().iter().zip(&replies).collect();
    let mut findings = preflight::check_machines(cluster, request.identity, &answers);
    let missing = match missing::left_out(cluster, &replies, formed) {
        Ok(mut missing) => {
            let leaving = cluster.machines().len()..replies.len();
            missing.extend(leaving.filter(|place| replies[*place].is_err()));
            missing
        }
        Err(needed) => {
            // Behind the reasons why it did not answer.
            let errors = findings.iter();
            let errors = errors.take_while(|one| one.severity == Severity::Error);
            findings.insert(errors.count(), needed);
            Vec::new()
        }
    };
    if findings
        .iter()
        .any(|finding| is_fatal(finding, cluster, &missing))
    {
        return Err(Refusal::Machines(replies, findings));
    }
    let (bundles, learned) = opened.map_err(Refusal::Packages)?;
    let mut problems = Vec::new();
    let mut sites = BTreeMap::new();
    for (place, (node, reply)) in cluster.machines().iter().zip(&replies).enumerate() {
        let Ok((facts, _)) = reply else { continue };
        let kind = PackageKind::from(facts.package_manager);
        match bundles.installation(cluster, node, kind, &node.roles) {
            Ok(installation) => {
                sites.insert(place, (facts.clone(), installation));
            }
            Err(more) => problems.extend(more),
        }
    }
    let manifests = match manifests(&bundles, cluster).await {
        Ok(manifests) => manifests,
        Err(more) => {
            problems.extend(more);
            Vec::new()
        }
    };
    if !problems.is_empty() {
        return Err(Refusal::Packages(problems));
    }
    let offered = ask_repositories(cluster, &machines, &sites, &replies).await?;
    let versions = resolve(cluster, learned.versions, offered).map_err(Refusal::Packages)?;
    request.compare(Some(&versions), &observed)?;
    let images = images(sites.values().map(|(_, installation)| installation));
    let managed = replies.iter().map(|reply| match reply {
        Ok((_, managed)) => managed.clone(),
        Err(_) => Managed::default(),
    });
    let managed: Vec<_> = managed.collect();
    let basis = Basis {
        now: OffsetDateTime::now_utc(),
        cluster,
        versions: &versions,
        sites: &sites,
        managed: &managed,
        missing: &missing,
        manifests: &manifests,
        images: &images,
    };
    let mut plan = plan::make(&basis).map_err(Refusal::Plan)?;
    let unknown = learned.unknown.iter().map(ToString::to_string);
    plan.notes.splice(..0, unknown);
    let unobtainable = preflight::check_images(cluster, &plan, &machines, &replies, &sites).await;
    if !unobtainable.is_empty() {
        findings.splice(..0, unobtainable);
        return Err(Refusal::Machines(replies, findings));
    }
    Ok(Survey {
        managed,
        machines: machines.into_iter().map(Arc::new).collect(),
        replies,
        findings,
        versions,
        plan,
        missing,
        formed,
    })
}

impl Request<'_> {
    /// Refuses what cannot be done to the cluster as it is remembered and as its machines show it.
    fn compare(
        &self,
        versions: Option<&Versions>,
        observed: &[Option<Observed>],
    ) -> Result<(), Refusal> {
        let Some(remembered) = self.remembered else {
            return Ok(());
        };
        let refusals = comparison::refusals((self.cluster, versions), remembered, observed);
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Living(refusals)),
        }
    }
}

/// A machine that is left out keeps nobody else waiting.
fn is_fatal(finding: &Finding, cluster: &Cluster, missing: &[usize]) -> bool {
    let is_missing = |name: &String| {
        missing
            .iter()
            .any(|place| cluster.machine(*place).name.as_str() == name)
    };
    finding.severity == Severity::Error && !finding.machines.iter().all(is_missing)
}

/// The cluster with archives that begin with `~/` where they are.
fn with_whole_paths(cluster: &Cluster, environment: &Environment) -> Cluster {
    let mut cluster = cluster.clone();
    for archive in cluster.packages.archives.values_mut() {
        // Where there is no home, the path stays as it is written and is not found.
        if let Ok(path) = environment.expand(&archive.path) {
            archive.path = path.to_string_lossy().into_owned();
        }
    }
    cluster
}

async fn open(
    cluster: Cluster,
    base: PathBuf,
    cache: PathBuf,
    launcher: Option<Launcher>,
) -> Result<(Bundles, Learned), Vec<Problem>> {
    let opened = tokio::task::spawn_blocking(move || {
        let bundles = Bundles::open(&cluster, &base, &cache)?;
        let learned = bundles.versions(&cluster, launcher.as_ref())?;
        Ok((bundles, learned))
    });
    opened
        .await
        .unwrap_or_else(|error| Err(vec![Problem::new(error.to_string(), "report this")]))
}

/// A machine has so long to say what its repositories hold.
const REPOSITORIES: Duration = Duration::from_secs(60);

/// What would come from the machines' repositories. A machine that cannot tell leaves it to the file.
async fn ask_repositories(
    cluster: &Cluster,
    machines: &[Machine],
    sites: &BTreeMap<usize, (Facts, Installation)>,
    replies: &[Reply],
) -> Result<package::Versions, Refusal> {
    let installations = sites.iter().filter_map(|(place, (facts, installation))| {
        let kind = PackageKind::from(facts.package_manager);
        let (_, managed) = replies[*place].as_ref().ok()?;
        Some((*place, kind, managed, installation))
    });
    let questions = repository::questions(installations);
    let questions = questions.into_iter().map(|(place, names)| async move {
        let offered = machines[place].offered(&names, REPOSITORIES).await.ok()?;
        Some((cluster.machine(place), offered))
    });
    let answers = futures::future::join_all(questions).await;
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    repository::versions(&answers).map_err(|problem| Refusal::Packages(vec![problem]))
}

/// Versions are decided once: what the file says, else what the packages say.
fn resolve(
    cluster: &Cluster,
    archived: package::Versions,
    offered: package::Versions,
) -> Result<Versions, Vec<Problem>> {
    if let (Some(one), Some(other)) = (archived.kubernetes, offered.kubernetes)
        && one.minor != other.minor
    {
        return Err(vec![Problem::new(
            format!("the archives bring Kubernetes {one}, and repositories {other}"),
            "take all of Kubernetes from the archives, or all of it from repositories",
        )]);
    }
    let companions = [offered.etcd, offered.containerd, offered.coredns];
    let contradictions = package::contradictions(cluster, companions, "repositories");
    if !contradictions.is_empty() {
        return Err(contradictions);
    }
    let brought = package::Versions {
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
        return Err(vec![Problem::new(
            format!("the file wants Kubernetes {wanted}, and its packages are {found}"),
            "change kubernetes-version, or use other packages",
        )]);
    }
    let Some(kubernetes) = brought.kubernetes.or(wanted) else {
        return Err(vec![Problem::new(
            "nothing says which version of Kubernetes is installed",
            "write kubernetes-version: 1.NN into the deploy file",
        )]);
    };
    let versions = Versions {
        kubernetes,
        containerd: brought.containerd,
        etcd: brought.etcd,
        coredns: brought.coredns,
    };
    let check = versions.check(cluster);
    match check {
        Ok(()) => Ok(versions),
        Err(mismatches) => {
            let problems = mismatches.into_iter();
            Err(problems
                .map(|mismatch| Problem::new(mismatch.what, mismatch.remedy))
                .collect())
        }
    }
}

async fn manifests(bundles: &Bundles, cluster: &Cluster) -> Result<Vec<Manifest>, Vec<Problem>> {
    let mut manifests = Vec::new();
    let mut problems = Vec::new();
    for brought in bundles.manifests(cluster)? {
        let (name, text) = match brought {
            Brought::Text { name, text } => (name, text),
            Brought::Url(url) => match fetch(&url).await {
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
            Err(error) => problems.push(Problem::new(
                format!("{name}: {error}"),
                "correct the manifest",
            )),
        }
    }
    if problems.is_empty() {
        problems.extend(network_plugin::lacks_manifest(cluster, &manifests));
    }
    if problems.is_empty() {
        Ok(manifests)
    } else {
        Err(problems)
    }
}

async fn fetch(url: &str) -> Result<String, Problem> {
    Fetcher::new()?.text(url).await
}

fn images<'a>(installations: impl Iterator<Item = &'a Installation>) -> Vec<String> {
    let archives = installations.flat_map(|installation| &installation.images);
    let mut images: Vec<_> = archives
        .flat_map(|archive| archive.references().to_vec())
        .collect();
    images.sort();
    images.dedup();
    images
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;

    #[test]
    fn what_the_file_says_is_held_against_repositories() {
        let text = "cluster-id: demo\nruntime: containerd\nkubernetes-version: 1.29\netcd-version: 3.5.9\n\
            masters: [{name: m0, ip: 10.0.0.1, arch: amd64}]\n";
        let cluster = read(Input::private("deploy.yaml", text.as_bytes())).cluster;
        let cluster = cluster.unwrap();
        let archived = package::Versions {
            etcd: cluster.companion_versions.etcd,
            ..package::Versions::default()
        };
        let offered = |etcd: &str| package::Versions {
            etcd: Some(package::Release::parse(etcd).unwrap()),
            ..package::Versions::default()
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
        let cluster = with_whole_paths(&reading.cluster.unwrap(), &environment);
        let archives = cluster.packages.archives.values();
        let paths: Vec<_> = archives.map(|archive| archive.path.as_str()).collect();
        assert_eq!(paths, ["/home/me/a.tar.gz", "b.tar.gz"]);
    }
}
