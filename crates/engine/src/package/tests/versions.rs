//! Which versions archives bring.

use std::fs;

use hatchery_spec::{Cluster, value::Arch};

use super::{
    super::{Learned, Versions},
    forge::{Forge, Place, cluster, elf, own, parse},
    only,
};
use crate::{confinement::Launcher, finding::Finding};

/// Scripts stand in for programs, and are run as they are: how programs are confined is tested where they are.
fn learn(place: &Place, cluster: &Cluster) -> Result<Learned, Vec<Finding>> {
    // Another test that starts a program right now may still have the script open for writing.
    let insist = "for i in {1..50}; do exec \"$@\"; sleep 0.02; done; exit 126";
    let unconfined = Launcher::new([
        "/usr/bin/env",
        "PATH=/usr/bin:/bin",
        "bash",
        "-O",
        "execfail",
        "-c",
        insist,
        "bash",
    ]);
    place.open(cluster)?.versions(cluster, Some(&unconfined))
}

fn shown(versions: &Versions) -> [String; 4] {
    let text = |one: Option<String>| one.unwrap_or_else(|| "-".to_owned());
    [
        text(versions.kubernetes.map(|one| one.to_string())),
        text(versions.etcd.map(|one| one.to_string())),
        text(versions.containerd.map(|one| one.to_string())),
        text(versions.coredns.map(|one| one.to_string())),
    ]
}

#[test]
fn names_of_packages_tell() {
    let install = "  kubernetes-master: [{name: kubernetes-master, type: pkg}]\n  \
        kubernetes-worker: [{name: kubernetes-kubelet, type: pkg}]\n  etcd: [{name: etcd, type: pkg}]";
    let cluster = cluster("", install);
    let archive = |kubelet: &str| {
        Forge::new()
            .file("kubernetes-master-1.20.2-4.oe1.noarch.rpm", "")
            .file(
                &format!("kubernetes-kubelet-{kubelet}-4.oe1.noarch.rpm"),
                "",
            )
            .file("etcd-3.4.14-2.noarch.rpm", "")
            .file("containerd-1.6.1-2.noarch.rpm", "not listed")
    };
    let place = Place::with(archive("1.20.3"));
    let versions = learn(&place, &cluster).unwrap().versions;
    assert_eq!(shown(&versions), ["1.20.2", "3.4.14", "-", "-"]);
    let place = Place::with(archive("1.21.0"));
    let (message, _) = only(learn(&place, &cluster).unwrap_err());
    assert!(message.contains("different versions"), "{message}");
}

const PROGRAMS: &str = "  kubernetes-worker: [{name: kubelet, type: bin, dst: /usr/bin}]\n  \
    etcd: [{name: etcd, type: bin, dst: /usr/bin}]\n  \
    container: [{name: containerd, type: bin, dst: /usr/bin}]\n  \
    dns: [{name: coredns, type: bin, dst: /usr/bin}]";

fn talkative(kubelet: &str) -> Forge {
    let says =
        |words: &str| format!("#!/bin/sh\n[ $# = 1 ] && echo '{words}' && echo x >>$0.ran\n");
    Forge::new()
        .file("bin/kubelet", says(kubelet))
        .file("bin/etcd", says("etcd Version: 3.5.9"))
        .file("bin/containerd", "#!/bin/sh\nexit 1\n")
        .file(
            "bin/coredns",
            "#!/bin/sh\n[ \"$1\" = -version ] && echo CoreDNS-1.11.1\n",
        )
}

#[test]
fn programs_are_asked_and_their_answers_kept() {
    let cluster = cluster("", PROGRAMS);
    let place = Place::with(talkative("Kubernetes v1.30.1"));
    let Learned { versions, unknown } = learn(&place, &cluster).unwrap();
    assert_eq!(shown(&versions), ["1.30.1", "3.5.9", "-", "1.11.1"]);
    let [containerd] = &unknown[..] else {
        panic!("{unknown:?}")
    };
    let told = containerd.to_string();
    assert!(
        told.contains("bin/containerd") && told.contains("containerd-version"),
        "{told}"
    );
    let left: Vec<_> = fs::read_dir(place.cache()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the record stays: {left:?}");
    let record = fs::read_to_string(left[0].as_ref().unwrap().path()).unwrap();
    assert!(record.contains("Kubernetes v1.30.1"));
    assert_eq!(learn(&place, &cluster).unwrap().versions, versions);
    // From the record: nothing has to run for it.
    let bundles = place.open(&cluster).unwrap();
    assert_eq!(bundles.versions(&cluster, None).unwrap().versions, versions);
}

#[test]
fn a_program_that_tells_nothing_is_a_problem_unless_the_file_does() {
    let asked = |more: &str| {
        let cluster = cluster(more, PROGRAMS);
        let place = Place::with(talkative("hello"));
        learn(&place, &cluster).map(|learned| learned.versions)
    };
    let (message, remedy) = only(asked("").unwrap_err());
    assert!(
        message.contains("bin/kubelet, which does not print its version"),
        "{message}"
    );
    assert!(remedy.contains("kubernetes-version"), "{remedy}");
    assert_eq!(
        asked("kubernetes-version: 1.30.1").unwrap().kubernetes,
        None
    );
}

#[test]
fn an_old_kubernetes_is_refused() {
    let cluster = cluster("", PROGRAMS);
    let place = Place::with(talkative("Kubernetes v1.19.9"));
    let (message, remedy) = only(learn(&place, &cluster).unwrap_err());
    assert!(message.contains("1.19.9, which is older"), "{message}");
    assert!(remedy.contains("1.20"), "{remedy}");
}

fn mixed(install: &str) -> Cluster {
    parse(&format!(
        "cluster-id: demo\nruntime: containerd\n\
         masters: [{{name: m0, ip: 10.201.1.11, arch: amd64}}]\n\
         workers: [{{name: m0, ip: 10.201.1.11}}, {{name: w0, ip: 10.201.1.12, arch: arm64}}]\n\
         install:\n  package-source: {{type: tar.gz, srcpath: {{amd64: a.tar.gz, arm64: b.tar.gz}}}}\n{install}\n"
    ))
}

#[test]
fn archives_for_two_processors_bring_one_version() {
    let cluster = mixed(
        "  kubernetes-worker: [{name: kubelet, type: pkg}]\n  container: [{name: containerd, type: pkg}]",
    );
    let place = Place::new();
    let pack = |name: &str, arch: &str, kubelet: &str, containerd: &str| {
        let forge = Forge::new()
            .file(&format!("pkg/kubelet_{kubelet}-1_{arch}.deb"), "")
            .file(&format!("pkg/containerd_{containerd}-1_{arch}.deb"), "");
        fs::write(place.0.path().join(name), forge.gzip()).unwrap();
    };
    pack("a.tar.gz", "amd64", "1.30.1", "1.7.2");
    pack("b.tar.gz", "arm64", "1.30.1", "1.6.9");
    let versions = learn(&place, &cluster).unwrap().versions;
    assert_eq!(shown(&versions), ["1.30.1", "-", "1.6.9", "-"]);
    pack("b.tar.gz", "arm64", "1.30.2", "1.6.9");
    let (message, _) = only(learn(&place, &cluster).unwrap_err());
    assert!(
        message.contains("1.30.1 for amd64, 1.30.2 for arm64"),
        "{message}"
    );
}

#[test]
fn programs_for_another_processor_are_not_run() {
    let cluster = mixed("  kubernetes-worker: [{name: kubelet, type: bin, dst: /usr/bin}]");
    let place = Place::new();
    let pack = |name: &str, arch: Arch, contents: Vec<u8>| {
        let contents = if arch == own() { contents } else { elf(arch) };
        let forge = Forge::new().file("bin/kubelet", contents);
        fs::write(place.0.path().join(name), forge.gzip()).unwrap();
    };
    let says = b"#!/bin/sh\necho Kubernetes v1.31.0\n".to_vec();
    pack("a.tar.gz", Arch::Amd64, says.clone());
    pack("b.tar.gz", Arch::Arm64, says);
    let versions = learn(&place, &cluster).unwrap().versions;
    assert_eq!(shown(&versions), ["1.31.0", "-", "-", "-"]);
}

#[test]
fn without_a_launcher_no_program_runs() {
    let place = Place::with(talkative("Kubernetes v1.30.1"));
    let cluster = cluster("kubernetes-version: 1.30", PROGRAMS);
    let bundles = place.open(&cluster).unwrap();
    let Learned { versions, unknown } = bundles.versions(&cluster, None).unwrap();
    assert_eq!(shown(&versions), ["-", "-", "-", "-"]);
    assert_eq!(unknown.len(), 3, "{unknown:?}");
}

#[test]
fn a_list_in_the_archive_tells_and_nothing_runs() {
    let archive = |list: &str| talkative("hello").file("versions.yaml", list);
    let place = Place::with(archive(
        "kubernetes: 1.30.1\netcd: 3.5.9\ncontainerd: 1.7.2\ncoredns: v1.11.1\n",
    ));
    let plain = cluster("", PROGRAMS);
    let bundles = place.open(&plain).unwrap();
    let Learned { versions, unknown } = bundles.versions(&plain, None).unwrap();
    assert_eq!(shown(&versions), ["1.30.1", "3.5.9", "1.7.2", "1.11.1"]);
    assert!(unknown.is_empty(), "{unknown:?}");

    let place = Place::with(archive("kubernetes: newest\n"));
    let (message, remedy) = only(learn(&place, &plain).unwrap_err());
    assert!(
        message.contains("holds versions.yaml, but kubernetes has \"newest\""),
        "{message}"
    );
    assert!(remedy.contains("kubernetes: 1.28.3"), "{remedy}");
}

#[test]
fn what_the_file_says_is_held_against_the_archive() {
    let keys = "kubernetes-version: 1.30.1\netcd-version: 3.4\ncontainerd-version: 1.7.2\ncoredns-version: 1.11.0";
    let place = Place::with(talkative("hello"));
    // Nobody is asked whose version is written.
    let written = cluster(keys, PROGRAMS);
    let Learned { versions, unknown } = learn(&place, &written).unwrap();
    assert_eq!(shown(&versions), ["-", "3.4.0", "1.7.2", "1.11.0"]);
    assert!(unknown.is_empty(), "{unknown:?}");

    let place =
        Place::with(talkative("hello").file("versions.yaml", "etcd: 3.5.9\ncoredns: 1.11.1\n"));
    let (message, remedy) = only(learn(&place, &written).unwrap_err());
    assert!(
        message.contains("etcd is 3.4.0, and the archives bring 3.5.9"),
        "{message}"
    );
    assert!(remedy.contains("etcd-version"), "{remedy}");
}

#[test]
fn programs_that_cannot_run_here_are_not_known() {
    let cluster = mixed(
        "  kubernetes-worker: [{name: kubelet, type: bin, dst: /usr/bin}]\n  \
         container: [{name: containerd, type: bin, dst: /usr/bin}]",
    );
    let foreign = match own() {
        Arch::Amd64 => Arch::Arm64,
        _ => Arch::Amd64,
    };
    let place = Place::new();
    let pack = |name: &str, arch: Arch, list: &str| {
        let forge = Forge::new()
            .file("bin/kubelet", elf(arch))
            .file("bin/containerd", elf(arch))
            .file("versions.yaml", list);
        fs::write(place.0.path().join(name), forge.gzip()).unwrap();
    };
    let both = "kubernetes: 1.30.1\ncontainerd: 2.0.1\n";
    let (own_list, foreign_list) = (
        "kubernetes: 1.30.1\ncontainerd: 2.0.1\n",
        "kubernetes: 1.30.1\n",
    );
    for (name, arch) in [("a.tar.gz", Arch::Amd64), ("b.tar.gz", Arch::Arm64)] {
        pack(
            name,
            arch,
            if arch == foreign {
                foreign_list
            } else {
                own_list
            },
        );
    }
    let learned = learn(&place, &cluster).unwrap();
    assert_eq!(shown(&learned.versions), ["1.30.1", "-", "2.0.1", "-"]);
    assert!(learned.unknown.is_empty(), "one archive tells for both");
    for (name, arch) in [("a.tar.gz", Arch::Amd64), ("b.tar.gz", Arch::Arm64)] {
        pack(
            name,
            arch,
            if arch == foreign { both } else { foreign_list },
        );
    }
    let learned = learn(&place, &cluster).unwrap();
    assert_eq!(shown(&learned.versions), ["1.30.1", "-", "2.0.1", "-"]);
}

#[test]
fn what_the_file_says_of_kubernetes_is_known_for_another_processor() {
    let foreign = match own() {
        Arch::Amd64 => Arch::Arm64,
        _ => Arch::Amd64,
    };
    let unknown = |more: &str| {
        let cluster = parse(&format!(
            "cluster-id: demo\nruntime: containerd\n{more}\
             masters: [{{name: m0, ip: 10.201.1.11, arch: {foreign}}}]\n\
             workers: [{{name: m0, ip: 10.201.1.11}}]\n\
             install:\n  package-source: {{type: tar.gz, srcpath: {{{foreign}: a.tar.gz}}}}\n{PROGRAMS}\n"
        ));
        let place = Place::new();
        let forge = Forge::new()
            .file("bin/kubelet", elf(foreign))
            .file("bin/etcd", elf(foreign))
            .file("bin/containerd", elf(foreign))
            .file("bin/coredns", elf(foreign));
        fs::write(place.0.path().join("a.tar.gz"), forge.gzip()).unwrap();
        let unknown = learn(&place, &cluster).unwrap().unknown;
        unknown.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let is_kubelet = |told: &String| told.contains("bin/kubelet");
    assert!(unknown("").iter().any(is_kubelet));
    let told = unknown("kubernetes-version: 1.30.1\n");
    assert!(!told.iter().any(is_kubelet), "{told:?}");
    assert_eq!(told.len(), 3, "{told:?}");
}
