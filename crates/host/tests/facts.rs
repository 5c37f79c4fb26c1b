//! The facts script under real shells, and where programs are missing.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::CommandExt as _,
    },
    process::{Child, Command, Output, Stdio},
    time::{Duration, SystemTime},
};

use hatchery_host::facts::{
    Arch, DirectorySetting, DockerUse, Facts, Listener, Process, Protocol, Questions,
    RuntimeQuestion, Shell, parse, script,
};
use hatchery_sandbox::{packages, progress::Progress};

const QUESTIONS: Questions = Questions {
    entries: &["/etc/it's full", "/etc/absent"],
    units: &["sshd.service"],
    directories: &[setting("DATA"), setting("LOG")],
    busy_mounts: &["/var/lib/busy.d"],
    runtimes: &[RuntimeQuestion {
        name: "archiver",
        program: "tar",
        unit: "tar.service",
        socket: "/run/tar.sock",
        data: "/var/lib/tar",
    }],
};

const fn setting(name: &'static str) -> DirectorySetting {
    DirectorySetting {
        file: "/etc/data.conf",
        name,
        base: "/var/lib/base",
        contains: "here",
    }
}

const RUN: &str = "eval \"$(cat)\"";

/// Runs a program with something on its standard input.
fn fed(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn facts_by(shell: &[&str]) -> Facts {
    let sent = SystemTime::now();
    let mut command = Command::new(shell[0]);
    let output = fed(
        command.args(&shell[1..]).args(["-c", RUN]),
        script(&QUESTIONS).as_bytes(),
    );
    assert!(output.status.success(), "{shell:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{shell:?}: {output:?}");
    parse(&output.stdout, sent, SystemTime::now()).unwrap()
}

/// Without what changes between two runs, and without what other tests are changing meanwhile.
fn settled(mut facts: Facts) -> Facts {
    facts.clock = None;
    facts.uptime_seconds = None;
    facts.memory.as_mut().unwrap().available = None;
    facts.disks = None;
    facts.interfaces = None;
    facts.listeners = None;
    facts.runtimes.clear();
    let values = facts.sysctls.values_mut();
    values.for_each(|value| value.truncate(0));
    facts
}

/// Installs the packages of these programs where they are missing.
async fn have(programs: &[&str]) {
    // Two tests may ask at once, and the package manager serves one.
    static ONE_BY_ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_BY_ONE.lock().await;
    let programs = programs.iter().copied();
    let missing: Vec<_> = programs
        .filter(|name| !packages::has_program(name))
        .collect();
    if !missing.is_empty() {
        let installed = packages::install(&missing, &Progress::stderr()).await;
        installed.unwrap();
    }
}

#[tokio::test]
async fn every_shell_finds_the_same() {
    let shells: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "ash"]];
    have(&["dash", "bash", "busybox"]).await;
    let all: Vec<Facts> = shells.iter().map(|shell| facts_by(shell)).collect();
    for facts in &all {
        let clock = facts.clock.as_ref().unwrap();
        assert!(
            !clock.is_off_by_more_than(Duration::ZERO),
            "our own clock is off: {clock:?}"
        );
        assert!(clock.uncertainty_micros < 2_000_000, "{clock:?}");
        let disks = facts.disks.as_ref().unwrap();
        let root = disks.iter().find(|disk| disk.path == "/").unwrap();
        assert!(root.space.as_ref().unwrap().size > 0);
        let runtimes = facts.runtimes.iter();
        let runtimes: Vec<_> = runtimes.map(|runtime| &*runtime.kind).collect();
        assert_eq!(runtimes, ["archiver"]);
        let interfaces = facts.interfaces.as_ref().unwrap();
        let loopback = interfaces
            .iter()
            .find(|interface| interface.name == "lo")
            .unwrap();
        assert!(
            loopback
                .addresses
                .iter()
                .any(|a| a.address.is_loopback() && a.prefix == 8)
        );
        assert!(facts.listeners.is_some() && facts.default_routes.is_some());
    }
    let [dash, bash, busybox] = all.try_into().unwrap();
    // A setting of several digits: a shell that reads byte by byte is told but the first.
    for facts in [&dash, &bash, &busybox] {
        assert!(facts.sysctls["kernel.cap_last_cap"].len() > 1);
    }
    let dash = settled(dash);
    assert_eq!(dash, settled(bash));
    assert_eq!(dash, settled(busybox));
}

/// This process is told to listen on the socket, and none of the liars nor whom they name. (What
/// another test just started may hold it too, until it becomes another program.)
fn assert_holds_alone(listeners: &[Listener], socket: &TcpListener) {
    let address = socket.local_addr().unwrap();
    let mut own = listeners.iter().filter(|listener| {
        listener.protocol == Protocol::Tcp
            && (listener.address, listener.port) == (address.ip(), address.port())
    });
    let processes = &own.next().unwrap().processes;
    let is_this = |process: &Process| process.pid == std::process::id();
    let is_lie = |process: &Process| process.pid == 1 || process.name == "sleep";
    assert!(processes.iter().any(is_this), "{processes:?}");
    assert!(!processes.iter().any(is_lie), "{processes:?}");
}

/// Processes that hold files whose names pretend that they, or the first process, have the
/// sockets of this one.
struct Liars {
    processes: Vec<Child>,
    _directory: tempfile::TempDir,
}

impl Liars {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let links = fs::read_dir("/proc/self/fd").unwrap();
        let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
        let targets = targets.map(|target| target.to_string_lossy().into_owned());
        let mut processes = Vec::new();
        for socket in targets.filter(|target| target.starts_with("socket:")) {
            let line = format!("lrwx 1 0 0 64 Nov 1 00:00 9 -> {socket}");
            let path = directory.path().join(format!("x\n/proc/1/fd:\n{line}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            let file = fs::File::open(&path).unwrap();
            let liar = Command::new("sleep").arg("60").stdin(file).spawn();
            processes.push(liar.unwrap());
        }
        assert!(!processes.is_empty());
        Self {
            processes,
            _directory: directory,
        }
    }
}

impl Drop for Liars {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn file_names_cannot_pretend_to_be_sockets() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let _liars = Liars::start();
    assert_holds_alone(&facts_by(&["sh"]).listeners.unwrap(), &socket);
}

/// A directory that is all a process sees, with what the programs put there need to run.
struct Root(tempfile::TempDir);

impl Root {
    fn with(program: &str, at: &str) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for directory in ["bin", "dev", "proc", "sys"] {
            fs::create_dir(root.0.path().join(directory)).unwrap();
        }
        root.add(program, at);
        root
    }

    fn add(&self, program: &str, at: &str) {
        let output = Command::new("ldd").arg(program).output().unwrap();
        let libraries = String::from_utf8(output.stdout).unwrap();
        for library in libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            let to = self.0.path().join(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(library, to).unwrap();
        }
        fs::copy(program, self.0.path().join(at)).unwrap();
    }

    /// Runs the script there, in a mount namespace that ends with it.
    fn facts(&self) -> Facts {
        let enter = "mount --bind \"$1\" \"$1\" && cd \"$1\" && mount -t proc proc proc &&
            mount --bind /dev dev && mount --bind /sys sys && exec chroot . /bin/sh -c \"$2\"";
        let sent = SystemTime::now();
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", enter, "enter"])
            .arg(self.0.path())
            .arg(script(&QUESTIONS))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let facts = parse(&output.stdout, sent, SystemTime::now()).unwrap();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(facts.kernel.as_deref(), Some(kernel.trim()));
        facts
    }
}

#[test]
fn missing_programs_are_missing_facts() {
    let facts = Root::with("/bin/dash", "bin/sh").facts();
    assert!(facts.programs.is_empty(), "{:?}", facts.programs);
    assert_eq!(facts.os.id, None);
    assert_eq!(facts.package_manager, None);
    assert_eq!((facts.arch, facts.shell, facts.clock), (None, None, None));
    assert_eq!((facts.memory, facts.swap, facts.disks), (None, None, None));
    assert_eq!((facts.interfaces, facts.default_routes), (None, None));
    assert_eq!(
        (facts.listeners, facts.resolver, facts.capabilities),
        (None, None, None)
    );
}

/// Where not only the shell but every program is BusyBox's, as on Alpine.
#[tokio::test]
async fn a_machine_of_busybox_alone() {
    have(&["busybox"]).await;
    let root = Root::with("/bin/busybox", "bin/busybox");
    let applets = [
        "cat", "date", "grep", "gzip", "head", "ip", "ls", "readlink", "sh", "stat",
    ];
    for applet in applets.iter().chain(&["timeout", "tr", "true", "uname"]) {
        symlink("busybox", root.0.path().join("bin").join(applet)).unwrap();
    }
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let _liars = Liars::start();
    let facts = root.facts();
    assert_eq!(facts.shell, Some(Shell::Busybox));
    assert_eq!(facts.arch, Some(Arch::from_machine(std::env::consts::ARCH)));
    assert!(facts.memory.is_some() && facts.capabilities.is_some() && facts.swap.is_some());
    assert!(facts.sysctls["kernel.cap_last_cap"].len() > 1);
    // Its `date` knows but whole seconds.
    let clock = facts.clock.unwrap();
    assert!(!clock.is_off_by_more_than(Duration::ZERO), "{clock:?}");
    let disks = facts.disks.unwrap();
    assert!(
        disks
            .iter()
            .any(|disk| disk.path == "/" && disk.space.is_some()),
        "{disks:?}"
    );
    let interfaces = facts.interfaces.unwrap();
    assert!(
        interfaces
            .iter()
            .any(|i| i.name == "lo" && i.mtu.is_some() && !i.addresses.is_empty())
    );
    assert_holds_alone(&facts.listeners.unwrap(), &socket);
}

/// Machines of BusyBox's programs, with each of the shells.
async fn machines(test: impl Fn(&Root)) {
    have(&["dash", "bash", "busybox"]).await;
    for shell in ["/bin/dash", "/bin/bash", "/bin/busybox"] {
        let root = Root::with(shell, "bin/sh");
        root.add("/bin/busybox", "bin/busybox");
        for applet in ["cat", "grep", "head", "tail", "tr"] {
            symlink("busybox", root.0.path().join("bin").join(applet)).unwrap();
        }
        test(&root);
    }
}

impl Root {
    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[tokio::test]
async fn settings_name_directories() {
    machines(|root| {
        assert!(root.facts().directories.is_empty());
        let found = |settings: &str| {
            root.put("etc/data.conf", settings);
            let found = root.facts().directories;
            found
                .into_iter()
                .map(|(name, one)| (name, one.path, one.is_used))
                .collect::<Vec<_>>()
        };
        let one = |name: &str, path: &str, is_used| (name.to_owned(), path.to_owned(), is_used);
        root.put("srv/my data/here/x", "");
        root.put("var/lib/base/some/here/x", "");
        assert_eq!(found("OTHER=\"m0\"\n"), []);
        let data = "DATA=\"/srv/my data\"\nOTHER=\"m0\"\n";
        assert_eq!(found(data), [one("DATA", "/srv/my data", true)]);
        let both = "DATA=\"some\"\nLOG=/log\n";
        assert_eq!(
            found(both),
            [
                one("DATA", "/var/lib/base/some", true),
                one("LOG", "/log", false)
            ]
        );
        assert_eq!(
            found("DATA=\"/srv/other\"\n"),
            [one("DATA", "/srv/other", false)]
        );
    })
    .await;
}

#[tokio::test]
async fn entries_of_directories_are_told() {
    machines(|root| {
        assert!(root.facts().entries.is_empty());
        root.put("etc/it's full/two\nlines", "");
        for number in 100..170 {
            root.put(&format!("etc/it's full/{number} *"), "");
        }
        let found = root.facts().entries;
        assert_eq!(found.len(), 64, "{found:?}");
        assert_eq!(found[0], "/etc/it's full/100 *");
        assert!(found.iter().all(|path| path.ends_with('*')), "{found:?}");
    })
    .await;
}

#[tokio::test]
async fn a_docker_is_in_use_wherever_its_data_are() {
    machines(|root| {
        assert_eq!(root.facts().runtime_use.docker.containers, 0);
        // A process that is called as docker is, and waits.
        root.put("dockerd", "#!/bin/sh\nread line\n");
        let program = root.0.path().join("dockerd");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        root.put("srv/my docker/containers/a/x", "");
        root.put("srv/my docker/containers/b/x", "");
        for arguments in [
            &["--data-root", "/srv/my docker"][..],
            &["-H", "fd://", "--data-root=/srv/my docker"],
            &["-g", "/srv/my docker", "--debug"],
        ] {
            let mut docker = Command::new(&program);
            let docker = docker.args(arguments).stdin(Stdio::piped()).spawn();
            let mut docker = docker.unwrap();
            let name = format!("/proc/{}/comm", docker.id());
            while fs::read_to_string(&name).unwrap() != "dockerd\n" {
                std::thread::sleep(Duration::from_millis(5));
            }
            root.put("run/docker.pid", &docker.id().to_string());
            let found = root.facts().runtime_use.docker;
            docker.kill().unwrap();
            docker.wait().unwrap();
            assert_eq!(found.containers, 2, "{arguments:?}");
            let flag = arguments[0].split('=').next().unwrap();
            assert!(found.flags.contains(&flag.to_owned()), "{found:?}");
        }
        // Its number may be another's by now.
        root.put("run/docker.pid", &std::process::id().to_string());
        assert_eq!(root.facts().runtime_use.docker, DockerUse::default());
        // What runs is seen in the containerd that it shares with others.
        let tasks = "run/containerd/io.containerd.runtime.v2.task";
        for id in ["moby/a", "moby/b", "moby/c", "default/d"] {
            root.put(&format!("{tasks}/{id}/x"), "");
        }
        let found = root.facts().runtime_use;
        assert_eq!(
            (found.docker.containers, found.containerd_containers),
            (3, 4)
        );
    })
    .await;
}

#[tokio::test]
async fn a_containerd_is_in_use_wherever_it_keeps_its_containers() {
    machines(|root| {
        let containers = || root.facts().runtime_use.containerd_containers;
        assert_eq!(containers(), 0);
        // Docker 18.09 and 19.03.
        let old = "run/containerd/io.containerd.runtime.v1.linux/moby";
        root.put(&format!("{old}/a/x"), "");
        assert_eq!(containers(), 1);
        root.put("srv/state/io.containerd.runtime.v2.task/default/b/x", "");
        root.put("srv/state/io.containerd.runtime.v2.task/default/c/x", "");
        for line in ["state = \"/srv/state\" # here", "state='/srv/state'"] {
            let text = format!("version = 2\n{line}\n[debug]\n  level = \"info\"\n");
            root.put("etc/containerd/config.toml", &text);
            assert_eq!(containers(), 2, "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn data_of_the_instance_may_have_cloud_init_write_hosts() {
    const USER: &str = "var/lib/cloud/instance/cloud-config.txt";
    const VENDOR: &str = "var/lib/cloud/instance/vendor-cloud-config.txt";
    machines(|root| {
        let writes = || root.facts().agents.cloud_init_hosts;
        root.put("etc/cloud/cloud.cfg.d/x", "");
        assert!(!writes());
        for (value, expected) in [
            ("true", true),
            (" 'localhost'  # as ever", true),
            ("template", true),
            ("\"True\"", true),
            ("false", false),
            ("", false),
            ("untrue", false),
        ] {
            let text =
                format!("#cloud-config\npassword: secret\nmanage_etc_hosts: {value}\nx: true\n");
            root.put(USER, &text);
            assert_eq!(writes(), expected, "{value}");
        }
        root.put(USER, "x:\n  manage_etc_hosts: true\n");
        assert!(!writes());
        root.put(VENDOR, "manage_etc_hosts: true\n");
        assert!(writes());
        // The user has the last word.
        root.put(USER, "manage_etc_hosts: false\n");
        assert!(!writes());
        root.put(USER, "");
        assert!(writes());
        root.put("etc/cloud/cloud-init.disabled", "");
        assert!(!writes());
    })
    .await;
}

#[test]
fn a_user_who_is_not_root_learns_less() {
    let mut command = Command::new("sh");
    let output = fed(
        command.uid(65534).gid(65534).args(["-c", RUN]),
        script(&QUESTIONS).as_bytes(),
    );
    let facts = parse(&output.stdout, SystemTime::now(), SystemTime::now()).unwrap();
    assert_eq!(facts.root, Some(false));
    assert!(facts.kernel.is_some() && facts.listeners.is_some());
}

#[test]
fn standard_input_is_left_alone() {
    let script = format!("{}\nprintf 'rest:'; cat", script(&QUESTIONS));
    let output = fed(Command::new("sh").args(["-euc", &script]), b"payload");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.ends_with(" end\nrest:payload"), "{said}");
}
