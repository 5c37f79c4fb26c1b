//! Each finding, made by changing one thing on a machine that is good.

use std::{
    net::IpAddr,
    time::{Duration, UNIX_EPOCH},
};

use hatchery_host::{
    facts::{
        self, ActiveState, Address, AppArmor, CgroupVersion, Clock, Facts, Firewall, Listener,
        ModuleState, PackageManager, Process, Protocol, Runtime, RuntimeKind, Selinux, SelinuxMode,
        Swap, Unit,
    },
    machine::{Error, Managed},
    transport,
};
use hatchery_spec::{Input, read};

use super::*;

const DEBIAN: &[u8] = include_bytes!("../../../host/src/facts/answers/debian.txt");
const RPM: &[u8] = include_bytes!("../../../host/src/facts/answers/rpm.txt");

/// The recorded machine `m0`, without what tests had put there.
fn facts_of(bytes: &[u8]) -> Facts {
    let sent = UNIX_EPOCH + Duration::from_secs(1_794_787_750);
    let mut facts = facts::parse(bytes, sent, sent + Duration::from_secs(20)).unwrap();
    facts.kubernetes.configuration.clear();
    facts.kubernetes.data.clear();
    facts.proxies.clear();
    facts.clock = None;
    facts
}

/// A master that does everything, and a worker like it.
fn cluster(more: &str) -> Cluster {
    let text = format!(
        "cluster-id: demo\n{more}\nruntime: containerd\nmasters: [{{name: m0, ip: 10.201.1.11}}]\n\
         workers: [{{name: m0, ip: 10.201.1.11}}, {{name: w0, ip: 10.201.0.11}}]\n\
         loadbalance: {{name: b0, ip: 10.9.9.9, port: 22, bind-port: 8443}}\n"
    );
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    reading
        .cluster
        .unwrap_or_else(|| panic!("{}", reading.diagnostics.render(false)))
}

fn judged(more: &str, name: &str, facts: Facts, managed: Managed) -> Vec<Finding> {
    let cluster = cluster(more);
    let node = cluster
        .machines()
        .iter()
        .find(|node| node.name.as_str() == name)
        .unwrap();
    judge(&cluster, &[(node, &Ok((facts, managed)))])
}

/// What is found on the master after a change, without the two notes that every sandbox machine gives.
fn after(more: &str, change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = facts_of(DEBIAN);
    change(&mut facts);
    let mut findings = judged(more, "m0", facts, Managed::default());
    findings.retain(|finding| {
        !["container", "capabilities"].contains(&finding.code) || finding.severity != Severity::Note
    });
    findings
}

/// The one thing that is found after a change.
#[track_caller]
fn finds(more: &str, severity: Severity, code: &str, words: &str, change: impl FnOnce(&mut Facts)) {
    let found = after(more, change);
    let [finding] = &found[..] else {
        panic!("not one finding but {found:#?}")
    };
    assert_eq!(
        (finding.severity, finding.code),
        (severity, code),
        "{finding:?}"
    );
    assert!(finding.message.contains(words), "{finding:?}");
    assert_eq!(finding.machines, ["m0"]);
    assert!(
        finding.remedy.is_some() || severity == Severity::Note,
        "{finding:?}"
    );
}

use Severity::{Error as Bad, Note, Warning};

#[test]
fn a_good_machine_gives_only_notes() {
    assert_eq!(after("", |_| ()), []);
    let found = judged("", "w0", facts_of(RPM), Managed::default());
    let codes: Vec<_> = found
        .iter()
        .map(|finding| (finding.severity, finding.code))
        .collect();
    // The recorded openEuler has neither conntrack nor socat.
    assert_eq!(
        codes,
        [
            (Warning, "program"),
            (Warning, "program"),
            (Note, "container"),
            (Note, "capabilities")
        ]
    );
    assert_eq!(
        found[0].remedy.as_deref(),
        Some("install conntrack-tools there, or add it to the packages in the file")
    );
}

#[test]
fn what_a_machine_is() {
    finds(
        "",
        Bad,
        "architecture",
        "has arm64, but the file says amd64",
        |f| f.arch = Some(facts::Arch::Arm64),
    );
    finds("", Bad, "not-root", "root", |f| f.root = Some(false));
    finds("", Bad, "no-systemd", "but with runit", |f| {
        f.init.systemd = None;
        f.init.name = Some("runit".into());
    });
    finds("", Bad, "no-systemd", "does not answer", |f| {
        f.init.systemd.as_mut().unwrap().answers = false;
    });
    finds("", Bad, "systemd-state", "stopping", |f| {
        f.init.systemd.as_mut().unwrap().state = Some("stopping".into());
    });
    finds("", Bad, "capabilities", "NET_ADMIN", |f| {
        f.capabilities
            .as_mut()
            .unwrap()
            .missing
            .insert("NET_ADMIN".into());
    });
    finds("kube-proxy: {mode: nftables}", Bad, "kernel", "5.13", |f| {
        f.kernel = Some("4.19.90-2003".into());
    });
    finds(
        "kubernetes-version: 1.33",
        Warning,
        "kernel",
        "3.10.0",
        |f| f.kernel = Some("3.10.0-1160.el7".into()),
    );
}

#[test]
fn what_the_kernel_can_do() {
    let missing = |module: &'static str| {
        move |f: &mut Facts| {
            f.modules.insert(module.into(), ModuleState::Missing);
        }
    };
    finds("", Bad, "module", "br_netfilter", missing("br_netfilter"));
    finds("", Bad, "module", "overlay", missing("overlay"));
    assert_eq!(after("", missing("ipip")), []);
    assert_eq!(
        after("kube-proxy: {mode: ipvs}", |_| ()).len(),
        4,
        "this kernel has no IPVS"
    );
    finds(
        "kubernetes-version: 1.35",
        Warning,
        "cgroup-v1",
        "1.35",
        |_| (),
    );
    assert_eq!(after("kubernetes-version: 1.34", |_| ()), []);
    assert_eq!(
        after("kubernetes-version: 1.35", |f| {
            let cgroups = f.cgroups.as_mut().unwrap();
            cgroups.version = CgroupVersion::V2;
        }),
        []
    );
    finds("", Bad, "cgroup-controllers", "memory", |f| {
        f.cgroups.as_mut().unwrap().controllers.remove("memory");
    });
    finds("", Warning, "selinux", "enforcing", |f| {
        f.selinux = Some(Selinux {
            mode: SelinuxMode::Enforcing,
            configured: None,
        });
    });
    assert_eq!(after("", |f| f.apparmor = Some(AppArmor::Enabled)), []);
}

#[test]
fn room() {
    let disk = |f: &mut Facts, at: &str, change: &dyn Fn(&mut facts::Disk)| {
        change(
            f.disks
                .as_mut()
                .unwrap()
                .iter_mut()
                .find(|disk| disk.path == at)
                .unwrap(),
        );
    };
    finds(
        "",
        Warning,
        "memory",
        "1.0 GiB of memory; as master and etcd and worker it needs 1.8 GiB",
        |f| {
            f.memory.as_mut().unwrap().total = 1 << 30;
        },
    );
    finds("", Bad, "memory", "512 MiB", |f| {
        f.memory.as_mut().unwrap().total = 512 << 20;
    });
    finds("", Warning, "cpus", "has 1 CPU", |f| f.cpus = Some(1));
    finds("", Warning, "swap", "/dev/sda2", |f| {
        f.swap = Some(vec![Swap {
            path: "/dev/sda2".into(),
            kind: "partition".into(),
            size: 1,
            used: 0,
        }]);
    });
    finds(
        "",
        Bad,
        "read-only",
        "/ mounted read-only, and /etc, /usr",
        |f| disk(f, "/", &|disk| disk.read_only = true),
    );
    finds(
        "",
        Warning,
        "disk",
        "2.0 GiB left on /var/lib/etcd; its roles need 4.0 GiB",
        |f| {
            disk(f, "/var/lib/etcd", &|disk| {
                disk.space.as_mut().unwrap().available = 2 << 30;
            });
        },
    );
    finds("", Bad, "disk", "on /var/lib/containerd", |f| {
        disk(f, "/var/lib/containerd", &|disk| {
            disk.space.as_mut().unwrap().available = 1 << 20;
        });
    });
    finds(
        "",
        Warning,
        "disk-pressure",
        "a tenth of its space left on /var/lib/kubelet",
        |f| {
            disk(f, "/var/lib/kubelet", &|disk| {
                disk.space.as_mut().unwrap().available = 20 << 30;
            });
        },
    );
    finds("", Warning, "disk-pressure", "inodes", |f| {
        disk(f, "/var/lib/kubelet", &|disk| {
            disk.space.as_mut().unwrap().inodes_free = Some(10);
        });
    });
}

fn listener(port: u16, address: &str, process: &str) -> Listener {
    Listener {
        protocol: Protocol::Tcp,
        address: address.parse::<IpAddr>().unwrap(),
        port,
        processes: vec![Process {
            pid: 7,
            name: process.into(),
        }],
    }
}

#[test]
fn ports_that_others_have() {
    let listens = |port, address: &'static str, process: &'static str| {
        move |f: &mut Facts| {
            f.listeners
                .as_mut()
                .unwrap()
                .push(listener(port, address, process));
        }
    };
    finds(
        "",
        Bad,
        "port",
        "needs port 6443/tcp (kube-apiserver), which java has",
        listens(6443, "0.0.0.0", "java"),
    );
    finds(
        "",
        Bad,
        "port",
        "needs ports 10250/tcp (kubelet), 10256/tcp (kube-proxy), which java has",
        |f| {
            listens(10250, "0.0.0.0", "java")(f);
            listens(10256, "::", "java")(f);
        },
    );
    finds(
        "",
        Bad,
        "port",
        "2379",
        listens(2379, "10.201.1.11", "etcd"),
    );
    assert_eq!(
        after("", listens(2379, "10.8.8.8", "etcd")),
        [],
        "etcd listens on the machine's own addresses"
    );
    finds(
        "",
        Warning,
        "port",
        "53/tcp (coredns), which systemd-resolve has",
        listens(53, "127.0.0.53", "systemd-resolve"),
    );
    assert_eq!(
        after("", listens(8443, "0.0.0.0", "java")),
        [],
        "another machine balances the load"
    );

    let mut facts = facts_of(DEBIAN);
    listens(6443, "::", "kube-apiserver")(&mut facts);
    listens(10257, "::", "kube-controller")(&mut facts);
    let ours = Managed {
        cluster: Some(("demo".into(), "demo".into())),
        ..Managed::default()
    };
    let found = judged("", "m0", facts.clone(), ours.clone());
    assert!(
        found.iter().all(|finding| finding.severity == Note),
        "{found:#?}"
    );
    listens(10250, "::", "java")(&mut facts);
    assert_eq!(judged("", "m0", facts, ours)[0].code, "port");
}

#[test]
fn programs_and_package_managers() {
    let without = |name: &'static str| {
        move |f: &mut Facts| {
            f.programs.remove(name);
        }
    };
    finds("", Bad, "program", "no program flock", without("flock"));
    finds(
        "",
        Bad,
        "program",
        "no program iptables",
        without("iptables"),
    );
    finds(
        "",
        Warning,
        "program",
        "no program conntrack",
        without("conntrack"),
    );
    let brings = "install: {kubernetes-worker: [{name: 'conntrack-tools,socat', type: repo}]}";
    assert_eq!(after(brings, without("conntrack")), []);
    assert_eq!(
        after("", |f| f.programs.clear()),
        [],
        "a machine that did not tell"
    );
    finds(brings, Bad, "package-manager", "no package manager", |f| {
        f.package_manager = None;
    });
    finds(brings, Bad, "package-manager", "neither dnf nor yum", |f| {
        f.package_manager = Some(PackageManager::Rpm);
    });
}

#[test]
fn networks() {
    let server = |text: &str| vec![text.parse::<IpAddr>().unwrap()];
    finds("", Warning, "resolver", "names itself", |f| {
        f.resolver.as_mut().unwrap().nameservers = server("127.0.0.53");
    });
    finds("", Note, "resolver", "behind it", |f| {
        let resolver = f.resolver.as_mut().unwrap();
        resolver.nameservers = server("127.0.0.53");
        resolver.upstream = Some(server("10.0.0.2"));
    });
    finds("", Warning, "resolver", "no server", |f| {
        f.resolver.as_mut().unwrap().nameservers.clear();
    });
    finds("", Note, "firewall", "firewalld", |f| {
        f.firewalls.firewalld = Some(Firewall { active: Some(true) });
    });
    finds("", Note, "firewall", "ufw", |f| {
        f.firewalls.ufw = Some(Firewall { active: Some(true) });
    });
    finds("", Warning, "proxy", "no no_proxy", |f| {
        f.proxies = vec!["HTTPS_PROXY".into()];
    });
    finds("", Note, "proxy", "HTTPS_PROXY, no_proxy", |f| {
        f.proxies = vec!["HTTPS_PROXY".into(), "no_proxy".into()];
    });
    finds("", Bad, "address", "10.201.1.11", |f| {
        f.interfaces.as_mut().unwrap()[1].addresses[0].address = "192.168.7.7".parse().unwrap();
    });
    finds(
        "network: {podcidr: 10.77.0.0/16}",
        Bad,
        "network-overlap",
        "10.77.3.0/24 on eth0, which overlaps 10.77.0.0/16 of the pods",
        |f| {
            f.interfaces.as_mut().unwrap()[1].addresses.push(Address {
                address: "10.77.3.1".parse().unwrap(),
                prefix: 24,
            });
        },
    );
    assert_eq!(after("", |f| f.interfaces = None), []);
}

#[test]
fn the_classic_dialect_renames_machines() {
    let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.201.1.11}]\nnodes: [{name: m0, ip: 10.201.1.11}]\n";
    let cluster = read(Input::private("deploy.yaml", text.as_bytes()))
        .cluster
        .unwrap();
    let reply = Ok((facts_of(DEBIAN), Managed::default()));
    let found = judge(&cluster, &[(&cluster.machines()[0], &reply)]);
    let note = found
        .iter()
        .find(|finding| finding.code == "hostname")
        .unwrap();
    assert_eq!(note.message, "will be called m0; now it is machine-1");
}

#[test]
fn traces_of_others() {
    let unit = Unit {
        active: Some(ActiveState::Active),
        enablement: None,
        path: None,
    };
    let active = unit.clone();
    finds("", Bad, "kubernetes", "kubelet.service", move |f| {
        f.kubernetes.units.insert("kubelet.service".into(), active);
    });
    finds("", Bad, "etcd-data", "/var/lib/etcd", |f| {
        f.kubernetes.data = vec!["/var/lib/etcd".into()];
    });
    finds(
        "",
        Warning,
        "kubernetes",
        "/etc/kubernetes/a, /etc/kubernetes/b, /etc/kubernetes/c and 1 more",
        |f| {
            f.kubernetes.configuration = ["a", "b", "c", "d"]
                .map(|name| format!("/etc/kubernetes/{name}"))
                .into();
        },
    );
    let runtime = |kind| Runtime {
        kind,
        path: "/usr/bin/x".into(),
        version: Some("1.6.20".into()),
        unit: Some(unit.clone()),
        socket: None,
    };
    finds("", Note, "runtime", "containerd 1.6.20 already", |f| {
        f.runtimes = vec![runtime(RuntimeKind::Containerd)];
    });
    finds(
        "",
        Warning,
        "runtime",
        "runs CRI-O 1.6.20 beside containerd",
        |f| f.runtimes = vec![runtime(RuntimeKind::Crio)],
    );
    assert_eq!(
        after("", |f| f.runtimes = vec![runtime(RuntimeKind::Podman)]),
        []
    );
}

#[test]
fn a_machine_of_another_cluster_gives_that_alone() {
    let mut facts = facts_of(DEBIAN);
    facts.arch = Some(facts::Arch::Arm64);
    let theirs = Managed {
        cluster: Some(("c2".into(), "other".into())),
        ..Managed::default()
    };
    let found = judged("", "m0", facts, theirs);
    let [finding] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((finding.severity, finding.code), (Bad, "held"));
    assert_eq!(finding.message, "is held by another cluster, other (c2)");
}

#[test]
fn machines_that_did_not_answer_are_told_together() {
    let cluster = cluster("");
    let refused = |host: &str| -> Reply {
        Err(Error::Transport {
            source: transport::Error::Authentication {
                host: host.into(),
                user: "root".into(),
                tried: vec!["password (refused)".into()],
                offered: vec!["password".into()],
            },
        })
    };
    let late = Err(Error::Deadline {
        host: "b0".into(),
        step: "facts".into(),
        after: Duration::from_secs(20),
    });
    let replies = [refused("m0"), refused("w0"), late];
    let answers: Vec<_> = cluster.machines().iter().zip(&replies).collect();
    let found = judge(&cluster, &answers);
    let shown: Vec<_> = found
        .iter()
        .map(|f| (f.code, f.machines.join(" "), f.message.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (
                "login",
                "m0 w0".into(),
                "does not let root in: tried password (refused); it offers password"
            ),
            ("no-answer", "b0".into(), "did not answer within 20 s"),
        ]
    );
    assert!(
        found
            .iter()
            .all(|finding| finding.severity == Bad && finding.remedy.is_some())
    );
}

/// What is found of master and worker together.
fn pair(change: impl Fn(&mut Facts, &mut Facts)) -> Vec<(Severity, &'static str, String, String)> {
    let cluster = cluster("");
    let (mut one, mut other) = (facts_of(DEBIAN), facts_of(RPM));
    other.names.hostname = Some("machine-2".into());
    other.identity.boot_id = Some("0".repeat(36));
    change(&mut one, &mut other);
    let replies = [
        Ok((one, Managed::default())),
        Ok((other, Managed::default())),
    ];
    let answers: Vec<_> = cluster.machines().iter().zip(&replies).collect();
    let found = judge(&cluster, &answers);
    let found = found
        .into_iter()
        .filter(|f| !["container", "capabilities", "program"].contains(&f.code));
    found
        .map(|f| (f.severity, f.code, f.machines.join(" "), f.message))
        .collect()
}

#[test]
fn machines_that_share_what_they_must_not() {
    assert_eq!(pair(|_, _| ()), []);
    let one = |change: &dyn Fn(&mut Facts, &mut Facts), severity, code| {
        let found = pair(change);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].0, found[0].1, found[0].2.as_str()),
            (severity, code, "m0 w0")
        );
    };
    one(
        &|a, b| b.identity.machine_id.clone_from(&a.identity.machine_id),
        Warning,
        "machine-id",
    );
    one(
        &|a, b| b.names.hostname.clone_from(&a.names.hostname),
        Warning,
        "hostname",
    );
    let mac = |a: &mut Facts, b: &mut Facts| {
        let mac = a.interfaces.as_ref().unwrap()[1].mac.clone();
        b.interfaces.as_mut().unwrap()[1].mac = mac;
    };
    one(&mac, Warning, "mac");
    let uuid = |a: &mut Facts, b: &mut Facts| {
        for facts in [a, b] {
            facts.confinement.container = None;
            facts.identity.product_uuid = Some("1".repeat(36));
        }
    };
    one(&uuid, Warning, "product-uuid");
    let same = |a: &mut Facts, b: &mut Facts| {
        b.identity = a.identity.clone();
        mac(a, b);
    };
    one(&same, Bad, "same-machine");
}

#[test]
fn clocks() {
    let clock = |seconds: i64| {
        Some(Clock {
            ahead_micros: seconds * 1_000_000,
            uncertainty_micros: 100_000,
            zone_minutes: None,
        })
    };
    let set =
        |one: i64, other: i64| pair(move |a, b| (a.clock, b.clock) = (clock(one), clock(other)));
    let told = |found: Vec<(Severity, &'static str, String, String)>| -> Vec<(Severity, String)> {
        found
            .into_iter()
            .map(|(severity, _, machines, message)| (severity, format!("{machines} {message}")))
            .collect()
    };
    assert_eq!(set(2, -2), []);
    assert_eq!(
        told(set(4, -4)),
        [(Warning, "m0 w0 have clocks 7 s apart".into())]
    );
    assert_eq!(
        told(set(10, 0)),
        [(
            Warning,
            "m0 has a clock 10 s ahead of this machine's".into()
        )]
    );
    assert_eq!(
        told(set(0, -7200)),
        [(Bad, "w0 has a clock 2 h behind this machine's".into())]
    );
    assert_eq!(set(300, 300).len(), 1, "said once of both");
}
