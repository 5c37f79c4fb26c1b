//! The machine in memory does what the prelude does: the same tasks, edits and ways back on both give the same
//! answers and leave the same things.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    time::Duration,
};

use proptest::{prelude::*, test_runner::Config};

use super::{
    directory, file, link, path,
    place::{Place, SHELLS},
    task, unit, word,
};
use crate::{
    operation::{HostsEntry, Operation, Sysctl},
    path::Word,
    privilege::{self, Privilege},
    report::{Answer, Line, Reader},
    script::{self, Identity, List, Setting},
    stream,
    task::Task,
    transport::{Connector as _, Finished, memory::Memory},
};

/// Files and links: there, not there, in directories that are not there, behind a link, below what is no directory,
/// and where a directory is.
const LEAVES: [&str; 11] = [
    "/etc/there.conf",
    "/etc/unwanted",
    "/etc/was-a-link",
    "/etc/link",
    "/etc/to-directory",
    "/etc/new/deep/file",
    "/etc/new/other",
    "/var/lib/data/own",
    "/etc/fixed/inside",
    "/etc/mode.conf/below",
    "/etc/elsewhere",
];

/// The last one is a file.
const DIRECTORIES: [&str; 5] = [
    "/var/lib/data",
    "/opt/empty",
    "/etc/new",
    "/etc/new/deep",
    "/etc/mode.conf",
];

const UNITS: [&str; 2] = ["ours.service", "theirs.service"];

const SYSCTLS: [&str; 3] = [
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.nothing",
];

const OWNERS: [&str; 2] = ["etcd", "worker"];

#[derive(Clone, Debug)]
enum Act {
    Apply(&'static str, Vec<Operation>),
    /// Of one owner, or of all.
    Undo(Option<&'static str>),
    /// Somebody else writes a file.
    Edit(&'static str),
}

fn operation() -> impl Strategy<Value = Operation> {
    let leaf = || prop::sample::select(&LEAVES[..]);
    let mode = || prop::sample::select(&[0o600_u16, 0o644][..]);
    let text = || prop::sample::select(&["one\n", "two\n", "as it was\n", ""][..]);
    let target =
        prop::sample::select(&["there.conf", "old-target", "elsewhere", "../opt", "a b'c"][..]);
    let entry = (1_u8..4).prop_map(|number| {
        Operation::HostsEntry(HostsEntry {
            address: format!("10.0.0.{number}").parse().unwrap(),
            names: vec![word(&format!("m{number}"))],
        })
    });
    let sysctl = (
        prop::sample::select(&SYSCTLS[..]),
        prop::sample::select(&["0", "1", "1024 65535"][..]),
    );
    let unit_file = (prop::sample::select(&UNITS[..]), text())
        .prop_map(|(name, text)| file(&format!("/etc/systemd/system/{name}"), text, 0o644));
    prop_oneof![
        5 => (leaf(), text(), mode()).prop_map(|(at, text, mode)| file(at, text, mode)),
        3 => (leaf(), target).prop_map(|(at, target)| link(at, target)),
        3 => leaf().prop_map(|at| Operation::Absent(path(at))),
        3 => (prop::sample::select(&DIRECTORIES[..]), any::<bool>(), prop::sample::select(&[0o700_u16, 0o755][..]))
            .prop_map(|(at, ours, mode)| directory(at, mode, ours)),
        2 => sysctl.prop_map(|(name, value)| Operation::Sysctl(Sysctl::new(name, value).unwrap())),
        2 => entry,
        2 => unit_file,
        2 => prop::sample::select(&UNITS[..])
            .prop_map(|name| unit(name, &[&format!("/etc/systemd/system/{name}")])),
        1 => prop::sample::select(&["m1", "before"][..]).prop_map(|name| Operation::Hostname(word(name))),
        1 => Just(Operation::Module(word("br_netfilter"))),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let owner = || prop::sample::select(&OWNERS[..]);
    prop_oneof![
        6 => (owner(), prop::collection::vec(operation(), 1..8)).prop_map(|(owner, wanted)| {
            // A task has each resource once.
            let mut operations: Vec<Operation> = Vec::new();
            for operation in wanted {
                operations.push(operation);
                if Task::new(word(owner), operations.clone()).is_err() {
                    operations.pop();
                }
            }
            Act::Apply(owner, operations)
        }),
        3 => prop::option::of(owner()).prop_map(Act::Undo),
        1 => prop::sample::select(&LEAVES[..8]).prop_map(Act::Edit),
    ]
}

/// Two machines that should not be told apart.
struct Twins {
    place: Place,
    memory: Memory,
    runtime: tokio::runtime::Runtime,
}

impl Twins {
    fn new() -> Self {
        let place = Place::new(SHELLS[0]);
        symlink("../opt", place.root().join("etc/fixed")).unwrap();
        let mut memory =
            Memory::new("before")
                .without_files()
                .with_unit("theirs.service", false, true);
        for (at, shown) in paths(place.root()) {
            let real = place.root().join(&at[1..]);
            let mode = u16::try_from(fs::symlink_metadata(&real).unwrap().mode() & 0o7777).unwrap();
            memory = match shown.split(' ').nth(3) {
                _ if shown.starts_with("->") => {
                    memory.with_link(&at, fs::read_link(&real).unwrap().to_str().unwrap())
                }
                Some("directory") => memory.with_directory(&at, mode),
                _ => memory.with_file(&at, mode, fs::read(&real).unwrap()),
            };
        }
        for name in SYSCTLS {
            let below = name.replace('.', "/");
            memory = memory.with_sysctl(&below, sysctl(place.root(), &below).as_deref());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let twins = Self {
            place,
            memory,
            runtime,
        };
        twins.check("at first");
        twins
    }

    fn act(&self, act: &Act) {
        match act {
            Act::Apply(owner, operations) => {
                let task = task(owner, operations.clone());
                let list = List::of(&task);
                let text = |verb| self.with_setting(|setting| list.script(setting, &task, verb));
                same(
                    &self.place.look(&task),
                    &self.ask(QUESTION, &text("look"), &list, false),
                    "look",
                );
                let (place, memory) = (&self.place, TASK);
                same(
                    &place.apply_without_contents(&task),
                    &self.ask(memory, &text("apply"), &list, false),
                    "asked",
                );
                self.check("asked");
                same(
                    &place.apply(&task),
                    &self.ask(memory, &text("apply"), &list, true),
                    "applied",
                );
            }
            Act::Undo(owner) => {
                let owners: Vec<Word> = owner.iter().map(|owner| word(owner)).collect();
                let text = self.with_setting(|setting| {
                    script::undo(setting, &owners, Duration::from_secs(10))
                });
                same(
                    &self.place.undo(&owners),
                    &self.ask(QUESTION, &text, &List::default(), false),
                    "undone",
                );
                let ours = self.place.root().join("var/lib/hatchery").exists();
                assert_eq!(
                    ours,
                    !self.memory.resources().is_empty(),
                    "what is left is in the record"
                );
            }
            Act::Edit(at) => self.edit(at),
        }
        self.check("afterwards");
    }

    /// As an editor does that writes a new file and renames it.
    fn edit(&self, at: &str) {
        let real = self.place.root().join(&at[1..]);
        if !real.parent().unwrap().is_dir() {
            return;
        }
        let (text, aside) = ("somebody else's words\n", self.place.root().join("aside"));
        let mode = match fs::symlink_metadata(&real) {
            Ok(found) if found.is_file() => found.mode() & 0o7777,
            _ => 0o644,
        };
        fs::write(&aside, text).unwrap();
        fs::set_permissions(&aside, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(&aside, &real).unwrap();
        self.memory.write(at, text.as_bytes()).unwrap();
    }

    fn with_setting<T>(&self, use_it: impl FnOnce(&Setting<'_>) -> T) -> T {
        use_it(&Setting {
            identity: &Identity {
                cluster: word("c1"),
                cluster_name: word("one"),
            },
            run: &word("run"),
            root: "",
            patience: Duration::from_secs(5),
            verify: false,
        })
    }

    fn ask(&self, command: &str, text: &str, list: &List, contents: bool) -> Answer {
        let payloads: Vec<_> = list
            .steps
            .iter()
            .enumerate()
            .filter_map(|(number, step)| Some((number, step.payload.clone().filter(|_| contents)?)))
            .collect();
        let finished: Finished = self.runtime.block_on(async {
            let connection = self.memory.connect().await.unwrap();
            let mut running = privilege::begin(connection.as_ref(), &Privilege::Root, command)
                .await
                .unwrap();
            if command == QUESTION {
                return running.finish(text.as_bytes()).await.unwrap();
            }
            let mut input = std::mem::replace(&mut running.input, Box::new(tokio::io::sink()));
            let send = stream::send(&mut input, text, &payloads);
            let (sent, finished) = tokio::join!(send, running.finish(b""));
            sent.unwrap();
            finished.unwrap()
        });
        let mut answer = Answer::default();
        for line in Reader::default().push(&finished.output).unwrap() {
            answer.take(line);
        }
        answer
    }

    fn check(&self, when: &str) {
        let root = self.place.root();
        assert_maps(&paths(root), &self.memory.paths(), when);
        for name in SYSCTLS {
            let below = name.replace('.', "/");
            assert_eq!(
                sysctl(root, &below),
                self.memory.sysctl(&below),
                "{name} {when}"
            );
        }
        for name in UNITS {
            let has = |what: &str| root.join(format!("fake/units/{name}.{what}")).exists();
            assert_eq!(
                (has("enabled"), has("active")),
                self.memory.unit(name),
                "{name} {when}"
            );
        }
        assert_eq!(
            sysctl(root, "kernel/hostname").unwrap(),
            self.memory.hostname(),
            "{when}"
        );
    }
}

const QUESTION: &str = "eval \"$(cat)\"";
const TASK: &str = "tar -xpf - && [ -e end ] && exec sh ./run";

/// The words of programs are their own; which step failed is not.
fn same(real: &Answer, memory: &Answer, when: &str) {
    let plain = |line: &Line| match line {
        Line::Failed(number, _) => Line::Failed(*number, String::new()),
        line => line.clone(),
    };
    let steps = |answer: &Answer| answer.steps.values().map(plain).collect::<Vec<_>>();
    let others = |answer: &Answer| {
        let told = |line: &&Line| !matches!(line, Line::Begin(_) | Line::Why(_));
        answer
            .others
            .iter()
            .filter(told)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(steps(real), steps(memory), "{when}: {real:?} {memory:?}");
    assert_eq!(others(real), others(memory), "{when}: {real:?} {memory:?}");
    assert_eq!(real.end, memory.end, "{when}");
    assert!(real.end.is_some(), "{when}: {real:?}");
}

fn assert_maps(real: &BTreeMap<String, String>, memory: &BTreeMap<String, String>, when: &str) {
    let differing: Vec<_> = real
        .keys()
        .chain(memory.keys())
        .filter(|at| real.get(*at) != memory.get(*at))
        .map(|at| {
            format!(
                "{at}: really {:?}, in memory {:?}",
                real.get(at),
                memory.get(at)
            )
        })
        .collect();
    assert!(differing.is_empty(), "{when}:\n{}", differing.join("\n"));
}

/// What is below a directory, in the words of [`Memory::paths`], without our record and what stands in for a kernel
/// and for programs.
fn paths(root: &Path) -> BTreeMap<String, String> {
    fn visit(root: &Path, at: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(at).unwrap() {
            let entry = entry.unwrap().path();
            let name = format!("/{}", entry.strip_prefix(root).unwrap().to_str().unwrap());
            if ["/fake", "/proc", "/sys", "/var/lib/hatchery"].contains(&name.as_str()) {
                continue;
            }
            let metadata = fs::symlink_metadata(&entry).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (0, 0), "{name}");
            let looks = format!("{:o} root root", metadata.mode() & 0o7777);
            let shown = if metadata.is_symlink() {
                format!("-> {}", fs::read_link(&entry).unwrap().display())
            } else if metadata.is_dir() {
                visit(root, &entry, found);
                format!("{looks} directory")
            } else {
                format!("{looks} {:?}", fs::read_to_string(&entry).unwrap())
            };
            found.insert(name, shown);
        }
    }
    let mut found = BTreeMap::new();
    visit(root, root, &mut found);
    found
}

fn sysctl(root: &Path, below: &str) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/sys").join(below)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Few by default, since each case runs a dozen real scripts; `PROPTEST_CASES` asks for more.
fn config() -> Config {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    Config {
        cases: asked.unwrap_or(24),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn memory_and_the_prelude_are_not_told_apart(acts in prop::collection::vec(act(), 1..7)) {
        let twins = Twins::new();
        for act in &acts {
            twins.act(act);
        }
        twins.act(&Act::Undo(None));
    }
}
