//! The machine in memory does what the prelude does: the same tasks, edits and ways back on both give the same
//! answers and leave the same things.

mod acts;
mod compare;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    time::Duration,
};

use proptest::{prelude::*, test_runner::Config};

use self::{
    acts::{Act, SYSCTLS, UNITS, act},
    compare::{assert_maps, paths, same, sysctl},
};
use super::{
    beside,
    place::{Place, SHELLS},
    task, word,
};
use crate::{
    machine::Managed,
    path::Word,
    privilege::{self, Privilege},
    report::{Answer, Reader},
    script::{self, Identity, List, Payload, Setting},
    stream,
    transport::{Connector as _, Finished, memory::Memory},
};

/// Two machines that should not be told apart.
struct Twins {
    place: Place,
    memory: Memory,
    runtime: tokio::runtime::Runtime,
}

impl Twins {
    fn new(hosts_are_linked: bool) -> Self {
        let place = Place::new(SHELLS[0]);
        symlink("../opt", place.root().join("etc/fixed")).unwrap();
        if hosts_are_linked {
            let hosts = place.root().join("etc/hosts");
            fs::rename(&hosts, place.root().join("opt/hosts")).unwrap();
            symlink("../opt/hosts", hosts).unwrap();
        }
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
                let list = List::for_task(&task);
                let look = self.with_setting(|setting| script::look(setting, [(&task, &list)]));
                let apply = self.with_setting(|setting| list.apply(setting, &task));
                same(
                    &self.place.look(&task),
                    &self.ask(QUESTION, &look, &list, false),
                    "look",
                );
                let (place, memory) = (&self.place, TASK);
                same(
                    &place.apply_without_contents(&task),
                    &self.ask(memory, &apply, &list, false),
                    "asked",
                );
                self.check("asked");
                same(
                    &place.apply(&task),
                    &self.ask(memory, &apply, &list, true),
                    "applied",
                );
            }
            Act::Undo(owner) => {
                let owners: Vec<Word> = owner.iter().map(|owner| word(owner)).collect();
                let text =
                    self.with_setting(|setting| script::undo(setting, &owners, UNDO_DEADLINE));
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
            Act::Release(owner, operations) => {
                let wanted = task(owner, operations.clone()).record_keys();
                let released = beside(&self.managed(), owner, &wanted);
                let text =
                    self.with_setting(|setting| script::release(setting, &released, UNDO_DEADLINE));
                same(
                    &self.place.release(&released),
                    &self.ask(QUESTION, &text, &List::default(), false),
                    "released",
                );
                // What could not be put back is still there.
                let left = beside(&self.managed(), owner, &wanted);
                assert!(left.iter().all(|one| released.contains(one)));
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
            lock_timeout: Duration::from_secs(5),
            verify: false,
        })
    }

    fn ask(&self, command: &str, text: &str, list: &List, contents: bool) -> Answer {
        let payloads: Vec<_> = list
            .steps
            .iter()
            .enumerate()
            .filter_map(|(number, step)| Some((number, step.payload.clone().filter(|_| contents)?)))
            .filter(|(_, payload)| !payload.content.is_only_there())
            .collect();
        let finished = self.finished(command, text, &payloads);
        let mut answer = Answer::default();
        for line in Reader::default().push(&finished.output).unwrap() {
            answer.take(line);
        }
        answer
    }

    fn finished(&self, command: &str, text: &str, payloads: &[(usize, Payload)]) -> Finished {
        self.runtime.block_on(async {
            let connection = self.memory.connect().await.unwrap();
            let mut running = privilege::begin(connection.as_ref(), &Privilege::Root, command)
                .await
                .unwrap();
            if command == QUESTION {
                return running.finish(text.as_bytes()).await.unwrap();
            }
            let mut input = std::mem::replace(&mut running.input, Box::new(tokio::io::sink()));
            let send = stream::send(&mut input, text, payloads);
            let (sent, finished) = tokio::join!(send, running.finish(b""));
            sent.unwrap();
            finished.unwrap()
        })
    }

    fn managed(&self) -> Managed {
        let text = self.with_setting(script::managed);
        let finished = self.finished(QUESTION, &text, &[]);
        Managed::read(&String::from_utf8(finished.output).unwrap())
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
        let managed = self.managed();
        assert_eq!(self.place.managed(), managed, "{when}");
        assert_eq!(managed.resources, self.memory.resources(), "{when}");
        assert_eq!(
            sysctl(root, "kernel/hostname").unwrap(),
            self.memory.hostname(),
            "{when}"
        );
    }
}

const UNDO_DEADLINE: Duration = Duration::from_secs(10);

const QUESTION: &str = "eval \"$(cat)\"";
const TASK: &str = "tar -xpf - && [ -e end ] && exec sh ./run";

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
    fn memory_and_the_prelude_are_not_told_apart(
        acts in prop::collection::vec(act(), 1..7),
        hosts_are_linked in any::<bool>(),
    ) {
        let twins = Twins::new(hosts_are_linked);
        for act in &acts {
            twins.act(act);
        }
        twins.act(&Act::Undo(None));
    }
}
