//! containerd, on each worker: 1.6 to 2.x, which have two forms of configuration.

use std::{collections::BTreeMap, fmt::Write as _};

use hatchery_host::{facts::RuntimeUse, operation::ImageStore};
use hatchery_spec::{
    cluster::{Component, DOCKER_HUB},
    value::AbsolutePath,
};

use super::{Runtime, before};
use crate::{
    arguments::{Flags, systemd_word},
    components::{NodeContext, registry},
    resource::{Error, Resources},
    unit_file::Service,
};

const CONFIGURATION: &str = "/etc/containerd/config.toml";
const DATA: &str = "/var/lib/containerd";
const REGISTRIES: &str = "/etc/containerd/certs.d";
/// Where manifests of network plugins put theirs.
const MANIFESTS_DIR: &str = "/opt/cni/bin";

/// Without its socket `ctr` would try for ten seconds.
const IMAGES: ImageStore = ImageStore {
    name: "containerd",
    list: "[ -S /run/containerd/containerd.sock ] && ctr -n k8s.io images ls -q",
    load: r#"exec ctr -n k8s.io images import "$1""#,
    remove: r#"[ ! -S /run/containerd/containerd.sock ] || ctr -n k8s.io images rm "$1""#,
};

pub(super) struct Containerd;

impl Runtime for Containerd {
    fn name(&self) -> &'static str {
        "containerd"
    }

    fn socket(&self) -> &'static str {
        "/run/containerd/containerd.sock"
    }

    fn unit(&self) -> &'static str {
        "containerd.service"
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

    fn resources(&self, node_context: &NodeContext<'_>, all: &mut Resources) -> Result<(), Error> {
        resources(node_context, all)
    }

    fn uses(&self, before: &RuntimeUse) -> Option<String> {
        let uses = before.uses_containerd();
        uses.then(|| super::containers(before.containerd_containers))
    }

    fn places(&self) -> &'static [&'static str] {
        &["/run/containerd", "/run/runc", "/run/nri"]
    }

    fn end(&self) -> &'static str {
        include_str!("containerd/end.sh")
    }
}

fn resources(node_context: &NodeContext<'_>, resources: &mut Resources) -> Result<(), Error> {
    before::resources(node_context, resources)?;
    resources.file(CONFIGURATION, 0o644, configuration(node_context))?;
    for (path, text) in registries(node_context) {
        resources.file(&path, 0o644, text)?;
    }
    // Releases that are no longer open to others' eyes insist on it; the older ones leave it.
    resources.own_directory(DATA, 0o700)?;
    resources.own_directory("/opt/containerd", 0o711)?;
    if let Some(endpoint) = &node_context.cluster.runtime.endpoint {
        resources.file(
            "/etc/crictl.yaml",
            0o644,
            format!("runtime-endpoint: {endpoint}\n"),
        )?;
    }
    let mut lines = node_context.protected(-999);
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
    lines.extend(gather_plugins(node_context));
    let flags = Flags::new([("config", CONFIGURATION)])
        .overridden(node_context.extra(Component::ContainerEngine));
    let unit = Service {
        description: "containerd",
        notifies: true,
        after: &["local-fs.target"],
        stamp: node_context.stamp(&["containerd"]),
        command: flags.command(&node_context.program("containerd")),
        lines,
    };
    resources.service("containerd", unit.render(), &[CONFIGURATION])
}

fn is_second(node_context: &NodeContext<'_>) -> bool {
    node_context
        .versions
        .containerd
        .is_none_or(|release| release.major >= 2)
}

/// Where its socket is, without `unix://`.
fn socket<'a>(node_context: &NodeContext<'a>) -> &'a str {
    let endpoint = node_context.cluster.runtime.endpoint.as_deref();
    endpoint
        .and_then(|endpoint| endpoint.strip_prefix("unix://"))
        .unwrap_or("/run/containerd/containerd.sock")
}

/// Whether it looks for plugins in more than one directory.
fn has_several_dirs(node_context: &NodeContext<'_>) -> bool {
    node_context
        .versions
        .containerd
        .is_none_or(|release| (release.major, release.minor) >= (2, 1))
}

/// The directory of plugins where it takes only one: that of the plugins' manifests, which bring theirs later.
fn plugin_dir<'a>(node_context: &NodeContext<'a>) -> &'a str {
    let dirs = &node_context.cluster.runtime.cni_bin_dirs;
    let usual = dirs.iter().find(|dir| dir.as_str() == MANIFESTS_DIR);
    let dir = usual.or(dirs.last());
    dir.map_or(MANIFESTS_DIR, AbsolutePath::as_str)
}

/// Plugins of the other directories are found there too.
fn gather_plugins(node_context: &NodeContext<'_>) -> Option<String> {
    let target = plugin_dir(node_context);
    let dirs = node_context.cluster.runtime.cni_bin_dirs.iter();
    let others: Vec<_> = dirs
        .map(AbsolutePath::as_str)
        .filter(|dir| *dir != target)
        .map(|dir| format!("{}/*", shell_word(dir)))
        .collect();
    if has_several_dirs(node_context) || others.is_empty() {
        return None;
    }
    let script = format!(
        "cd {} && for f in {}; do [ ! -x \"$f\" ] || [ -e \"${{f##*/}}\" ] || ln -s \"$f\" .; done",
        shell_word(target),
        others.join(" ")
    );
    Some(format!("ExecStartPre=/bin/sh -c {}", systemd_word(&script)))
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn configuration(node_context: &NodeContext<'_>) -> String {
    let pause = toml(&node_context.cluster.runtime.pause_image);
    let dirs: Vec<_> = node_context
        .cluster
        .runtime
        .cni_bin_dirs
        .iter()
        .map(|dir| toml(dir.as_str()))
        .collect();
    let plugins = if has_several_dirs(node_context) {
        format!("bin_dirs = [{}]", dirs.join(", "))
    } else {
        format!("bin_dir = {}", toml(plugin_dir(node_context)))
    };
    let systemd = node_context.cgroup_driver() == "systemd";
    let restricted = node_context.is_container();
    // Where a containerd that is shared has its data stays as it is.
    let before = &node_context.facts.runtime_use;
    let mut grpc = String::new();
    if node_context.cluster.runtime.allow_existing && before.uses_containerd() {
        for line in &before.containerd_directories {
            let _ = writeln!(grpc, "{line}");
        }
    }
    let _ = write!(grpc, "[grpc]\n  address = {}\n", toml(socket(node_context)));
    if is_second(node_context) {
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
  {plugins}
  conf_dir = '/etc/cni/net.d'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = {systemd}
"
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
  {plugins}
  conf_dir = '/etc/cni/net.d'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
  SystemdCgroup = {systemd}
"
    )
}

/// A file for each registry that is not asked in the usual way.
fn registries(node_context: &NodeContext<'_>) -> Vec<(String, String)> {
    let registries = &node_context.cluster.runtime.registries;
    let insecure = |host: &str| {
        registries
            .insecure
            .iter()
            .any(|one| registry::bare(one) == host)
    };
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (name, mirrors) in &registries.mirrors {
        let server = match name.as_str() {
            DOCKER_HUB => "registry-1.docker.io",
            name => name,
        };
        let mut text = String::new();
        // One that is spoken to without TLS is among the hosts, below.
        if !insecure(name) {
            let _ = writeln!(text, "server = 'https://{server}'");
        }
        for mirror in mirrors {
            let url = registry::url(mirror);
            let _ = write!(
                text,
                "\n[host.{}]\n  capabilities = ['pull', 'resolve']\n",
                toml(&url)
            );
            if insecure(registry::bare(&url)) {
                text += "  skip_verify = true\n";
            }
        }
        files.insert(name, text);
    }
    for host in registries.insecure.iter().map(|one| registry::bare(one)) {
        let text = files.entry(host).or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        for scheme in ["https", "http"] {
            let url = toml(&format!("{scheme}://{host}"));
            let _ = write!(
                text,
                "[host.{url}]\n  capabilities = ['pull', 'resolve', 'push']\n  skip_verify = true\n\n"
            );
        }
    }
    let path = |registry: &str| format!("{REGISTRIES}/{registry}/hosts.toml");
    let files = files.into_iter();
    files.map(|(name, text)| (path(name), text)).collect()
}

/// A string of TOML: a string of JSON is one.
fn toml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{components::trial::Trial, package::Release};

    #[test]
    fn plugins_are_found_in_every_directory() {
        let mut trial = Trial::new(
            20,
            "runtime: containerd\ncni-bin-dir: /usr/libexec/cni,/opt/cni/bin",
        );
        let release = |major, minor| {
            Some(Release {
                major,
                minor,
                patch: 0,
            })
        };
        for (version, line, gathers) in [
            (release(1, 6), "bin_dir = \"/opt/cni/bin\"", true),
            (release(2, 0), "bin_dir = \"/opt/cni/bin\"", true),
            (
                release(2, 1),
                "bin_dirs = [\"/usr/libexec/cni\", \"/opt/cni/bin\"]",
                false,
            ),
        ] {
            trial.versions.containerd = version;
            let text = configuration(&trial.node_context());
            assert!(text.contains(line), "{text}");
            assert_eq!(gather_plugins(&trial.node_context()).is_some(), gathers);
        }
        trial.versions.containerd = release(1, 6);
        insta::assert_snapshot!(gather_plugins(&trial.node_context()).unwrap());
    }

    /// The text of each registry's file.
    fn hosts(more: &str) -> Vec<(String, String)> {
        let text = format!("runtime: containerd\n{more}");
        registries(&Trial::new(31, &text).node_context())
            .into_iter()
            .map(|(path, text)| {
                let name = path.strip_prefix(REGISTRIES).unwrap();
                (name.trim_matches('/').to_owned(), text)
            })
            .collect()
    }

    #[test]
    fn mirrors_stand_in_for_the_pause_images_registry_too() {
        let names = |more: &str| {
            let files = hosts(more).into_iter();
            files.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let plain = "registry-mirrors: [mirror.example]\n";
        let files = hosts(plain);
        // The manual's own pause image is in k8s.gcr.io.
        assert_eq!(
            names(plain),
            ["docker.io/hosts.toml", "k8s.gcr.io/hosts.toml"]
        );
        assert!(
            files[0]
                .1
                .starts_with("server = 'https://registry-1.docker.io'\n")
        );
        assert!(files[1].1.starts_with("server = 'https://k8s.gcr.io'\n"));
        assert!(files[1].1.contains("[host.\"https://mirror.example\"]"));
        // A registry of the user's own is nobody else's business.
        let own = format!("{plain}pause-image: reg.example:5000/pause:3.9\n");
        assert_eq!(names(&own), ["docker.io/hosts.toml"]);
    }

    #[test]
    fn each_registry_has_its_own_mirrors() {
        let files = hosts(
            "registry-mirrors: {quay.io: [q.example, 'http://r.example:5000'], 'reg.example:5000': [m.example]}\n\
             insecure-registries: ['r.example:5000', 'reg.example:5000']\n",
        );
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "quay.io/hosts.toml",
                "r.example:5000/hosts.toml",
                "reg.example:5000/hosts.toml"
            ]
        );
        insta::assert_snapshot!(files[0].1.clone() + "=====\n" + &files[2].1);
    }
}
