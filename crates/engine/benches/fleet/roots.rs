//! Roots of file systems that stand for machines, in namespaces that end with this process.
//!
//! They lie on a file system of their own in memory, over the directory of temporary files, which nobody else sees and which
//! goes with the process, however that ends. So do the mounts within.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use hatchery_host::transport::local::Local;
use nix::sched::{CloneFlags, unshare};
use rustix::{
    fs::{CWD, FileType, Mode, makedev, mknodat},
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change},
};

/// What stands in for programs that do nothing without a kernel of their own.
const STAND_INS: [(&str, &str); 2] = [
    (
        "systemctl",
        include_str!("../../../host/src/script/fakes/systemctl"),
    ),
    ("sync", include_str!("../../../host/src/script/fakes/sync")),
];

/// The shell that Debian has, what its busybox leaves out, and everything else in one.
const PROGRAMS: [(&str, &str); 3] = [("dash", "sh"), ("flock", "flock"), ("busybox", "busybox")];

const DIRECTORIES: [&str; 20] = [
    "bin",
    "dev",
    "etc/systemd/system",
    "etc/sysctl.d",
    "etc/modules-load.d",
    "fake/units",
    "opt",
    "proc",
    "root",
    "run",
    // The kernel's modules are there, so that none has to be loaded.
    "sys/module/br_netfilter",
    "sys/module/overlay",
    "tmp",
    "usr/bin",
    "usr/lib/systemd/system",
    "usr/local/sbin",
    "usr/sbin",
    "var/lib",
    "var/log",
    "var/tmp",
];

const FILES: [(&str, &str); 5] = [
    ("etc/hosts", "127.0.0.1 localhost\n"),
    (
        "etc/os-release",
        "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
    ),
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\netcd:x:990:990::/:/bin/false\ncoredns:x:991:991::/:/bin/false\n",
    ),
    ("etc/group", "root:x:0:\netcd:x:990:\ncoredns:x:991:\n"),
    ("etc/resolv.conf", "nameserver 192.0.2.1\n"),
];

/// What the kernel shows and takes of settings, below `/proc/sys`. The computer's own are not to be touched.
const SETTINGS: [(&str, &str); 15] = [
    ("kernel/osrelease", "6.1.0-18-amd64"),
    (
        "kernel/random/boot_id",
        "5f0c0f26-3b8f-4a33-a2ee-53a7a8b1d3a4",
    ),
    ("kernel/random/uuid", "7b3bd0ab-6a3f-4f41-8a2e-0d0f6f0f7c11"),
    ("kernel/hostname", "debian"),
    ("kernel/panic", "0"),
    ("kernel/panic_on_oops", "0"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
    ("net/bridge/bridge-nf-call-iptables", "0"),
    ("net/bridge/bridge-nf-call-ip6tables", "0"),
    ("net/ipv4/conf/all/route_localnet", "0"),
    ("net/ipv4/ip_forward", "0"),
    ("net/ipv4/ip_local_port_range", "32768 60999"),
    ("vm/overcommit_memory", "0"),
    ("vm/panic_on_oom", "0"),
];

/// Where all of them are.
const SUBNET: &str = "172.20.255.1/16";

/// The directory of all roots.
pub(crate) struct Roots {
    directory: PathBuf,
}

impl Roots {
    /// Leaves the namespaces of the computer for good. There is one thread, and it is root's.
    pub(crate) fn enter() -> Self {
        // Without the network and the name of the computer nothing on a root can change them.
        let flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS;
        unshare(flags).expect("a mount namespace, which only root gets");
        // Machines of one subnet: where each is elsewhere, DNS servers name them one by one.
        for words in [
            &["address", "add", SUBNET, "dev", "lo"][..],
            &["link", "set", "lo", "up"][..],
        ] {
            let status = Command::new("busybox").arg("ip").args(words).status();
            assert!(status.unwrap().success(), "ip {words:?}");
        }
        let directory = env::temp_dir();
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).unwrap();
        // Names of programs are counted there as if each were a file.
        let flags = MountFlags::empty();
        mount("tmpfs", &directory, "tmpfs", flags, Some(c"nr_inodes=0")).unwrap();
        let roots = Self { directory };
        roots.fill_base();
        roots
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What all machines have in common, once.
    fn fill_base(&self) {
        let base = self.base();
        let bin = base.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let programs = PROGRAMS.map(|(program, name)| (which(program), bin.join(name)));
        let stand_ins = STAND_INS.map(|(name, _)| name);
        for (program, to) in &programs {
            fs::copy(program, to).unwrap();
            for library in libraries(program) {
                let to = base.join(library.strip_prefix("/").unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(&library, &to).unwrap();
            }
        }
        let applets = output(Command::new(which("busybox")).arg("--list"));
        for name in applets.lines() {
            if !stand_ins.contains(&name) && !bin.join(name).exists() {
                fs::hard_link(bin.join("busybox"), bin.join(name)).unwrap();
            }
        }
        let sbin = base.join("usr/local/sbin");
        fs::create_dir_all(&sbin).unwrap();
        for (name, text) in STAND_INS {
            fs::write(sbin.join(name), text).unwrap();
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(sbin.join(name), executable).unwrap();
        }
    }

    fn base(&self) -> PathBuf {
        self.directory.join("base")
    }

    /// Makes a bare machine, and gives the way to it.
    pub(crate) fn furnish(&self, name: &str) -> Local {
        let root = self.directory.join("roots").join(name);
        for directory in DIRECTORIES {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        link_tree(&self.base(), &root);
        for (path, text) in FILES {
            fs::write(root.join(path), text).unwrap();
        }
        symlink("/proc/self/mounts", root.join("etc/mtab")).unwrap();
        let null = root.join("dev/null");
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, &null, FileType::CharacterDevice, mode, makedev(1, 3)).unwrap();
        let settings = self.directory.join("settings").join(name);
        for (path, value) in SETTINGS {
            let path = settings.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        mount_bind("/proc", root.join("proc")).unwrap();
        mount_bind(&settings, root.join("proc/sys")).unwrap();
        Local::with_shell(name, "chroot", &[root.to_str().unwrap(), "/bin/sh"])
    }
}

/// The same files under other names: they take no room.
fn link_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&to).unwrap();
            link_tree(&entry.path(), &to);
        } else {
            fs::hard_link(entry.path(), to).unwrap();
        }
    }
}

fn which(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap();
    let mut found = env::split_paths(&path).map(|directory| directory.join(program));
    found
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("there is no {program} command"))
}

/// The libraries of a program, the loader among them; none where it needs none.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = output(Command::new("ldd").arg(program));
    let words = listed.split_whitespace();
    words
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
