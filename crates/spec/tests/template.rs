//! What `template` writes is a file that reads without complaint, whatever was asked for.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::net::IpAddr;

use hatchery_spec::cluster::{Cluster, Dialect, Password};
use hatchery_spec::keys::{KEYS, Origin};
use hatchery_spec::reading::read;
use hatchery_spec::source::Input;
use hatchery_spec::template::{Error, List, Machines, Options, render};
use hatchery_spec::value::{Name, Secret};

fn addresses(text: &str) -> Vec<IpAddr> {
    text.split_whitespace()
        .map(|one| one.parse().unwrap())
        .collect()
}

/// Masters, workers, etcds and a load balancer, with `/` between.
fn machines(text: &str) -> Machines {
    let lists: Vec<_> = text.split('/').map(addresses).collect();
    let [masters, workers, etcds, balancer] = lists.try_into().unwrap();
    Machines::new(masters, workers, etcds, balancer.first().copied()).unwrap()
}

fn options(text: &str) -> Options {
    Options {
        name: Name::parse("k8s-cluster").unwrap(),
        user: "root".to_owned(),
        password: None,
        machines: machines(text),
        classic: false,
    }
}

fn cluster(text: &str) -> (Cluster, Vec<&'static str>) {
    let reading = read(Input::private("template.yaml", text.as_bytes()));
    let said = reading.diagnostics.render(false);
    let codes = reading.diagnostics.sorted().into_iter().map(|one| one.code);
    let codes = codes.collect();
    (
        reading
            .cluster
            .unwrap_or_else(|| panic!("{said}\nin\n{text}")),
        codes,
    )
}

/// Machines, and what there is to say of them.
const FLEETS: [(&str, &[&str]); 9] = [
    ("///", &[]),
    (
        "192.168.0.1 192.168.0.2/192.168.0.3/192.168.0.4/192.168.0.5",
        &["master-not-worker"],
    ),
    ("10.0.0.1///", &[]),
    ("10.0.0.1/10.0.0.1 10.0.0.2/10.0.0.2/10.0.0.1", &[]),
    (
        "10.0.0.1 10.0.0.2 10.0.0.3/10.0.0.4/10.0.0.1 10.0.0.2 10.0.0.5/",
        &["master-not-worker"],
    ),
    ("10.244.0.1/10.32.0.1//172.20.0.1", &["master-not-worker"]),
    (
        "fd00::1/fd00::2 fd00::3/fd00::1/fd00::9",
        &["master-not-worker"],
    ),
    ("2001:db8::1///", &[]),
    ("fd00:10:32::1/fd00:10:244::1//", &["master-not-worker"]),
];

#[test]
fn every_fleet_reads_without_complaint() {
    for (fleet, expected) in FLEETS {
        for classic in [false, true] {
            let options = Options {
                classic,
                ..options(fleet)
            };
            let (cluster, said) = cluster(&render(&options));
            assert_eq!(said, expected, "{fleet}");
            let dialect = if classic {
                Dialect::Classic
            } else {
                Dialect::Current
            };
            assert_eq!(cluster.dialect, dialect);
            for (list, found) in [
                (List::Masters, cluster.masters().collect::<Vec<_>>()),
                (List::Workers, cluster.workers().collect()),
            ] {
                let found: Vec<_> = found.iter().map(|machine| machine.address).collect();
                assert_eq!(found, options.machines.list(list), "{fleet}");
            }
        }
    }
}

#[test]
fn hundreds_of_workers_have_room() {
    let workers: Vec<_> = (0..300u16)
        .map(|n| format!("10.1.{}.{}", n / 250, n % 250 + 1))
        .collect();
    let options = options(&format!("10.0.0.1/{}//", workers.join(" ")));
    assert_eq!(cluster(&render(&options)).0.workers().len(), 300);
}

#[test]
fn the_manuals_command_line() {
    let mut options = options("192.168.0.1 192.168.0.2/192.168.0.3/192.168.0.4/192.168.0.5");
    options.user = "username".to_owned();
    options.password = Some(Secret::new("password"));
    let (cluster, _) = cluster(&render(&options));
    let names: Vec<_> = cluster
        .machines()
        .iter()
        .map(|machine| machine.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "k8s-master-0",
            "k8s-master-1",
            "k8s-worker-0",
            "etcd-0",
            "k8s-loadbalance"
        ]
    );
    assert_eq!(cluster.endpoint.to_string(), "192.168.0.5:8443");
    let access = &cluster.first_master().access;
    assert_eq!(access.user, "username");
    assert_eq!(
        access.password,
        Some(Password::Text(Secret::new("password")))
    );
    assert_eq!(cluster.pods.cidrs.to_string(), "10.244.0.0/16");
}

#[test]
fn any_password_and_name_arrive_unchanged() {
    for text in [
        "123456",
        "null",
        "a: b",
        "it's # \"x\"",
        "\\n",
        "- ü €",
        "&a *b !c",
        "{{ x }}",
        " y ",
    ] {
        let options = Options {
            password: Some(Secret::new(text)),
            name: Name::parse("null").unwrap(),
            user: "true".to_owned(),
            ..options("///")
        };
        let (cluster, _) = cluster(&render(&options));
        let access = &cluster.first_master().access;
        assert_eq!(access.password, Some(Password::Text(Secret::new(text))));
        assert_eq!(
            (access.user.as_str(), cluster.id.as_str()),
            ("true", "null")
        );
    }
}

/// Lines with a setting that is switched off.
fn switched_off(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(number, line)| {
            let (indent, setting) = line.split_once('#')?;
            let is_off =
                indent.trim().is_empty() && setting.starts_with(|c: char| c.is_ascii_lowercase());
            is_off.then(|| (number, format!("{indent}{setting}")))
        })
        .collect()
}

#[test]
fn each_setting_that_is_switched_off_can_be_switched_on() {
    for fleet in ["10.0.0.1/10.0.0.1 10.0.0.2//", "fd00::1///", "///"] {
        for classic in [false, true] {
            let text = render(&Options {
                classic,
                ..options(fleet)
            });
            let off = switched_off(&text);
            assert!(off.len() > 20, "{}", off.len());
            for (number, on) in off {
                let lines = text.lines().enumerate();
                let lines: Vec<_> = lines
                    .map(|(n, line)| if n == number { on.as_str() } else { line })
                    .collect();
                cluster(&lines.join("\n"));
            }
        }
    }
}

#[test]
fn every_key_of_the_dialect_is_there_in_the_manuals_order() {
    for (classic, other) in [(false, Origin::Classic), (true, Origin::Current)] {
        let text = render(&Options {
            classic,
            ..options("///")
        });
        // Two spellings of one key, and passwords in the open, are not shown.
        let left_out = |section: &str, key: &str| {
            matches!((section, key), ("", "packages") | (_, "password"))
                || section == "<item>"
                || section == "<bastion>"
                || section == "config-extra-args"
        };
        for info in KEYS {
            if info.origin == other || left_out(info.section, info.key) {
                continue;
            }
            let key = format!("{}: ", info.key);
            let there = text.lines().any(|line| {
                let line = format!("{line} ");
                line.trim_start_matches([' ', '#', '-', '{'])
                    .starts_with(&key)
                    || line.contains(&format!("{{{key}"))
                    || line.contains(&format!(", {key}"))
            });
            assert!(
                there,
                "{}.{} is missing from\n{text}",
                info.section, info.key
            );
        }
        let top: Vec<&str> = text
            .lines()
            .filter_map(|line| {
                let (key, _) = line.trim_start_matches('#').split_once(':')?;
                (!key.contains(' ')).then_some(key)
            })
            .collect();
        let manual: &[&str] = &[
            "cluster-id",
            "username",
            "masters",
            if classic { "nodes" } else { "workers" },
            "etcds",
            "loadbalance",
            "external-ca",
            "external-ca-path",
            "service",
            "network",
            "apiserver-endpoint",
            "apiserver-cert-sans",
            "apiserver-timeout",
            "etcd-external",
            "etcd-token",
            "dns-vip",
            "dns-domain",
            "pause-image",
            "network-plugin",
            "cni-bin-dir",
            "runtime",
            "registry-mirrors",
            "insecure-registries",
            "config-extra-args",
            "open-ports",
        ];
        let places: Vec<_> = manual
            .iter()
            .map(|key| top.iter().position(|one| one == key).expect(key))
            .collect();
        assert!(places.is_sorted(), "{top:?}");
    }
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let list = addresses;
    let twice = Machines::new(
        list("10.0.0.1"),
        list("10.0.0.2 10.0.0.2"),
        Vec::new(),
        None,
    );
    let twice = twice.unwrap_err();
    assert_eq!(twice.list(), List::Workers);
    assert!(twice.to_string().contains("10.0.0.2 is given twice"));
    let mixed = Machines::new(list("10.0.0.1"), list("fd00::1"), Vec::new(), None);
    assert_eq!(mixed.unwrap_err().list(), List::Workers);
    let headless = Machines::new(Vec::new(), list("10.0.0.1"), Vec::new(), None);
    assert_eq!(headless.unwrap_err(), Error::NoMaster);
}

#[test]
fn without_a_password_none_is_written() {
    let text = render(&options("///"));
    assert!(!text.lines().any(|line| line.starts_with("password")));
    assert!(text.contains("#password-env: SSH_PASSWORD"));
}
