//! Archives as real tools make them, and as they change under our hands.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

#[path = "archive/tree.rs"]
mod tree;

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use hatchery_host::archive::{Archive, Compression, Error, Limits};
use tempfile::TempDir;

use crate::tree::{compare, path_of, run, set, tar, there, tree};

#[test]
fn every_format_of_gnu_tar_is_read() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let path = out.path().join("named.zip");
    for options in [
        &["--format=gnu"][..],
        &["--format=posix"],
        &["--format=posix", "--xattrs", "--label=package"],
        &[
            "--format=gnu",
            "--gzip",
            "--numeric-owner",
            "--owner=4000000000",
            "--group=4000000000",
        ],
        &["--format=posix", "--gzip", "--owner=4000000000"],
        &["--format=gnu", "--zstd", "--hard-dereference"],
        &["--format=gnu", "--blocking-factor=1"],
    ] {
        tar(tree.path(), &path, options, &["."]);
        let archive = Archive::open(&path).unwrap();
        compare(&archive, tree.path());
        let has = |option: &str| options.contains(&option);
        let compression = match () {
            () if has("--gzip") => Compression::Gzip,
            () if has("--zstd") => Compression::Zstd,
            () => Compression::None,
        };
        assert_eq!(archive.compression(), compression);
    }
    // These two have no room for long names.
    let short = tree.path().join("bin");
    for format in ["--format=ustar", "--format=v7"] {
        tar(&short, &path, &[format], &["kubectl", "kubelet", "k"]);
        let outside = Archive::open(&path).unwrap_err().to_string();
        assert!(
            outside.contains("\"k\" links to \"../bin/kubectl\""),
            "{outside}"
        );
        tar(&short, &path, &[format], &["kubectl", "kubelet"]);
        assert_eq!(Archive::open(&path).unwrap().index().entries().len(), 2);
    }
}

#[test]
fn an_archive_without_directories_has_them_all_the_same() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let path = out.path().join("a.tgz");
    let files = [
        "bin/kubelet",
        "hyperkube",
        "bin/kubectl",
        "bin/k",
        "empty",
        "名/文件.txt",
    ];
    tar(tree.path(), &path, &["-z"], &files);
    let archive = Archive::open(&path).unwrap();
    assert_eq!(
        Vec::from_iter(archive.index().children("bin")),
        ["k", "kubectl", "kubelet"]
    );
    assert!(archive.index().is_directory("名"));
}

#[test]
fn other_tools_are_read() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let path = out.path().join("archive");
    for format in ["GNU_FORMAT", "PAX_FORMAT"] {
        for mode in ["w", "w:gz"] {
            let script = format!(
                "import sys, tarfile\nwith tarfile.open(sys.argv[1], '{mode}', format=tarfile.{format}) as t: t.add(sys.argv[2], arcname='.')"
            );
            run(Command::new("python3")
                .args(["-c", &script])
                .arg(&path)
                .arg(tree.path()));
            compare(&Archive::open(&path).unwrap(), tree.path());
        }
    }
    let mut tools: Vec<&[&str]> = Vec::new();
    if there("busybox") {
        tools.push(&["busybox", "tar"]);
    }
    if there("bsdtar") {
        tools.extend([
            &["bsdtar"][..],
            &["bsdtar", "--format=pax", "-z"],
            &["bsdtar", "--format=gnutar"],
        ]);
    }
    for tool in tools {
        let mut command = Command::new(tool[0]);
        command.args(&tool[1..]).arg("-C").arg(tree.path());
        run(command.arg("-cf").arg(&path).arg("."));
        compare(&Archive::open(&path).unwrap(), tree.path());
    }
}

#[test]
fn gzip_members_and_zstd_frames_may_follow_one_another() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let (plain, packed) = (out.path().join("plain"), out.path().join("packed"));
    tar(tree.path(), &plain, &[], &["."]);
    let bytes = fs::read(&plain).unwrap();
    let gzip = |piece: &[u8]| {
        let part = out.path().join("part");
        fs::write(&part, piece).unwrap();
        let output = Command::new("gzip").arg("-c").arg(&part).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let zstd = |piece: &[u8]| zstd::encode_all(piece, 3).unwrap();
    for whole in [
        bytes.chunks(100_000).flat_map(gzip).collect::<Vec<_>>(),
        bytes.chunks(100_000).flat_map(zstd).collect(),
    ] {
        fs::write(&packed, whole).unwrap();
        compare(&Archive::open(&packed).unwrap(), tree.path());
    }
}

#[test]
fn chosen_files_come_in_archive_order_and_alone() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    for (name, options) in [("a", &[][..]), ("b", &["-z"]), ("c", &["--zstd"])] {
        let path = out.path().join(name);
        tar(
            tree.path(),
            &path,
            options,
            &["empty", "bin/kubelet", "hyperkube", "addons", "bin/kubectl"],
        );
        let archive = Archive::open(&path).unwrap();
        let mut order = Vec::new();
        let wanted = set(&[
            "bin/kubectl",
            "./bin/kubelet",
            "bin/kubelet",
            "empty",
            "hyperkube",
        ]);
        archive
            .read_selected(&wanted, |entry, contents| {
                // Of the rest of a file nothing needs to be read.
                let mut start = [0; 10];
                let count = contents.read(&mut start)?;
                let whole = fs::read(tree.path().join(&*entry.path)).unwrap();
                assert_eq!(start[..count], whole[..whole.len().min(10)]);
                order.push(path_of(entry));
                Ok(())
            })
            .unwrap();
        assert_eq!(order, ["empty", "bin/kubelet", "bin/kubectl", "hyperkube"]);
        archive
            .read_selected(&set(&[]), |_, _| panic!("nothing was wanted"))
            .unwrap();

        let ask = |path| {
            archive
                .read_selected(&set(&[path]), |_, _| Ok(()))
                .unwrap_err()
        };
        assert!(matches!(ask("bin/kube"), Error::Missing { .. }));
        assert!(matches!(ask("addons"), Error::NoContents { .. }));
    }
}

#[test]
fn a_consumer_that_fails_is_told_from_an_archive_that_fails() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let path = out.path().join("a");
    tar(tree.path(), &path, &["-z"], &["bin", "empty"]);
    let archive = Archive::open(&path).unwrap();
    let mut calls = 0;
    let error = archive
        .read_selected(&set(&["bin/kubectl", "bin/kubelet", "empty"]), |_, _| {
            calls += 1;
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        })
        .unwrap_err();
    assert!(matches!(error, Error::PassOn { .. }), "{error}");
    assert_eq!(calls, 1);
}

#[test]
fn an_archive_that_was_replaced_or_written_to_is_noticed() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let path = out.path().join("a.tar");
    tar(tree.path(), &path, &[], &["."]);
    let archive = Archive::open(&path).unwrap();
    let read = || archive.read_selected(&set(&["bin/kubectl"]), |_, _| Ok(()));
    read().unwrap();

    let copy = out.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    File::open(&copy).unwrap().set_modified(modified).unwrap();
    fs::rename(&path, out.path().join("old")).unwrap();
    assert!(matches!(read(), Err(Error::Open { .. })));
    fs::rename(&copy, &path).unwrap();
    let error = read().unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    assert!(error.remedy().is_some());
    fs::rename(out.path().join("old"), &path).unwrap();
    read().unwrap();

    File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"x")
        .unwrap();
    File::open(&path).unwrap().set_modified(modified).unwrap();
    assert!(matches!(read(), Err(Error::Changed { .. })));
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(archive_size(&path) - 1)
        .unwrap();
    File::open(&path).unwrap().set_modified(modified).unwrap();
    read().unwrap();
    File::open(&path)
        .unwrap()
        .set_modified(modified + Duration::from_nanos(1))
        .unwrap();
    assert!(matches!(read(), Err(Error::Changed { .. })));
}

fn archive_size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn other_bytes_under_the_same_size_and_time_are_noticed_before_the_last_is_handed_over() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    for (name, options) in [("a", &[][..]), ("b", &["-z"]), ("c", &["--zstd"])] {
        let path = out.path().join(name);
        tar(tree.path(), &path, options, &["bin/kubelet", "empty"]);
        let (archive, fresh) = (Archive::open(&path).unwrap(), Archive::open(&path).unwrap());
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let middle = archive_size(&path) / 2;
        let mut byte = [0];
        file.read_exact_at(&mut byte, middle).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], middle).unwrap();
        file.set_modified(modified).unwrap();

        let mut handed_over = 0;
        let error = archive
            .read_selected(&set(&["bin/kubelet"]), |_, contents| {
                let mut piece = [0; 1000];
                loop {
                    // A consumer that hides errors gets no whole file either.
                    match contents.read(&mut piece) {
                        Ok(0) | Err(_) => return Ok(()),
                        Ok(count) => handed_over += count,
                    }
                }
            })
            .unwrap_err();
        assert!(
            matches!(error, Error::ChangedEntry { .. }),
            "{name}: {error}"
        );
        assert!(handed_over < 300_000);

        // Nor is what lies before a wanted file taken on trust, where it must be unpacked. This handle has nothing unpacked
        // yet; the other one may go on from where its thread is, and what it hands over is compared all the same.
        file.write_all_at(&[0xff; 100], 0).unwrap();
        file.set_modified(modified).unwrap();
        let after = fresh.read_selected(&set(&["empty"]), |_, _| Ok(()));
        match after {
            Ok(()) => assert_eq!(fresh.compression(), Compression::None),
            Err(error) => assert!(matches!(error, Error::ChangedEntry { .. }), "{error}"),
        }
        let mut handed_over = Vec::new();
        let after = archive.read_selected(&set(&["empty"]), |_, contents| {
            contents.read_to_end(&mut handed_over).map(drop)
        });
        match after {
            Ok(()) => assert_eq!(handed_over, b""),
            Err(error) => assert!(matches!(error, Error::ChangedEntry { .. }), "{error}"),
        }
    }
}

#[test]
fn errors_name_the_archive_the_entry_and_the_way_out() {
    let out = TempDir::new().unwrap();
    let open = |path: &Path| {
        let error = Archive::open(path).unwrap_err();
        let remedy = error.remedy().unwrap();
        format!("{error}; {remedy}").replace(&out.path().display().to_string(), "DIR")
    };
    let path = |name: &str| -> PathBuf { out.path().join(name) };
    assert_eq!(
        open(&path("no.tgz")),
        "cannot open the archive DIR/no.tgz: No such file or directory (os error 2); check its path in the deploy file"
    );
    assert_eq!(
        open(out.path()),
        "the archive DIR is not a regular file; name a tar.gz, tar.zst or tar file"
    );
    run(Command::new("mkfifo").arg(path("pipe")));
    assert!(open(&path("pipe")).contains("is not a regular file"));
    tar(out.path(), &path("special.tgz"), &["-z"], &["./pipe"]);
    assert_eq!(
        open(&path("special.tgz")),
        "the archive DIR/special.tgz is refused: entry \"./pipe\" is a named pipe; leave it out and pack the archive again"
    );
    fs::write(path("a.tar.xz.tgz"), b"BZh91AY&SY").unwrap();
    assert_eq!(
        open(&path("a.tar.xz.tgz")),
        "the archive DIR/a.tar.xz.tgz is refused: it is bzip2-compressed, not a tar archive; repack it as tar.gz or tar.zst"
    );
    fs::write(path("zeros"), vec![0; 4 << 20]).unwrap();
    tar(out.path(), &path("bomb.tgz"), &["-z"], &["zeros"]);
    let limits = Limits {
        ratio_allowance: 1 << 20,
        ..Limits::default()
    };
    let bomb = Archive::open_within(&path("bomb.tgz"), limits).unwrap_err();
    assert!(
        bomb.to_string().contains("it unpacks to more than"),
        "{bomb}"
    );
}

#[test]
fn sparse_files_are_refused() {
    let (tree, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = File::create(tree.path().join("disk")).unwrap();
    file.set_len(10 << 20).unwrap();
    file.write_all_at(b"data", 5 << 20).unwrap();
    for format in ["--format=gnu", "--format=posix"] {
        let path = out.path().join("a.tar");
        tar(tree.path(), &path, &["--sparse", format], &["disk"]);
        let error = Archive::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("disk") && error.ends_with("is stored as a sparse file"),
            "{error}"
        );
    }
}

#[test]
fn many_threads_read_one_archive() {
    let (tree, out) = (tree(), TempDir::new().unwrap());
    let path = out.path().join("a.tgz");
    tar(tree.path(), &path, &["-z"], &["."]);
    let archive = Archive::open(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| compare(&archive, tree.path()));
        }
    });
}
