//! Small archives, and clusters that use them.

use std::{fs, io::Write as _, path::PathBuf};

use hatchery_spec::{Cluster, Input, read, value::Arch};

use super::super::{Bundles, architecture};
use crate::finding::Finding;

/// An archive in the making.
pub(in crate::package) struct Forge(tar::Builder<Vec<u8>>);

impl Forge {
    pub(in crate::package) fn new() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }

    pub(in crate::package) fn file(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        self.with_mode(name, contents, 0o644)
    }

    pub(in crate::package) fn with_mode(
        mut self,
        name: &str,
        contents: impl AsRef<[u8]>,
        mode: u32,
    ) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.as_ref().len() as u64);
        header.set_mode(mode);
        self.0
            .append_data(&mut header, name, contents.as_ref())
            .unwrap();
        self
    }

    pub(in crate::package) fn directory(mut self, name: &str, mode: u32) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.set_mode(mode);
        self.0.append_data(&mut header, name, &b""[..]).unwrap();
        self
    }

    pub(in crate::package) fn link(mut self, name: &str, target: &str) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        self.0.append_link(&mut header, name, target).unwrap();
        self
    }

    /// A `docker save` archive of these references.
    pub(in crate::package) fn images(self, name: &str, references: &[&str]) -> Self {
        let manifest =
            serde_json::json!([{"Config": "x.json", "RepoTags": references, "Layers": []}]);
        let nested = tar(&[("x.json", "{}"), ("manifest.json", &manifest.to_string())]);
        self.file(name, nested)
    }

    pub(in crate::package) fn tar(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }

    pub(in crate::package) fn gzip(self) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&self.tar()).unwrap();
        packed.finish().unwrap()
    }
}

/// A tar of these files.
pub(in crate::package) fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let forge = files
        .iter()
        .fold(Forge::new(), |forge, (name, text)| forge.file(name, text));
    forge.tar()
}

/// A program that is for a processor and does nothing.
pub(in crate::package) fn elf(arch: Arch) -> Vec<u8> {
    let number = match arch {
        Arch::Arm64 => 183,
        _ => 62,
    };
    let mut head = vec![0; 100];
    head[..6].copy_from_slice(b"\x7fELF\x02\x01");
    head[18] = number;
    head
}

/// A directory with archives, and a cache.
pub(in crate::package) struct Place(pub(in crate::package) tempfile::TempDir);

impl Place {
    pub(in crate::package) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(in crate::package) fn with(archive: Forge) -> Self {
        let place = Self::new();
        fs::write(place.archive(), archive.gzip()).unwrap();
        place
    }

    pub(in crate::package) fn archive(&self) -> PathBuf {
        self.0.path().join("own.tar.gz")
    }

    pub(in crate::package) fn cache(&self) -> PathBuf {
        self.0.path().join("state/cache")
    }

    pub(in crate::package) fn open(&self, cluster: &Cluster) -> Result<Bundles, Vec<Finding>> {
        Bundles::open(cluster, self.0.path(), &self.cache())
    }
}

/// The processor that tests run on.
pub(in crate::package) fn own() -> Arch {
    architecture::own().unwrap()
}

/// One machine that is master, worker and etcd member, and whose archive is `own.tar.gz`.
pub(in crate::package) fn cluster(more: &str, install: &str) -> Cluster {
    let arch = own();
    parse(&format!(
        "cluster-id: demo\nruntime: containerd\n{more}\n\
         masters: [{{name: m0, ip: 10.201.1.11, arch: {arch}}}]\n\
         workers: [{{name: m0, ip: 10.201.1.11, arch: {arch}}}]\n\
         install:\n  package-source: {{type: tar.gz, srcpath: {{{arch}: own.tar.gz}}}}\n{install}\n"
    ))
}

pub(in crate::package) fn parse(text: &str) -> Cluster {
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    let said = reading.diagnostics.render(false);
    reading.cluster.unwrap_or_else(|| panic!("{said}"))
}
