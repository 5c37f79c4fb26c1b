//! Whatever the bytes of the two files are: a cluster or errors, in bounded time.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use hatchery_spec::inventory::{self, Files, VARIABLES};
use hatchery_spec::source::Input;
use proptest::prelude::*;

use super::{HOSTS, VARS, hold};

fn answer(hosts: &[u8], vars: Option<&[u8]>) -> bool {
    let reading = inventory::read(Files {
        hosts: Input::private("hosts.yml", hosts),
        vars: vars.map(|vars| Input::private("group_vars.yml", vars)),
        id: None,
    });
    hold(&reading);
    reading.cluster.is_some()
}

/// Refused, among others for this.
#[track_caller]
fn refused_as(code: &str, hosts: &str) {
    let reading = inventory::read(Files {
        hosts: Input::private("hosts.yml", hosts.as_bytes()),
        vars: None,
        id: None,
    });
    hold(&reading);
    let all = reading.diagnostics.sorted();
    let codes: Vec<_> = all.iter().map(|one| one.code).collect();
    assert!(codes.contains(&code), "{codes:?}");
}

/// A text with some bytes replaced, inserted or left out.
fn changed(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let edit = (
        any::<prop::sample::Index>(),
        0..3u8,
        "[-:\\[\\]{}&*!|>'\"%@`#,? \n\ta-z0-9./~]{1,4}",
    );
    prop::collection::vec(edit, 1..6).prop_map(move |edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, what, more) in edits {
            let at = at.index(bytes.len().max(1));
            let end = match what {
                0 => at,
                1 => at + more.len(),
                _ => at + 20,
            };
            let end = end.min(bytes.len());
            bytes.splice(at..end, more.bytes());
        }
        bytes
    })
}

/// Values of any shape under names that are known.
fn soup() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("~".to_owned()),
        Just("true".to_owned()),
        Just("10.0.0.1".to_owned()),
        Just("10.233.0.0/18".to_owned()),
        Just("'{{ ip }}'".to_owned()),
        Just(
            "'{{ kube_pods_subnet | ipaddr(\"net\") | ipaddr(4294967295) | ipaddr(\"address\") }}'"
                .to_owned()
        ),
        Just("'-o ProxyJump=u@h:1'".to_owned()),
        Just("'node[1:3]'".to_owned()),
        "[0-9]{1,6}",
        "'[ -&(-~]{0,12}'",
    ];
    scalar.prop_recursive(4, 40, 6, |inner| {
        let mut keys: Vec<&str> = VARIABLES.iter().map(|info| info.name).collect();
        keys.extend([
            "hosts",
            "children",
            "vars",
            "all",
            "kube_control_plane",
            "kube_node",
        ]);
        keys.extend([
            "address",
            "port",
            "prefix",
            "mirrors",
            "host",
            "skip_verify",
        ]);
        keys.retain(|key| !key.contains('*'));
        let entry = (prop::sample::select(keys), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(entry, 0..6).prop_map(|entries| {
                let mut text = String::from("{");
                for (key, value) in entries {
                    write!(text, "{key}: {value}, ").unwrap();
                }
                text + "}"
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes(hosts in prop::collection::vec(any::<u8>(), 0..300), vars in prop::collection::vec(any::<u8>(), 0..300)) {
        answer(&hosts, Some(&vars));
        answer(HOSTS.as_bytes(), Some(&vars));
        answer(&hosts, Some(VARS.as_bytes()));
    }

    #[test]
    fn good_files_with_mistakes(hosts in changed(HOSTS), vars in changed(VARS)) {
        answer(&hosts, Some(&vars));
        answer(&hosts, None);
    }

    #[test]
    fn known_names_with_any_values(vars in soup(), hosts in soup()) {
        answer(HOSTS.as_bytes(), Some(format!("hatchery_cluster_id: a\nkube_owner: a\n? x\n: {vars}\n").as_bytes()));
        answer(HOSTS.as_bytes(), Some(vars.as_bytes()));
        answer(format!("all: {hosts}\nkube_control_plane: {{hosts: {{m: {vars}}}}}\n").as_bytes(), None);
    }
}

#[test]
fn five_thousand_hosts_take_about_a_second() {
    let mut hosts = String::from(
        "all:\n  vars: {hatchery_cluster_id: a, kube_network_plugin: cni, kube_pods_subnet: 10.0.0.0/11, kube_service_addresses: 172.20.0.0/16}\n  hosts:\n",
    );
    for index in 0..5000u32 {
        let address = std::net::Ipv4Addr::from(0xac10_0000 + index + 1);
        writeln!(
            hosts,
            "    n{index}: {{ip: {address}, ansible_password: p{index}}}"
        )
        .unwrap();
    }
    hosts.push_str("  children:\n    kube_control_plane: {hosts: {'n[0:2]': }}\n    kube_node: {hosts: {'n[0:4999]': }}\n    k8s_cluster: {children: {kube_control_plane: , kube_node: }}\n");
    let before = processor_time();
    assert!(answer(hosts.as_bytes(), Some(b"ansible_user: ops\n")));
    let took = processor_time() - before;
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// How long this thread has been at work: what else the computer does says nothing about us.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // User and system time, in hundredths of a second.
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

#[test]
fn small_files_that_stand_for_much_are_refused_soon() {
    let before = processor_time();
    let mut many = String::from("all:\n  children:\n");
    for index in 0..900 {
        writeln!(
            many,
            "    g{index}: {{hosts: {{'n[0:4999]': }}, children: {{g{}: }}}}",
            index + 1
        )
        .unwrap();
    }
    refused_as("too-many-hosts", &many);
    refused_as("bad-range", "all: {hosts: {'n[0:99999999]': }}\n");
    refused_as(
        "too-many-hosts",
        "all: {hosts: {'n[0:4999]': , 'm[0:4999]': }}\n",
    );
    let mut groups = String::from("all:\n  children:\n");
    for index in 0..3000 {
        writeln!(groups, "    g{index}:").unwrap();
    }
    refused_as("too-many-groups", &groups);
    let took = processor_time() - before;
    assert!(took < Duration::from_secs(20), "{took:?}");
}
