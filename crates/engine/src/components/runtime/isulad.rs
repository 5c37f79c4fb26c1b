//! iSulad, on each worker.

use hatchery_host::operation::ImageStore;
use hatchery_spec::{
    cluster::{Component, DOCKER_HUB},
    value::AbsolutePath,
};
use serde_json::{Map, json};

use super::Runtime;
use crate::{
    arguments::{Flags, without_said},
    components::NodeContext,
    package::without_docker_hub,
    resource::{Error, Resources},
    unit_file::Service,
};

const CONFIGURATION: &str = "/etc/isulad/daemon.json";
const DATA: &str = "/var/lib/isulad";

const IMAGES: ImageStore = ImageStore {
    name: "isulad",
    list: r"isula images | sed '1d;s/^\([^ ]*\)  *\([^ ]*\) .*/\1:\2/'",
    load: r#"exec isula load -i "$1""#,
    remove: r#"isula rmi "$1""#,
};

/// See [`Runtime::end`].
const END: &str = r#"# shellcheck shell=sh
isulad_end() {
  command -v isula >/dev/null && systemctl -q is-active isulad.service 2>/dev/null || return 0
  ids=$(isula ps -aq --filter label=io.kubernetes.pod.namespace 2>/dev/null)
  # shellcheck disable=SC2086 # ids have no spaces
  [ -z "$ids" ] || isula rm -f $ids >/dev/null 2>&1
}
isulad_unmount() {
  ! new 'place /run/isulad' || unmount_new '^(/run|/var/lib)/isulad/'
}
"#;

pub(super) struct Isulad;

impl Runtime for Isulad {
    fn name(&self) -> &'static str {
        "isulad"
    }

    fn socket(&self) -> &'static str {
        "/run/isulad.sock"
    }

    fn unit(&self) -> &'static str {
        "isulad.service"
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

    fn cgroup_driver(&self, _: &NodeContext<'_>) -> Option<&'static str> {
        // Its own runtime does not ask systemd.
        Some("cgroupfs")
    }

    fn places(&self) -> &'static [&'static str] {
        &[
            "/run/isulad",
            "/run/isulad.sock",
            "/run/isulad.pid",
            "/run/isulad_image.sock",
            "/var/lib/lcr",
        ]
    }

    fn groups(&self) -> &'static [&'static str] {
        &["isulad"]
    }

    fn namespaces(&self) -> &'static [&'static str] {
        &["/run/netns/isulacni-*"]
    }

    fn end(&self) -> &'static str {
        END
    }
}

fn resources(node_context: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    resources.file(CONFIGURATION, 0o640, configuration(node_context))?;
    resources.own_directory(DATA, 0o711)?;
    if let Some(endpoint) = &node_context.cluster.runtime.endpoint {
        resources.file(
            "/etc/crictl.yaml",
            0o644,
            format!("runtime-endpoint: {endpoint}\n"),
        )?;
    }
    resources.service("isulad", unit(node_context), &[CONFIGURATION])
}

fn unit(node_context: &NodeContext<'_>) -> String {
    let mut lines = node_context.protected(-999);
    lines.extend(
        [
            "ExecReload=/bin/kill -s HUP $MAINPID",
            "Delegate=yes",
            // Pods go on while it is restarted.
            "KillMode=process",
            "LimitNOFILE=1048576",
            "LimitNPROC=infinity",
            "LimitCORE=infinity",
            "TimeoutStartSec=180",
        ]
        .map(str::to_owned),
    );
    let flags = Flags::default().overridden(node_context.extra(Component::ContainerEngine));
    Service {
        description: "iSulad",
        notifies: true,
        after: &[],
        stamp: node_context.stamp(&["isulad"]),
        command: flags.command(&node_context.program("isulad")),
        lines,
    }
    .render()
}

/// Its package's own settings with those of a node. What the user sets on its command line is left out: it refuses
/// a setting that is in both.
fn configuration(node_context: &NodeContext<'_>) -> String {
    let runtime = &node_context.cluster.runtime;
    let dirs: Vec<_> = runtime
        .cni_bin_dirs
        .iter()
        .map(AbsolutePath::as_str)
        .collect();
    // It knows no registry by itself, so that short names need one.
    let mut mirrors = runtime.registries.mirrors_for(DOCKER_HUB).to_vec();
    if mirrors.is_empty() {
        mirrors.push(DOCKER_HUB.to_owned());
    }
    let mut settings = Map::from_iter(
        [
            ("group", json!("isula")),
            ("default-runtime", json!("lcr")),
            ("graph", json!(DATA)),
            ("state", json!("/var/run/isulad")),
            ("engine", json!("lcr")),
            ("log-level", json!("ERROR")),
            ("pidfile", json!("/var/run/isulad.pid")),
            (
                "log-opts",
                json!({"log-file-mode": "0600", "log-path": DATA, "max-file": "1", "max-size": "30KB"}),
            ),
            ("log-driver", json!("stdout")),
            ("hook-spec", json!("/etc/default/isulad/hooks/default.json")),
            ("start-timeout", json!("2m")),
            ("storage-driver", json!("overlay2")),
            (
                "storage-opts",
                json!(["overlay2.override_kernel_check=true"]),
            ),
            ("registry-mirrors", json!(mirrors)),
            ("insecure-registries", json!(runtime.registries.insecure)),
            ("pod-sandbox-image", json!(runtime.pause_image)),
            ("native.umask", json!("secure")),
            ("network-plugin", json!("cni")),
            ("cni-bin-dir", json!(dirs.join(","))),
            ("cni-conf-dir", json!("/etc/cni/net.d")),
            ("image-layer-check", json!(false)),
            ("use-decrypted-key", json!(true)),
            ("insecure-skip-verify-enforce", json!(false)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    if let Some(endpoint) = &runtime.endpoint {
        settings.insert("hosts".to_owned(), json!([endpoint]));
    }
    without_said(
        settings,
        node_context.extra(Component::ContainerEngine),
        setting,
    )
}

/// What an argument is called in the file.
fn setting(argument: &str) -> &str {
    match argument.trim_start_matches('-') {
        "host" | "H" => "hosts",
        "insecure-registry" => "insecure-registries",
        "storage-opt" => "storage-opts",
        "log-opt" => "log-opts",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::trial::Trial;

    #[test]
    fn isulad_is_told_all_of_a_node() {
        let trial = Trial::new(
            28,
            "runtime: isulad\ninsecure-registries: [registry.example:5000]",
        );
        insta::assert_snapshot!(configuration(&trial.node_context()));
        insta::assert_snapshot!(unit(&trial.node_context()));
        assert_eq!(trial.node_context().cgroup_driver(), "cgroupfs");
        assert_eq!(
            trial.node_context().runtime_endpoint(),
            Some("unix:///var/run/isulad.sock")
        );
    }

    #[test]
    fn nothing_is_said_twice() {
        let trial = Trial::new(
            20,
            "runtime: isulad\nregistry-mirrors: [mirror.example]\n\
             config-extra-args: [{name: container-engine, extra-args: {--host: 'unix:///x.sock', --log-level: DEBUG}}]",
        );
        let settings: serde_json::Value =
            serde_json::from_str(&configuration(&trial.node_context())).unwrap();
        assert_eq!(settings.get("hosts"), None);
        assert_eq!(settings.get("log-level"), None);
        assert_eq!(settings["registry-mirrors"], json!(["mirror.example"]));
        assert!(unit(&trial.node_context()).contains("--log-level=DEBUG"));
    }
}
