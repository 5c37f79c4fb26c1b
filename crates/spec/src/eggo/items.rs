//! One entry of a list of packages.

use super::Reader;
use super::item_names::{archive_file, is_url, package, repository_package, url};
use crate::cluster::{Dialect, Item, ManifestSource, PackageList, Role, Schedule};
use crate::diagnostic::Diagnostic;
use crate::draft::Field;
use crate::keys::report_unknown;
use crate::source::{Span, Spanned};
use crate::tree::Node;
use crate::value::{AbsolutePath, GoDuration, Mismatch};
use crate::walk::{nearest, report_mismatch, section, value, word};

/// How long a script may run unless said.
const SCRIPT_TIMEOUT: GoDuration = GoDuration::seconds(30);

/// The manual's white list: these directories and what is below them.
const CLASSIC_DIRECTORIES: [&str; 8] = [
    "/usr/bin",
    "/usr/local/bin",
    "/opt/cni/bin",
    "/usr/libexec/cni",
    "/etc/kubernetes",
    "/usr/lib/systemd/system",
    "/etc/systemd/system",
    "/tmp",
];

/// What later eggo added.
const CURRENT_DIRECTORIES: [&str; 2] = ["/etc/cni/net.d", "/root/.eggo"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Repo,
    Pkg,
    Bin,
    File,
    Dir,
    Binary,
    Image,
    Yaml,
    Shell,
}

const TYPES: [(&str, Type); 9] = [
    ("repo", Type::Repo),
    ("pkg", Type::Pkg),
    ("bin", Type::Bin),
    ("file", Type::File),
    ("dir", Type::Dir),
    ("binary", Type::Binary),
    ("image", Type::Image),
    ("yaml", Type::Yaml),
    ("shell", Type::Shell),
];

/// The keys of an entry.
#[derive(Default)]
struct Entry {
    name: Field<String>,
    kind: Field<Type>,
    destination: Field<AbsolutePath>,
    schedule: Field<Schedule>,
    timeout: Field<GoDuration>,
}

impl Reader<'_> {
    pub(super) fn item(&mut self, list: PackageList, node: &Node) -> Vec<Spanned<Item>> {
        let Some(entries) = section(node, self.diagnostics) else {
            return Vec::new();
        };
        let mut entry = Entry::default();
        let mut destination_key: Option<Span> = None;
        for (key, node) in entries {
            let d = &mut *self.diagnostics;
            match key.text.as_str() {
                "name" => entry.name = value(node, "bad-package-name", word, d),
                "type" => entry.kind = value(node, "bad-package-type", package_type, d),
                "dst" | "dstpath" => {
                    let given = self.destination(node);
                    if let (Some(first), false) = (destination_key, given.is_absent()) {
                        self.diagnostics.push(
                            Diagnostic::error(
                                "said-twice",
                                key.span,
                                "the destination is given twice",
                            )
                            .related(first, "first here")
                            .remedy("keep one of dst and dstpath"),
                        );
                    } else if !given.is_absent() {
                        destination_key = Some(key.span);
                        entry.destination = given;
                    }
                }
                "schedule" => entry.schedule = value(node, "bad-schedule", schedule, d),
                "timeout" => entry.timeout = value(node, "bad-duration", GoDuration::parse, d),
                _ => report_unknown(key, &["<item>"], d),
            }
        }
        self.missing(node, &entry);
        let (Some(name), Some(kind)) = (entry.name.given(), entry.kind.given()) else {
            return Vec::new();
        };
        self.unused(kind.value, &entry);
        self.place_for(list, kind);
        name.value
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty())
            .filter_map(|one| self.one_item(one, name.span, kind.value, &entry, node.span))
            .collect()
    }

    fn missing(&mut self, node: &Node, entry: &Entry) {
        let mut require = |absent: bool, key: &str, remedy: &str| {
            if absent {
                let message = format!("the package has no `{key}`");
                self.diagnostics
                    .push(Diagnostic::error("missing-key", node.span, message).remedy(remedy));
            }
        };
        require(entry.name.is_absent(), "name", "add its name");
        if !entry.name.is_absent() {
            require(
                entry.kind.is_absent(),
                "type",
                "add type: repo, pkg, bin, file, dir, image, yaml or shell",
            );
        }
    }

    /// A destination in the white list.
    pub(super) fn destination(&mut self, node: &Node) -> Field<AbsolutePath> {
        let classic = self.draft.dialect == Dialect::Classic;
        value(
            node,
            "bad-destination",
            |text| {
                let path = AbsolutePath::parse(text)?;
                let more = if classic {
                    &[][..]
                } else {
                    &CURRENT_DIRECTORIES[..]
                };
                let allowed: Vec<&str> = CLASSIC_DIRECTORIES.iter().chain(more).copied().collect();
                if allowed.iter().any(|directory| path.is_within(directory)) {
                    return Ok(path);
                }
                Err(Mismatch::new(
                    "not an allowed destination",
                    format!(
                        "use one of these or a directory below: {}",
                        allowed.join(", ")
                    ),
                ))
            },
            self.diagnostics,
        )
    }

    /// Keys that mean nothing for this type.
    fn unused(&mut self, kind: Type, entry: &Entry) {
        let placed = matches!(kind, Type::Bin | Type::File | Type::Dir | Type::Binary);
        let mut warn = |span: Option<Span>, what: &str, whose: &str| {
            if let Some(span) = span {
                let message = format!("{what} has no effect here: only {whose} has one");
                self.diagnostics
                    .push(Diagnostic::warning("unused-key", span, message).remedy("remove it"));
            }
        };
        if !placed {
            warn(
                entry.destination.span(),
                "a destination",
                "a bin, file or dir",
            );
        }
        if kind != Type::Shell {
            warn(entry.schedule.span(), "a schedule", "a shell script");
            warn(entry.timeout.span(), "a timeout", "a shell script");
        }
    }

    /// Images need a runtime, and scripts are additions.
    fn place_for(&mut self, list: PackageList, kind: &Spanned<Type>) {
        let refusal = match kind.value {
            Type::Image if list.role() != Role::Worker => Some((
                "images are loaded on workers only: other machines have no container runtime",
                "move it to install.image",
            )),
            Type::Shell if !list.is_addition() => Some((
                "scripts are supported only in the lists of additions",
                "move it to install.addition.master, worker, etcd or loadbalance",
            )),
            _ => None,
        };
        if let Some((message, remedy)) = refusal {
            self.diagnostics
                .push(Diagnostic::error("misplaced-package", kind.span, message).remedy(remedy));
        }
    }

    fn one_item(
        &mut self,
        name: &str,
        span: Span,
        kind: Type,
        entry: &Entry,
        whole: Span,
    ) -> Option<Spanned<Item>> {
        let checked = match kind {
            Type::Repo => repository_package(name),
            Type::Pkg => package(name),
            Type::Yaml if is_url(name) => url(name),
            _ => archive_file(name),
        };
        let name = match checked {
            Ok(name) => name,
            Err(wrong) => {
                report_mismatch(name, span, "bad-package-name", wrong, self.diagnostics);
                return None;
            }
        };
        let item = match kind {
            Type::Repo => Item::Repo { name },
            Type::Pkg => Item::Pkg { name },
            Type::Image => Item::Image { name },
            Type::Yaml if is_url(&name) => Item::Yaml {
                source: ManifestSource::Url(name),
            },
            Type::Yaml => Item::Yaml {
                source: ManifestSource::Archive(name),
            },
            Type::Shell => {
                let schedule = *self.required(
                    &entry.schedule,
                    whole,
                    "schedule",
                    "specify when the script runs: prejoin, postjoin, precleanup or postcleanup",
                )?;
                let timeout = entry.timeout.unwrap_or(SCRIPT_TIMEOUT);
                Item::Shell {
                    name,
                    schedule,
                    timeout,
                }
            }
            Type::Bin | Type::File | Type::Dir | Type::Binary => {
                let key = if self.draft.dialect == Dialect::Classic {
                    "dstpath"
                } else {
                    "dst"
                };
                let destination = self
                    .required(
                        &entry.destination,
                        whole,
                        key,
                        "specify its target directory, such as /usr/bin",
                    )?
                    .clone();
                match kind {
                    Type::Bin => Item::Bin { name, destination },
                    Type::File => Item::File { name, destination },
                    Type::Dir => Item::Dir { name, destination },
                    _ => Item::Binary { name, destination },
                }
            }
        };
        Some(Spanned::new(item, span))
    }

    fn required<'f, T>(
        &mut self,
        field: &'f Field<T>,
        whole: Span,
        key: &str,
        remedy: &str,
    ) -> Option<&'f T> {
        if field.is_absent() {
            let message = format!("the package has no `{key}`");
            self.diagnostics
                .push(Diagnostic::error("missing-key", whole, message).remedy(remedy));
        }
        field.value()
    }
}

fn package_type(text: &str) -> Result<Type, Mismatch> {
    let found = TYPES.iter().find(|(name, _)| *name == text);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let names = TYPES.map(|(name, _)| name);
        let remedy = match nearest(text, names) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("use one of {}", names.join(", ")),
        };
        Mismatch::new("not a package type", remedy)
    })
}

fn schedule(text: &str) -> Result<Schedule, Mismatch> {
    match text {
        "prejoin" => Ok(Schedule::Prejoin),
        "postjoin" => Ok(Schedule::Postjoin),
        "precleanup" => Ok(Schedule::Precleanup),
        "postcleanup" => Ok(Schedule::Postcleanup),
        _ => Err(Mismatch::new(
            "not a valid schedule",
            "use prejoin, postjoin, precleanup or postcleanup",
        )),
    }
}
