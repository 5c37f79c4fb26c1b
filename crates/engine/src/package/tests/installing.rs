//! Files, directories, links and images.

use super::{
    super::PackageKind,
    all_of,
    forge::{Forge, Place, cluster, elf, own},
    only, shown,
};

#[test]
fn both_layouts_give_the_same() {
    let install = "  etcd: [{name: etcd, type: bin, dst: /usr/local/bin}]\n  \
        kubernetes-worker:\n    - {name: 10-limits.conf, type: file, dst: /etc/systemd/system/kubelet.service.d}\n    \
        - {name: conf, type: dir, dst: /etc/kubernetes}\n  \
        image: [{name: pause.tar, type: image}]\n  dns: [{name: socat, type: pkg}]";
    let cluster = cluster("", install);
    let archive = |layout: [&str; 5]| {
        let [bin, file, dir, image, pkg] = layout;
        Forge::new()
            .with_mode(&format!("{bin}etcd"), elf(own()), 0o600)
            .with_mode(&format!("{file}10-limits.conf"), "[Service]", 0o666)
            .with_mode(&format!("{dir}conf/a/b"), "b", 0o640)
            .images(&format!("{image}pause.tar"), &["k8s.gcr.io/pause:3.2"])
            .file(&format!("{pkg}socat_1.7-1_all.deb"), "deb")
    };
    for layout in [["bin/", "file/", "dir/", "image/", "pkg/"], [""; 5]] {
        let place = Place::with(archive(layout));
        let bundles = place.open(&cluster).unwrap();
        let found = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap();
        assert_eq!(
            shown(&found),
            [
                "packages socat",
                "file /etc/systemd/system/kubelet.service.d/10-limits.conf 644",
                "file /etc/kubernetes/conf/a/b 640",
                "file /usr/local/bin/etcd 755",
            ]
        );
        assert_eq!(
            found.program_path("etcd").unwrap().as_str(),
            "/usr/local/bin/etcd"
        );
        assert_eq!(
            found.program_path("kubelet").unwrap().as_str(),
            "/usr/bin/kubelet"
        );
        let images: Vec<_> = found
            .images
            .iter()
            .map(|one| one.references.clone())
            .collect();
        assert_eq!(images, [["k8s.gcr.io/pause:3.2"]]);
    }
}

#[test]
fn roles_share_what_they_both_list() {
    let install = "  kubernetes-master: [{name: kubectl, type: bin, dst: /usr/bin}]\n  \
        kubernetes-worker: [{name: kubectl, type: bin, dst: /usr/bin}]";
    let cluster = cluster("", install);
    let place = Place::with(Forge::new().file("bin/kubectl", elf(own())));
    let bundles = place.open(&cluster).unwrap();
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Rpm).unwrap();
    assert_eq!(shown(&found), ["file /usr/bin/kubectl 755"]);
    // One operation for all repositories, too.
    assert_eq!(found.operations.len(), 2);
}

#[test]
fn one_place_for_two_things_is_a_problem() {
    let install = "  kubernetes-master: [{name: one, type: bin, dst: /usr/bin}]\n  \
        kubernetes-worker: [{name: one, type: file, dst: /usr/bin}, {name: two, type: file, dst: /usr/bin/one}]";
    let cluster = cluster("", install);
    let place = Place::with(
        Forge::new()
            .file("bin/one", "a program")
            .file("file/one", "a file")
            .file("file/two", "below"),
    );
    let bundles = place.open(&cluster).unwrap();
    let problems = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap_err();
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "/usr/bin/one would come from both bin/one and file/one, which differ",
            "file/two would come to /usr/bin/one/two, but /usr/bin/one is not a directory",
        ]
    );
}

#[test]
fn a_directory_comes_whole_with_its_links() {
    let install = "  network: [{name: cni, type: dir, dst: /opt/cni/bin}]";
    let cluster = cluster("", install);
    let good = || {
        Forge::new()
            .directory("dir/cni", 0o777)
            .directory("dir/cni/empty", 0o2700)
            .with_mode("dir/cni/bridge", "1", 0o777)
            .link("dir/cni/alias", "bridge")
            .link("dir/cni/empty/up", "../bridge")
    };
    let place = Place::with(good());
    let bundles = place.open(&cluster).unwrap();
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap();
    assert_eq!(
        shown(&found),
        [
            "directory /opt/cni/bin/cni 755",
            "link /opt/cni/bin/cni/alias bridge",
            "file /opt/cni/bin/cni/bridge 755",
            "directory /opt/cni/bin/cni/empty 700",
            "link /opt/cni/bin/cni/empty/up ../bridge",
        ]
    );
    let place = Place::with(
        good()
            .file("dir/other", "x")
            .link("dir/cni/out", "../other"),
    );
    let bundles = place.open(&cluster).unwrap();
    let problems = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap_err();
    let (message, remedy) = only(problems);
    assert!(
        message.contains("link dir/cni/out to ../other"),
        "{message}"
    );
    assert!(remedy.contains("--dereference"), "{remedy}");
}

#[test]
fn a_classic_binary_is_what_it_turns_out_to_be() {
    let text = format!(
        "cluster-id: demo\nruntime: docker\n\
         masters: [{{name: m0, ip: 10.201.1.11, port: 22, arch: {0}}}]\n\
         nodes: [{{name: m0, ip: 10.201.1.11, port: 22, arch: {0}}}]\n\
         package-src: {{type: tar.gz, {1}: own.tar.gz}}\n\
         pacakges:\n  master:\n  - {{name: addons, type: binary, dstpath: /etc/kubernetes}}\n  \
         - {{name: kube-apiserver, type: binary, dstpath: /usr/bin}}\n  \
         - {{name: kubelet.service, type: binary, dstpath: /usr/lib/systemd/system}}\n  \
         - {{name: tool, type: binary, dstpath: /etc/kubernetes}}\n",
        own(),
        if own().as_str() == "arm64" {
            "armsrc"
        } else {
            "x86src"
        },
    );
    let cluster = super::forge::parse(&text);
    let place = Place::with(
        Forge::new()
            .file("addons/calico.yaml", "kind: List")
            .images(
                "images.tar",
                &["x:1", "coredns/coredns:1.8.4", "k8s.gcr.io/pause:3.2"],
            )
            .file("kube-apiserver", elf(own()))
            .file("kubelet.service", "[Unit]")
            .with_mode("tool", "#!/bin/sh", 0o744),
    );
    let bundles = place.open(&cluster).unwrap();
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Rpm).unwrap();
    assert_eq!(
        shown(&found),
        [
            "file /etc/kubernetes/addons/calico.yaml 644",
            "file /usr/bin/kube-apiserver 755",
            "file /usr/lib/systemd/system/kubelet.service 644",
            "file /etc/kubernetes/tool 755",
        ]
    );
    // Loaded without being listed.
    let images: Vec<_> = found
        .images
        .iter()
        .map(|one| one.references.clone())
        .collect();
    assert_eq!(
        images,
        [[
            "docker.io/library/x:1",
            "docker.io/coredns/coredns:1.8.4",
            "k8s.gcr.io/pause:3.2"
        ]]
    );
}

#[test]
fn images_have_full_names_and_come_once() {
    let cluster = cluster(
        "",
        "  image: [{name: images.tar, type: image}, {name: copy.tar, type: image}]",
    );
    let place = Place::with(
        Forge::new()
            .images("images.tar", &["x:1", "a/b:2"])
            .images("image/copy.tar", &["x:1", "a/b:2"]),
    );
    let bundles = place.open(&cluster).unwrap();
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap();
    let images: Vec<_> = found
        .images
        .iter()
        .map(|one| one.references.clone())
        .collect();
    assert_eq!(images, [["docker.io/library/x:1", "docker.io/a/b:2"]]);
}

#[test]
fn what_is_no_image_archive_is_told_from_the_rest() {
    let cluster = cluster("", "  image: [{name: a.tar, type: image}]");
    let place = Place::with(Forge::new().file("image/a.tar", "hello"));
    let bundles = place.open(&cluster).unwrap();
    let (message, remedy) = only(all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap_err());
    assert!(
        message.contains("image/a.tar, which is not an archive of images"),
        "{message}"
    );
    assert!(remedy.contains("docker save"), "{remedy}");
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    let install = "  etcd: [{name: \"etcd,etcdctl\", type: bin, dst: /usr/bin}]\n  \
        container: [{name: docker, type: dir, dst: /etc/kubernetes}]\n  \
        image: [{name: Pause.tar, type: image}]";
    let cluster = cluster("", install);
    let place = Place::with(
        Forge::new()
            .file("bin/etcd", elf(own()))
            .file("dir/docker", "no directory")
            .images("image/pause.tar", &["x:1"]),
    );
    let bundles = place.open(&cluster).unwrap();
    let problems = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap_err();
    let said: Vec<_> = problems
        .iter()
        .map(|one| {
            let (_, what) = one.message.split_once("own.tar.gz ").unwrap();
            format!("{what}: {}", one.remedy.as_deref().unwrap())
        })
        .collect();
    assert_eq!(
        said,
        [
            "holds no program etcdctl: put it there as bin/etcdctl or etcdctl, or correct its name in the list; it holds bin/etcd",
            "holds dir/docker, but it is a file: list it with type bin or file",
            "holds no image archive Pause.tar: put it there as image/Pause.tar or Pause.tar, or correct its name in the list; it holds image/pause.tar",
        ]
    );
}

#[test]
fn coredns_may_be_missing_where_it_runs_in_pods() {
    let install = "  kubernetes-master: [{name: coredns, type: bin, dst: /usr/bin}, {name: kubectl, type: bin, dst: /usr/bin}, {name: coredns, type: pkg}]";
    let place = Place::with(Forge::new().file("bin/kubectl", elf(own())));
    let pod = cluster("service: {dns: {corednstype: pod}}", install);
    let bundles = place.open(&pod).unwrap();
    let found = all_of(&bundles, &pod, "m0", PackageKind::Deb).unwrap();
    assert_eq!(shown(&found), ["file /usr/bin/kubectl 755"]);
    let binary = cluster("service: {dns: {corednstype: binary}}", install);
    let bundles = place.open(&binary).unwrap();
    assert_eq!(
        all_of(&bundles, &binary, "m0", PackageKind::Deb)
            .unwrap_err()
            .len(),
        2
    );
}

#[test]
fn scripts_run_once_however_many_roles_ask_for_them() {
    let list = "[{name: 'a.sh,b.sh', type: shell, schedule: prejoin, timeout: 5s}]";
    let cluster = cluster(
        "",
        &format!("  addition: {{master: {list}, worker: {list}}}"),
    );
    let place = Place::with(Forge::new().file("file/a.sh", "echo").file("b.sh", "exit"));
    let bundles = place.open(&cluster).unwrap();
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap();
    let names: Vec<_> = found.hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["a.sh", "b.sh"]);
    assert_eq!(found.hooks[0].timeout.as_secs(), 5);
    let place = Place::with(Forge::new().file("file/a.sh", "echo"));
    let bundles = place.open(&cluster).unwrap();
    let (message, _) = only(all_of(&bundles, &cluster, "m0", PackageKind::Deb).unwrap_err());
    assert!(message.contains("holds no script b.sh"), "{message}");
}
