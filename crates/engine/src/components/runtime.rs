//! Container runtimes on machines: a file for each, and what the other components ask of it.
//!
//! What a deploy file may say of one is in its row of [`hatchery_spec::runtimes`].

mod before;
mod containerd;
mod docker;
mod isulad;

use std::{fmt::Write as _, sync::LazyLock};

use hatchery_host::{
    facts::{RuntimeQuestion, RuntimeUse},
    machine::Managed,
    operation::{ImageStore, Images},
};
use hatchery_spec::{
    Cluster,
    runtimes::{self, RuntimeKind},
};

use super::NodeContext;
use crate::{
    package::ImageArchive,
    resource::{Error, Resources},
};

/// All that there are. A machine that has something of several was given it by the first of them.
pub(crate) const ALL: [&dyn Runtime; 3] =
    [&docker::Docker, &isulad::Isulad, &containerd::Containerd];

/// A container runtime.
pub(crate) trait Runtime: Sync {
    /// The name of its [`RuntimeKind`], also among the runtimes that are found on a machine.
    fn name(&self) -> &'static str;

    /// Runtimes that it brings with it and runs by itself.
    fn brings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its systemd unit.
    fn unit(&self) -> &'static str;

    /// Where it listens by default.
    fn socket(&self) -> &'static str;

    /// By what of ours it is known on a machine beside its unit: kind and name of resources.
    fn marks(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The path of its configuration file.
    fn configuration(&self) -> &'static str;

    /// Where it keeps images.
    fn data(&self) -> &'static str;

    /// What keeps its images.
    fn store(&self) -> ImageStore;

    /// How it lists an image of this full name.
    fn listed<'a>(&self, full: &'a str) -> &'a str {
        full
    }

    /// What it needs on a worker.
    fn resources(
        &self,
        node_context: &NodeContext<'_>,
        resources: &mut Resources,
    ) -> Result<(), Error>;

    /// Who makes its control groups, if that is not everybody's choice.
    fn cgroup_driver(&self, _: &NodeContext<'_>) -> Option<&'static str> {
        None
    }

    /// Where a kubelet reaches it that does not run it by itself.
    fn endpoint<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        cluster.runtime.endpoint.as_deref()
    }

    /// Flags of a kubelet that runs it by itself.
    fn built_in_flags(&self, _: &Cluster) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What it was used for on a machine before the cluster came, if it was and can be shared.
    fn uses(&self, _: &RuntimeUse) -> Option<String> {
        None
    }

    /// Why its configuration of before the cluster cannot be completed.
    fn unreadable(&self, _: &RuntimeUse) -> Option<String> {
        None
    }

    /// The process that runs while it does.
    fn program(&self) -> &'static str {
        self.name()
    }

    /// What it keeps in memory, and does not take with it when it ends.
    fn places(&self) -> &'static [&'static str];

    /// Control groups of its own in which it runs pods, below the top.
    fn groups(&self) -> &'static [&'static str] {
        &[]
    }

    /// Patterns for network namespaces of its pods, beside those that all runtimes make.
    fn namespaces(&self) -> &'static [&'static str] {
        &[]
    }

    /// Shell functions by which `pods.sh` ends its containers, `NAME_end`, and unmounts what is left of them,
    /// `NAME_unmount`. The first line is for shellcheck; by it `dev/check-scripts` finds them where they stand in Rust.
    fn end(&self) -> &'static str;
}

/// The runtime of a cluster.
#[expect(clippy::expect_used, reason = "a test holds the two lists together")]
pub(crate) fn for_cluster(cluster: &Cluster) -> &'static dyn Runtime {
    let name = cluster.runtime.kind.name;
    let mut all = ALL.into_iter();
    all.find(|runtime| runtime.name() == name)
        .expect("every runtime of a deploy file has its twin here")
}

/// What deploy files know of a runtime.
fn kind(runtime: &dyn Runtime) -> Option<&'static RuntimeKind> {
    let mut all = runtimes::ALL.into_iter();
    all.find(|kind| kind.name == runtime.name())
}

/// Runtimes that no cluster has.
const OTHERS: [RuntimeQuestion; 2] = [
    RuntimeQuestion {
        name: "crio",
        program: "crio",
        unit: "crio.service",
        socket: "/run/crio/crio.sock",
        data: "/var/lib/containers",
    },
    RuntimeQuestion {
        name: "podman",
        program: "podman",
        unit: "podman.service",
        socket: "/run/podman/podman.sock",
        data: "/var/lib/containers",
    },
];

/// The sources from which machines find all these, in the order in which they are listed.
pub(crate) static QUESTIONS: LazyLock<Vec<RuntimeQuestion>> = LazyLock::new(|| {
    let mut questions = ALL.map(|runtime| RuntimeQuestion {
        name: runtime.name(),
        program: runtime.program(),
        unit: runtime.unit(),
        socket: runtime.socket(),
        data: runtime.data(),
    });
    questions.sort_by_key(|runtime| runtime.name);
    [&questions[..], &OTHERS].concat()
});

/// The runtime that was found on a machine, if clusters can have it.
pub(crate) fn of_found(found: &str) -> Option<&'static RuntimeKind> {
    let mut all = runtimes::ALL.into_iter();
    all.find(|kind| kind.name == found)
}

/// Whether one of these runtimes brings another.
pub(crate) fn is_brought<'a>(found: &str, by: impl IntoIterator<Item = &'a str>) -> bool {
    by.into_iter().any(|other| {
        let mut all = ALL.into_iter();
        all.any(|runtime| runtime.name() == other && runtime.brings().contains(&found))
    })
}

/// In what the pods of a machine run, by its record.
pub(crate) fn of_record(managed: &Managed) -> Option<&'static RuntimeKind> {
    let has = |(kind, name): (&str, &str)| {
        let mut resources = managed.resources.iter();
        resources.any(|one| one.kind == kind && one.name == name)
    };
    let mut all = ALL.into_iter();
    let own = |runtime: &&dyn Runtime| {
        has(("unit", runtime.unit())) || runtime.marks().iter().copied().any(has)
    };
    kind(all.find(own)?)
}

/// The images of an archive, as a runtime keeps them.
pub(crate) fn images(runtime: &dyn Runtime, archive: &ImageArchive) -> Result<Images, Error> {
    let listed = archive.references.iter();
    let listed = listed.map(|full| runtime.listed(full).to_owned());
    let images = Images::new(runtime.store(), archive.content.clone(), listed.collect());
    Ok(images?)
}

/// What the runtime of a worker's cluster needs.
pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    node_context.runtime().resources(node_context, resources)
}

/// A number of containers, in a sentence.
fn containers(count: usize) -> String {
    match count {
        1 => "1 container".to_owned(),
        more => format!("{more} containers"),
    }
}

/// What `pods_before.sh` has to know of all runtimes.
pub(crate) fn before() -> String {
    let names = ALL.map(Runtime::name);
    let mut text = format!("runtimes='{}'\n", names.join(" "));
    let mut function = |name, words: fn(&dyn Runtime) -> Vec<&'static str>| {
        let _ = writeln!(text, "runtime_{name}() {{\n  case $1 in");
        for runtime in ALL {
            let words: String = words(runtime)
                .iter()
                .map(|word| format!(" '{word}'"))
                .collect();
            if !words.is_empty() {
                let _ = writeln!(text, "  {}) printf '%s\\n'{words} ;;", runtime.name());
            }
        }
        text += "  esac\n}\n";
    };
    function("places", |runtime| runtime.places().to_vec());
    function("groups", |runtime| runtime.groups().to_vec());
    function("namespaces", |runtime| runtime.namespaces().to_vec());
    function("program", |runtime| vec![runtime.program()]);
    text
}

/// What `pods.sh` has to know of all runtimes beside that.
pub(crate) fn end() -> String {
    ALL.map(Runtime::end).concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_runtime_has_its_twin() {
        let here: BTreeSet<_> = ALL.iter().map(|runtime| runtime.name()).collect();
        let in_files: BTreeSet<_> = runtimes::ALL.iter().map(|kind| kind.name).collect();
        assert_eq!(here, in_files);
        assert_eq!(here.len(), ALL.len());
    }

    #[test]
    fn each_runtime_is_found_by_what_it_is() {
        let asked = QUESTIONS.iter().map(|question| question.name);
        assert!(asked.eq(["containerd", "docker", "isulad", "crio", "podman"]));
        for runtime in ALL {
            let found = of_found(runtime.name()).map(|kind| kind.name);
            assert_eq!(found, Some(runtime.name()));
        }
        assert_eq!(of_found("crio"), None);
        assert!(is_brought("containerd", ["crio", "docker"]));
        assert!(!is_brought("containerd", ["containerd"]));
    }

    /// Every function that the scripts call is there for every runtime.
    #[test]
    fn each_runtime_ends_its_containers() {
        let functions = end();
        for runtime in ALL {
            assert!(runtime.end().starts_with("# shellcheck shell=sh\n"));
            for function in ["end", "unmount"] {
                let head = format!("\n{}_{function}() {{\n", runtime.name());
                assert_eq!(functions.matches(&head).count(), 1, "{head}");
            }
        }
        let before = before();
        assert!(before.starts_with("runtimes='docker isulad containerd'\n"));
        assert!(before.contains("  docker) printf '%s\\n' 'dockerd' ;;\n"));
    }
}
