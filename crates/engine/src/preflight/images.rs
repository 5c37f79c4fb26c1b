//! Images that no archive brings: has a machine that needs them a way to their registry?
//!
//! Asked when there is a plan, which knows what runs in pods, and before it is carried out.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;
use hatchery_host::{facts::Facts, machine::Machine, transport};
use hatchery_spec::{
    Cluster,
    cluster::{DOCKER_HUB, Item, Machine as Node, Role},
    value::{Arch, Name},
};
use serde_json::Value;

use crate::{
    api_access::Machines,
    components::{registry, runtime},
    finding::{Finding, Severity},
    name_list::NameList,
    observed::Observed,
    package::full_reference,
    plan::{ApiWork, Plan, Work},
    wanted::Wanted,
};

/// A registry answers in less, or pods would wait long for their images.
const ANSWER: Duration = Duration::from_secs(5);

/// Docker's own registry is asked at another name than it is called by.
const DOCKER: &str = "registry-1.docker.io";

/// Images that cannot be pulled, each registry with the machines that would need it.
pub(crate) async fn check(
    wanted: &Wanted,
    plan: &Plan,
    machines: &Machines,
    observed: &Observed,
) -> Vec<Finding> {
    let Wanted {
        cluster,
        installations,
        ..
    } = wanted;
    let archs: Vec<_> = cluster.machines().iter().map(|node| node.arch).collect();
    let needed = needed(cluster, plan, &archs);
    let mut lacking: BTreeMap<String, (Vec<&Name>, BTreeSet<String>)> = BTreeMap::new();
    for node in cluster.machines() {
        let name = &node.name;
        let (Some(installation), Some(Ok((facts, managed)))) =
            (installations.get(name), observed.reply(name))
        else {
            continue;
        };
        if managed.cluster.is_some() || !node.is(Role::Worker) || has_own_ways(cluster, node, facts)
        {
            continue;
        }
        let archives = installation.images.iter();
        let brought: BTreeSet<_> = archives.flat_map(|one| one.references.clone()).collect();
        for image in needed.difference(&brought) {
            let (names, images) = lacking.entry(registry_of(image).to_owned()).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
            images.insert(image.clone());
        }
    }
    let asking = lacking.iter().map(|(registry, (names, images))| async move {
        let first = machines.get(*names.first()?)?;
        let reason = unreached(first, &addresses(cluster, registry)).await?;
        let images: Vec<_> = images.iter().cloned().collect();
        let them = if images.len() == 1 { "it" } else { "them" };
        Some(Finding {
            severity: Severity::Error,
            code: "image",
            machines: names.iter().map(ToString::to_string).collect(),
            message: format!(
                "cannot get {}: no archive brings {them}, and the registry {registry} does not answer: {reason}",
                NameList(&images)
            ),
            remedy: Some(format!(
                "put {them} into the archive's images ('docker save'), or give the machines a way to {registry}{}",
                if has_mirrors(cluster, registry) { " or to one of registry-mirrors" } else { "" }
            )),
        })
    });
    join_all(asking).await.into_iter().flatten().collect()
}

/// Whether the runtime can have mirrors of a registry.
fn has_mirrors(cluster: &Cluster, registry: &str) -> bool {
    registry == DOCKER_HUB || cluster.runtime.kind.mirrors_any_registry
}

/// Whether images may come to a machine in a way that is not known beforehand.
fn has_own_ways(cluster: &Cluster, node: &Node, facts: &Facts) -> bool {
    let wanted = runtime::for_cluster(cluster).name();
    let mut runtimes = facts.runtimes.iter();
    let mut roles = node.roles.iter();
    let is_script = |item: &Item| matches!(item, Item::Shell { .. });
    runtimes.any(|one| one.kind == wanted)
        || !facts.proxies.is_empty()
        || roles.any(|role| cluster.packages.for_role(*role).any(is_script))
}

/// Full names of all images that the cluster needs before it is up.
fn needed(cluster: &Cluster, plan: &Plan, archs: &[Arch]) -> BTreeSet<String> {
    let mut images = BTreeSet::from([cluster.runtime.pause_image.clone()]);
    for task in &plan.tasks {
        let Work::Api(ApiWork::Apply(manifests)) = &task.work else {
            continue;
        };
        for object in manifests.iter().flat_map(|manifest| &manifest.objects) {
            let pods = [
                "/spec",
                "/spec/template/spec",
                "/spec/jobTemplate/spec/template/spec",
            ];
            let pods = pods.iter().filter_map(|path| object.data.pointer(path));
            for pod in pods.filter(|pod| runs_on(pod, archs)) {
                let lists = ["initContainers", "containers"].map(|list| pod[list].as_array());
                let containers = lists.into_iter().flatten().flatten();
                let names = containers.filter_map(|container| container["image"].as_str());
                images.extend(names.map(str::to_owned));
            }
        }
    }
    images
        .iter()
        .filter_map(|image| full_reference(image))
        .collect()
}

/// Whether a pod may run on one of these processors: manifests for several have a set for each.
fn runs_on(pod: &Value, archs: &[Arch]) -> bool {
    let is_arch = |key: &str| key.trim_start_matches("beta.") == "kubernetes.io/arch";
    let is_ours = |value: &Value| archs.iter().any(|arch| value == arch.as_str());
    let selector = pod["nodeSelector"].as_object().into_iter().flatten();
    let selected = selector
        .filter(|(key, _)| is_arch(key))
        .all(|(_, value)| is_ours(value));
    let path =
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = pod.pointer(path).and_then(Value::as_array);
    let fits = |expression: &Value| {
        let about =
            expression["key"].as_str().is_some_and(is_arch) && expression["operator"] == "In";
        !about
            || expression["values"]
                .as_array()
                .into_iter()
                .flatten()
                .any(is_ours)
    };
    selected
        && terms.is_none_or(|terms| {
            let mut terms = terms.iter();
            terms.any(|term| {
                term["matchExpressions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .all(fits)
            })
        })
}

/// The first word of a full name.
fn registry_of(image: &str) -> &str {
    image
        .split_once('/')
        .map_or(image, |(registry, _)| registry)
}

/// Where the images of a registry are looked for; one of these is enough.
fn addresses(cluster: &Cluster, name: &str) -> Vec<(String, u16)> {
    let registries = &cluster.runtime.registries;
    let insecure = |host: &str| {
        registries
            .insecure
            .iter()
            .any(|one| registry::bare(one) == host)
    };
    let mut urls = Vec::new();
    let mirrors = registries.mirrors_for(name).iter();
    urls.extend(mirrors.map(|mirror| registry::url(mirror)));
    urls.push(registry::url(if name == DOCKER_HUB {
        DOCKER
    } else {
        name
    }));
    let plain: Vec<_> = urls
        .iter()
        .map(|url| registry::bare(url))
        .filter(|host| insecure(host))
        .map(|host| format!("http://{host}"))
        .collect();
    urls.extend(plain);
    urls.iter().filter_map(|url| address(url)).collect()
}

fn address(url: &str) -> Option<(String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    let usual = if uri.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    let host = uri.host()?.trim_matches(['[', ']']);
    Some((host.to_owned(), uri.port_u16().unwrap_or(usual)))
}

/// Why a machine comes to none of these; nothing if it does, or if its sshd does not let us ask.
async fn unreached(machine: &Machine, addresses: &[(String, u16)]) -> Option<String> {
    let mut reason = None;
    for (host, port) in addresses {
        let asking = async { machine.connection().await?.forward(host, *port).await };
        reason = Some(match tokio::time::timeout(ANSWER, asking).await {
            Err(_late) => format!(
                "nothing came from {host}:{port} within {} s",
                ANSWER.as_secs()
            ),
            Ok(Err(transport::Error::ForwardRefused {
                reason,
                forbidden: false,
                ..
            })) => format!("{host}:{port}: {reason}"),
            Ok(_) => return None,
        });
    }
    reason
}

#[cfg(test)]
mod tests {
    use hatchery_spec::{Input, read};

    use super::*;
    use crate::{
        api,
        plan::{Concurrency, Manifest, Task},
    };

    fn cluster(more: &str) -> Cluster {
        let text = format!(
            "cluster-id: demo\npause-image: reg.example/pause:1\nmasters: [{{name: m0, ip: 10.0.0.1}}]\n{more}\n"
        );
        read(Input::private("deploy.yaml", text.as_bytes()))
            .cluster
            .unwrap()
    }

    #[test]
    fn whatever_runs_in_pods_here_is_needed() {
        let text = "
kind: Pod
apiVersion: v1
metadata: {name: one}
spec: {containers: [{image: one}], initContainers: [{image: 'reg.example/first:1'}]}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: arm}
spec: {template: {spec: {nodeSelector: {beta.kubernetes.io/arch: arm64}, containers: [{image: arm}]}}}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: some}
spec: {template: {spec: {containers: [{image: 'some:2'}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [amd64]}]}]}}}}}}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: other}
spec: {template: {spec: {containers: [{image: 'other:2'}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [s390x]}]}]}}}}}}
---
kind: CronJob
apiVersion: batch/v1
metadata: {name: job}
spec: {jobTemplate: {spec: {template: {spec: {nodeSelector: {kubernetes.io/os: linux}, containers: [{image: 'a/job:1'}]}}}}}
";
        let manifest = Manifest {
            name: "theirs".into(),
            objects: api::parse(text).unwrap(),
        };
        let plan = Plan {
            tasks: vec![Task {
                title: "theirs".into(),
                needs: Vec::new(),
                after: Vec::new(),
                concurrency: Concurrency::Free,
                work: Work::Api(ApiWork::Apply(vec![manifest])),
            }],
            notes: Vec::new(),
        };
        let found: Vec<_> = needed(&cluster(""), &plan, &[Arch::Amd64])
            .into_iter()
            .collect();
        assert_eq!(
            found,
            [
                "docker.io/a/job:1",
                "docker.io/library/one:latest",
                "docker.io/library/some:2",
                "reg.example/first:1",
                "reg.example/pause:1"
            ]
        );
        assert_eq!(registry_of(&found[0]), "docker.io");
    }

    #[test]
    fn each_registry_is_asked_where_the_runtime_asks() {
        let asked = |more: &str, name: &str| {
            let found = addresses(&cluster(more), name).into_iter();
            let found: Vec<_> = found.map(|(host, port)| format!("{host} {port}")).collect();
            found.join(", ")
        };
        assert_eq!(asked("", "reg.example"), "reg.example 443");
        assert_eq!(asked("", "localhost:5000"), "localhost 5000");
        assert_eq!(asked("", "docker.io"), "registry-1.docker.io 443");
        let mirrors = "registry-mirrors: ['http://near.example/', 'far.example:5000']";
        assert_eq!(
            asked(mirrors, "docker.io"),
            "near.example 80, far.example 5000, registry-1.docker.io 443"
        );
        assert_eq!(asked(mirrors, "reg.example"), "reg.example 443");
        let named = "runtime: containerd\nregistry-mirrors: {reg.example: [near.example]}";
        assert_eq!(
            asked(named, "reg.example"),
            "near.example 443, reg.example 443"
        );
        let insecure = "insecure-registries: ['http://plain.example']";
        assert_eq!(
            asked(insecure, "plain.example"),
            "plain.example 443, plain.example 80"
        );
    }
}
