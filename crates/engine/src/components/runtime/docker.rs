//! Docker, on each worker: reached by the kubelet itself until Kubernetes 1.23, through cri-dockerd from then on.

mod shared;

use std::time::Duration;

use hatchery_host::{
    facts::RuntimeUse,
    operation::{ImageStore, Script},
};
use hatchery_spec::{
    Cluster,
    cluster::{Component, DOCKER_HUB, Role},
    value::AbsolutePath,
};
use serde_json::{Map, json};

use super::{Runtime, before};
use crate::{
    arguments::{Flags, without_said},
    components::{NodeContext, registry},
    package::without_docker_hub,
    resource::{Error, Resources, word},
    unit_file::Service,
};

const CONFIGURATION: &str = "/etc/docker/daemon.json";
const DATA: &str = "/var/lib/docker";
/// What stands between it and the kubelet.
const ADAPTER: &str = "cri-dockerd";
/// The default address that it listens on.
const ADAPTER_SOCKET: &str = "unix:///run/cri-dockerd.sock";

const IMAGES: ImageStore = ImageStore {
    name: "docker",
    list: "docker image ls --format '{{.Repository}}:{{.Tag}}'",
    load: r#"exec docker load -i "$1""#,
    remove: r#"docker image rm "$1""#,
};

pub(super) struct Docker;

impl Runtime for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn socket(&self) -> &'static str {
        "/run/docker.sock"
    }

    fn brings(&self) -> &'static [&'static str] {
        &["containerd"]
    }

    fn unit(&self) -> &'static str {
        "docker.service"
    }

    fn marks(&self) -> &'static [(&'static str, &'static str)] {
        // One that was there before has its own unit.
        &[("script", shared::SETTINGS)]
    }

    fn configuration(&self) -> &'static str {
        CONFIGURATION
    }

    fn data(&self) -> &'static str {
        DATA
    }

    fn store(&self) -> ImageStore {
        IMAGES
    }

    fn listed<'a>(&self, full: &'a str) -> &'a str {
        without_docker_hub(full)
    }

    fn resources(&self, node_context: &NodeContext<'_>, all: &mut Resources) -> Result<(), Error> {
        resources(node_context, all)
    }

    fn cgroup_driver(&self, node_context: &NodeContext<'_>) -> Option<&'static str> {
        shared::driver(node_context)
    }

    fn endpoint<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        Some(
            cluster
                .runtime
                .endpoint
                .as_deref()
                .unwrap_or(ADAPTER_SOCKET),
        )
    }

    fn built_in_flags(&self, cluster: &Cluster) -> Vec<(&'static str, String)> {
        vec![
            ("network-plugin", "cni".into()),
            ("cni-bin-dir", plugin_directories(cluster)),
            ("cni-conf-dir", "/etc/cni/net.d".into()),
            (
                "pod-infra-container-image",
                cluster.runtime.pause_image.clone(),
            ),
        ]
    }

    fn uses(&self, before: &RuntimeUse) -> Option<String> {
        shared::uses(before)
    }

    fn unreadable(&self, before: &RuntimeUse) -> Option<String> {
        shared::unreadable(before)
    }

    fn program(&self) -> &'static str {
        "dockerd"
    }

    fn places(&self) -> &'static [&'static str] {
        &[
            "/run/docker",
            "/run/docker.sock",
            "/run/docker.pid",
            "/run/dockershim.sock",
            "/run/cri-dockerd.sock",
            "/run/containerd",
            "/run/runc",
            "/run/nri",
        ]
    }

    fn end(&self) -> &'static str {
        include_str!("docker/end.sh")
    }
}

fn resources(node_context: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    before::resources(node_context, resources)?;
    if shared::has_own_unit(node_context) {
        shared::resources(node_context, resources)?;
    } else {
        engine(node_context, resources)?;
    }
    if node_context.has_built_in_runtime() {
        resources.own_directory("/var/lib/dockershim", 0o755)?;
    } else if installs_adapter(node_context.cluster) {
        resources.own_directory("/var/lib/cri-dockerd", 0o755)?;
        resources.service("cri-docker", adapter(node_context), &[])?;
    }
    Ok(())
}

/// A docker that serves the cluster alone.
fn engine(node_context: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    // It puts a key of its own beside its configuration.
    resources.own_directory("/etc/docker", 0o755)?;
    if shared::is_shared(node_context) {
        resources.file(CONFIGURATION, 0o600, shared::configuration(node_context))?;
    } else {
        resources.file(CONFIGURATION, 0o644, configuration(node_context))?;
    }
    // As it makes it itself.
    resources.own_directory(DATA, 0o710)?;
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
    let extra = match shared::is_shared(node_context) {
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

/// A socket that systemd holds for another docker would no longer lead to that one when this one listens at
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

/// The contents of its file. What the user sets on its command line is left out: docker refuses a setting that is in both.
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
fn registries(node_context: &NodeContext<'_>) -> [(&'static str, Vec<String>); 2] {
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
fn setting(argument: &str) -> &str {
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
fn installs_adapter(cluster: &Cluster) -> bool {
    let items = cluster.packages.for_role(Role::Worker);
    cluster.runtime.kind.installs_adapter(items)
}

/// Where CNI plugins are, with commas between.
fn plugin_directories(cluster: &Cluster) -> String {
    let directories = cluster.runtime.cni_bin_dirs.iter();
    let directories: Vec<_> = directories.map(AbsolutePath::as_str).collect();
    directories.join(",")
}

/// What stands between the kubelet and docker. Where the lists do not bring it, the user runs it.
fn adapter(node_context: &NodeContext<'_>) -> String {
    let cluster = node_context.cluster;
    let mut flags = Flags::new(Docker.built_in_flags(cluster));
    if let Some(endpoint) = Docker.endpoint(cluster) {
        flags.set("container-runtime-endpoint", endpoint);
    }
    Service {
        description: "Docker's side of the container runtime interface",
        notifies: true,
        after: &["docker.service"],
        stamp: node_context.stamp(&[ADAPTER]),
        command: flags.command(&node_context.program(ADAPTER)),
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
        insta::assert_snapshot!(adapter(&trial.node_context()));
        assert_eq!(
            trial.node_context().runtime_endpoint(),
            Some(ADAPTER_SOCKET)
        );
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
