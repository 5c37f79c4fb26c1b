//! Tasks as text for a machine's shell: the prelude, the values, the list of operations, one call.

mod prelude;
mod record_key;

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    time::Duration,
};

use prelude::PRELUDE;
pub(crate) use prelude::without_comments;
pub use record_key::{RecordKey, Release};
use record_key::{key, package_key, path_key};

use crate::{
    content::Content,
    operation::{Access, Operation, PackageSource},
    path::{MachinePath, Word},
    quote::quote,
    task::Task,
};

/// Who acts, and for whom.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The cluster that holds the machine, never the same for two clusters.
    pub cluster: Word,
    /// What people call it.
    pub cluster_name: Word,
}

/// What one script is run with.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) identity: &'a Identity,
    /// Of this script alone.
    pub(crate) run: &'a Word,
    /// The directory that stands for the machine's root: empty on a machine.
    pub(crate) root: &'a str,
    /// How long to wait for another run.
    pub(crate) lock_timeout: Duration,
    /// Whether to read every byte of every file.
    pub(crate) verify: bool,
}

/// One line of the list; an operation can take several.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The operation it belongs to, by its number in the task.
    pub(crate) operation: usize,
    /// What it is about, where the operation has several steps.
    pub(crate) detail: Option<String>,
    /// What has to be there as `f/<number of the step>` when the machine lacks it.
    pub(crate) payload: Option<Payload>,
}

/// Bytes that a step needs.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) content: Content,
    /// With which they arrive, so that nothing has to be changed afterwards.
    pub(crate) access: Option<Access>,
}

/// A task in the words of the prelude.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) steps: Vec<Step>,
    lines: String,
    paths: Vec<String>,
    units: Vec<String>,
    directories: HashMap<String, usize>,
    /// The records that the task's owner has afterwards, as far as anything was changed for it.
    keys: BTreeSet<RecordKey>,
}

impl List {
    pub(crate) fn into_keys(self) -> BTreeSet<RecordKey> {
        self.keys
    }

    pub(crate) fn for_task(task: &Task) -> Self {
        let mut list = Self::default();
        let mut numbers = HashMap::new();
        for (number, operation) in task.operations().iter().enumerate() {
            list.operation(number, operation, &mut numbers);
        }
        list
    }

    /// Adds one step; each argument becomes one word.
    fn step(&mut self, operation: usize, verb: &str, key: &str, arguments: &[&str]) -> usize {
        let number = self.steps.len();
        let _ = write!(self.lines, "{verb} {number} {key}");
        for argument in arguments {
            let _ = write!(self.lines, " {}", quote(argument));
        }
        self.lines.push('\n');
        self.keys.insert(RecordKey(key.to_owned()));
        self.steps.push(Step {
            operation,
            detail: None,
            payload: None,
        });
        number
    }

    /// Steps for the directories above a path that no step names yet. Gives the number of the nearest.
    fn above(&mut self, operation: usize, path: &MachinePath) -> String {
        let Some(parent) = path.parent() else {
            return "root".into();
        };
        if let Some(number) = self.directories.get(parent.as_str()) {
            return number.to_string();
        }
        let up = self.above(operation, &parent);
        self.paths.push(parent.to_string());
        let number = self.step(
            operation,
            "parent",
            &path_key(&parent),
            &[parent.as_str(), &up],
        );
        self.steps[number].detail = Some(format!("directory {parent}"));
        self.directories.insert(parent.to_string(), number);
        number.to_string()
    }

    fn operation(
        &mut self,
        number: usize,
        operation: &Operation,
        files: &mut HashMap<MachinePath, usize>,
    ) {
        match operation {
            Operation::File(file) => {
                let up = self.above(number, &file.path);
                self.paths.push(file.path.to_string());
                let arguments = [
                    file.path.as_str(),
                    &up,
                    &file.access.mode.to_string(),
                    file.access.owner.as_str(),
                    file.access.group.as_str(),
                    &file.content.size().to_string(),
                    file.content.hash().as_str(),
                ];
                let step = self.step(number, "file", &path_key(&file.path), &arguments);
                self.steps[step].payload = Some(Payload {
                    content: file.content.clone(),
                    access: Some(file.access.clone()),
                });
                files.insert(file.path.clone(), step);
            }
            Operation::Directory(directory) => {
                let up = self.above(number, &directory.path);
                self.paths.push(directory.path.to_string());
                let arguments = [
                    directory.path.as_str(),
                    &up,
                    &directory.access.mode.to_string(),
                    directory.access.owner.as_str(),
                    directory.access.group.as_str(),
                    if directory.contents_are_ours {
                        "ours"
                    } else {
                        "keep"
                    },
                ];
                let step = self.step(number, "directory", &path_key(&directory.path), &arguments);
                self.directories.insert(directory.path.to_string(), step);
            }
            Operation::Link(link) => {
                let up = self.above(number, &link.path);
                self.paths.push(link.path.to_string());
                let arguments = [link.path.as_str(), &up, &link.target];
                let step = self.step(number, "link", &path_key(&link.path), &arguments);
                files.insert(link.path.clone(), step);
            }
            Operation::Absent(path) => {
                self.paths.push(path.to_string());
                let step = self.step(number, "absent", &path_key(path), &[path.as_str()]);
                files.insert(path.clone(), step);
            }
            Operation::Unit(unit) => {
                let triggers: String = unit
                    .restart_on
                    .iter()
                    .filter_map(|path| files.get(path))
                    .map(|step| format!("{step},"))
                    .collect();
                let name = unit.name.to_string();
                let arguments = [
                    &name,
                    choice(unit.enabled, "yes", "no"),
                    choice(unit.running, "started", "stopped"),
                    &triggers,
                ];
                self.step(number, "unit", &key("unit", &name), &arguments);
                self.units.push(name);
            }
            Operation::Packages(packages) => self.packages(number, &packages.source),
            Operation::Sysctl(sysctl) => {
                let path = sysctl.path();
                let arguments = [sysctl.name(), &path, sysctl.value()];
                self.step(number, "sysctl", &key("sysctl", &path), &arguments);
            }
            Operation::Module(name) => {
                self.step(
                    number,
                    "module",
                    &key("module", name.as_str()),
                    &[name.as_str()],
                );
            }
            Operation::HostsEntry(entry) => {
                let up = self.directory_etc(number);
                let line = entry.line();
                let base = key("hosts", "");
                let arguments = [line.as_str(), &base, &up];
                self.keys.insert(RecordKey(base.clone()));
                self.step(
                    number,
                    "hosts_entry",
                    &key("hosts_entry", &line),
                    &arguments,
                );
            }
            Operation::Hostname(name) => {
                let up = self.directory_etc(number);
                let arguments = [name.as_str(), &up];
                let key = key("hostname", "");
                self.step(number, "hostname_is", &key, &arguments);
                self.keys.insert(RecordKey(key + ".kernel"));
            }
            Operation::Firewall(wall) => {
                let (port, protocol) = (wall.port.to_string(), wall.protocol.to_string());
                let name = format!("{port}/{protocol}");
                let address = wall.address.map_or("-".into(), |ip| ip.to_string());
                let zone = key("firewall_zone", "");
                self.keys.insert(RecordKey(zone.clone()));
                let arguments = [&port, &protocol, &zone, &address];
                self.step(
                    number,
                    "firewall",
                    &key("firewall", &name),
                    &arguments.map(String::as_str),
                );
            }
            Operation::TrustedNetwork(network) => {
                let network = network.to_string();
                let zone = key("firewall_zone", "");
                let arguments = [network.as_str(), &zone];
                self.keys.insert(RecordKey(zone.clone()));
                let key = key("trusted_network", &network);
                self.step(number, "trusted_network", &key, &arguments);
            }
            Operation::User(user) => {
                let (name, home) = (user.name.as_str(), user.home.as_str());
                self.step(number, "user", &key("user", name), &[name, home]);
            }
            Operation::Images(images) => {
                let store = &images.store;
                let references = images.references().join(" ");
                let name = format!("{} {references}", store.name);
                let arguments = [
                    store.name,
                    &references,
                    store.list,
                    store.load,
                    store.remove,
                ];
                let step = self.step(number, "image", &key("image", &name), &arguments);
                self.steps[step].payload = Some(Payload {
                    content: images.archive.clone(),
                    access: None,
                });
            }
            Operation::Script(script) => {
                let seconds = script.deadline.as_secs().max(1).to_string();
                let arguments = [
                    script.name.as_str(),
                    &seconds,
                    &script.check,
                    &script.apply,
                    &script.undo,
                ];
                self.step(
                    number,
                    "script",
                    &key("script", script.name.as_str()),
                    &arguments,
                );
            }
        }
    }

    fn directory_etc(&mut self, operation: usize) -> String {
        match MachinePath::new("/etc/hosts") {
            Ok(path) => self.above(operation, &path),
            Err(_) => "root".into(),
        }
    }

    fn packages(&mut self, number: usize, source: &PackageSource) {
        let group = self.steps.len().to_string();
        match source {
            PackageSource::Repository(names) => {
                for name in names {
                    let key = package_key(name.as_str());
                    let arguments = [name.as_str(), &group, "*", "repo"];
                    let step = self.step(number, "package", &key, &arguments);
                    self.steps[step].detail = Some(format!("package {name}"));
                }
            }
            PackageSource::Files(files) => {
                for file in files {
                    let key = package_key(file.name.as_str());
                    let arguments = [file.name.as_str(), &group, &file.version, "files"];
                    let step = self.step(number, "package", &key, &arguments);
                    self.steps[step].detail = Some(format!("package {}", file.name));
                    self.steps[step].payload = Some(Payload {
                        content: file.content.clone(),
                        access: None,
                    });
                }
            }
        }
    }

    /// The script that applies.
    pub(crate) fn apply(&self, setting: &Setting<'_>, task: &Task) -> String {
        let mut text = head(setting, task.owner().as_str(), task.step_deadline);
        self.define(&mut text);
        text.push_str("apply\n");
        text
    }

    /// Adds the functions that the prelude calls for this list.
    fn define(&self, text: &mut String) {
        let _ = writeln!(text, "count={}", self.steps.len());
        let _ = writeln!(text, "ops() {{\n:\n{}}}", self.lines);
        let _ = write!(text, "stat_all() {{\nstat -c \"$form\" \"${{T:-/}}\"");
        for path in &self.paths {
            let _ = write!(text, " \"$R\"{}", quote(path));
        }
        text.push_str(" 2>/dev/null\n}\nunits_all() {\n");
        if self.units.is_empty() {
            text.push_str(":\n");
        } else {
            text.push_str("systemctl show -p UnitFileState -p ActiveState");
            for unit in &self.units {
                let _ = write!(text, " {}", quote(unit));
            }
            text.push_str(" 2>/dev/null </dev/null 9>&-\n");
        }
        text.push_str("}\n");
    }
}

/// The script that looks at tasks, one after the other, each with its list.
pub(crate) fn look<'a>(
    setting: &Setting<'_>,
    tasks: impl IntoIterator<Item = (&'a Task, &'a List)>,
) -> String {
    let mut text = head(setting, "look", Duration::ZERO);
    for (task, list) in tasks {
        // A shell of its own: nothing that is found for one task is there for the next.
        let owner = quote(task.owner().as_str());
        let _ = writeln!(text, "(\nowner={owner}");
        list.define(&mut text);
        text.push_str("look\n)\n");
    }
    text
}

/// The script that puts back what only these owners need; none of them means everybody.
pub(crate) fn undo(setting: &Setting<'_>, owners: &[Word], step_deadline: Duration) -> String {
    let owners: Vec<_> = owners.iter().map(Word::as_str).collect();
    let owners = if owners.is_empty() {
        "*".to_owned()
    } else {
        owners.join(" ")
    };
    let mut text = head(setting, "undo", step_deadline);
    let _ = writeln!(text, "undo {}", quote(&owners));
    text
}

/// The script by which owners give up single resources: each is restored unless another owner still needs it.
pub(crate) fn release(
    setting: &Setting<'_>,
    released: &[Release],
    step_deadline: Duration,
) -> String {
    let mut text = head(setting, "undo", step_deadline);
    text.push_str("release");
    for one in released {
        let _ = write!(text, " {}", quote(&format!("{}@{}", one.key, one.owner)));
    }
    text.push('\n');
    text
}

/// The script that reports how a run ended.
pub(crate) fn outcome(setting: &Setting<'_>) -> String {
    let mut text = head(setting, "outcome", Duration::ZERO);
    text.push_str("outcome\n");
    text
}

/// The script that lists what the record holds.
pub(crate) fn managed(setting: &Setting<'_>) -> String {
    let mut text = head(setting, "managed", Duration::ZERO);
    text.push_str("managed\n");
    text
}

/// A script without the part that is always the same, for a log.
pub(crate) fn shown(script: &str) -> String {
    script.replacen(PRELUDE.as_str(), "", 1)
}

#[cfg(test)]
pub(crate) fn prelude_text() -> &'static str {
    &PRELUDE
}

fn head(setting: &Setting<'_>, owner: &str, step_deadline: Duration) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("R", setting.root),
        ("run", setting.run.as_str()),
        ("cluster", setting.identity.cluster.as_str()),
        ("cluster_name", setting.identity.cluster_name.as_str()),
        ("owner", owner),
        ("lock_timeout", &setting.lock_timeout.as_secs().to_string()),
        ("step_timeout", &step_deadline.as_secs().max(1).to_string()),
        ("verify", if setting.verify { "1" } else { "" }),
    ] {
        let _ = writeln!(text, "{name}={}", quote(value));
    }
    text.push_str(&PRELUDE);
    text
}

fn choice<'a>(wanted: Option<bool>, yes: &'a str, no: &'a str) -> &'a str {
    match wanted {
        Some(true) => yes,
        Some(false) => no,
        None => "-",
    }
}

#[cfg(test)]
mod tests;
