//! Each finding, made by changing one thing on a machine that is good.

mod environment;
mod existing_runtime;
mod fleet;

use std::{
    net::IpAddr,
    time::{Duration, UNIX_EPOCH},
};

use hatchery_host::{
    facts::{
        self, ActiveState, Address, AppArmor, CgroupVersion, Clock, Facts, Firewall, Listener,
        ModuleState, Process, Protocol, Runtime, Selinux, SelinuxMode, Swap, Unit,
    },
    machine::{Error, Managed},
    path::Word,
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
    facts.entries.clear();
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

/// Whose machines these are to be.
fn own() -> Identity {
    let word = |text| Word::new(text).unwrap();
    Identity {
        cluster: word("c1"),
        cluster_name: word("demo"),
    }
}

fn judged(more: &str, name: &str, facts: Facts, managed: Managed) -> Vec<Finding> {
    let cluster = cluster(more);
    let node = cluster
        .machines()
        .iter()
        .find(|node| node.name.as_str() == name)
        .unwrap();
    check_machines(&cluster, &own(), &[(node, &Ok((facts, managed)))])
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
    finds("", Warning, "cloud-init", "writes /etc/hosts", |f| {
        f.agents.cloud_init_hosts = true;
    });
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
