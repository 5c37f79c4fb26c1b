//! Every key of a deploy file makes a difference in the plan, or where a check of its own sees it.

#[path = "../../../spec/tests/keys/cases.rs"]
#[allow(dead_code, reason = "shared with the tests of the reader")]
mod cases;

use std::collections::BTreeSet;

use hatchery_spec::{cluster::Component, keys::KEYS, value::Version};

use super::{elsewhere::Check, ground, text};

/// Keys that do not change what is planned for machines without archives, and the check that shows their effect.
#[rustfmt::skip]
const ELSEWHERE: &[(&str, &str, Check)] = &[
    ("", "etcd-version", Check::Versions),
    ("", "containerd-version", Check::Versions),
    ("", "coredns-version", Check::Versions),
    ("", "username", Check::Routes),
    ("", "password", Check::Routes),
    ("", "password-env", Check::Routes),
    ("", "password-file", Check::Routes),
    ("", "private-key-path", Check::Routes),
    ("", "bastion", Check::Routes),
    ("", "host-key-checking", Check::Routes),
    ("<host>", "port", Check::Routes),
    ("<host>", "user", Check::Routes),
    ("<host>", "password", Check::Routes),
    ("<host>", "password-env", Check::Routes),
    ("<host>", "password-file", Check::Routes),
    ("<host>", "private-key-path", Check::Routes),
    ("<host>", "bastion", Check::Routes),
    ("<host>", "host-key", Check::Routes),
    ("<bastion>", "host", Check::Routes),
    ("<bastion>", "port", Check::Routes),
    ("<bastion>", "user", Check::Routes),
    ("<bastion>", "password", Check::Routes),
    ("<bastion>", "password-env", Check::Routes),
    ("<bastion>", "password-file", Check::Routes),
    ("<bastion>", "private-key-path", Check::Routes),
    ("<bastion>", "host-key", Check::Routes),
    ("", "allow-existing-runtime", Check::ExistingRuntime),
    ("", "external-ca", Check::Authorities),
    ("", "external-ca-path", Check::Authorities),
    ("", "install", Check::Packages),
    ("", "package-src", Check::Packages),
    ("", "pacakges", Check::Packages),
    ("", "packages", Check::Packages),
    ("", "addons", Check::Packages),
    ("network", "pluginargs", Check::Packages),
    ("network", "plugin-args", Check::Packages),
    ("install", "package-source", Check::Packages),
    ("install", "etcd", Check::Packages),
    ("install.package-source", "srcpath", Check::Packages),
    ("install.addition", "master", Check::Packages),
    ("install.addition", "etcd", Check::Packages),
    ("<item>", "name", Check::Packages),
    ("<item>", "type", Check::Packages),
    ("<item>", "dst", Check::Packages),
    ("<item>", "dstpath", Check::Packages),
    ("package-src", "armsrc", Check::Packages),
    ("package-src", "x86src", Check::Packages),
    ("packages", "master", Check::Packages),
    ("packages", "node", Check::Packages),
    ("packages", "etcd", Check::Packages),
    ("packages", "loadbalance", Check::Packages),
    ("addons", "filename", Check::Packages),
];

/// Where the reader's change of a key is too small to be planned differently.
const LARGER: &[(&str, &str, &str, &str)] = &[("", "kubernetes-version", "1.31.1", "1.24.1")];

/// Everything that is planned for a file.
fn planned(text: &str) -> String {
    let cluster = ground::cluster(text);
    let usual = Version::parse("1.31").unwrap();
    let kubernetes = cluster.kubernetes_version.unwrap_or(usual);
    let versions = ground::versions(&kubernetes.to_string());
    text::full(&ground::plan(&cluster, &versions, &ground::real_machine()))
}

fn elsewhere(section: &str, key: &str) -> Option<Check> {
    let mut rows = ELSEWHERE.iter();
    let row = rows.find(|(one, other, _)| (*one, *other) == (section, key));
    row.map(|(_, _, check)| *check)
}

#[test]
fn every_key_makes_a_difference() {
    let mut wrong = Vec::new();
    for (section, key, base, from, to) in cases::CASES {
        let info = KEYS
            .iter()
            .find(|info| (info.section, info.key) == (*section, *key))
            .unwrap();
        // Only one value is accepted.
        if info.effect == "!" {
            continue;
        }
        let larger = LARGER.iter().find(|row| (row.0, row.1) == (*section, *key));
        let (from, to) = larger.map_or((*from, *to), |row| (row.2, row.3));
        let changed = base.replacen(from, to, 1);
        let differs = planned(base) != planned(&changed);
        match (differs, elsewhere(section, key)) {
            (true, None) => {}
            (false, None) => wrong.push(format!("{section} {key} changes nothing")),
            (true, Some(_)) => wrong.push(format!("{section} {key} changes the plan after all")),
            (false, Some(check)) => {
                if check.sees(base) == check.sees(&changed) {
                    wrong.push(format!(
                        "{section} {key} changes nothing that {check:?} sees"
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn checks_are_named_once_and_for_keys_that_exist() {
    let mut seen = BTreeSet::new();
    for (section, key, _) in ELSEWHERE {
        assert!(seen.insert((section, key)), "{section} {key} twice");
        assert!(
            KEYS.iter()
                .any(|info| (info.section, info.key) == (*section, *key)),
            "{section} {key} is not a key"
        );
    }
}

const BASE: &str = "cluster-id: one\nruntime: containerd\nmasters: [{name: m0, ip: 192.168.0.1}]\n\
    workers: [{name: m0, ip: 192.168.0.1}]\n";

/// The texts of all files of one name.
fn file(text: &str, name: &str) -> String {
    let plan = ground::plan(
        &ground::cluster(text),
        &ground::versions("1.31"),
        &ground::real_machine(),
    );
    let mut files = text::rendered(&plan).into_iter();
    let found = files.find(|file| file.name.ends_with(name));
    found.unwrap_or_else(|| panic!("no {name}")).text
}

#[test]
fn arguments_reach_every_component() {
    for component in Component::ALL {
        let (argument, name, expected) = match component {
            Component::Etcd => (
                "ETCD_SNAPSHOT_COUNT: 5000",
                "/etcd.conf",
                "ETCD_SNAPSHOT_COUNT=\"5000\"",
            ),
            Component::KubeApiserver => ("--v: 7", "/kube-apiserver.service", "--v=7"),
            Component::KubeControllerManager => {
                ("--v: 7", "/kube-controller-manager.service", "--v=7")
            }
            Component::KubeScheduler => ("--v: 7", "/kube-scheduler.service", "--v=7"),
            Component::KubeProxy => ("--v: 7", "/kube-proxy.service", "--v=7"),
            Component::Kubelet => ("--v: 7", "/kubelet.service", "--v=7"),
            Component::ContainerEngine => (
                "--log-level: debug",
                "/containerd.service",
                "--log-level=debug",
            ),
        };
        let text = format!(
            "{BASE}config-extra-args: [{{name: {}, extra-args: {{{argument}}}}}]\n",
            component.as_str()
        );
        let before = file(BASE, name);
        assert!(!before.contains(expected), "{name} had it before");
        assert!(
            file(&text, name).contains(expected),
            "{}",
            component.as_str()
        );
    }
}

#[test]
fn what_the_user_says_replaces_what_we_say() {
    let text = format!(
        "{BASE}config-extra-args: [{{name: kube-apiserver, extra-args: {{--profiling: true, --audit-log-maxage: 7}}}}]\n"
    );
    let unit = file(&text, "/kube-apiserver.service");
    assert!(unit.contains("--profiling=true") && !unit.contains("--profiling=false"));
    assert!(unit.contains("--audit-log-maxage=7") && !unit.contains("maxage=30"));
}

/// kube-proxy takes no flags beside its file, except a few.
#[test]
fn arguments_of_kube_proxy_reach_its_file() {
    let text = format!(
        "{BASE}config-extra-args: [{{name: kube-proxy, extra-args: {{--proxy-mode: ipvs, --ipvs-strict-arp: true, \
         --conntrack-max-per-core: 1000, --nodeport-addresses: '10.0.0.0/8,192.168.0.0/16', \
         --feature-gates: 'A=true,B=false', --kube-api-qps: 12, --v: 3}}}}]\n"
    );
    let read = |text: &str| -> serde_json::Value {
        serde_saphyr::from_str(&file(text, "/kube-proxy-config.yaml")).unwrap()
    };
    let (before, after) = (read(BASE), read(&text));
    assert_eq!(before["mode"], "iptables");
    assert_eq!(after["mode"], "ipvs");
    assert_eq!(after["ipvs"]["strictARP"], true);
    assert_eq!(after["conntrack"]["maxPerCore"], 1000);
    assert_eq!(
        after["nodePortAddresses"],
        serde_json::json!(["10.0.0.0/8", "192.168.0.0/16"])
    );
    assert_eq!(
        after["featureGates"],
        serde_json::json!({"A": true, "B": false})
    );
    assert_eq!(after["clientConnection"]["qps"], 12);
    assert_eq!(
        after["clientConnection"]["kubeconfig"],
        before["clientConnection"]["kubeconfig"]
    );
    let unit = file(&text, "/kube-proxy.service");
    assert!(
        unit.contains("--v=3") && !unit.contains("proxy-mode"),
        "{unit}"
    );
}

/// A check that sees something else each time would find an effect of everything.
#[test]
fn checks_see_the_same_in_the_same_file() {
    for check in [Check::Routes, Check::Authorities, Check::Packages] {
        for base in [cases::CURRENT, cases::CLASSIC] {
            assert_eq!(check.sees(base), check.sees(base), "{check:?}");
        }
    }
}
