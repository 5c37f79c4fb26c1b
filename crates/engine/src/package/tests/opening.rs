//! Archives that are refused, and what is kept of those that are not.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
};

use hatchery_spec::value::Arch;

use super::{
    super::PackageKind,
    all_of,
    forge::{Forge, Place, cluster, elf, own},
    only, shown,
};

const KUBECTL: &str = "  kubernetes-master: [{name: kubectl, type: bin, dst: /usr/bin}]\n  \
    image: [{name: a.tar, type: image}]";

fn sample() -> Forge {
    Forge::new()
        .file("bin/kubectl", elf(own()))
        .images("image/a.tar", &["x:1"])
}

/// Other bytes in an archive that looks the same.
fn spoil(place: &Place) {
    let path = place.archive();
    let before = fs::metadata(&path).unwrap();
    let size = usize::try_from(before.len()).unwrap();
    fs::write(&path, vec![0; size]).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
}

#[test]
fn an_archive_is_read_once() {
    let place = Place::with(sample());
    let cluster = cluster("", KUBECTL);
    let first = place.open(&cluster).unwrap();
    spoil(&place);
    let again = place.open(&cluster).unwrap();
    let titles = |bundles| {
        let found = all_of(bundles, &cluster, "m0", PackageKind::Deb).unwrap();
        (shown(&found), found.images[0].references.clone())
    };
    assert_eq!(titles(&first), titles(&again));
    // Another time is another archive.
    let file = File::options().write(true).open(place.archive()).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    place.open(&cluster).unwrap_err();
}

#[test]
fn what_is_kept_is_private_and_distrusted() {
    let place = Place::with(sample());
    let cluster = cluster("", KUBECTL);
    place.open(&cluster).unwrap();
    let records: Vec<_> = fs::read_dir(place.cache())
        .unwrap()
        .map(|one| one.unwrap().path())
        .collect();
    let [record] = &records[..] else {
        panic!("{records:?}")
    };
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(record), mode(&place.cache())), (0o600, 0o700));

    let good = fs::read(record).unwrap();
    let half = good[..good.len() / 2].to_vec();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let text = String::from_utf8(good.clone()).unwrap();
    let newer = text.replacen("scan 1", "scan 2", 1).into_bytes();
    for bad in [half, flipped, newer, vec![0xff; 100], Vec::new()] {
        fs::write(record, bad).unwrap();
        place.open(&cluster).unwrap();
        assert_eq!(fs::read(record).unwrap(), good, "it was written anew");
    }
    // A cache that cannot be written only costs time.
    fs::remove_dir_all(place.cache()).unwrap();
    fs::write(place.cache(), "a file").unwrap();
    place.open(&cluster).unwrap();
}

#[test]
fn later_lists_ask_for_more() {
    let place = Place::with(sample().images("image/b.tar", &["y:1"]));
    place.open(&cluster("", KUBECTL)).unwrap();
    let more = cluster("", &KUBECTL.replace("a.tar", "\"a.tar,b.tar\""));
    let bundles = place.open(&more).unwrap();
    let found = all_of(&bundles, &more, "m0", PackageKind::Deb).unwrap();
    assert_eq!(found.images.len(), 2);
}

#[test]
fn an_archive_for_another_processor_is_refused() {
    let other = if own() == Arch::Arm64 {
        Arch::Amd64
    } else {
        Arch::Arm64
    };
    let install = "  kubernetes-master: [{name: kubectl, type: bin, dst: /usr/bin}]\n  etcd: [{name: etcd, type: pkg}]";
    let place = Place::with(
        Forge::new()
            .file("bin/kubectl", elf(other))
            .file(&format!("pkg/etcd_3.4-1_{other}.deb"), "deb"),
    );
    let (message, remedy) = only(place.open(&cluster("", install)).unwrap_err());
    let expected = format!(
        "is named for {}, but what it holds is for {other}: bin/kubectl, etcd_3.4-1_{other}.deb",
        own()
    );
    assert!(message.ends_with(&expected), "{message}");
    assert!(remedy.contains(own().as_str()), "{remedy}");
}

#[test]
fn an_archive_that_holds_nothing_that_is_listed_is_refused() {
    let place = Place::with(Forge::new().file("README", "x"));
    let (message, remedy) = only(place.open(&cluster("", KUBECTL)).unwrap_err());
    assert!(
        message.ends_with("holds nothing of what is listed: kubectl, a.tar"),
        "{message}"
    );
    assert!(remedy.contains("tar -tf"), "{remedy}");
    let place = Place::with(Forge::new().file("packages/bin/kubectl", elf(own())));
    let (_, remedy) = only(place.open(&cluster("", KUBECTL)).unwrap_err());
    assert!(remedy.contains("tar -C packages"), "{remedy}");
}

#[test]
fn archives_that_cannot_be_read_say_why() {
    let cluster = cluster("", KUBECTL);
    let place = Place::new();
    let (message, remedy) = only(place.open(&cluster).unwrap_err());
    assert!(message.contains("cannot open the archive"), "{message}");
    assert!(remedy.contains("check its path"), "{remedy}");
    let whole = sample().gzip();
    fs::write(place.archive(), &whole[..whole.len() - 20]).unwrap();
    let (message, remedy) = only(place.open(&cluster).unwrap_err());
    assert!(message.contains("ends too early"), "{message}");
    assert!(remedy.contains("checksum"), "{remedy}");
    fs::write(place.archive(), sample().tar()).unwrap();
    place.open(&cluster).unwrap();
}

#[test]
fn the_problems_of_all_archives_are_told() {
    let place = Place::new();
    let text = "cluster-id: demo\nruntime: containerd\n\
        masters: [{name: m0, ip: 10.201.1.11, arch: amd64}]\n\
        workers: [{name: m0, ip: 10.201.1.11}, {name: w0, ip: 10.201.1.12, arch: arm64}]\n\
        install:\n  package-source: {type: tar.gz, srcpath: {amd64: a.tar.gz, arm64: b.tar.gz, s390x: c.tar.gz}}\n";
    let problems = place.open(&super::forge::parse(text)).unwrap_err();
    // Nobody asks for the third.
    assert_eq!(problems.len(), 2, "{problems:?}");
}
