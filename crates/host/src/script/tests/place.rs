//! A directory that stands for a machine, with a few programs that cannot work on one.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    content::Source,
    machine::Managed,
    path::Word,
    report::{Answer, Line, Reader},
    script::{self, Identity, List, Release, Setting},
    task::Task,
};

/// No limit, but a trace.
pub(super) const TRACED: usize = usize::MAX >> 10;

/// `rm` of many names, so that the shell can die between any two of them.
const ONE_BY_ONE: &str = "rm() {
  rm_flags=$1 rm_failed=0
  shift
  for rm_name; do
    [ -e \"$rm_name\" ] || [ -h \"$rm_name\" ] || continue
    command rm \"$rm_flags\" \"$rm_name\" || rm_failed=1
  done
  return \"$rm_failed\"
}
";

/// The shells that machines have.
pub(super) const SHELLS: [&[&str]; 3] = [&["dash"], &["bash", "--posix"], &["busybox", "sh"]];

pub(super) struct Place {
    root: TempDir,
    shell: &'static [&'static str],
    cluster: &'static str,
    /// Whether packages are rpm's, not dpkg's.
    rpm: bool,
    /// How many blocks of trace the last run that was to be traced wrote.
    pub(super) traced: AtomicUsize,
}

pub(super) type Snapshot = BTreeMap<PathBuf, String>;

/// Fails with what differs, not with everything.
pub(super) fn assert_same(left: &Snapshot, right: &Snapshot, when: &str) {
    let paths: BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let differing: Vec<_> = paths
        .into_iter()
        .filter(|path| left.get(*path) != right.get(*path))
        .map(|path| {
            format!(
                "{}: {:?} instead of {:?}",
                path.display(),
                left.get(path),
                right.get(path)
            )
        })
        .collect();
    assert!(differing.is_empty(), "{when}:\n{}", differing.join("\n"));
}

static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Where busybox lies, and what it can do, a line each.
static BUSYBOX: LazyLock<String> = LazyLock::new(|| {
    let line = "command -v busybox; busybox --list";
    let listed = Command::new("sh").args(["-c", line]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
});

/// A directory in memory where possible: what is flushed to disk costs most of the time, and a test has no use for it.
pub(super) fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

impl Place {
    pub(super) fn new(shell: &'static [&'static str]) -> Self {
        let place = Self {
            root: in_memory(),
            shell,
            cluster: "c1",
            rpm: false,
            traced: AtomicUsize::new(0),
        };
        place.furnish();
        place
    }

    pub(super) fn with_rpm(shell: &'static [&'static str]) -> Self {
        Self {
            rpm: true,
            ..Self::new(shell)
        }
    }

    /// Which package manager it has: `dpkg` or `rpm`.
    pub(super) fn manager(&self) -> &'static str {
        if self.rpm { "rpm" } else { "dpkg" }
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The same machine as another cluster sees it.
    pub(super) fn as_cluster(&self, cluster: &'static str) -> Borrowed<'_> {
        Borrowed {
            place: self,
            cluster,
        }
    }

    fn furnish(&self) {
        let at = |path: &str| self.root().join(path);
        for directory in [
            "etc/systemd/system",
            "usr/lib/systemd/system",
            "usr/sbin",
            "etc/elsewhere",
            "var/lib/data/theirs",
            "var/lib/dpkg/info",
            "opt",
            "proc/sys/net/ipv4",
            "proc/sys/kernel",
            "sys/module",
            "fake/units",
        ] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for (path, text, mode) in [
            ("etc/there.conf", "as it was\n", 0o640),
            ("etc/mode.conf", "only its mode changes\n", 0o644),
            ("etc/unwanted", "still wanted by somebody\n", 0o604),
            ("etc/hosts", "127.0.0.1 localhost", 0o644),
            ("etc/hostname", "before\n", 0o644),
            ("etc/systemd/system/theirs.service", "# theirs\n", 0o644),
            ("fake/units/theirs.service.active", "# theirs\n", 0o644),
            ("fake/packages", "bash 5\ntar 1.34\n", 0o644),
            ("proc/sys/net/ipv4/ip_forward", "0\n", 0o644),
            (
                "proc/sys/net/ipv4/ip_local_port_range",
                "32768 60999\n",
                0o644,
            ),
            ("proc/sys/kernel/hostname", "before\n", 0o644),
            ("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n", 0o755),
        ] {
            fs::write(at(path), text).unwrap();
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("there.conf", at("etc/was-a-link")).unwrap();
        symlink("old-target", at("etc/link")).unwrap();
        // A rename onto this one must not go into the directory.
        symlink("elsewhere", at("etc/to-directory")).unwrap();
        fs::remove_file(at("etc/to-directory")).unwrap();
        symlink("../opt", at("etc/to-directory")).unwrap();
    }

    /// Everything below the root: kind, owner, mode, bytes, and times of files.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut found = Snapshot::new();
        visit(self.root(), self.root(), &mut found);
        found
    }

    /// What a later run finds, without what differs from run to run: names of runs, times, inodes.
    pub(super) fn state(&self) -> Vec<String> {
        let plain = |(path, line): (PathBuf, String)| {
            let path = path.to_string_lossy().into_owned();
            if let Some(incoming) = path.strip_prefix("var/lib/hatchery/in/") {
                let (_, rest) = incoming.split_once('/').unwrap_or_default();
                return format!("in/*/{rest}");
            }
            let untold = [".is", "/holder", "/report", "/seq", "/child", "/out"];
            if untold.iter().any(|end| path.ends_with(end)) {
                return path;
            }
            let text = line
                .splitn(4, ' ')
                .filter(|word| word.parse::<u64>().is_err());
            format!("{path} {}", text.collect::<Vec<_>>().join(" "))
        };
        self.snapshot().into_iter().map(plain).collect()
    }

    pub(super) fn snapshot_without_record(&self) -> Snapshot {
        let mut found = self.snapshot();
        found.retain(|path, _| !path.starts_with("var/lib/hatchery"));
        found
    }

    pub(super) fn look(&self, task: &Task) -> Answer {
        let mut answers = self.look_at_all(std::slice::from_ref(task));
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub(super) fn look_at_all(&self, tasks: &[Task]) -> Vec<Answer> {
        let lists: Vec<_> = tasks.iter().map(List::for_task).collect();
        let text = self.with_setting(|setting| script::look(setting, tasks.iter().zip(&lists)));
        let output = self.run(self.root(), &text);
        let mut answers = Vec::new();
        for line in Reader::default().push(&output.stdout).unwrap() {
            if matches!(line, Line::Begin(_)) {
                answers.push(Answer::default());
            }
            answers.last_mut().unwrap().take(line);
        }
        answers
    }

    pub(super) fn apply(&self, task: &Task) -> Answer {
        read(&self.apply_output(task, true, None))
    }

    /// Applies with programs of the test's own before all others.
    pub(super) fn apply_with(&self, task: &Task, programs: &Path) -> Answer {
        let incoming = self.root().join("var/lib/hatchery/in");
        fs::create_dir_all(&incoming).unwrap();
        let stage = tempfile::tempdir_in(&incoming).unwrap().keep();
        read(&self.run(&stage, &with_programs(&self.apply_script(task), programs)))
    }

    pub(super) fn apply_without_contents(&self, task: &Task) -> Answer {
        read(&self.apply_output(task, false, None))
    }

    /// Applies as a machine does that received a stream; dies after so many blocks of trace.
    pub(super) fn apply_output(&self, task: &Task, contents: bool, limit: Option<usize>) -> Output {
        let incoming = self.root().join("var/lib/hatchery/in");
        fs::create_dir_all(&incoming).unwrap();
        fs::set_permissions(
            self.root().join("var/lib/hatchery"),
            fs::Permissions::from_mode(0o700),
        )
        .unwrap();
        let stage = tempfile::tempdir_in(&incoming).unwrap().keep();
        if contents {
            fs::create_dir(stage.join("f")).unwrap();
            for (number, step) in List::for_task(task).steps.iter().enumerate() {
                let Some(payload) = &step.payload else {
                    continue;
                };
                let Source::Bytes(bytes) = &payload.content.source else {
                    continue;
                };
                let at = stage.join("f").join(number.to_string());
                fs::write(&at, bytes).unwrap();
                let mode = payload
                    .access
                    .as_ref()
                    .map_or(0o600, |access| access.mode.bits());
                fs::set_permissions(&at, fs::Permissions::from_mode(mode.into())).unwrap();
            }
        }
        self.run_limited(&stage, &self.apply_script(task), limit)
    }

    pub(super) fn undo(&self, owners: &[Word]) -> Answer {
        read(&self.undo_output(owners, None))
    }

    pub(super) fn release(&self, released: &[Release]) -> Answer {
        let text = self
            .with_setting(|setting| script::release(setting, released, Duration::from_secs(10)));
        read(&self.run(self.root(), &text))
    }

    /// Undoes everything with programs of the test's own before all others.
    pub(super) fn undo_with(&self, programs: &Path) -> Answer {
        let text = with_programs(&self.undo_script(&[]), programs);
        read(&self.run(self.root(), &text))
    }

    pub(super) fn undo_output(&self, owners: &[Word], limit: Option<usize>) -> Output {
        self.run_limited(self.root(), &self.undo_script(owners), limit)
    }

    fn undo_script(&self, owners: &[Word]) -> String {
        self.with_setting(|setting| script::undo(setting, owners, Duration::from_secs(10)))
    }

    pub(super) fn managed(&self) -> Managed {
        Managed::read(&self.managed_text())
    }

    pub(super) fn managed_text(&self) -> String {
        let output = self.run(self.root(), &self.managed_script());
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn managed_script(&self) -> String {
        self.with_setting(script::managed)
    }

    fn apply_script(&self, task: &Task) -> String {
        self.with_setting(|setting| List::for_task(task).apply(setting, task))
    }

    fn with_setting<T>(&self, use_it: impl FnOnce(&Setting<'_>) -> T) -> T {
        let run = format!("run{}", RUNS.fetch_add(1, Ordering::Relaxed));
        use_it(&Setting {
            identity: &Identity {
                cluster: Word::new(self.cluster).unwrap(),
                cluster_name: Word::new("one").unwrap(),
            },
            run: &Word::new(run).unwrap(),
            root: self.root().to_str().unwrap(),
            lock_timeout: Duration::from_secs(5),
            verify: false,
        })
    }

    fn run(&self, directory: &Path, text: &str) -> Output {
        self.run_limited(directory, text, None)
    }

    /// A shell that traces into a file dies of SIGXFSZ when that file may not grow: between any two
    /// commands, as abruptly as by SIGKILL, and without any word in the script that serves tests.
    fn run_limited(&self, directory: &Path, text: &str, limit: Option<usize>) -> Output {
        let work = in_memory();
        let fakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/script/fakes");
        let mut path = format!("{}:", fakes.display());
        if self.shell[0] == "busybox" {
            let applets = work.path().join("applets");
            fs::create_dir(&applets).unwrap();
            let mut lines = BUSYBOX.lines();
            // One that prefers its own programs (busybox-static) runs none of those that stand in.
            let busybox = lines.next().unwrap();
            for applet in lines {
                if !fakes.join(applet).exists() {
                    symlink(busybox, applets.join(applet)).unwrap();
                }
            }
            path.push_str(&format!("{}:", applets.display()));
        }
        let mut text = text.replacen("/usr/local/sbin:", &format!("{path}/usr/local/sbin:"), 1);
        if self.rpm {
            text = text.replacen("='deb:dpkg-query ", "='", 1);
        }
        let file = work.path().join("run");
        let before = if limit.is_some() { ONE_BY_ONE } else { "" };
        fs::write(&file, format!("{before}{text}")).unwrap();
        let mut command;
        if let Some(blocks) = limit {
            command = Command::new("dash");
            let blocks = if blocks == TRACED {
                "unlimited".into()
            } else {
                blocks.to_string()
            };
            let line = "ulimit -c 0; ulimit -f \"$1\"; exec dash -x \"$2\" 2>\"$3\"";
            let trace = work.path().join("trace");
            command.args([
                OsStr::new("-c"),
                OsStr::new(line),
                OsStr::new("-"),
                OsStr::new(&blocks),
                file.as_os_str(),
                trace.as_os_str(),
            ]);
            command.env("PS4", "+".repeat(512));
        } else {
            command = Command::new(self.shell[0]);
            command.args(&self.shell[1..]).arg(&file);
        }
        command.current_dir(directory).env("FAKE_ROOT", self.root());
        let output = command.output().unwrap();
        if limit == Some(TRACED) {
            let length = fs::metadata(work.path().join("trace")).unwrap().len();
            self.traced
                .store(usize::try_from(length).unwrap() / 512, Ordering::Relaxed);
        }
        if limit.is_none() {
            assert!(
                output.stderr.is_empty(),
                "{:?}: {}",
                self.shell,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        output
    }
}

/// See [`Place::as_cluster`].
pub(super) struct Borrowed<'a> {
    place: &'a Place,
    cluster: &'static str,
}

impl Borrowed<'_> {
    fn twin(&self) -> std::mem::ManuallyDrop<Place> {
        // The directory belongs to the other one, so this one never removes it.
        let root = TempDir::new().unwrap();
        fs::remove_dir(root.path()).unwrap();
        symlink(self.place.root(), root.path()).unwrap();
        std::mem::ManuallyDrop::new(Place {
            root,
            shell: self.place.shell,
            cluster: self.cluster,
            rpm: self.place.rpm,
            traced: AtomicUsize::new(0),
        })
    }

    pub(super) fn apply(&self, task: &Task) -> Answer {
        let twin = self.twin();
        let answer = twin.apply(task);
        fs::remove_file(twin.root()).unwrap();
        answer
    }

    pub(super) fn undo(&self, owners: &[Word]) -> Answer {
        let twin = self.twin();
        let answer = twin.undo(owners);
        fs::remove_file(twin.root()).unwrap();
        answer
    }
}

fn with_programs(script: &str, programs: &Path) -> String {
    let first = format!("PATH={}:/usr", programs.display());
    script.replacen("PATH=/usr", &first, 1)
}

fn visit(root: &Path, at: &Path, found: &mut Snapshot) {
    let metadata = fs::symlink_metadata(at).unwrap();
    let kind = metadata.file_type();
    let what = if kind.is_symlink() {
        format!("-> {}", fs::read_link(at).unwrap().display())
    } else if kind.is_file() {
        format!(
            "{} {:?}",
            metadata.mtime_nsec(),
            String::from_utf8_lossy(&fs::read(at).unwrap())
        )
    } else {
        String::new()
    };
    // Times of what the programs that stand in write are their own business, as are the kernel's.
    let line = if at.starts_with(root.join("fake")) || at.starts_with(root.join("proc")) {
        what.split_once(' ')
            .map(|(_, text)| text.to_owned())
            .unwrap_or(what)
    } else {
        format!(
            "{:o} {}:{} {what}",
            metadata.mode(),
            metadata.uid(),
            metadata.gid()
        )
    };
    found.insert(at.strip_prefix(root).unwrap().to_owned(), line);
    if kind.is_dir() {
        for entry in fs::read_dir(at).unwrap() {
            visit(root, &entry.unwrap().path(), found);
        }
    }
}

pub(super) fn read(output: &Output) -> Answer {
    let mut answer = Answer::default();
    let lines = Reader::default().push(&output.stdout);
    for line in lines.unwrap_or_else(|error| panic!("{error:?} in {output:?}")) {
        answer.take(line);
    }
    answer
}
