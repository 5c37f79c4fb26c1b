//! Docker, on each worker: reached by the kubelet itself until Kubernetes 1.23, through cri-dockerd from then on.

use std::time::Duration;

use hatchery_host::operation::Script;
use hatchery_spec::{
    Cluster,
    cluster::{Component, DOCKER_HUB, Role},
    value::AbsolutePath,
    versions::{self, CRI_DOCKERD},
};
use serde_json::{Map, json};

use super::{NodeContext, docker_shared, registry, runtime_before};
use crate::{
    arguments::{Flags, without_said},
    resource::{Error, Resources, word},
    unit_file::Service,
    versions::Feature,
};

pub(super) const CONFIGURATION: &str = "/etc/docker/daemon.json";
/// Where cri-dockerd listens when the file does not say.
const BRIDGE: &str = "unix:///run/cri-dockerd.sock";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    runtime_before::resources(node_context, resources)?;
    if docker_shared::has_own_unit(node_context) {
        docker_shared::resources(node_context, resources)?;
    } else {
        engine(node_context, resources)?;
    }
    if node_context.versions.has(Feature::Dockershim) {
        resources.own_directory("/var/lib/dockershim", 0o755)?;
    } else if brings_bridge(node_context.cluster) {
        resources.own_directory("/var/lib/cri-dockerd", 0o755)?;
        resources.service("cri-docker", bridge(node_context), &[])?;
    }
    Ok(())
}

/// A docker that serves the cluster alone.
fn engine(node_context: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    // It puts a key of its own beside its configuration.
    resources.own_directory("/etc/docker", 0o755)?;
    if docker_shared::is_shared(node_context) {
        resources.file(
            CONFIGURATION,
            0o600,
            docker_shared::configuration(node_context),
        )?;
    } else {
        resources.file(CONFIGURATION, 0o644, configuration(node_context))?;
    }
    // As it makes it itself.
    resources.own_directory("/var/lib/docker", 0o710)?;
    // Its containerd's, and the kubelet's where that speaks to it.
    resources.own_directory("/opt/containerd", 0o711)?;
    activation(resources)?;
    resources.service("docker", unit(node_context), &[CONFIGURATION])
}

fn unit(node_context: &NodeContext<'_>) -> String {
    let mut lines = node_context.protected(-500);
    lines.extend(
        [
            "ExecReload=/bin/kill -s HUP $MAINPID",
            "Delegate=yes",
            // Pods go on while it is restarted.
            "KillMode=process",
            "LimitNOFILE=1048576",
            "LimitNPROC=infinity",
            "LimitCORE=infinity",
            "TasksMax=infinity",
        ]
        .map(str::to_owned),
    );
    // A docker that keeps its user's settings is told ours there: it refuses to be told twice.
    let extra = match docker_shared::is_shared(node_context) {
        true => None,
        false => node_context.extra(Component::ContainerEngine),
    };
    let flags = Flags::default().overridden(extra);
    Service {
        description: "Docker",
        notifies: true,
        // Its own containerd is the one of its package; another's is used when it runs.
        after: &["containerd.service", "firewalld.service"],
        stamp: node_context.stamp(&["dockerd", "containerd"]),
        command: flags.command(&node_context.program("dockerd")),
        lines,
    }
    .render()
}

/// A socket that systemd holds for another docker would be left without anybody behind it when this one listens at
/// its path.
fn activation(resources: &mut Resources) -> Result<(), Error> {
    const MARK: &str = "/var/lib/hatchery/docker-socket";
    resources.script(Script {
        name: word("docker-socket")?,
        check: "! systemctl -q is-active docker.socket".into(),
        apply: format!(
            "systemctl is-enabled docker.socket >{MARK}; systemctl disable -q --now docker.socket"
        ),
        undo: format!(
            "[ -e {MARK} ] || exit 0; read -r was <{MARK}; [ \"$was\" != enabled ] || systemctl enable -q docker.socket; \
             systemctl start docker.socket 2>/dev/null; rm -f {MARK}"
        ),
        deadline: Duration::from_secs(60),
    });
    Ok(())
}

/// What stands in its file. What the user says on its command line is left out: docker refuses to be told twice.
fn configuration(node_context: &NodeContext<'_>) -> String {
    let driver = format!("native.cgroupdriver={}", node_context.cgroup_driver());
    let mut settings = Map::from_iter([
        // Pods get their network from CNI plugins. A bridge of docker's own would only bring rules that drop what
        // is forwarded, so that pods on other nodes are not reached, and that stay behind when docker goes.
        ("bridge".to_owned(), json!("none")),
        ("iptables".to_owned(), json!(false)),
        // The kubelet makes control groups too; both must do it in the same way.
        ("exec-opts".to_owned(), json!([driver])),
        ("live-restore".to_owned(), json!(true)),
        // The kubelet does not rotate docker's logs.
        ("log-driver".to_owned(), json!("json-file")),
        (
            "log-opts".to_owned(),
            json!({"max-size": "10m", "max-file": "5"}),
        ),
    ]);
    for (name, list) in registries(node_context) {
        if !list.is_empty() {
            settings.insert(name.to_owned(), json!(list));
        }
    }
    without_said(
        settings,
        node_context.extra(Component::ContainerEngine),
        setting,
    )
}

/// Registries as docker's file lists them: mirrors are URLs there, insecure ones have no scheme.
pub(super) fn registries(node_context: &NodeContext<'_>) -> [(&'static str, Vec<String>); 2] {
    let registries = &node_context.cluster.runtime.registries;
    let each = |list: &[String], form: fn(&str) -> String| -> Vec<String> {
        list.iter().map(|one| form(one)).collect()
    };
    [
        (
            "registry-mirrors",
            each(registries.mirrors_for(DOCKER_HUB), registry::url),
        ),
        (
            "insecure-registries",
            each(&registries.insecure, |one| registry::bare(one).to_owned()),
        ),
    ]
}

/// What an argument is called in the file.
pub(super) fn setting(argument: &str) -> &str {
    match argument.trim_start_matches('-') {
        "exec-opt" => "exec-opts",
        "log-opt" => "log-opts",
        "registry-mirror" => "registry-mirrors",
        "insecure-registry" => "insecure-registries",
        "b" => "bridge",
        "H" | "host" => "hosts",
        "l" => "log-level",
        "label" => "labels",
        other => other,
    }
}

/// Whether the workers' lists install cri-dockerd.
pub(crate) fn brings_bridge(cluster: &Cluster) -> bool {
    versions::installs_cri_dockerd(cluster.packages.for_role(Role::Worker))
}

/// Where the kubelet finds docker when it does not know docker itself.
pub(crate) fn bridge_endpoint(cluster: &Cluster) -> &str {
    cluster.runtime.endpoint.as_deref().unwrap_or(BRIDGE)
}

/// What stands between the kubelet and docker. Where the lists do not bring it, the user runs it.
fn bridge(node_context: &NodeContext<'_>) -> String {
    let runtime = &node_context.cluster.runtime;
    let dirs: Vec<_> = runtime
        .cni_bin_dirs
        .iter()
        .map(AbsolutePath::as_str)
        .collect();
    let flags = Flags::new([
        (
            "container-runtime-endpoint",
            bridge_endpoint(node_context.cluster).to_owned(),
        ),
        ("cni-bin-dir", dirs.join(",")),
        ("cni-conf-dir", "/etc/cni/net.d".into()),
        ("network-plugin", "cni".into()),
        ("pod-infra-container-image", runtime.pause_image.clone()),
    ]);
    Service {
        description: "Docker's side of the container runtime interface",
        notifies: true,
        after: &["docker.service"],
        stamp: node_context.stamp(&[CRI_DOCKERD]),
        command: flags.command(&node_context.program(CRI_DOCKERD)),
        lines: [
            "Delegate=yes",
            "KillMode=process",
            "LimitNOFILE=1048576",
            "TasksMax=infinity",
        ]
        .map(str::to_owned)
        .into(),
    }
    .render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::trial::Trial;

    const WORKERS: &str =
        "runtime: docker\ninstall: {container: [{name: cri-dockerd, type: repo}]}";

    #[test]
    fn docker_and_kubelet_agree() {
        let trial = Trial::new(20, "runtime: docker");
        insta::assert_snapshot!(configuration(&trial.node_context()));
        insta::assert_snapshot!(unit(&trial.node_context()));
    }

    #[test]
    fn nothing_is_said_twice() {
        let trial = Trial::new(
            20,
            "runtime: docker\nregistry-mirrors: [mirror.example, 'http://other.example']\n\
             insecure-registries: ['http://plain.example:5000/']\n\
             config-extra-args: [{name: container-engine, extra-args: {--exec-opt: native.cgroupdriver=systemd, --data-root: /srv/docker}}]",
        );
        let text = configuration(&trial.node_context());
        let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(settings.get("exec-opts"), None, "{text}");
        assert_eq!(settings["bridge"], "none");
        assert_eq!(
            settings["registry-mirrors"],
            json!(["https://mirror.example", "http://other.example"])
        );
        assert_eq!(
            settings["insecure-registries"],
            json!(["plain.example:5000"])
        );
        let unit = unit(&trial.node_context());
        for flag in [
            "--exec-opt=native.cgroupdriver=systemd",
            "--data-root=/srv/docker",
        ] {
            assert!(unit.contains(flag), "{unit}");
        }
    }

    #[test]
    fn newer_kubelets_reach_docker_over_a_bridge() {
        let trial = Trial::new(28, WORKERS);
        insta::assert_snapshot!(bridge(&trial.node_context()));
        assert_eq!(trial.node_context().runtime_endpoint(), Some(BRIDGE));
        assert_eq!(trial.versions.check(&trial.cluster), Ok(()));
        assert_eq!(
            trial
                .paths(resources)
                .filter(|path| path.contains("cri-docker"))
                .count(),
            2
        );
        // The user's own is left to the user.
        let theirs = "unix:///run/theirs/cri-dockerd.sock";
        let trial = Trial::new(28, &format!("runtime: docker\nruntime-endpoint: {theirs}"));
        assert_eq!(trial.node_context().runtime_endpoint(), Some(theirs));
        assert_eq!(trial.versions.check(&trial.cluster), Ok(()));
        assert_eq!(
            trial
                .paths(resources)
                .filter(|path| path.contains("cri-docker"))
                .count(),
            0
        );
    }

    #[test]
    fn newer_kubelets_are_refused_without_one() {
        for minor in [23, 24] {
            let trial = Trial::new(minor, "runtime: docker");
            let refused = trial.versions.check(&trial.cluster);
            assert_eq!(refused.is_err(), minor == 24, "{refused:?}");
        }
        assert_eq!(
            Trial::new(23, WORKERS).node_context().runtime_endpoint(),
            None
        );
    }
}
