//! Which package file a name means.

use hatchery_host::operation::{Operation, PackageSource, Packages};

use super::{
    super::PackageKind,
    all_of,
    forge::{Forge, Place, cluster},
    only, shown,
};

fn arch(deb: bool) -> &'static str {
    match (super::forge::own().as_str(), deb) {
        ("arm64", true) => "arm64",
        ("arm64", false) => "aarch64",
        (_, true) => "amd64",
        (_, false) => "x86_64",
    }
}

fn archive(files: &[&str]) -> Place {
    let file = |forge: Forge, name: &&str| {
        let name = name.replace("DEB", arch(true)).replace("RPM", arch(false));
        forge.file(&name, &name)
    };
    Place::with(files.iter().fold(Forge::new(), file))
}

fn chosen(place: &Place, names: &str, kind: PackageKind) -> Result<Vec<String>, (String, String)> {
    let cluster = cluster("", &format!("  etcd: [{{name: \"{names}\", type: pkg}}]"));
    let bundles = place.open(&cluster).unwrap();
    match all_of(&bundles, &cluster, "m0", kind) {
        Ok(found) => Ok(shown(&found)),
        Err(problems) => Err(only(problems)),
    }
}

#[test]
fn a_machine_gets_packages_of_its_kind() {
    let place = archive(&[
        "pkg/etcd_3.4-1_DEB.deb",
        "pkg/etcd-3.4-1.RPM.rpm",
        "pkg/etcd-client_3.4-1_DEB.deb",
        "pkg/libx_y_1-1_all.deb",
    ]);
    let deb = chosen(&place, "etcd,libx_y,etcd", PackageKind::Deb);
    assert_eq!(deb.unwrap(), ["packages etcd libx-y"]);
    assert_eq!(
        chosen(&place, "etcd", PackageKind::Rpm).unwrap(),
        ["packages etcd"]
    );
    let (message, remedy) = chosen(&place, "etcd-client", PackageKind::Rpm).unwrap_err();
    assert!(
        message.contains("holds no .rpm of etcd-client, but etcd-client_3.4"),
        "{message}"
    );
    assert!(remedy.contains("add the .rpm"), "{remedy}");
}

#[test]
fn a_missing_package_has_near_misses() {
    let place = archive(&["nginx-mod-stream-1.18-1.RPM.rpm", "etcd-3.4-1.RPM.rpm"]);
    let (message, remedy) = chosen(&place, "nginx,etcd", PackageKind::Rpm).unwrap_err();
    assert!(
        message.ends_with("own.tar.gz holds no package nginx"),
        "{message}"
    );
    assert!(
        remedy.contains("it holds nginx-mod-stream-1.18-1"),
        "{remedy}"
    );
}

#[test]
fn of_several_the_exact_one_or_none() {
    let place = archive(&[
        "Foo_1-1_DEB.deb",
        "foo_1-1_DEB.deb",
        "bar-1-1.RPM.rpm",
        "bar-2-1.RPM.rpm",
    ]);
    assert_eq!(
        chosen(&place, "foo", PackageKind::Deb).unwrap(),
        ["packages foo"]
    );
    let (message, remedy) = chosen(&place, "bar", PackageKind::Rpm).unwrap_err();
    assert!(
        message.contains("several packages that bar may mean: bar-1-1."),
        "{message}"
    );
    assert!(remedy.contains("leave only the one"), "{remedy}");
    let exact = format!("bar-2-1.{}.rpm", arch(false));
    assert_eq!(
        chosen(&place, &exact, PackageKind::Rpm).unwrap(),
        ["packages bar"]
    );
}

#[test]
fn the_machines_processor_chooses_too() {
    let place = archive(&["a-1-1.s390x.rpm", "a-1-1.RPM.rpm", "b-1-1.s390x.rpm"]);
    assert_eq!(
        chosen(&place, "a", PackageKind::Rpm).unwrap(),
        ["packages a"]
    );
}

#[test]
fn packages_need_a_package_manager() {
    let place = archive(&["a-1-1.RPM.rpm"]);
    let cluster = cluster("", "  etcd: [{name: a, type: pkg}, {name: b, type: repo}]");
    let bundles = place.open(&cluster).unwrap();
    let problems = all_of(&bundles, &cluster, "m0", PackageKind::None).unwrap_err();
    assert!(
        problems
            .iter()
            .all(|one| one.message.contains("no package manager")),
        "{problems:?}"
    );
    assert!(problems.len() >= 2);
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Rpm).unwrap();
    let [
        Operation::Packages(Packages {
            source: PackageSource::Repository(names),
        }),
        Operation::Packages(Packages {
            source: PackageSource::Files(files),
        }),
    ] = &found.operations[..]
    else {
        panic!("{:?}", found.operations)
    };
    assert!(names.iter().any(|name| name.as_str() == "b"));
    assert_eq!(files[0].version, "1-1");
}

#[test]
fn without_an_archive_only_repositories_serve() {
    let text = "cluster-id: demo\nmasters: [{name: m0, ip: 10.201.1.11}]\nworkers: [{name: m0, ip: 10.201.1.11}]\n";
    let cluster = super::forge::parse(text);
    let place = Place::new();
    let bundles = place.open(&cluster).unwrap();
    let found = all_of(&bundles, &cluster, "m0", PackageKind::Rpm).unwrap();
    assert_eq!(found.operations.len(), 1);
    assert!(!place.cache().exists());
}
