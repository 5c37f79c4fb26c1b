//! Manifests and scripts.

use super::{
    super::Manifest,
    forge::{Forge, Place, cluster, own},
    only,
};

fn names(manifests: &[Manifest]) -> Vec<String> {
    manifests
        .iter()
        .map(|one| match one {
            Manifest::Text { name, text } => format!("{name}: {text}"),
            Manifest::Url(url) => url.clone(),
        })
        .collect()
}

const NETWORK: &str =
    "network: {plugin: calico, pluginargs: {NetworkYamlPath: /etc/kubernetes/addons/calico.yaml}}";

#[test]
fn the_network_comes_first_and_nothing_twice() {
    let install = "  addition:\n    master:\n      - {name: b.yaml, type: yaml}\n      \
        - {name: calico.yaml, type: yaml}\n      - {name: \"https://example.org/c.yaml\", type: yaml}";
    let cluster = cluster(NETWORK, install);
    let place = Place::with(
        Forge::new()
            .file("file/b.yaml", "b")
            .file("file/calico.yaml", "calico"),
    );
    let bundles = place.open(&cluster).unwrap();
    let found = bundles.manifests(&cluster).unwrap();
    assert_eq!(
        names(&found),
        [
            "calico.yaml: calico",
            "b.yaml: b",
            "https://example.org/c.yaml"
        ]
    );
}

#[test]
fn the_network_is_found_where_the_lists_put_it() {
    let install = "  kubernetes-master: [{name: addons, type: dir, dst: /etc/kubernetes}]";
    let cluster = cluster(NETWORK, install);
    let place = Place::with(
        Forge::new()
            .file("dir/addons/calico.yaml", "installed")
            .file("addons/calico.yaml", "another"),
    );
    let found = place.open(&cluster).unwrap().manifests(&cluster).unwrap();
    assert_eq!(names(&found), ["calico.yaml: installed"]);
}

#[test]
fn the_network_is_found_by_its_name_alone() {
    let install = "  kubernetes-master: [{name: calico, type: dir, dst: /etc/kubernetes/addons}]";
    let cluster = cluster(NETWORK, install);
    let one = || Forge::new().file("dir/calico/calico.yaml", "one");
    let place = Place::with(one());
    let found = place.open(&cluster).unwrap().manifests(&cluster).unwrap();
    assert_eq!(names(&found), ["calico.yaml: one"]);

    let place = Place::with(one().file("dir/old/calico.yaml", "two"));
    let (message, _) = only(
        place
            .open(&cluster)
            .unwrap()
            .manifests(&cluster)
            .unwrap_err(),
    );
    assert!(message.contains("several files calico.yaml"), "{message}");

    let place = Place::with(Forge::new().file("dir/calico/x.yaml", "one"));
    let (message, remedy) = only(
        place
            .open(&cluster)
            .unwrap()
            .manifests(&cluster)
            .unwrap_err(),
    );
    assert!(message.contains("holds no calico.yaml"), "{message}");
    assert!(remedy.contains("addons/calico.yaml"), "{remedy}");
}

#[test]
fn a_plugin_is_found_by_its_name() {
    let cluster = cluster("network: {plugin: calico}", "");
    for path in ["addons/calico.yaml", "file/calico.yaml", "calico.yaml"] {
        let place = Place::with(Forge::new().file(path, "calico"));
        let found = place.open(&cluster).unwrap().manifests(&cluster).unwrap();
        assert_eq!(names(&found), ["calico.yaml: calico"], "{path}");
    }
    // It may come from elsewhere, which is judged when everything is known.
    let place = Place::with(Forge::new().file("file/other.yaml", "other"));
    let found = place.open(&cluster).unwrap().manifests(&cluster).unwrap();
    assert_eq!(names(&found), [""; 0]);
}

#[test]
fn classic_addons_lie_in_their_directory() {
    let text = format!(
        "cluster-id: demo\nmasters: [{{name: m0, ip: 10.201.1.11, port: 22, arch: {0}}}]\n\
         nodes: [{{name: m0, ip: 10.201.1.11, port: 22, arch: {0}}}]\n\
         addons: [{{type: file, filename: x.yaml}}, {{type: file, filename: y.yaml}}]\n\
         package-src: {{type: tar.gz, {1}: own.tar.gz}}\n",
        own(),
        if own().as_str() == "arm64" {
            "armsrc"
        } else {
            "x86src"
        },
    );
    let cluster = super::forge::parse(&text);
    let place = Place::with(
        Forge::new()
            .file("addons/x.yaml", "x")
            .file("addons/y.yaml", [0xff]),
    );
    let (message, _) = only(
        place
            .open(&cluster)
            .unwrap()
            .manifests(&cluster)
            .unwrap_err(),
    );
    assert!(
        message.contains("addons/y.yaml, which is not UTF-8"),
        "{message}"
    );
    let place = Place::with(
        Forge::new()
            .file("addons/x.yaml", "x")
            .file("addons/y.yaml", "y"),
    );
    let found = place.open(&cluster).unwrap().manifests(&cluster).unwrap();
    assert_eq!(names(&found), ["x.yaml: x", "y.yaml: y"]);
}
