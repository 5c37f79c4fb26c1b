//! iSulad, on each worker.

use hatchery_spec::{
    cluster::{Component, DOCKER_HUB},
    value::AbsolutePath,
};
use serde_json::{Map, json};

use super::Site;
use crate::{
    arguments::{Flags, without_said},
    unit_file::Service,
    wish::{Error, Wishes},
};

const CONFIGURATION: &str = "/etc/isulad/daemon.json";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    wishes.file(CONFIGURATION, 0o640, configuration(site))?;
    wishes.own_directory("/var/lib/isulad", 0o711)?;
    if let Some(endpoint) = &site.cluster.runtime.endpoint {
        wishes.file(
            "/etc/crictl.yaml",
            0o644,
            format!("runtime-endpoint: {endpoint}\n"),
        )?;
    }
    wishes.service("isulad", unit(site), &[CONFIGURATION])
}

fn unit(site: &Site<'_>) -> String {
    let mut lines = site.protected(-999);
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
    let flags = Flags::default().overridden(site.extra(Component::ContainerEngine));
    Service {
        description: "iSulad",
        notifies: true,
        after: &[],
        stamp: site.stamp(&["isulad"]),
        command: flags.command(&site.program("isulad")),
        lines,
    }
    .render()
}

/// Its package's own settings with those of a node. What the user says on its command line is left out: it refuses
/// to be told twice.
fn configuration(site: &Site<'_>) -> String {
    let runtime = &site.cluster.runtime;
    let dirs: Vec<_> = runtime
        .cni_bin_dirs
        .iter()
        .map(AbsolutePath::as_str)
        .collect();
    // It knows no registry by itself, so that short names need one.
    let mut mirrors = runtime.registries.mirrors_of(DOCKER_HUB).to_vec();
    if mirrors.is_empty() {
        mirrors.push(DOCKER_HUB.to_owned());
    }
    let mut settings = Map::from_iter(
        [
            ("group", json!("isula")),
            ("default-runtime", json!("lcr")),
            ("graph", json!("/var/lib/isulad")),
            ("state", json!("/var/run/isulad")),
            ("engine", json!("lcr")),
            ("log-level", json!("ERROR")),
            ("pidfile", json!("/var/run/isulad.pid")),
            (
                "log-opts",
                json!({"log-file-mode": "0600", "log-path": "/var/lib/isulad", "max-file": "1", "max-size": "30KB"}),
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
    without_said(settings, site.extra(Component::ContainerEngine), setting)
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
        insta::assert_snapshot!(configuration(&trial.site()));
        insta::assert_snapshot!(unit(&trial.site()));
        assert_eq!(trial.site().cgroup_driver(), "cgroupfs");
        assert_eq!(
            trial.site().runtime_endpoint(),
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
            serde_json::from_str(&configuration(&trial.site())).unwrap();
        assert_eq!(settings.get("hosts"), None);
        assert_eq!(settings.get("log-level"), None);
        assert_eq!(settings["registry-mirrors"], json!(["mirror.example"]));
        assert!(unit(&trial.site()).contains("--log-level=DEBUG"));
    }
}
