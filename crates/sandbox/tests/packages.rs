//! The offline packages and repositories of both sets: laid out as their users expect, and
//! installable on machines of both kinds over the sandbox's own network.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{collections::BTreeSet, process::Command};

use hatchery_sandbox::{
    fixtures::{self, Fixtures},
    lab::{Machine, Options},
    settings::{RequestedSettings, System},
    test_lab::TestLab,
};

async fn ok(machine: &Machine, command: &str) -> String {
    let output = machine.run(command).await.unwrap();
    assert!(output.success(), "{} {command}: {output:?}", machine.name);
    output.stdout.trim().to_owned()
}

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

async fn packages() -> Fixtures {
    fixtures::ensure(&["packages-new", "packages-classic"])
        .await
        .unwrap()
}

/// What a package of the manual is called, and a program it brings.
const CLASSIC: [(&str, &str); 6] = [
    ("kubernetes-master", "kube-apiserver"),
    ("kubernetes-kubelet", "kubelet"),
    ("etcd", "etcd"),
    ("docker-engine", "dockerd"),
    ("conntrack-tools", "conntrack"),
    ("socat", "socat"),
];

#[tokio::test(flavor = "multi_thread")]
async fn dnf_installs_and_removes_from_the_repositories() {
    packages().await;
    let lab = machine_of(System::Rpm, "t-dnf").await;
    let machine = &lab.machines[0];
    ok(machine, "dnf -qy install kubernetes-kubelet containerd").await;
    assert_eq!(ok(machine, "kubelet --version").await, "Kubernetes v1.37.0");
    ok(machine, "dnf -qy remove kubernetes-kubelet containerd").await;
    ok(machine, "! command -v kubelet containerd").await;

    let names: Vec<_> = CLASSIC.iter().map(|(name, _)| *name).collect();
    let classic = "dnf -qy --disablerepo=* --enablerepo=hatchery-classic";
    ok(machine, &format!("{classic} install {}", names.join(" "))).await;
    for (name, program) in CLASSIC {
        ok(machine, &format!("rpm -q {name} && command -v {program}")).await;
    }
    assert_eq!(ok(machine, "kubelet --version").await, "Kubernetes v1.20.2");
    ok(machine, &format!("{classic} remove {}", names.join(" "))).await;
    ok(machine, "! command -v dockerd conntrack socat").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apt_installs_and_removes_from_the_repositories() {
    packages().await;
    let lab = machine_of(System::Debian, "t-apt").await;
    let machine = &lab.machines[0];
    for (set, version) in [("new", "v1.37.0"), ("classic", "v1.20.2")] {
        let source = format!("deb [trusted=yes] http://repo.outside.test/packages-{set}/apt ./\n");
        let only_ours = "rm -f /etc/apt/sources.list && cat >/etc/apt/sources.list.d/hatchery.list && apt-get -qq update";
        let output = machine.run_with_input(only_ours, source.as_bytes()).await;
        assert!(output.unwrap().success());
        ok(machine, "apt-get -qqy install kubernetes-kubelet etcd").await;
        assert_eq!(
            ok(machine, "kubelet --version").await,
            format!("Kubernetes {version}")
        );
        ok(machine, "etcd --version").await;
        ok(machine, "apt-get -qqy purge kubernetes-kubelet etcd").await;
        ok(machine, "! command -v kubelet etcd").await;
    }
}

fn names_in(archive: &std::path::Path) -> BTreeSet<String> {
    let output = Command::new("tar")
        .arg("-tzf")
        .arg(archive)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let listing = String::from_utf8(output.stdout).unwrap();
    listing
        .lines()
        .map(|line| line.trim_start_matches("./").to_owned())
        .collect()
}

#[tokio::test]
async fn archives_are_laid_out_as_their_users_expect() {
    let fixtures = packages().await;
    let archive = |name: &str| names_in(&fixtures.path("packages-classic").join(name));

    // The manual's: everything at the top.
    let flat = archive("classic.tar.gz");
    for name in [
        "kube-apiserver",
        "kubelet",
        "etcd",
        "images.tar",
        "addons/flannel.yaml",
    ] {
        assert!(flat.contains(name), "{name} is not in {flat:?}");
    }
    // The current one: a directory for each kind.
    let current = archive("current.tar.gz");
    for name in [
        "bin/kube-apiserver",
        "bin/kubelet",
        "image/images.tar",
        "file/flannel.yaml",
    ] {
        assert!(current.contains(name), "{name} is not in {current:?}");
    }
    let kinds: BTreeSet<_> = current
        .iter()
        .filter_map(|name| name.split('/').next())
        .collect();
    assert_eq!(
        kinds,
        ["bin", "dir", "file", "image", "pkg"].into(),
        "{current:?}"
    );
    // The manual names packages without a version, so `name*` must mean one file.
    let rpm = archive("rpm.tar.gz");
    for (name, _) in CLASSIC {
        let found = rpm.iter().filter(|file| file.starts_with(name)).count();
        assert_eq!(found, 1, "{name}* in {rpm:?}");
    }
    assert!(rpm.contains("images.tar") && rpm.contains("addons/flannel.yaml"));
}
