//! Every version understands what it is told: flags, variables and keys of configuration files.

use std::{collections::BTreeSet, fs, path::Path};

use hatchery_host::facts::Facts;
use serde_json::Value;

use super::{
    ground,
    text::{self, Rendered},
};

/// Versions whose programs were asked for their flags.
const PROGRAMS: [&str; 3] = ["1.20.2", "1.36.4", "1.37.0"];
/// Versions whose configuration types were asked for their keys.
const TYPES: [&str; 6] = ["1.20.2", "1.24.17", "1.28.15", "1.34.1", "1.36.4", "1.37.0"];

fn known(version: &str, list: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/flags")
        .join(version)
        .join(format!("{list}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(str::to_owned).collect()
}

/// Flags of kube-proxy whose values belong into its file.
const PROXY_ARGUMENTS: [(&str, &str); 28] = [
    ("bind-address", "0.0.0.0"),
    ("cluster-cidr", "10.244.0.0/16"),
    ("config-sync-period", "15m"),
    ("conntrack-max-per-core", "1"),
    ("conntrack-min", "1"),
    ("conntrack-tcp-timeout-close-wait", "1h"),
    ("conntrack-tcp-timeout-established", "1h"),
    ("detect-local-mode", "ClusterCIDR"),
    ("feature-gates", "A=true"),
    ("healthz-bind-address", "0.0.0.0:10256"),
    ("hostname-override", "other"),
    ("iptables-masquerade-bit", "14"),
    ("iptables-min-sync-period", "1s"),
    ("iptables-sync-period", "30s"),
    ("ipvs-exclude-cidrs", "10.0.0.0/8"),
    ("ipvs-min-sync-period", "1s"),
    ("ipvs-scheduler", "rr"),
    ("ipvs-strict-arp", "true"),
    ("ipvs-sync-period", "30s"),
    ("kube-api-burst", "10"),
    ("kube-api-qps", "5"),
    ("kubeconfig", "/other.conf"),
    ("masquerade-all", "true"),
    ("metrics-bind-address", "127.0.0.1:1"),
    ("nodeport-addresses", "10.0.0.0/8"),
    ("oom-score-adj", "-998"),
    ("profiling", "false"),
    ("proxy-mode", "ipvs"),
];

#[test]
fn kube_proxys_arguments_are_flags_of_its_own() {
    let known = known("1.20.2", "kube-proxy");
    for (flag, _) in PROXY_ARGUMENTS {
        assert!(known.contains(flag), "{flag}");
    }
    // Each is known, so none is left on the command line.
    let text = clusters("1.37.0").pop().unwrap();
    let (cluster, facts) = (ground::cluster(&text), ground::real_machine());
    let files = text::rendered(&ground::plan(&cluster, &ground::versions("1.37.0"), &facts));
    let unit = files
        .iter()
        .find(|file| file.name.ends_with("/kube-proxy.service"));
    assert_eq!(flags(&unit.unwrap().text), ["config"]);
}

/// Clusters that make us say everything that we can say.
fn clusters(version: &str) -> Vec<String> {
    let base = "cluster-id: one\nmasters: [{name: m0, ip: 192.168.0.1}]\n\
         workers: [{name: m0, ip: 192.168.0.1}, {name: w0, ip: 192.168.0.2, taints: ['gpu=yes:NoSchedule']}]\n";
    let mut all = vec![
        format!("{base}runtime: containerd\n"),
        format!("{base}runtime: containerd\nenable-kubelet-serving: false\n"),
        format!(
            "{base}runtime: containerd\nservice: {{cidr: '10.32.0.0/16,fd00:1::/112'}}\n\
             network: {{podcidr: '10.244.0.0/16,fd00:2::/56'}}\n"
        ),
        format!("{base}runtime: containerd\nkube-proxy: {{mode: ipvs}}\n"),
        format!("{base}runtime: isulad\n"),
    ];
    if version == "1.20.2" {
        all.push(format!("{base}runtime: docker\n"));
    }
    let arguments = PROXY_ARGUMENTS.map(|(flag, value)| format!("--{flag}: '{value}'"));
    all.push(format!(
        "{base}runtime: containerd\nconfig-extra-args: [{{name: kube-proxy, extra-args: {{{}}}}}]\n",
        arguments.join(", ")
    ));
    all
}

fn machines() -> [Facts; 2] {
    [ground::real_machine(), ground::sandbox_machine()]
}

/// Each rendered file of each of these clusters.
fn each(version: &str, mut look: impl FnMut(&Rendered)) {
    for text in clusters(version) {
        for facts in machines() {
            let cluster = ground::cluster(&text);
            let plan = ground::plan(&cluster, &ground::versions(version), &facts);
            text::rendered(&plan).iter().for_each(&mut look);
        }
    }
}

/// The flags in a unit file, by name.
fn flags(unit: &str) -> Vec<&str> {
    let words = unit.split([' ', '\n', '"']);
    words
        .filter_map(|word| word.strip_prefix("--"))
        .map(|flag| flag.split('=').next().unwrap_or(flag))
        .collect()
}

#[test]
fn programs_know_their_flags() {
    let programs = [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
    ];
    for version in PROGRAMS {
        let mut unknown = BTreeSet::new();
        for program in programs {
            let known = known(version, program);
            let mut seen = 0;
            each(version, |file| {
                if !file.name.ends_with(&format!("/{program}.service")) {
                    return;
                }
                for flag in flags(&file.text) {
                    seen += 1;
                    if !known.contains(flag) {
                        unknown.insert(format!("{program} --{flag}"));
                    }
                }
            });
            assert!(seen > 0, "{program} has no flags");
        }
        assert_eq!(unknown, BTreeSet::new(), "unknown to {version}");
    }
}

#[test]
fn configuration_files_have_known_keys() {
    let files = [
        ("kubelet/config.yaml", "kubelet-configuration"),
        ("kube-proxy-config.yaml", "kube-proxy-configuration"),
    ];
    for version in TYPES {
        let mut unknown = BTreeSet::new();
        for (name, list) in files {
            let known = known(version, list);
            let mut seen = 0;
            each(version, |file| {
                if file.name.ends_with(&format!("/{name}")) {
                    seen += 1;
                    let value: Value = serde_saphyr::from_str(&file.text).unwrap();
                    keys(&value, "", &known, &mut unknown);
                }
            });
            assert!(seen > 0, "{name} is not rendered");
        }
        assert_eq!(unknown, BTreeSet::new(), "unknown to {version}");
    }
}

/// Adds the keys of a value that are not known.
fn keys(value: &Value, above: &str, known: &BTreeSet<String>, unknown: &mut BTreeSet<String>) {
    let Some(map) = value.as_object() else {
        return;
    };
    for (key, value) in map {
        if known.contains(&format!("{above}*")) {
            continue;
        }
        let path = format!("{above}{key}");
        if known.contains(&path) {
            keys(value, &format!("{path}."), known, unknown);
        } else {
            unknown.insert(path);
        }
    }
}

#[test]
fn etcd_knows_its_variables() {
    for (etcd, kubernetes) in [("etcd-3.4.23", "1.20.2"), ("etcd-3.7.3", "1.37.0")] {
        let known = known(etcd, "etcd");
        let (mut unknown, mut seen) = (BTreeSet::new(), 0);
        each(kubernetes, |file| {
            if !file.name.ends_with("/etcd.conf") {
                return;
            }
            for line in file.text.lines() {
                let name = line.split('=').next().unwrap_or(line);
                let flag = name
                    .trim_start_matches("ETCD_")
                    .to_lowercase()
                    .replace('_', "-");
                seen += 1;
                // The variable alone: there is no flag of this name.
                if !known.contains(&flag) && name != "ETCD_UNSUPPORTED_ARCH" {
                    unknown.insert(name.to_owned());
                }
            }
        });
        assert!(seen > 0);
        assert_eq!(unknown, BTreeSet::new(), "unknown to {etcd}");
    }
}

#[test]
fn a_flag_is_found_wherever_it_stands() {
    let unit = "ExecStart=/usr/bin/x \\\n  --a=b \\\n  \"--c=d e\" --f\n";
    assert_eq!(flags(unit), ["a", "c", "f"]);
}
