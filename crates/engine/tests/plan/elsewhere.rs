//! Where a key takes effect that does not change the plan of machines without archives: each check does the real thing
//! and tells what came of it.

use std::{fmt::Write as _, fs, path::Path};

use hatchery_engine::{
    authorities::Authorities,
    package::{Bundles, Manifest, PackageKind},
    reach::{self, Environment},
    state::{Directory, Holder, Store as _},
};
use hatchery_host::operation::{Operation, PackageSource, Packages};
use hatchery_spec::Cluster;
use time::OffsetDateTime;

use super::{ground, text};

/// How an effect is seen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// By how the machines are reached.
    Routes,
    /// By the authorities that the cluster gets.
    Authorities,
    /// By what archives put on the machines and apply to the cluster.
    Packages,
    /// By the versions that the cluster is taken to be made of.
    Versions,
    /// By what is planned for machines whose containerd is in use.
    ExistingRuntime,
}

impl Check {
    /// What there is to see for a file.
    pub(crate) fn sees(self, file: &str) -> String {
        match self {
            Self::Routes => routes(&ground::cluster(file)),
            Self::Authorities => authorities(&ground::cluster(file)),
            Self::Packages => packages(file),
            Self::ExistingRuntime => {
                let mut facts = ground::real_machine();
                facts.runtime_use.containerd_containers = 1;
                facts.runtime_use.containerd_directories = vec!["root = \"/srv/c\"".to_owned()];
                let versions = ground::versions("1.31");
                text::full(&ground::plan(&ground::cluster(file), &versions, &facts))
            }
            Self::Versions => {
                let learned = Bundles::default().versions(&ground::cluster(file), None);
                format!("{learned:?}")
            }
        }
    }
}

fn routes(cluster: &Cluster) -> String {
    let home = tempfile::tempdir().unwrap();
    let password = |name: &str| ["P", "PASSWORD"].contains(&name).then(|| "x".to_owned());
    // The user's own keys and known hosts are not there, wherever this runs.
    let environment = Environment::new(home.path().join("cache"), None, password);
    let nodes: Vec<_> = cluster.all_machines().collect();
    let store = Directory::new(&home.path().join("state"), &cluster.id);
    let said = match reach::routes(&nodes, &store, &environment) {
        Ok(routes) => {
            let targets: Vec<_> = routes.into_iter().map(|(target, _)| target).collect();
            format!("{targets:#?}")
        }
        // A file that is looked for and not there is an effect too.
        Err(errors) => format!("{errors:#?}"),
    };
    said.replace(home.path().to_str().unwrap(), "HOME")
}

fn authorities(cluster: &Cluster) -> String {
    let home = tempfile::tempdir().unwrap();
    let store = Directory::new(home.path(), &cluster.id);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let made = runtime.block_on(async {
        let now = OffsetDateTime::now_utc();
        let lock = store.lock(Holder::this_process("test", now)).await.unwrap();
        let external_ca = cluster.certificates.external_ca.as_ref();
        let external_ca = external_ca.map(|path| Path::new(path.as_str()));
        Authorities::load_or_create(&store, &lock, false, external_ca, now).await
    });
    match made {
        Ok(_) => "made".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Everything that a file of the cases may name, in both layouts.
const FILES: [&str; 15] = [
    "bin/etcd",
    "bin/etcd2",
    "file/etcd",
    "file/a.sh",
    "file/b.sh",
    "file/a.yaml",
    "file/b.yaml",
    "addons/a.yaml",
    "addons/b.yaml",
    "a",
    "b",
    "image/a",
    "other",
    "file/other",
    "dir/other/x",
];

/// An archive whose files say in which archive they are.
fn pack(directory: &Path, name: &str, arch: &str) {
    let packed = fs::File::create(directory.join(name)).unwrap();
    let packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    let mut archive = tar::Builder::new(packed);
    let packages = ["kubernetes-master", "other", "etcd", "nginx", "haproxy"];
    let packages = packages.map(|package| format!("pkg/{package}_1.0_{arch}.deb"));
    let files = FILES.map(str::to_owned).into_iter().chain(packages);
    for file in files {
        let text = format!("# {file} of {name}\n");
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, &file, text.as_bytes())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

fn packages(text: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().to_str().unwrap();
    let mut text = text.to_owned();
    for (name, arch) in [
        ("a.tar.gz", "amd64"),
        ("b.tar.gz", "all"),
        ("x86.tar.gz", "amd64"),
        ("arm.tar.gz", "arm64"),
    ] {
        pack(place.path(), name, arch);
        text = text.replace(&format!("/{name}"), &format!("{top}/{name}"));
    }
    let cluster = ground::cluster(&text);
    let bundles = Bundles::open(&cluster, place.path(), &place.path().join("cache"));
    let bundles = bundles.unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut seen = String::new();
    for node in cluster.machines() {
        let _ = writeln!(seen, "{}:", node.name);
        let installed = bundles.installation(&cluster, node, PackageKind::Deb, &node.roles);
        let installed = installed.unwrap_or_else(|problems| panic!("{problems:?}"));
        for operation in &installed.operations {
            let _ = write!(seen, "  {}", operation.title());
            match operation {
                Operation::File(file) => {
                    let hash = file.content.hash().as_str();
                    let _ = writeln!(seen, " {} {hash}", file.access.mode);
                }
                Operation::Packages(Packages {
                    source: PackageSource::Files(files),
                }) => {
                    for file in files {
                        let _ = write!(seen, " {} {}", file.name, file.content.hash().as_str());
                    }
                    seen.push('\n');
                }
                Operation::Packages(Packages {
                    source: PackageSource::Repository(names),
                }) => {
                    for name in names {
                        let _ = write!(seen, " {name}");
                    }
                    seen.push('\n');
                }
                _ => seen.push('\n'),
            }
        }
        for hook in &installed.hooks {
            let hash = hook.content.hash().as_str();
            let _ = writeln!(seen, "  {} {hash}", hook.name);
        }
    }
    let manifests = bundles.manifests(&cluster);
    for manifest in manifests.unwrap_or_else(|problems| panic!("{problems:?}")) {
        let _ = match manifest {
            Manifest::Text { name, text } => writeln!(seen, "{name}: {text}"),
            Manifest::Url(url) => writeln!(seen, "{url}"),
        };
    }
    seen
}
