//! containerd, on each worker: 1.6 to 2.x, which have two forms of configuration.

use std::fmt::Write as _;

use hatchery_spec::{
    Cluster,
    cluster::{Component, RuntimeKind},
    value::AbsolutePath,
};

use super::Site;
use crate::{
    arguments::Flags,
    unit_file::Service,
    versions::Versions,
    wish::{Error, Wishes},
};

const CONFIGURATION: &str = "/etc/containerd/config.toml";
const REGISTRIES: &str = "/etc/containerd/certs.d";

pub(crate) fn wishes(site: &Site<'_>, wishes: &mut Wishes) -> Result<(), Error> {
    wishes.file(CONFIGURATION, 0o644, configuration(site))?;
    for (path, text) in registries(site) {
        wishes.file(&path, 0o644, text)?;
    }
    // Releases that are no longer open to others' eyes insist on it; the older ones leave it.
    wishes.own_directory("/var/lib/containerd", 0o700)?;
    wishes.own_directory("/opt/containerd", 0o711)?;
    if let Some(endpoint) = &site.cluster.runtime.endpoint {
        wishes.file(
            "/etc/crictl.yaml",
            0o644,
            format!("runtime-endpoint: {endpoint}\n"),
        )?;
    }
    let mut lines = site.protected(-999);
    lines.extend(
        [
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
    let flags =
        Flags::new([("config", CONFIGURATION)]).overridden(site.extra(Component::ContainerEngine));
    let unit = Service {
        description: "containerd",
        notifies: true,
        after: &["local-fs.target"],
        command: flags.command(&site.program("containerd")),
        lines,
    };
    wishes.service("containerd", unit.render(), &[CONFIGURATION])
}

fn is_second(site: &Site<'_>) -> bool {
    site.versions
        .containerd
        .is_none_or(|release| release.major >= 2)
}

/// Directories of plugins that this containerd does not look into: before 2.0 it knows only one.
pub(crate) fn note(cluster: &Cluster, versions: &Versions) -> Option<String> {
    let [first, others @ ..] = cluster.runtime.cni_bin_dirs.as_slice() else {
        return None;
    };
    if others.is_empty()
        || cluster.runtime.kind != RuntimeKind::Containerd
        || versions.containerd.is_none_or(|release| release.major >= 2)
    {
        return None;
    }
    let others: Vec<_> = others.iter().map(AbsolutePath::as_str).collect();
    Some(format!(
        "containerd before 2.0 looks for CNI plugins in one directory: in {first}, not in {}",
        others.join(" or ")
    ))
}

/// Where its socket is, without `unix://`.
fn socket<'a>(site: &Site<'a>) -> &'a str {
    let endpoint = site.cluster.runtime.endpoint.as_deref();
    endpoint
        .and_then(|endpoint| endpoint.strip_prefix("unix://"))
        .unwrap_or("/run/containerd/containerd.sock")
}

fn configuration(site: &Site<'_>) -> String {
    let pause = toml(&site.cluster.runtime.pause_image);
    let dirs: Vec<_> = site
        .cluster
        .runtime
        .cni_bin_dirs
        .iter()
        .map(|dir| toml(dir.as_str()))
        .collect();
    let systemd = site.cgroup_driver() == "systemd";
    let restricted = site.is_container();
    let grpc = format!("[grpc]\n  address = {}\n", toml(socket(site)));
    if is_second(site) {
        return format!(
            "version = 3
{grpc}
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = {pause}

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '{REGISTRIES}'

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = {restricted}

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [{dirs}]
  conf_dir = '/etc/cni/net.d'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = {systemd}
",
            dirs = dirs.join(", "),
        );
    }
    format!(
        "version = 2
{grpc}
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = {pause}
  restrict_oom_score_adj = {restricted}

[plugins.'io.containerd.grpc.v1.cri'.registry]
  config_path = '{REGISTRIES}'

[plugins.'io.containerd.grpc.v1.cri'.cni]
  bin_dir = {dir}
  conf_dir = '/etc/cni/net.d'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
  SystemdCgroup = {systemd}
",
        dir = dirs.first().map_or("'/opt/cni/bin'", String::as_str),
    )
}

/// A file for each registry that is not asked in the usual way.
fn registries(site: &Site<'_>) -> Vec<(String, String)> {
    let registries = &site.cluster.runtime.registries;
    let insecure = |host: &str| registries.insecure.iter().any(|one| bare(one) == host);
    let mut files = Vec::new();
    if !registries.mirrors.is_empty() {
        let mut text = "server = 'https://registry-1.docker.io'\n".to_owned();
        for mirror in &registries.mirrors {
            let url = if mirror.contains("://") {
                mirror.clone()
            } else {
                format!("https://{mirror}")
            };
            let _ = write!(
                text,
                "\n[host.{}]\n  capabilities = ['pull', 'resolve']\n",
                toml(&url)
            );
            if insecure(bare(&url)) {
                text += "  skip_verify = true\n";
            }
        }
        files.push((format!("{REGISTRIES}/docker.io/hosts.toml"), text));
    }
    for host in registries.insecure.iter().map(|one| bare(one)) {
        let mut text = String::new();
        for scheme in ["https", "http"] {
            let url = toml(&format!("{scheme}://{host}"));
            let _ = write!(
                text,
                "[host.{url}]\n  capabilities = ['pull', 'resolve', 'push']\n  skip_verify = true\n\n"
            );
        }
        files.push((format!("{REGISTRIES}/{host}/hosts.toml"), text));
    }
    files
}

fn bare(registry: &str) -> &str {
    let host = registry
        .split_once("://")
        .map_or(registry, |(_, host)| host);
    host.trim_end_matches('/')
}

/// A string of TOML: a string of JSON is one.
fn toml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
