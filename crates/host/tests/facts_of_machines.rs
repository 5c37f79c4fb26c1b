//! The facts of sandbox machines of both kinds.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use hatchery_host::{
    facts::{Arch, CgroupVersion, Facts, Protocol, Questions, SelinuxMode, Shell, parse, script},
    package_manager::{APT, DNF},
};
use hatchery_sandbox::{
    lab::{Machine, Options},
    settings::{RequestedSettings, System},
    test_lab::TestLab,
};

const QUESTIONS: Questions = Questions {
    entries: &["/etc/kubernetes", "/var/lib/etcd"],
    units: &["kubelet.service"],
    directories: &[],
    busy_mounts: &[],
    runtimes: &[],
};

const RUN: &str = "eval \"$(cat)\"";

async fn machine_of(system: System, name: &str) -> TestLab {
    let settings = RequestedSettings {
        system: Some(system),
        ..RequestedSettings::default()
    };
    let options = Options {
        settings,
        ..Options::new(name.parse().unwrap(), 1)
    };
    TestLab::up(options).await.unwrap()
}

async fn ok(machine: &Machine, command: &str) -> String {
    let output = machine.run(command).await.unwrap();
    assert!(output.success(), "{} {command}: {output:?}", machine.name);
    output.stdout.trim().to_owned()
}

async fn answer_of(machine: &Machine) -> String {
    let output = machine
        .run_with_input(RUN, script(&QUESTIONS).as_bytes())
        .await
        .unwrap();
    assert!(output.success() && output.stderr.is_empty(), "{output:?}");
    output.stdout
}

async fn facts_of(machine: &Machine) -> Facts {
    let sent = SystemTime::now();
    let answer = answer_of(machine).await;
    parse(answer.as_bytes(), sent, SystemTime::now()).unwrap()
}

/// Runs the script and sees that no file of the machine was made or touched, apart from what the
/// login itself leaves in the logs.
async fn writes_nothing(machine: &Machine) {
    let changed = "find / -xdev -cnewer /mark ! -path '/var/log/*' ! -path /var/log ! -path /run ! -path /mark";
    ok(machine, "touch /mark; sleep 0.1").await;
    assert_eq!(ok(machine, changed).await, "", "before the script ran");
    answer_of(machine).await;
    assert_eq!(ok(machine, changed).await, "");
    ok(machine, "rm /mark").await;
}

fn is_a_sandbox_machine(facts: &Facts, machine: &Machine) {
    let name = Some(machine.name.as_str());
    assert_eq!(facts.names.hostname.as_deref(), name);
    assert_eq!(facts.names.static_hostname.as_deref(), name);
    let own = Arch::from_machine(std::env::consts::ARCH);
    assert_eq!(facts.arch.as_ref(), Some(&own));
    assert_eq!(facts.root, Some(true));
    assert_eq!(facts.confinement.container.as_deref(), Some("docker"));
    assert!(facts.identity.machine_id.is_some() && facts.identity.boot_id.is_some());

    let own = fs::read_to_string("/proc/self/status").unwrap();
    let bounding = own
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))
        .unwrap();
    let bounding = u64::from_str_radix(bounding.trim(), 16).unwrap();
    let capabilities = facts.capabilities.as_ref().unwrap();
    assert_eq!(capabilities.has("SYS_RESOURCE"), bounding & (1 << 24) != 0);
    // Docker 20.10 cannot give it.
    assert!(!capabilities.has("BPF") && capabilities.has("SYS_ADMIN"));

    assert_eq!(facts.init.name.as_deref(), Some("systemd"));
    let systemd = facts.init.systemd.as_ref().unwrap();
    assert!(
        systemd.answers && systemd.version.unwrap() >= 219,
        "{systemd:?}"
    );
    assert_eq!(systemd.state.as_deref(), Some("running"));
    let cgroups = facts.cgroups.as_ref().unwrap();
    assert!(cgroups.controllers.contains("memory") && cgroups.controllers.contains("pids"));
    let unified = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    assert_eq!(cgroups.version == CgroupVersion::V2, unified, "{cgroups:?}");
}

fn has_its_network(facts: &Facts, machine: &Machine) {
    let interfaces = facts.interfaces.as_ref().unwrap();
    let eth0 = interfaces
        .iter()
        .find(|interface| interface.name == "eth0")
        .unwrap();
    assert!(eth0.up && eth0.carrier && eth0.mac.is_some());
    assert!(
        eth0.addresses
            .iter()
            .any(|address| address.address == machine.address)
    );
    let routes = facts.default_routes.as_ref().unwrap();
    assert!(
        routes
            .iter()
            .any(|route| route.interface == "eth0" && route.gateway.is_some())
    );
    let listeners = facts.listeners.as_ref().unwrap();
    let mut ssh = listeners
        .iter()
        .filter(|l| l.port == 22 && l.protocol == Protocol::Tcp);
    let sshd = ssh.all(|l| l.processes.iter().any(|process| process.name == "sshd"));
    assert!(
        sshd && listeners.iter().any(|l| l.port == 22),
        "{listeners:?}"
    );
    let resolver = facts.resolver.as_ref().unwrap();
    assert!(
        !resolver.has_loopback() && !resolver.nameservers.is_empty(),
        "{resolver:?}"
    );
}

fn has_its_disks_and_programs(facts: &Facts) {
    let disks = facts.disks.as_ref().unwrap();
    for path in ["/", "/var/lib/kubelet", "/var/lib/etcd"] {
        let disk = disks.iter().find(|disk| disk.path == path);
        let space = disk.and_then(|disk| disk.space.as_ref());
        assert!(
            space.is_some_and(|space| space.size > space.available),
            "{path}: {disks:?}"
        );
    }
    assert_eq!(facts.selinux.as_ref().unwrap().mode, SelinuxMode::Disabled);
    let clock = facts.clock.as_ref().unwrap();
    assert!(
        !clock.is_off_by_more_than(Duration::ZERO),
        "it has our clock: {clock:?}"
    );
    assert!(facts.programs.contains_key("tar") && facts.programs.contains_key("modprobe"));
    assert!(facts.entries.is_empty(), "{:?}", facts.entries);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debian_machine() {
    let lab = machine_of(System::Debian, "t-facts-deb").await;
    let machine = &lab.machines[0];
    let facts = facts_of(machine).await;
    is_a_sandbox_machine(&facts, machine);
    has_its_network(&facts, machine);
    has_its_disks_and_programs(&facts);
    assert_eq!(facts.os.id.as_deref(), Some("debian"));
    assert_eq!(facts.os.version.as_deref(), Some("12"));
    assert_eq!(facts.package_manager, Some(&APT));
    assert_eq!(facts.shell, Some(Shell::Dash));
    writes_nothing(machine).await;

    // What somebody else's cluster leaves is seen, and a proxy's password is not taken along.
    let traces = "mkdir -p /etc/kubernetes /var/lib/etcd/member; touch /etc/kubernetes/admin.conf
        printf 'export HTTPS_PROXY=http://u:secret@proxy\\nno_proxy=x\\n' >>/etc/environment
        sysctl -qw net.ipv4.ip_forward=1";
    ok(machine, traces).await;
    assert!(!answer_of(machine).await.contains("secret"));
    let begin = Instant::now();
    let facts = facts_of(machine).await;
    let took = begin.elapsed();
    assert_eq!(
        facts.entries,
        ["/etc/kubernetes/admin.conf", "/var/lib/etcd/member"]
    );
    assert_eq!(facts.proxies, ["HTTPS_PROXY", "no_proxy"]);
    assert_eq!(facts.sysctls["net.ipv4.ip_forward"], "1");
    eprintln!("facts of a Debian machine, connection included: {took:?}");
    // Far above what it takes: machines that run tests are busy.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_rpm_machine() {
    let lab = machine_of(System::Rpm, "t-facts-rpm").await;
    let machine = &lab.machines[0];
    let facts = facts_of(machine).await;
    is_a_sandbox_machine(&facts, machine);
    has_its_network(&facts, machine);
    has_its_disks_and_programs(&facts);
    assert_eq!(facts.os.id.as_deref(), Some("openEuler"));
    assert_eq!(facts.os.version.as_deref(), Some("22.03"));
    assert_eq!(facts.package_manager, Some(&DNF));
    assert_eq!(facts.shell, Some(Shell::Bash));
    writes_nothing(machine).await;

    let firewalld = |facts: &Facts| facts.firewalls.firewalld.as_ref().unwrap().active;
    assert_eq!(firewalld(&facts), Some(false));
    for (verb, active) in [("start", true), ("stop", false)] {
        ok(machine, &format!("systemctl {verb} firewalld")).await;
        assert_eq!(firewalld(&facts_of(machine).await), Some(active));
    }
    assert!(!facts.agents.network_manager && !facts.agents.cloud_init);
    let agents = "mkdir -p /etc/cloud/cloud.cfg.d /etc/NetworkManager; touch /etc/NetworkManager/NetworkManager.conf";
    ok(machine, agents).await;
    let facts = facts_of(machine).await;
    assert!(facts.agents.network_manager && facts.agents.cloud_init);
    junk_stays_behind(machine).await;
}

/// Files of a megabyte that nobody expects to be so long do not make a long answer.
async fn junk_stays_behind(machine: &Machine) {
    let junk = "for f in os-release resolv.conf hostname hosts environment machine-id; do
        rm -f /etc/$f; head -c 1000000 /dev/urandom >/etc/$f; done";
    ok(machine, junk).await;
    let answer = answer_of(machine).await;
    // What is not UTF-8 came here three times as long.
    assert!(answer.len() < 500_000, "{}", answer.len());
    let facts = parse(answer.as_bytes(), SystemTime::now(), SystemTime::now()).unwrap();
    assert_eq!((facts.os.id, facts.identity.machine_id), (None, None));
    assert_eq!(facts.names.hostname.as_ref(), Some(&machine.name));
}
