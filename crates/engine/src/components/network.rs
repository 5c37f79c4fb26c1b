//! The pods' network: flannel built in, other plugins by the user's manifests.

use std::time::Duration;

use hatchery_host::operation::Script;
use hatchery_spec::{Cluster, cluster::Dialect, value::AbsolutePath};
use ipnet::IpNet;
use kube::api::DynamicObject;
use serde_json::Value;

use super::NodeContext;
use crate::{
    package::Problem,
    plan::Manifest,
    resource::{Error, Resources, word},
};

/// What plugins leave on a machine belongs to the cluster.
pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    for directory in ["/etc/cni/net.d", "/var/lib/cni"] {
        resources.own_directory(directory, 0o755)?;
    }
    let dirs = &node_context.cluster.runtime.cni_bin_dirs;
    let (own, shared): (Vec<_>, Vec<_>) = dirs
        .iter()
        .map(AbsolutePath::as_str)
        .partition(|dir| is_for_plugins(dir));
    for directory in own {
        resources.own_directory(directory, 0o755)?;
    }
    if shared.is_empty() {
        return Ok(());
    }
    resources.script(plugins_in(&shared)?);
    Ok(())
}

/// Whether a directory holds plugins and nothing else, such as `/opt/cni/bin` and `/usr/libexec/cni`. What comes into it
/// while the cluster lives is the cluster's; into `/usr/local/bin` anybody may put a program.
fn is_for_plugins(directory: &str) -> bool {
    directory.split('/').any(|part| part == "cni")
}

/// In directories that hold other programs too, only plugins that came with the cluster go with it. Programs out of the
/// user's packages are in the machine's record by themselves.
fn plugins_in(directories: &[&str]) -> Result<Script, Error> {
    const MARK: &str = "/var/lib/hatchery/plugins";
    const PLUGINS: &str = include_str!("plugins.sh");
    let words = directories
        .iter()
        .map(|directory| format!("'{}'", directory.replace('\'', "'\\''")));
    let words = words.collect::<Vec<_>>().join(" ");
    Ok(Script {
        name: word("plugins")?,
        check: format!("[ -e {MARK} ]"),
        apply: format!("{PLUGINS}list {words} >{MARK}.new && mv {MARK}.new {MARK}"),
        undo: format!(
            "mark={MARK}\n[ -e {MARK} ] || exit 0\n{PLUGINS}remove {words}\nrm -f {MARK}\n"
        ),
        deadline: Duration::from_secs(60),
    })
}

/// The plugin that needs no manifest of the user's.
pub(crate) const FLANNEL: &str = "flannel";

/// What is wrong when a plugin is named, and nothing that is applied is its manifest: nodes would never become ready.
pub(crate) fn lacks_manifest(cluster: &Cluster, manifests: &[Manifest]) -> Option<Problem> {
    let plugin = cluster.pods.plugin.as_ref()?;
    let name = plugin.name.to_ascii_lowercase();
    // An inventory's manifest may be called anything, and is known to be there.
    let is_given = plugin.manifest.is_some() || cluster.dialect == Dialect::Inventory;
    if name == FLANNEL || is_given || cluster.workers().len() == 0 {
        return None;
    }
    let speaks_of = |text: &str| text.to_ascii_lowercase().contains(&name);
    let is_its_own = |manifest: &Manifest| {
        let mut objects = manifest.objects.iter();
        speaks_of(&manifest.name)
            || objects.any(|object| object.metadata.name.as_deref().is_some_and(speaks_of))
    };
    if manifests.iter().any(is_its_own) {
        return None;
    }
    Some(Problem::new(
        format!(
            "the network plugin {name} has no manifest: neither an archive nor a list brings one"
        ),
        format!(
            "put it into the archive as addons/{name}.yaml or file/{name}.yaml, or list it in install.addition.master \
             with type yaml (a URL will do); plugin: flannel needs none"
        ),
    ))
}

/// flannel's images when no archive brings them: the daemon's, and the one with its CNI plugin.
const FLANNEL_IMAGE: &str = "docker.io/flannel/flannel:v0.26.7";
const PLUGIN_IMAGE: &str = "docker.io/flannel/flannel-cni-plugin:v1.6.2-flannel1";

/// flannel's manifest for this cluster. Of the images that the archives bring, those that are called so are taken.
pub(crate) fn flannel(cluster: &Cluster, images: &[String]) -> String {
    let called = |name: &str| {
        let mut images = images.iter().map(String::as_str);
        images.find(|image| {
            let path = image.rsplit_once(':').map_or(*image, |(path, _)| path);
            path.rsplit('/').next() == Some(name)
        })
    };
    let daemon = called("flannel");
    let mut text = include_str!("../../../../fixtures/addons/flannel.yaml").to_owned();
    // Ours holds the plugin too.
    if !daemon.is_some_and(|image| image.contains("hatchery/")) {
        let plugin = called("flannel-cni-plugin").unwrap_or(PLUGIN_IMAGE);
        let before = PLUGIN.replace("__FLANNEL_PLUGIN_IMAGE__", plugin);
        text = text.replacen("      containers:\n", &before, 1);
    }
    text.replace(
        "\"Network\": \"__POD_CIDR__\"",
        &networks(cluster).join(", "),
    )
    .replace("__FLANNEL_IMAGE__", daemon.unwrap_or(FLANNEL_IMAGE))
}

/// Puts the plugin in its place, where it has an image of its own.
const PLUGIN: &str = "      initContainers:
      - name: install-plugin
        image: __FLANNEL_PLUGIN_IMAGE__
        imagePullPolicy: IfNotPresent
        command: [/bin/sh, -ec, cp /flannel /host/bin/.flannel.new && mv /host/bin/.flannel.new /host/bin/flannel]
        securityContext:
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL]}
        volumeMounts:
        - {name: cni-bin, mountPath: /host/bin}
      containers:
";

/// The pods' networks as flannel's `net-conf.json` names them: a member for each word.
fn networks(cluster: &Cluster) -> Vec<String> {
    let members = flannel_networks(cluster);
    let member = |(name, value): (&str, Value)| format!("\"{name}\": {value}");
    members.into_iter().map(member).collect()
}

fn flannel_networks(cluster: &Cluster) -> Vec<(&'static str, Value)> {
    let mut members = Vec::new();
    for net in cluster.pods.cidrs.iter() {
        match net {
            IpNet::V4(net) => members.push(("Network", net.to_string().into())),
            IpNet::V6(net) => members.extend([
                ("EnableIPv6", true.into()),
                ("IPv6Network", net.to_string().into()),
            ]),
        }
    }
    if !members.iter().any(|(name, _)| *name == "Network") {
        members.push(("EnableIPv4", false.into()));
    }
    members
}

/// Manifests of calico and flannel name a network of their own, which is seldom the cluster's. Gives what was changed.
pub(crate) fn fit(cluster: &Cluster, objects: &mut [DynamicObject]) -> Vec<String> {
    let mut notes = Vec::new();
    for object in objects {
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        let is_calico = object.metadata.name.as_deref() == Some("calico-node");
        if kind == Some("DaemonSet") && is_calico {
            for net in cluster.pods.cidrs.iter() {
                let variable = match net {
                    IpNet::V4(_) => "CALICO_IPV4POOL_CIDR",
                    IpNet::V6(_) => "CALICO_IPV6POOL_CIDR",
                };
                if set_pool(&mut object.data, variable, &net.to_string()) {
                    notes.push(format!(
                        "calico's address pool is {net}, as the cluster's pods'"
                    ));
                }
            }
        }
        let network = object.data.pointer_mut("/data/net-conf.json");
        if let Some(Value::String(text)) = network
            && let Ok(Value::Object(mut net)) = serde_json::from_str(text)
            && net.contains_key("Network")
        {
            let members = flannel_networks(cluster);
            if members
                .iter()
                .any(|(name, value)| net.get(*name) != Some(value))
            {
                net.extend(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value)),
                );
                *text = format!("{:#}", Value::Object(net));
                let cidrs: Vec<_> = cluster
                    .pods
                    .cidrs
                    .iter()
                    .map(|net| net.to_string())
                    .collect();
                notes.push(format!(
                    "flannel's network is {}, as the cluster's pods'",
                    cidrs.join(" and ")
                ));
            }
        }
    }
    notes
}

/// Whether anything had to be changed.
fn set_pool(daemon_set: &mut Value, name: &str, cidr: &str) -> bool {
    let containers = daemon_set.pointer_mut("/spec/template/spec/containers");
    let Some(Value::Array(containers)) = containers else {
        return false;
    };
    let mut changed = false;
    for container in containers {
        if container.get("name").and_then(|name| name.as_str()) != Some("calico-node") {
            continue;
        }
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let variables = container
            .entry("env")
            .or_insert_with(|| Value::Array(Vec::new()));
        let Some(variables) = variables.as_array_mut() else {
            continue;
        };
        let wanted = serde_json::json!({"name": name, "value": cidr});
        match variables.iter_mut().find(|one| one["name"] == name) {
            Some(one) if *one == wanted => {}
            Some(one) => {
                *one = wanted;
                changed = true;
            }
            None => {
                variables.push(wanted);
                changed = true;
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use hatchery_host::operation::Operation;
    use hatchery_spec::{Input, read};

    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
        process::Command,
    };

    use super::*;
    use crate::{api, components::trial::Trial, resource::Resource};

    fn cluster(pods: &str, services: &str) -> Cluster {
        let master = if pods.starts_with("fd") {
            "fd00::1"
        } else {
            "10.0.0.1"
        };
        let text = format!(
            "cluster-id: demo\nruntime: containerd\nmasters: [{{name: m0, ip: '{master}'}}]\nworkers: []\n\
             network: {{plugin: flannel, podcidr: '{pods}'}}\nservice: {{cidr: '{services}'}}\n"
        );
        let reading = read(Input::private("deploy.yaml", text.as_bytes()));
        reading.cluster.unwrap()
    }

    fn single() -> Cluster {
        cluster("10.1.0.0/16", "10.32.0.0/16")
    }

    fn dual() -> Cluster {
        cluster("10.1.0.0/16,fd00:2::/56", "10.32.0.0/16,fd00:1::/112")
    }

    fn net_conf(objects: &[DynamicObject]) -> Value {
        let mut texts = objects
            .iter()
            .filter_map(|object| object.data.pointer("/data/net-conf.json")?.as_str());
        serde_json::from_str(texts.next().unwrap()).unwrap()
    }

    #[test]
    fn our_flannel_has_the_pods_networks() {
        let conf = |cluster: &Cluster| net_conf(&api::parse(&flannel(cluster, &[])).unwrap());
        let four = conf(&single());
        assert_eq!(four["Network"], "10.1.0.0/16");
        assert_eq!(four.get("EnableIPv6"), None);
        let both = conf(&dual());
        assert_eq!(both["Network"], "10.1.0.0/16");
        assert_eq!(both["EnableIPv6"], true);
        assert_eq!(both["IPv6Network"], "fd00:2::/56");
        let six = conf(&cluster("fd00:2::/56", "fd00:1::/112"));
        assert_eq!(six.get("Network"), None);
        assert_eq!(six["EnableIPv4"], false);
        // What is right already is left alone.
        let mut ours = api::parse(&flannel(&dual(), &[])).unwrap();
        assert_eq!(fit(&dual(), &mut ours), [""; 0]);
    }

    #[test]
    fn the_plugin_comes_from_where_it_is() {
        let images = |brought: &[&str]| {
            let brought: Vec<_> = brought.iter().map(|&image| image.to_owned()).collect();
            let objects = api::parse(&flannel(&single(), &brought)).unwrap();
            let pod = |object: &DynamicObject| object.data.pointer("/spec/template/spec").cloned();
            let pod = objects.iter().find_map(pod).unwrap();
            let lists = ["initContainers", "containers"].map(|list| pod[list].as_array().cloned());
            let containers = lists.into_iter().flatten().flatten();
            containers
                .map(|container| container["image"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(images(&[]), [PLUGIN_IMAGE, FLANNEL_IMAGE]);
        let ours = "docker.io/hatchery/flannel:v1";
        assert_eq!(images(&["a/pause:3", ours]), [ours]);
        let theirs = ["a:5000/flannel/flannel:v1", "a:5000/flannel-cni-plugin:v2"];
        assert_eq!(images(&theirs), [theirs[1], theirs[0]]);
    }

    /// In the image that the fixtures make, and in flannel's own.
    #[test]
    fn flannel_is_found_in_every_image() {
        let objects = api::parse(&flannel(&single(), &[])).unwrap();
        let command = |object: &DynamicObject| {
            let command = "/spec/template/spec/containers/0/command/2";
            object.data.pointer(command)?.as_str().map(str::to_owned)
        };
        let text = objects.iter().find_map(command).unwrap();
        let (_, start) = text.split_once(") &\n").unwrap();
        for place in ["flanneld", "opt/bin/flanneld"] {
            let root = tempfile::tempdir().unwrap();
            let program = root.path().join(place);
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let inside = start.replace(" /", &format!(" {}/", root.path().display()));
            let mut shell = Command::new("sh");
            let said = shell.args(["-ec", &inside, "flanneld", "--ip-masq"]);
            assert_eq!(said.output().unwrap().stdout, b"--ip-masq\n", "{place}");
        }
    }

    #[test]
    fn anothers_flannel_gets_them() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg}\n\
            data: {net-conf.json: '{\"Network\": \"10.244.0.0/16\", \"Backend\": {\"Type\": \"vxlan\"}}'}\n";
        let mut objects = api::parse(text).unwrap();
        assert_eq!(fit(&dual(), &mut objects).len(), 1);
        let conf = net_conf(&objects);
        assert_eq!(conf["Network"], "10.1.0.0/16");
        assert_eq!(conf["IPv6Network"], "fd00:2::/56");
        assert_eq!(conf["Backend"]["Type"], "vxlan");
    }

    #[test]
    fn a_plugin_without_a_manifest_is_refused() {
        let cluster = |plugin: &str| {
            let text = format!(
                "cluster-id: demo\nruntime: containerd\nmasters: [{{name: m0, ip: 10.0.0.1}}]\n\
                 workers: [{{name: m0, ip: 10.0.0.1}}]\nnetwork: {plugin}\n"
            );
            let reading = read(Input::private("deploy.yaml", text.as_bytes()));
            reading.cluster.unwrap()
        };
        let manifest = |name: &str, object: &str| {
            let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {object}}}\n");
            Manifest {
                name: name.to_owned(),
                objects: api::parse(&text).unwrap(),
            }
        };
        let calico = cluster("{plugin: calico}");
        let refused = lacks_manifest(&calico, &[manifest("other.yaml", "other")]).unwrap();
        assert_eq!(
            refused.message,
            "the network plugin calico has no manifest: neither an archive nor a list brings one"
        );
        assert!(refused.remedy.unwrap().contains("addons/calico.yaml"));
        for brought in [
            manifest("calico.yaml", "a"),
            manifest("https://example.org/Calico/v3.yaml", "a"),
            manifest("network.yaml", "calico-node"),
        ] {
            assert_eq!(lacks_manifest(&calico, &[brought]), None);
        }
        for fine in [
            "{plugin: flannel}",
            "{podcidr: 10.1.0.0/16}",
            "{plugin: calico, pluginargs: {NetworkYamlPath: /etc/kubernetes/a.yaml}}",
        ] {
            assert_eq!(lacks_manifest(&cluster(fine), &[]), None, "{fine}");
        }
    }

    #[test]
    fn calico_gets_a_pool_for_each_family() {
        let text = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: calico-node}\n\
            spec: {template: {spec: {containers: [{name: calico-node, env: [{name: IP, value: autodetect}]}]}}}\n";
        let mut objects = api::parse(text).unwrap();
        assert_eq!(fit(&dual(), &mut objects).len(), 2);
        assert_eq!(fit(&dual(), &mut objects), [""; 0]);
        assert_eq!(
            objects[0].data["spec"]["template"]["spec"]["containers"][0]["env"],
            serde_json::json!([
                {"name": "IP", "value": "autodetect"},
                {"name": "CALICO_IPV4POOL_CIDR", "value": "10.1.0.0/16"},
                {"name": "CALICO_IPV6POOL_CIDR", "value": "fd00:2::/56"},
            ])
        );
    }

    /// Directories that a component owns, and its scripts.
    fn wanted(cni_bin_dir: &str) -> (Vec<String>, Vec<Script>) {
        let trial = Trial::new(
            28,
            &format!("runtime: containerd\ncni-bin-dir: {cni_bin_dir}"),
        );
        let mut all = Resources::default();
        resources(&trial.node_context(), &mut all).unwrap();
        let (mut directories, mut scripts) = (Vec::new(), Vec::new());
        for resource in all.0 {
            match resource {
                Resource::Operation(Operation::Directory(one)) if one.contents_are_ours => {
                    directories.push(one.path.to_string());
                }
                Resource::Operation(Operation::Script(script)) => scripts.push(script),
                other => panic!("{other:?}"),
            }
        }
        (directories, scripts)
    }

    #[test]
    fn only_directories_for_plugins_are_emptied() {
        let always = ["/etc/cni/net.d", "/var/lib/cni"];
        let (directories, scripts) = wanted("/opt/cni/bin,/usr/libexec/cni");
        assert_eq!(directories[..2], always);
        assert_eq!(directories[2..], ["/opt/cni/bin", "/usr/libexec/cni"]);
        assert!(scripts.is_empty());
        let (directories, scripts) = wanted("/usr/local/bin,/opt/cni/bin");
        assert_eq!(directories[..2], always);
        assert_eq!(directories[2..], ["/opt/cni/bin"]);
        assert_eq!(scripts.len(), 1);
        assert!(scripts[0].undo.contains("remove '/usr/local/bin'\n"));
    }

    #[test]
    fn of_a_shared_directory_only_plugins_that_came_go() {
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            let place = tempfile::tempdir().unwrap();
            let (bin, made) = (place.path().join("it's bin"), place.path().join("deep/er"));
            let put = |name: &str, text: &str| fs::write(bin.join(name), text).unwrap();
            let run = |script: &str| {
                let script = script.replace("/var/lib/hatchery", place.path().to_str().unwrap());
                let mut command = Command::new(shell[0]);
                command.args(&shell[1..]).args(["-c", &script]);
                assert!(command.status().unwrap().success(), "{shell:?}");
            };
            let script = plugins_in(&[bin.to_str().unwrap(), made.to_str().unwrap()]).unwrap();
            fs::create_dir(&bin).unwrap();
            put("bridge", "theirs, getenv CNI_COMMAND");
            put("tool", "theirs");
            run(&script.apply);
            assert!(made.is_dir());

            for plugin in ["flannel", "calico", "calico-ipam", "loopback"] {
                put(plugin, "\u{7f}ELF\0\u{1}CNI_COMMAND\0");
            }
            put(
                "install",
                "#!/bin/sh\n: ${CNI_CONF_NAME:=10-calico.conflist}\n",
            );
            symlink("/opt/cni/bin/other", bin.join("other")).unwrap();
            // Somebody else's since, some of them called like plugins.
            put("firewall", "theirs");
            put("my tool", "theirs");
            symlink("/opt/tool/bin/linked", bin.join("linked")).unwrap();
            run(&script.undo);

            let mut left: Vec<_> = fs::read_dir(&bin)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            let expected = ["bridge", "firewall", "linked", "my tool", "tool"];
            assert_eq!(left, expected, "{shell:?}");
            assert!(!Path::new(&place.path().join("deep")).exists());
            // What was undone in part is undone again.
            run(&script.undo);
        }
    }
}
