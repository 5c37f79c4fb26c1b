//! Programs of an archive are asked for their versions during `plan`, and can do nothing else.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    io::ErrorKind,
    net::{TcpListener, UdpSocket},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixDatagram, UnixListener},
    },
    path::{Path, PathBuf},
    process::Command as Process,
    thread,
    time::{Duration, Instant},
};

use assert_cmd::Command;
use tempfile::TempDir;

/// Tries everything, says what came of it, and then its version.
const GREEDY: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

static void said(const char *what, int done) { printf("%s: %s\n", what, done ? "YES" : "no"); }

static int inet(int type) {
    int s = socket(AF_INET, type, 0);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return s >= 0 && connect(s, (void *)&to, sizeof to) == 0 && write(s, "x", 1) == 1;
}

static int local(void) {
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    strncpy(to.sun_path, HOME "/socket", sizeof to.sun_path - 1);
    return s >= 0 && connect(s, (void *)&to, sizeof to) == 0;
}

static int datagram(void) {
    int pair[2];
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    strncpy(to.sun_path, HOME "/datagram", sizeof to.sun_path - 1);
    return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0
        && sendto(pair[0], "x", 1, 0, (void *)&to, sizeof to) == 1;
}

/* Whether a call got as far as the kernel's own judgement, which of these calls is never EPERM. */
static int reached(long result) { return result != -1 || errno != EPERM; }

static int attributes(const char *path) {
    int fd = open(path, O_RDONLY), flags;
    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return 0;
    flags ^= FS_NODUMP_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

static int processors(pid_t of) {
    cpu_set_t set;
    return sched_getaffinity(of, sizeof set, &set) == 0 && sched_setaffinity(of, sizeof set, &set) == 0;
}

static int scheduler(pid_t of) {
    struct sched_param param;
    unsigned attr[64];
    if (sched_getparam(of, &param) != 0 || syscall(SYS_sched_getattr, of, attr, sizeof attr, 0) != 0) return 0;
    int set = sched_setscheduler(of, sched_getscheduler(of), &param) == 0;
    set |= sched_setparam(of, &param) == 0;
    return set | (syscall(SYS_sched_setattr, of, attr, 0) == 0);
}

static int shared(void) {
    return reached(syscall(SYS_shmctl, -1, IPC_STAT, 0)) | reached(syscall(SYS_msgctl, -1, IPC_STAT, 0))
        | reached(syscall(SYS_msgsnd, -1, 0, 0, 0)) | reached(syscall(SYS_msgrcv, -1, 0, 0, 0, 0))
        | reached(syscall(SYS_semctl, -1, 0, IPC_STAT, 0)) | reached(syscall(SYS_semtimedop, -1, 0, 0, 0))
#ifdef SYS_semop
        | reached(syscall(SYS_semop, -1, 0, 0))
#endif
        | reached(syscall(SYS_mq_unlink, "none")) | reached(syscall(SYS_mq_timedsend, -1, 0, 0, 0, 0))
        | reached(syscall(SYS_mq_timedreceive, -1, 0, 0, 0, 0)) | reached(syscall(SYS_mq_notify, -1, 0))
        | reached(syscall(SYS_mq_getsetattr, -1, 0, 0));
}

/* By the numbers of programs with short pointers: getpid, and some that have a number of their own there. */
static int short_pointers(void) {
    int any = 0;
#ifdef __x86_64__
    const long numbers[] = { SYS_getpid, 514 /* ioctl */, 521 /* ptrace */, 524 /* rt_sigqueueinfo */, 533 /* move_pages */ };
    for (int i = 0; i < 5; i++) any |= reached(syscall(0x40000000 | numbers[i], -1, -1, 0, 0, 0, 0));
    for (int i = 1; i < 5; i++) any |= reached(syscall(numbers[i], -1, -1, 0, 0, 0, 0));
#endif
    return any;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--stay") == 0) { sleep(600); return 0; }
    char byte;
    int open_files = 0;
    for (int fd = 3; fd < 64; fd++) open_files += fcntl(fd, F_GETFD) >= 0;
    said("open files", open_files > 0);
    said("environment", environ[0] != 0);
    const char *secrets[] = { HOME "/.hatchery/ca.key", HOME "/.ssh/id_ed25519", "/etc/passwd", "/proc/self/environ" };
    for (int i = 0; i < 4; i++) {
        int fd = open(secrets[i], O_RDONLY);
        said(secrets[i], fd >= 0 && read(fd, &byte, 1) >= 0);
    }
    const char *marks[] = { HOME "/mark", "mark" };
    for (int i = 0; i < 2; i++) {
        int fd = open(marks[i], O_CREAT | O_WRONLY, 0600);
        said(marks[i], fd >= 0 && write(fd, "x", 1) == 1);
    }
    said("append", open(HOME "/.ssh/id_ed25519", O_WRONLY | O_APPEND) >= 0);
    said("mode", chmod(HOME "/.ssh/id_ed25519", 0777) == 0);
    said("truncate", truncate(HOME "/.ssh/id_ed25519", 0) == 0);
    said("remove", unlink(HOME "/.ssh/id_ed25519") == 0);
    said("tcp", inet(SOCK_STREAM));
    said("udp", inet(SOCK_DGRAM));
    said("unix", local());
    said("datagram", datagram());
    said("attributes", attributes(argv[0]));
    /* Root's other processes are kept from it by their capabilities; itself by its number is any process to the filter. */
    const pid_t ids[] = { getppid(), getpid() };
    int processor = 0, schedule = 0, disk = 0;
    for (int i = 0; i < 2; i++) {
        processor |= processors(ids[i]);
        schedule |= scheduler(ids[i]);
        disk |= syscall(SYS_ioprio_set, 1, ids[i], syscall(SYS_ioprio_get, 1, ids[i])) == 0;
    }
    said("processors", processor);
    said("scheduler", schedule);
    said("disk priority", disk);
    said("too much refused", !processors(0) || !reached(ioctl(1, TIOCGWINSZ, &byte)));
    said("shared", shared());
    said("short pointers", short_pointers());
    said("outliving", prctl(PR_SET_PDEATHSIG, 0) == 0);
    said("signal", kill(getppid(), 0) == 0 || kill(-1, 0) == 0);
    said("root", setuid(0) == 0 && chroot("/") == 0);
    pid_t child = fork();
    if (child == 0) { setsid(); close(1); close(2); execl(argv[0], argv[0], "--stay", (char *)0); sleep(600); _exit(0); }
    said("child", child > 0);
    printf("etcd Version: 3.5.9\nKubernetes v1.30.1\n");
    return 0;
}
"#;

struct Place {
    top: TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    datagrams: UnixDatagram,
}

impl Place {
    fn new() -> Self {
        let top = TempDir::new().unwrap();
        for name in [".hatchery/ca.key", ".ssh/id_ed25519"] {
            let path = top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "secret").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
        let unix = UnixListener::bind(top.path().join("socket")).unwrap();
        let datagrams = UnixDatagram::bind(top.path().join("datagram")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        Self {
            top,
            tcp,
            udp,
            unix,
            datagrams,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The program that tries everything, alone in a directory.
    fn greedy(&self, name: &str, flags: &[&str]) -> PathBuf {
        let source = self.path("greedy.c");
        fs::write(&source, GREEDY).unwrap();
        let program = self.path(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let port = self.tcp.local_addr().unwrap().port();
        let made = Process::new("cc")
            .args(flags)
            .arg(format!("-DPORT={port}"))
            .arg(format!("-DHOME=\"{}\"", self.top.path().display()))
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        program
    }

    /// Nothing was taken, and nothing left behind.
    #[track_caller]
    fn assert_untouched(&self) {
        let waits = |kind| kind == ErrorKind::WouldBlock;
        assert!(self.tcp.accept().is_err_and(|error| waits(error.kind())));
        assert!(self.unix.accept().is_err_and(|error| waits(error.kind())));
        for datagram in [self.udp.recv(&mut [0; 8]), self.datagrams.recv(&mut [0; 8])] {
            assert!(datagram.is_err_and(|error| waits(error.kind())));
        }
        for mark in ["mark", "own/mark"] {
            assert!(!self.path(mark).exists(), "{mark}");
        }
        let key = self.path(".ssh/id_ed25519");
        assert_eq!(fs::read_to_string(&key).unwrap(), "secret");
        assert_eq!(
            fs::metadata(&key).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let left = processes(self.top.path());
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Ids and command lines of processes whose program is below this place, or whose command line names it. What runs in a
/// root of its own names nothing outside, and what a script starts is the system's program.
fn processes(place: &Path) -> Vec<(String, String)> {
    let place = place.canonicalize().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let program = fs::read_link(entry.path().join("exe"));
        let is_here = program.is_ok_and(|program| program.starts_with(&place))
            || line.contains(&place.display().to_string());
        is_here.then(|| (entry.file_name().to_string_lossy().into_owned(), line))
    })
    .collect()
}

fn hatchery() -> Command {
    Command::cargo_bin("hatchery").unwrap()
}

#[test]
fn a_program_prints_and_does_nothing_else() {
    for flags in [&["-static"][..], &[]] {
        let place = Place::new();
        let program = place.greedy("own/etcd", flags);
        // It would if it could.
        let free = Process::new(&program)
            .arg("--version")
            .current_dir(place.path("own"))
            .output()
            .unwrap();
        end_children(&place);
        let free = String::from_utf8(free.stdout).unwrap();
        for action in [
            "tcp",
            "udp",
            "unix",
            "datagram",
            "processors",
            "scheduler",
            "disk priority",
            "shared",
            "outliving",
            "child",
            "mode",
            "remove",
            "environment",
        ] {
            assert!(free.contains(&format!("{action}: YES")), "{free}");
        }
        let place = Place::new();
        let program = place.greedy("own/etcd", flags);
        let confined = hatchery()
            .arg("__confined")
            .arg(&program)
            .arg("--version")
            .env("SECRET", "secret")
            .output()
            .unwrap();
        let said = String::from_utf8(confined.stdout.clone()).unwrap();
        if String::from_utf8_lossy(&confined.stderr).contains("neither Landlock") {
            // Nothing can confine this one here, so that it was not run.
            assert_eq!(confined.status.code(), Some(125), "{confined:?}");
            assert!(said.is_empty(), "{said}");
            place.assert_untouched();
            continue;
        }
        assert!(said.ends_with("Kubernetes v1.30.1\n"), "{confined:?}");
        assert!(!said.contains("YES"), "{flags:?}: {said}");
        place.assert_untouched();
    }
}

/// Ends what an unconfined run left behind, by process id. On a busy machine that takes a moment to be there.
#[track_caller]
fn end_children(place: &Place) {
    let begin = Instant::now();
    loop {
        let left = processes(&place.path("own"));
        for (id, _) in &left {
            Process::new("kill").args(["-9", id]).status().unwrap();
        }
        if !left.is_empty() {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "it has no child");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_script_has_no_interpreter() {
    let place = Place::new();
    let script = place.path("own/etcd");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    let mark = place.path("mark").display().to_string();
    fs::write(
        &script,
        format!("#!/bin/sh\necho x >{mark}\necho etcd Version: 3.5.9\n"),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let refused = hatchery()
        .arg("__confined")
        .arg(&script)
        .arg("--version")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("interpreter"), "{said}");
    place.assert_untouched();
}

/// The machine does not answer, but archives are opened beside the question.
#[test]
fn a_plan_with_a_tampered_archive_gives_it_nothing() {
    for is_script in [false, true] {
        let place = Place::new();
        let program = match is_script {
            false => fs::read(place.greedy("own/etcd", &["-static"])).unwrap(),
            true => format!(
                "#!/bin/sh\ncat {top}/.ssh/id_ed25519 >{top}/mark\necho x >/dev/tcp/127.0.0.1/{port}\n\
                 setsid tail -f {top}/deploy.yaml &\necho Kubernetes v1.30.1\n",
                top = place.top.path().display(),
                port = place.tcp.local_addr().unwrap().port(),
            )
            .into_bytes(),
        };
        let bin = place.path("packed/bin");
        fs::create_dir_all(&bin).unwrap();
        for name in ["kube-apiserver", "kubelet", "etcd", "containerd", "coredns"] {
            fs::write(bin.join(name), &program).unwrap();
        }
        let packed = Process::new("tar")
            .args(["-czf", "own.tar.gz", "-C", "packed", "bin"])
            .current_dir(place.top.path())
            .status()
            .unwrap();
        assert!(packed.success());
        let item = |name| format!("[{{name: {name}, type: bin, dst: /usr/bin}}]");
        let text = format!(
            "cluster-id: demo\nruntime: containerd\npassword-env: PASSWORD\nbastion: root@127.0.0.1:1\n\
             masters: [{{name: m0, ip: 10.0.0.1, arch: {arch}}}]\n\
             workers: [{{name: m0, ip: 10.0.0.1, arch: {arch}}}]\n\
             install:\n  package-source: {{type: tar.gz, srcpath: {{{arch}: own.tar.gz}}}}\n  \
             kubernetes-master: {}\n  kubernetes-worker: {}\n  etcd: {}\n  container: {}\n  dns: {}\n",
            item("kube-apiserver"),
            item("kubelet"),
            item("etcd"),
            item("containerd"),
            item("coredns"),
            arch = std::env::consts::ARCH,
        );
        fs::write(place.path("deploy.yaml"), text).unwrap();
        let home = place.path(".hatchery");
        let planned = hatchery()
            .args(["plan", "-f", "deploy.yaml"])
            .current_dir(place.top.path())
            .env("HOME", place.top.path())
            .env("HATCHERY_HOME", &home)
            .env("PASSWORD", "secret")
            .output()
            .unwrap();
        assert!(!planned.status.success(), "{planned:?}");
        let cache = fs::read_dir(home.join("cache"));
        let cache = cache
            .unwrap_or_else(|error| panic!("{error}: {planned:?}"))
            .flatten();
        let records: Vec<String> = cache
            .map(|entry| fs::read_to_string(entry.path()).unwrap())
            .collect();
        let [record] = &records[..] else {
            panic!("{} files, {planned:?}", records.len())
        };
        // The programs did run: what they said is on record.
        assert_eq!(
            record.contains("Kubernetes v1.30.1"),
            !is_script,
            "{planned:?}"
        );
        assert!(!record.contains("YES"), "{record}");
        place.assert_untouched();
    }
}
