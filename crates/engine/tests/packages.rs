//! Real archives in both layouts, with programs, `.deb` and `.rpm` files, for deploy files of both dialects.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Instant,
};

use hatchery_engine::package::{Bundles, Manifest, PackageKind, Problem};
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
                    let names = images.references().iter();
                    let names = names.map(|name| name.rsplit_once(':').unwrap().0);
                    let names: Vec<_> = names.collect();
                    let _ = writeln!(text, "  images {}", names.join(" "));
                }
            }
            Err(problems) => {
                for problem in problems {
                    let _ = writeln!(text, "  error: {}", without_path(&problem));
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

fn without_path(problem: &Problem) -> String {
    let path = problem.archive.as_ref().unwrap().display().to_string();
    problem.message.replace(&path, "ARCHIVE")
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

        let versions = bundles.versions(&cluster).unwrap();
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
        assert_eq!(again.versions(&cluster).unwrap(), versions);
        let second = begin.elapsed();
        assert!(second * 5 < first, "{second:?} after {first:?}");
    }
}
