//! Real archives in both layouts, with programs, `.deb` and `.rpm` files, for deploy files of both dialects.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use hatchery_engine::{
    confinement::Launcher,
    package::{Bundles, Manifest, PackageKind},
    preflight, state,
};
use hatchery_host::{
    machine::Machine,
    path::Word,
    privilege::Privilege,
    task::Task,
    transport::memory::{MachineFacts, Memory},
};
use hatchery_sandbox::{
    deploy_file::{DeployFile, Layout},
    fixtures,
    settings::System,
};
use hatchery_spec::{Cluster, Input, read, value::Arch};

fn parse(text: &str) -> Cluster {
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    let said = reading.diagnostics.render(false);
    reading.cluster.unwrap_or_else(|| panic!("{said}"))
}

fn arch() -> Arch {
    Arch::parse(std::env::consts::ARCH).unwrap()
}

/// The sandbox's own deploy file.
fn current(archive: &Path, set: &str) -> Cluster {
    let machines: Vec<_> = (1..=3)
        .map(|n| (format!("lab-{n}"), Ipv4Addr::new(10, 201, 0, 10 + n)))
        .collect();
    let text = DeployFile {
        name: "lab",
        system: System::Debian,
        user: "root",
        password: None,
        key: Path::new("/key"),
        machines: &machines,
        layout: Layout {
            masters: 1,
            loadbalance: true,
        },
        bastion: None,
        arch: arch().as_str(),
        archive,
    };
    let text = text.render();
    parse(&match set {
        "new" => text,
        // There is no crictl in it.
        _ => text.replace(",runc,crictl", ",runc"),
    })
}

/// The manual's sample, for machines of one processor and the addon that there is.
fn manual(archive: &Path, runtime: &str) -> Cluster {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/classic.yaml");
    let text = fs::read_to_string(path).unwrap();
    let archive = archive.to_str().unwrap();
    let text = ["arm64", "amd64"]
        .iter()
        .fold(text, |text, one| {
            text.replace(&format!("arch: {one}"), &format!("arch: {}", arch()))
        })
        .replace("/root/rpms/pacakges-arm.tar.gz", archive)
        .replace("/root/rpms/packages-x86.tar.gz", archive)
        .replace("calico", "flannel")
        .replace("xxx.yaml", "flannel.yaml")
        .replace("runtime: docker ", &format!("runtime: {runtime} "));
    parse(&match runtime {
        "containerd" => text.replace("name: docker-engine", "name: containerd"),
        _ => text,
    })
}

/// The manual's layout with programs in place of packages.
fn programs(archive: &Path) -> Cluster {
    let (archive, arch) = (archive.to_str().unwrap(), arch());
    let list = |names: &str, directory: &str| {
        names.split(' ').fold(String::new(), |mut list, name| {
            let _ = writeln!(
                list,
                "  - {{name: {name}, type: binary, dstpath: {directory}}}"
            );
            list
        })
    };
    parse(&format!(
        "cluster-id: k8s-cluster\nruntime: containerd\n\
         masters:\n- {{name: m0, ip: 192.168.0.1, port: 22, arch: {arch}}}\n\
         nodes:\n- {{name: m0, ip: 192.168.0.1, port: 22, arch: {arch}}}\n\
         package-src: {{type: tar.gz, armsrc: {archive}, x86src: {archive}}}\n\
         pacakges:\n  etcd:\n{}  master:\n{}{}  node:\n{}{}",
        list("etcd etcdctl", "/usr/local/bin"),
        list(
            "kube-apiserver kube-controller-manager kube-scheduler kubectl coredns",
            "/usr/bin"
        ),
        list("addons", "/etc/kubernetes"),
        list(
            "kubelet kube-proxy kubectl containerd containerd-shim-runc-v2 ctr runc",
            "/usr/bin"
        ),
        list("bridge host-local loopback portmap", "/opt/cni/bin"),
    ))
}

/// What there is to see, without versions.
fn described(bundles: &Bundles, cluster: &Cluster, kind: PackageKind) -> String {
    let mut text = String::new();
    for node in cluster.machines() {
        let _ = writeln!(text, "{}:", node.name);
        match bundles.installation(cluster, node, kind, &node.roles) {
            Ok(found) => {
                for operation in &found.operations {
                    let _ = writeln!(text, "  {}", operation.title());
                }
                for images in &found.images {
                    let names = images.references.iter();
                    let names = names.map(|name| name.rsplit_once(':').unwrap().0);
                    let names: Vec<_> = names.collect();
                    let _ = writeln!(text, "  images {}", names.join(" "));
                }
            }
            Err(problems) => {
                for problem in problems {
                    let _ = writeln!(
                        text,
                        "  error: {}",
                        without_paths(&problem.message, cluster)
                    );
                }
            }
        }
    }
    for manifest in bundles.manifests(cluster).unwrap() {
        match manifest {
            Manifest::Text { name, text: yaml } => {
                assert!(yaml.contains("kind: DaemonSet"), "{yaml}");
                let _ = writeln!(text, "manifest {name}");
            }
            Manifest::Url(url) => panic!("{url}"),
        }
    }
    text
}

fn without_paths(message: &str, cluster: &Cluster) -> String {
    let archives = cluster.packages.archives.values();
    archives.fold(message.to_owned(), |text, archive| {
        text.replace(&archive.path, "ARCHIVE")
    })
}

/// The version of a package, as the fixtures were made.
fn packed(contents: &str, package: &str) -> String {
    let line = contents
        .lines()
        .find_map(|line| line.trim().strip_prefix(&format!("{package} ")));
    line.unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_new_sets_archives_are_understood() {
    understood("new", "containerd").await;
}

#[tokio::test]
async fn the_classic_sets_archives_are_understood() {
    understood("classic", "docker").await;
}

/// The sets differ in their runtime.
async fn understood(set: &str, runtime: &str) {
    let fixtures = fixtures::ensure(&[&format!("packages-{set}")])
        .await
        .unwrap();
    let base = Path::new("/");
    // A record of one run must not hide what another would find.
    let cache = tempfile::tempdir().unwrap();
    let items = fixtures.path(&format!("packages-{set}"));
    let archive = |name: &str| -> PathBuf { items.join(format!("{name}.tar.gz")) };
    let contents = fs::read_to_string(items.join("contents.txt")).unwrap();
    // Ours, built from sources: they need not be confined.
    let launcher = Launcher::new(["/usr/bin/env"]);
    for (name, kind, cluster) in [
        (
            "current",
            PackageKind::Deb,
            current(&archive("current"), set),
        ),
        ("classic", PackageKind::None, programs(&archive("classic"))),
        ("deb", PackageKind::Deb, manual(&archive("deb"), runtime)),
        ("rpm", PackageKind::Rpm, manual(&archive("rpm"), runtime)),
    ] {
        let begin = Instant::now();
        let bundles = Bundles::open(&cluster, base, cache.path()).unwrap();
        let first = begin.elapsed();
        insta::assert_snapshot!(format!("{set}-{name}"), described(&bundles, &cluster, kind));

        let versions = bundles
            .versions(&cluster, Some(&launcher))
            .unwrap()
            .versions;
        let said = versions.kubernetes.unwrap().to_string();
        assert_eq!(
            said,
            packed(&contents, "kubernetes-kubelet"),
            "{set} {name}"
        );
        assert_eq!(
            versions.etcd.unwrap().to_string(),
            packed(&contents, "etcd")
        );
        if runtime == "containerd" {
            assert_eq!(
                versions.containerd.unwrap().to_string(),
                packed(&contents, "containerd")
            );
        }
        if name == "current" {
            assert_eq!(
                versions.coredns.unwrap().to_string(),
                packed(&contents, "coredns")
            );
        }

        let begin = Instant::now();
        let again = Bundles::open(&cluster, base, cache.path()).unwrap();
        let learned = again.versions(&cluster, Some(&launcher)).unwrap();
        assert_eq!(learned.versions, versions);
        let second = begin.elapsed();
        assert!(second * 5 < first, "{second:?} after {first:?}");
    }
}

/// Programs that were really compiled for the other processor. Nobody here can run them, and nobody tries.
#[tokio::test]
async fn each_machine_gets_the_bytes_of_its_processor() {
    const PLUGINS: [&str; 3] = ["bridge", "loopback", "host-local"];
    let fixtures = fixtures::ensure(&["cni-new", "cni-foreign"]).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let (own, other) = match arch() {
        Arch::Amd64 => ("amd64", "arm64"),
        _ => ("arm64", "amd64"),
    };
    for (arch, fixture) in [(own, "cni-new"), (other, "cni-foreign")] {
        let packed = place.path().join(arch);
        fs::create_dir_all(packed.join("bin")).unwrap();
        for name in PLUGINS {
            let program = fixtures.path(&format!("{fixture}/{name}"));
            fs::copy(program, packed.join("bin").join(name)).unwrap();
        }
        fs::write(packed.join("versions.yaml"), "kubernetes: 1.37.0\n").unwrap();
        let tar = Command::new("tar")
            .arg("-czf")
            .arg(place.path().join(format!("{arch}.tar.gz")))
            .arg("-C")
            .arg(&packed)
            .args(["bin", "versions.yaml"])
            .status();
        assert!(tar.unwrap().success());
    }
    let cluster = |amd64: &str, arm64: &str| {
        let items = PLUGINS.map(|name| format!("{{name: {name}, type: bin, dst: /opt/cni/bin}}"));
        parse(&format!(
            "cluster-id: mixed\nruntime: containerd\n\
             masters: [{{name: m0, ip: 10.0.0.1, arch: amd64}}]\n\
             workers: [{{name: m0, ip: 10.0.0.1}}, {{name: w0, ip: 10.0.0.2, arch: arm64}}]\n\
             install:\n  package-source: {{type: tar.gz, srcpath: {{amd64: {amd64}.tar.gz, arm64: {arm64}.tar.gz}}}}\n  \
             network: [{}]\n",
            items.join(", ")
        ))
    };
    let cache = place.path().join("cache");
    let swapped = Bundles::open(&cluster("arm64", "amd64"), place.path(), &cache).unwrap_err();
    let told: Vec<_> = swapped.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().all(|one| one.contains("what it holds is for")),
        "{told:?}"
    );

    let cluster = cluster("amd64", "arm64");
    let bundles = Bundles::open(&cluster, place.path(), &cache).unwrap();
    let learned = bundles.versions(&cluster, None).unwrap();
    assert_eq!(learned.versions.kubernetes.unwrap().to_string(), "1.37.0");
    let identity = state::nobody(&cluster.id);
    let mut replies = Vec::new();
    for (node, (uname, archive)) in cluster
        .machines()
        .iter()
        .zip([("x86_64", "amd64"), ("aarch64", "arm64")])
    {
        let facts = MachineFacts::debian().with_machine(uname);
        let memory = Memory::new(node.name.as_str()).with_facts(facts);
        let machine = Machine::new(Arc::new(memory.clone()), Privilege::Root, identity.clone());
        let found = machine.facts(Duration::from_secs(10)).await.unwrap();
        let kind = PackageKind::from(found.0.package_manager);
        let installation = bundles
            .installation(&cluster, node, kind, &node.roles)
            .unwrap();
        let programs = installation.operations.into_iter().filter(|operation| {
            let title = operation.title();
            PLUGINS
                .iter()
                .any(|name| title.ends_with(&format!("/{name}")))
        });
        let task = Task::new(Word::new("network").unwrap(), programs.collect()).unwrap();
        machine.apply(&task, &|_| ()).await.unwrap();
        for name in PLUGINS {
            let sent = memory.file(&format!("/opt/cni/bin/{name}")).unwrap();
            let wanted = fs::read(place.path().join(archive).join("bin").join(name)).unwrap();
            assert!(*sent == *wanted, "{} {name}", node.name);
        }
        replies.push(Ok(found));
    }
    let answers: Vec<_> = cluster.machines().iter().zip(&replies).collect();
    let findings = preflight::check_machines(&cluster, &identity, &answers);
    let wrong = findings.iter().find(|one| one.code == "architecture");
    assert!(wrong.is_none(), "{wrong:?}");
}
