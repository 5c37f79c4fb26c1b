//! Archives and lists of packages, in either dialect.

use super::Reader;
use super::item_names::archive_file;
use crate::cluster::PackageList;
use crate::diagnostic::Diagnostic;
use crate::draft::{Field, ListDraft};
use crate::keys::report_unknown;
use crate::source::Spanned;
use crate::tree::{Key, Node};
use crate::value::{Arch, Mismatch};
use crate::walk::{list, report_mismatch, section, value, word};

/// The lists of `install`, by their keys.
const LISTS: [(&str, PackageList); 8] = [
    ("kubernetes-master", PackageList::KubernetesMaster),
    ("kubernetes-worker", PackageList::KubernetesWorker),
    ("network", PackageList::Network),
    ("etcd", PackageList::Etcd),
    ("loadbalance", PackageList::Loadbalance),
    ("container", PackageList::Container),
    ("image", PackageList::Image),
    ("dns", PackageList::Dns),
];

const ADDITIONS: [(&str, PackageList); 4] = [
    ("master", PackageList::AdditionMaster),
    ("worker", PackageList::AdditionWorker),
    ("etcd", PackageList::AdditionEtcd),
    ("loadbalance", PackageList::AdditionLoadbalance),
];

const CLASSIC: [(&str, PackageList, &str); 4] = [
    (
        "master",
        PackageList::KubernetesMaster,
        "the masters' list of packages",
    ),
    (
        "node",
        PackageList::KubernetesWorker,
        "the workers' list of packages",
    ),
    ("etcd", PackageList::Etcd, "etcd's list of packages"),
    (
        "loadbalance",
        PackageList::Loadbalance,
        "the load balancer's list of packages",
    ),
];

impl Reader<'_> {
    pub(super) fn install(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let known = LISTS.iter().find(|(name, _)| *name == key.text);
            match (key.text.as_str(), known) {
                ("package-source", _) => self.package_source(key, node),
                ("addition", _) => self.additions(node),
                (_, Some((_, list))) => {
                    let classic = CLASSIC.iter().find(|(_, one, _)| one == list);
                    if classic.is_none_or(|(_, _, what)| self.given_once(what, key)) {
                        self.package_list(*list, node);
                    }
                }
                _ => report_unknown(key, &["install"], self.diagnostics),
            }
        }
    }

    fn additions(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            match ADDITIONS.iter().find(|(name, _)| *name == key.text) {
                Some((_, list)) => self.package_list(*list, node),
                None => report_unknown(key, &["install.addition"], self.diagnostics),
            }
        }
    }

    /// The manual's lists. Only what they name is installed, so the others have no defaults.
    pub(super) fn classic_packages(&mut self, node: &Node) {
        let entries = section(node, self.diagnostics).unwrap_or_default();
        if !entries.is_empty() {
            self.draft.default_lists = false;
        }
        for (key, node) in entries {
            match CLASSIC.iter().find(|(name, _, _)| *name == key.text) {
                Some((_, list, what)) => {
                    if self.given_once(what, key) {
                        self.package_list(*list, node);
                    }
                }
                None => report_unknown(key, &["packages"], self.diagnostics),
            }
        }
    }

    fn package_list(&mut self, which: PackageList, node: &Node) {
        let entries = list(node, self.diagnostics).unwrap_or_default();
        let items = entries
            .iter()
            .flat_map(|entry| self.item(which, entry))
            .collect();
        self.draft.lists.push(ListDraft { list: which, items });
    }

    fn package_source(&mut self, key: &Key, node: &Node) {
        if !self.given_once("the archive of packages", key) {
            return;
        }
        self.draft.archives_section = Some(key.span);
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            match key.text.as_str() {
                "type" => self.archive_type(node),
                "dstpath" => self.draft.package_directory = self.destination(node),
                "srcpath" => self.archives(node),
                _ => report_unknown(key, &["install.package-source"], self.diagnostics),
            }
        }
    }

    fn archives(&mut self, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            match Arch::parse(&key.text) {
                Ok(arch) => self.archive(arch, key, node),
                Err(wrong) => {
                    report_mismatch(&key.text, key.span, "bad-arch", wrong, self.diagnostics);
                }
            }
        }
    }

    fn archive(&mut self, arch: Arch, key: &Key, node: &Node) {
        if let Field::Given(path) = value(node, "bad-path", local_path, self.diagnostics) {
            if let Some((first, _)) = self
                .draft
                .archives
                .iter()
                .find(|(one, _)| one.value == arch)
            {
                let message = format!("the archive for {arch} is given twice");
                self.diagnostics.push(
                    Diagnostic::error("said-twice", key.span, message)
                        .related(first.span, "first here")
                        .remedy("keep one of the two; they name the same architecture"),
                );
                return;
            }
            self.draft
                .archives
                .push((Spanned::new(arch, key.span), path));
        }
    }

    fn archive_type(&mut self, node: &Node) {
        let known = |text: &str| match text {
            "tar.gz" | "tgz" | "tar.zst" => Ok(()),
            _ => Err(Mismatch::new(
                "not a supported archive type",
                "pack it as tar.gz or tar.zst",
            )),
        };
        let _ = value(node, "bad-archive-type", known, self.diagnostics);
    }

    pub(super) fn package_src(&mut self, key: &Key, node: &Node) {
        if !self.given_once("the archive of packages", key) {
            return;
        }
        self.draft.archives_section = Some(key.span);
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            match key.text.as_str() {
                "type" => self.archive_type(node),
                "armsrc" => self.archive(Arch::Arm64, key, node),
                "x86src" => self.archive(Arch::Amd64, key, node),
                _ => report_unknown(key, &["package-src"], self.diagnostics),
            }
        }
    }

    pub(super) fn addons(&mut self, node: &Node) {
        for item in list(node, self.diagnostics).unwrap_or_default() {
            let mut name = Field::Absent;
            let entries = section(item, self.diagnostics);
            for (key, node) in entries.unwrap_or_default() {
                let d = &mut *self.diagnostics;
                match key.text.as_str() {
                    "type" => {
                        let file = |text: &str| match text {
                            "file" => Ok(()),
                            _ => Err(Mismatch::new("not a valid addon type", "write file")),
                        };
                        let _ = value(node, "bad-addon-type", file, d);
                    }
                    "filename" => name = value(node, "bad-file-name", archive_file, d),
                    _ => report_unknown(key, &["addons"], d),
                }
            }
            match name {
                Field::Given(name) => self.draft.addons.push(name),
                Field::Absent if entries.is_some() => self.diagnostics.push(
                    Diagnostic::error("missing-key", item.span, "the addon has no `filename`")
                        .remedy("add the manifest's name below addons/ in the archive"),
                ),
                Field::Absent | Field::Wrong => {}
            }
        }
    }
}

/// A path on the control machine.
fn local_path(text: &str) -> Result<String, Mismatch> {
    let text = word(text)?;
    if text.ends_with('/') || text.contains("://") {
        return Err(Mismatch::new(
            "not the path of an archive",
            "write the path of a tar.gz file on this machine",
        ));
    }
    Ok(text)
}
