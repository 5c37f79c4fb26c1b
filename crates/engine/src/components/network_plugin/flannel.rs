//! flannel, which needs no manifest of the user's.

use hatchery_host::operation::Protocol;
use hatchery_spec::Cluster;
use ipnet::IpNet;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{Leftovers, NetworkPlugin};

pub(super) struct Flannel;

impl NetworkPlugin for Flannel {
    fn name(&self) -> &'static str {
        "flannel"
    }

    fn modules(&self) -> &'static [&'static str] {
        &["vxlan"]
    }

    fn ports(&self) -> &'static [(u16, Protocol)] {
        &[(8472, Protocol::Udp)]
    }

    fn interfaces(&self) -> &'static [&'static str] {
        &["flannel*"]
    }

    fn programs(&self) -> &'static [&'static str] {
        &["flannel"]
    }

    fn manifest(&self, cluster: &Cluster, images: &[String]) -> Option<String> {
        Some(manifest(cluster, images))
    }

    fn fit(&self, cluster: &Cluster, object: &mut DynamicObject) -> Vec<String> {
        let fitted = [fit_network(cluster, object), fit_api(cluster, object)];
        fitted.into_iter().flatten().collect()
    }

    fn leftovers(&self) -> Leftovers {
        Leftovers {
            places: &["/run/flannel"],
            links: &["flannel[.]1[@:]", "flannel-v6[.]1[@:]"],
            chains: &["FLANNEL-"],
            comments: &["flanneld "],
            ..Leftovers::default()
        }
    }
}

/// flannel's images when no archive brings them: the daemon's, and the one with its CNI plugin.
const FLANNEL_IMAGE: &str = "docker.io/flannel/flannel:v0.26.7";
const PLUGIN_IMAGE: &str = "docker.io/flannel/flannel-cni-plugin:v1.6.2-flannel1";

/// flannel's manifest for this cluster. Of the images that the archives bring, those that are called so are taken.
fn manifest(cluster: &Cluster, images: &[String]) -> String {
    let called = |name: &str| {
        let mut images = images.iter().map(String::as_str);
        images.find(|image| {
            let path = image.rsplit_once(':').map_or(*image, |(path, _)| path);
            path.rsplit('/').next() == Some(name)
        })
    };
    let daemon = called("flannel");
    let mut text = include_str!("../../../../../fixtures/addons/flannel.yaml").to_owned();
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
    let members = members(cluster);
    let member = |(name, value): (&str, Value)| format!("\"{name}\": {value}");
    members.into_iter().map(member).collect()
}

fn members(cluster: &Cluster) -> Vec<(&'static str, Value)> {
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

/// Sets the network in flannel's configuration; returns whether it had to be changed.
fn fit_network(cluster: &Cluster, object: &mut DynamicObject) -> Option<String> {
    let Some(Value::String(text)) = object.data.pointer_mut("/data/net-conf.json") else {
        return None;
    };
    let Ok(Value::Object(mut net)) = serde_json::from_str(text) else {
        return None;
    };
    let members = members(cluster);
    let mut wanted = members.iter();
    let fits = wanted.all(|(name, value)| net.get(*name) == Some(value));
    if fits || !net.contains_key("Network") {
        return None;
    }
    let members = members.into_iter();
    net.extend(members.map(|(name, value)| (name.to_owned(), value)));
    *text = format!("{:#}", Value::Object(net));
    let cidrs: Vec<_> = cluster
        .pods
        .cidrs
        .iter()
        .map(|net| net.to_string())
        .collect();
    Some(format!(
        "flannel's network is {}, as the cluster's pods'",
        cidrs.join(" and ")
    ))
}

/// flannel reaches the API where the kubelets do, not by the address of a Service, which leads nowhere before kube-proxy has
/// seen its node: a request that is too early is not answered and tried again after ten seconds, and the node waits for it.
/// Returns what was changed.
fn fit_api(cluster: &Cluster, object: &mut DynamicObject) -> Option<String> {
    let containers = object.data.pointer_mut("/spec/template/spec/containers")?;
    let mut containers = containers.as_array_mut()?.iter_mut();
    let container = containers.find(|container| {
        let words = ["command", "args"].map(|list| container[list].as_array());
        let mut words = words.into_iter().flatten().flatten();
        words.any(|word| word == "--kube-subnet-mgr")
    })?;
    let env = container.as_object_mut()?.entry("env");
    let env = env.or_insert_with(|| json!([])).as_array_mut()?;
    let endpoint = &cluster.endpoint;
    let variables = [
        ("KUBERNETES_SERVICE_HOST", endpoint.host.to_string()),
        ("KUBERNETES_SERVICE_PORT", endpoint.port.to_string()),
    ];
    if env
        .iter()
        .any(|one| variables.iter().any(|(name, _)| one["name"] == *name))
    {
        return None;
    }
    let variables = variables.map(|(name, value)| json!({"name": name, "value": value}));
    env.splice(..0, variables);
    Some(format!(
        "flannel reaches the API at {endpoint}, as the kubelets do"
    ))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

    use hatchery_spec::{Input, read};

    use super::{super::fit, *};
    use crate::api;

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
        let conf = |cluster: &Cluster| net_conf(&api::parse(&manifest(cluster, &[])).unwrap());
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
        let mut ours = api::parse(&manifest(&dual(), &[])).unwrap();
        assert_eq!(
            ours.iter_mut().find_map(|one| fit_network(&dual(), one)),
            None
        );
    }

    #[test]
    fn flannel_asks_the_api_where_kubelets_do() {
        let env = |objects: &[DynamicObject]| {
            let env = "/spec/template/spec/containers/0/env";
            let mut env = objects.iter().filter_map(|object| object.data.pointer(env));
            env.next()
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let value = |objects: &[DynamicObject], name: &str| {
            let found: Vec<_> = env(objects)
                .into_iter()
                .filter(|one| one["name"] == name)
                .collect();
            assert_eq!(found.len(), 1, "{name}");
            found[0]["value"].as_str().map(str::to_owned)
        };
        let six = cluster("fd00:2::/56", "fd00:1::/112");
        for (cluster, address) in [(single(), "10.0.0.1"), (six, "fd00::1")] {
            let mut objects = api::parse(&manifest(&cluster, &[])).unwrap();
            let notes = fit(&cluster, &mut objects);
            assert_eq!(
                notes,
                [format!(
                    "flannel reaches the API at {}, as the kubelets do",
                    cluster.endpoint
                )]
            );
            assert_eq!(
                value(&objects, "KUBERNETES_SERVICE_HOST").as_deref(),
                Some(address)
            );
            assert_eq!(
                value(&objects, "KUBERNETES_SERVICE_PORT").as_deref(),
                Some("6443")
            );
            assert_eq!(value(&objects, "HOST_IP"), None);
            // Once is enough.
            assert_eq!(fit(&cluster, &mut objects), [""; 0]);
        }
        // The user's own choice counts, and so does somebody else's container.
        for (container, count) in [
            (
                "args: [--kube-subnet-mgr], env: [{name: KUBERNETES_SERVICE_HOST, value: api.example}]",
                1,
            ),
            (
                "args: [--kube-subnet-mgr], env: [{name: KUBERNETES_SERVICE_PORT, value: '443'}]",
                1,
            ),
            ("args: [--ip-masq]", 0),
            ("args: [--kube-subnet-mgr]", 2),
        ] {
            let text = format!(
                "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: x}}\n\
                 spec: {{template: {{spec: {{containers: [{{name: x, {container}}}]}}}}}}\n"
            );
            let mut objects = api::parse(&text).unwrap();
            fit(&single(), &mut objects);
            assert_eq!(env(&objects).len(), count, "{container}");
        }
    }

    #[test]
    fn the_plugin_comes_from_where_it_is() {
        let images = |brought: &[&str]| {
            let brought: Vec<_> = brought.iter().map(|&image| image.to_owned()).collect();
            let objects = api::parse(&manifest(&single(), &brought)).unwrap();
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
        let objects = api::parse(&manifest(&single(), &[])).unwrap();
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
}
