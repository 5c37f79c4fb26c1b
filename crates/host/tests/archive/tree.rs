//! A tree of files, the tools that pack it, and the comparison with what was packed.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    time::SystemTime,
};

use hatchery_host::archive::{Archive, Entry, Kind};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A tree with what packages hold: programs, links, deep and long names, nothing and much.
pub(crate) fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    let write = |path: &str, contents: &[u8]| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    };
    write("bin/kubelet", &noise(300_000));
    write("bin/kubectl", &noise(1000));
    write("empty", b"");
    write("名/文件.txt", b"text");
    write(&format!("{0}/{0}/long", "n".repeat(120)), b"long");
    let kubelet = dir.path().join("bin/kubelet");
    fs::set_permissions(&kubelet, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::hard_link(&kubelet, dir.path().join("hyperkube")).unwrap();
    symlink("../bin/kubectl", dir.path().join("bin/k")).unwrap();
    fs::create_dir(dir.path().join("addons")).unwrap();
    dir
}

/// Bytes that do not compress to nothing.
pub(crate) fn noise(length: u32) -> Vec<u8> {
    (0..length)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x3f)
        .collect()
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

pub(crate) fn tar(tree: &Path, archive: &Path, options: &[&str], what: &[&str]) {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(tree);
    tar.args(options.iter().filter(|option| **option != "--zstd"));
    run(tar.arg("-cf").arg(archive).args(what));
    // GNU tar would need a program for it that not every machine has.
    if options.contains(&"--zstd") {
        let packed = zstd::encode_all(File::open(archive).unwrap(), 3).unwrap();
        fs::write(archive, packed).unwrap();
    }
}

pub(crate) fn there(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

/// Everything in an archive must be what the tree has, and everything in the tree must be in it.
pub(crate) fn compare(archive: &Archive, tree: &Path) {
    let mut seen = BTreeSet::new();
    for entry in archive.index().entries() {
        let path = tree.join(&*entry.path);
        let metadata = path.symlink_metadata().unwrap();
        match &entry.kind {
            Kind::File { size, sha256 } => {
                assert_eq!(*size, metadata.len());
                let contents = fs::read(&path).unwrap();
                assert_eq!(sha256.0, <[u8; 32]>::from(Sha256::digest(contents)));
                assert_eq!(entry.mode, metadata.permissions().mode() & 0o777);
                let since = metadata
                    .modified()
                    .unwrap()
                    .duration_since(SystemTime::UNIX_EPOCH);
                assert_eq!(entry.mtime, since.unwrap().as_secs().cast_signed());
            }
            Kind::Directory => assert!(metadata.is_dir()),
            Kind::Symlink { target } => {
                assert_eq!(fs::read_link(&path).unwrap(), Path::new(&**target));
            }
        }
        assert!(seen.insert(path));
    }
    let mut pending = vec![tree.to_owned()];
    while let Some(directory) = pending.pop() {
        for child in fs::read_dir(directory).unwrap() {
            let child = child.unwrap();
            assert!(seen.contains(&child.path()), "{child:?}");
            if child.file_type().unwrap().is_dir() {
                pending.push(child.path());
            }
        }
    }
    let files: BTreeSet<String> = archive
        .index()
        .below("")
        .filter(|e| is_file(e))
        .map(path_of)
        .collect();
    let mut read = BTreeSet::new();
    archive
        .read_selected(&files, |entry, contents| {
            let mut bytes = Vec::new();
            contents.read_to_end(&mut bytes)?;
            assert_eq!(bytes, fs::read(tree.join(&*entry.path)).unwrap());
            assert!(read.insert(path_of(entry)));
            Ok(())
        })
        .unwrap();
    assert_eq!(read, files);
}

pub(crate) fn is_file(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::File { .. })
}

pub(crate) fn path_of(entry: &Entry) -> String {
    entry.path.to_string()
}

pub(crate) fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().copied().map(str::to_owned).collect()
}
