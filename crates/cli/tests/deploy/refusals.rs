//! What is wrong with files, archives or machines is said with its remedy before anything is changed.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use hatchery_sandbox::snapshot::Snapshot;

use crate::bench::Bench;

/// Files, archives and anything that they name.
const WRONG_INPUT: i32 = 2;
/// Machines.
const UNFIT: i32 = 1;

struct Desk {
    bench: Bench,
    text: String,
    archive: String,
}

impl Desk {
    async fn new() -> Self {
        let bench = Bench::new("t-input", 3, str::to_owned).await;
        let text = fs::read_to_string(bench.home().join("deploy.yaml")).unwrap();
        let line = text.lines().find(|line| line.ends_with(".tar.gz\""));
        let archive = line.unwrap().split('"').nth(1).unwrap().to_owned();
        Self {
            bench,
            text,
            archive,
        }
    }

    fn address(&self, number: usize) -> String {
        self.bench.machine(number).address.to_string()
    }

    /// A file beside the deploy file.
    fn path(&self, name: &str) -> PathBuf {
        self.bench.home().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Packs a directory beside the deploy file.
    fn pack(&self, name: &str, flag: &str) -> PathBuf {
        let archive = self.path(&format!("{name}.tar.gz"));
        let packed = Command::new("tar")
            .args(["-C", name, flag])
            .arg(&archive)
            .arg(".")
            .current_dir(self.bench.home())
            .status();
        assert!(packed.unwrap().success());
        archive
    }

    /// Deploying this is refused, with these words.
    fn refused(&self, code: i32, words: &[&str], text: &str) {
        assert_ne!(text, self.text, "{words:?}: nothing is wrong with it");
        self.says("deploy", code, words, &self.write("wrong.yaml", text));
    }

    fn refused_archive(&self, words: &[&str], archive: &Path) {
        let text = self.text.replace(&self.archive, archive.to_str().unwrap());
        self.refused(WRONG_INPUT, words, &text);
    }

    fn says(&self, command: &str, code: i32, words: &[&str], file: &Path) {
        let said = self.bench.hatchery_with(code, command, file);
        for word in words {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
        eprintln!("{said}");
    }

    fn replaced(&self, from: &str, to: &str) -> String {
        self.text.replace(from, to)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_refused_before_anything_is_changed() {
    let desk = Desk::new().await;
    let before = desk.bench.snapshots().await;
    archives(&desk);
    files(&desk);
    machines(&desk).await;
    for (machine, before) in desk.bench.lab.machines.iter().zip(&before) {
        let now = Snapshot::take(machine).await.unwrap();
        now.assert_same(before, &format!("{} after refusals", machine.name));
    }
    // Only the host keys that were seen are remembered: whoever has them next time is the same machine.
    let directory = desk.path("clusters").join(&desk.bench.id);
    let kept = fs::read_dir(directory).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    let harmless = |name: &std::ffi::OsString| name == "known_hosts" || name == "lock";
    assert!(kept.iter().all(harmless), "{kept:?}");
}

fn archives(desk: &Desk) {
    let unchanged = "\nnothing was changed\n";
    let text = desk.write("notes.tar.gz", "these are notes");
    desk.refused_archive(&["not a tar archive", "repack it as", unchanged], &text);
    desk.write("stranger/readme", "of another program");
    let words = [
        "holds nothing of what is listed: ",
        "kubelet",
        "name the archive",
        unchanged,
    ];
    desk.refused_archive(&words, &desk.pack("stranger", "-czf"));
    desk.refused_archive(
        &["xz-compressed", "repack it as", unchanged],
        &desk.pack("stranger", "-cJf"),
    );
    let mut head = [0; 64];
    head[..6].copy_from_slice(b"\x7fELF\x02\x01");
    head[18] = 183;
    for program in ["kubelet", "kube-proxy"] {
        desk.write(&format!("foreign/bin/{program}"), head);
    }
    let words = [
        "is named for amd64",
        "is for arm64: bin/kubelet",
        "name the archive for amd64",
        unchanged,
    ];
    desk.refused_archive(&words, &desk.pack("foreign", "-czf"));
    let whole = fs::File::open(&desk.archive).unwrap();
    let mut half = fs::File::create(desk.path("half.tar.gz")).unwrap();
    std::io::copy(&mut std::io::Read::take(whole, 32 << 20), &mut half).unwrap();
    let words = [
        "half.tar.gz is refused: it ends too early",
        "fetch or pack it again",
        unchanged,
    ];
    desk.refused_archive(&words, &desk.path("half.tar.gz"));
    desk.refused_archive(
        &["there is no such file", "put the archive there"],
        &desk.path("nowhere.tar.gz"),
    );
    desk.refused_archive(
        &["it is a directory", "correct the path"],
        desk.bench.home(),
    );
}

fn files(desk: &Desk) {
    let wrong = |words: &[&str], from: &str, to: &str| {
        desk.refused(WRONG_INPUT, words, &desk.replaced(from, to));
    };
    let name = |number: usize| desk.bench.machine(number).name.clone();
    let two = [
        "two machines have the name",
        "wrong.yaml:10:",
        "its own name",
    ];
    wrong(
        &two,
        &format!("name: {}", name(2)),
        &format!("name: {}", name(1)),
    );
    wrong(
        &["is listed twice", "keep one of the two"],
        &desk.address(2),
        &desk.address(1),
    );
    let net = desk.address(0).rsplit_once('.').unwrap().0.to_owned() + ".0/24";
    let pods = [
        "is within the pod network",
        "use a network that contains no machine",
    ];
    wrong(&pods, "10.244.0.0/16", &net);
    wrong(
        &[
            "there is no archive for arm64",
            "correct the machine's arch",
        ],
        "arch: amd64",
        "arch: arm64",
    );
    let versioned = [
        "nginx=1.18",
        "not the name of a package",
        "only the package's name",
    ];
    wrong(
        &versioned,
        "  dns:\n    - {",
        "  dns:\n    - {name: nginx=1.18, type: repo}\n    - {",
    );
    let key = desk.bench.lab.key().display().to_string();
    wrong(
        &["there is no such file", "correct the path"],
        &key,
        "/nowhere/key",
    );
    for authority in ["ca", "front-proxy-ca", "etcd/ca"] {
        desk.write(&format!("authority/{authority}.crt"), "no certificate");
        desk.write(&format!("authority/{authority}.key"), "no key");
    }
    let authority = desk.path("authority");
    desk.refused(
        WRONG_INPUT,
        &["authority cannot be used: ca.crt:"],
        &format!(
            "{}external-ca: true\nexternal-ca-path: {}\n",
            desk.text,
            authority.display()
        ),
    );
    desk.refused(
        WRONG_INPUT,
        &["the cluster has no master", "add masters"],
        "",
    );
    desk.says(
        "deploy",
        WRONG_INPUT,
        &["it is a directory", "name the file"],
        desk.bench.home(),
    );
}

async fn machines(desk: &Desk) {
    let bench = &desk.bench;
    let name = |number: usize| format!("{}: ", bench.machine(number).name);
    let own = desk.path("deploy.yaml");
    let unchanged = "nothing was changed: the machines of";

    // Anything may be wrong at once, and all of it is told.
    bench
        .inside(0, "printf '#!/bin/sh\\nexec /usr/bin/date -d \"+2 hours\" \"$@\"\\n' >/usr/local/sbin/date && chmod 755 /usr/local/sbin/date")
        .await;
    bench
        .inside(1, "mount -t tmpfs -o size=40m tmpfs /var/lib/kubelet && systemd-run -q --collect --unit=theirs-web socat TCP-LISTEN:10250,fork /dev/null")
        .await;
    bench.eventually(1, "ss -lnt | grep -q :10250").await;
    bench
        .inside(
            2,
            "ip addr add 10.244.7.1/24 dev eth0 && ip addr add 10.32.9.1/24 dev eth0",
        )
        .await;
    let (clock, disk, port, pods, services) = (
        name(0) + "has a clock 2 h ahead",
        name(1) + "has 40 MiB left on /var/lib/kubelet",
        name(1) + "needs port 10250/tcp (kubelet), which socat has",
        name(2) + "has the network 10.244.7.0/24 on eth0, which overlaps 10.244.0.0/16 of the pods",
        name(2)
            + "has the network 10.32.9.0/24 on eth0, which overlaps 10.32.0.0/16 of the Services",
    );
    let words = [
        &clock,
        "follow the same time server",
        &disk,
        "mount a larger disk",
        &port,
        "stop socat there",
        &pods,
        &services,
        "choose other addresses",
        unchanged,
    ];
    desk.says("deploy", UNFIT, &words, &own);
    desk.says("plan", UNFIT, &words, &own);
    bench.inside(0, "rm /usr/local/sbin/date").await;
    bench
        .inside(1, "umount /var/lib/kubelet && systemctl stop theirs-web")
        .await;
    bench
        .inside(
            2,
            "ip addr del 10.244.7.1/24 dev eth0 && ip addr del 10.32.9.1/24 dev eth0",
        )
        .await;

    // Neither in the archive nor to be had.
    let text = desk.replaced("pause:3.10", "pause:9.9");
    let text = text.replace(
        "corednstype: binary",
        "corednstype: pod\n    imageversion: 9.9.9",
    );
    let words = [
        "cannot get registry.k8s.io/pause:9.9: no archive brings it",
        "cannot get docker.io/coredns/coredns:9.9.9",
        "the registry docker.io does not answer",
        "put it into the archive's images",
        unchanged,
    ];
    desk.refused(UNFIT, &words, &text);

    // One machine under two names and addresses.
    let second = desk.address(1).rsplit_once('.').unwrap().0.to_owned() + ".213";
    bench
        .inside(1, &format!("ip addr add {second}/24 dev eth0"))
        .await;
    let words = [
        "are one and the same machine",
        "give each machine once",
        unchanged,
    ];
    desk.refused(UNFIT, &words, &desk.replaced(&desk.address(2), &second));
    bench
        .inside(1, &format!("ip addr del {second}/24 dev eth0"))
        .await;

    let text = desk
        .replaced("arch: amd64", "arch: arm64")
        .replace("amd64: ", "arm64: ");
    desk.refused(
        UNFIT,
        &[
            "has amd64, but the file says arm64",
            "'arch: amd64'",
            unchanged,
        ],
        &text,
    );

    let nobody = desk.address(0).rsplit_once('.').unwrap().0.to_owned() + ".250";
    let words = ["cannot be reached at", "the machine is on", unchanged];
    desk.refused(UNFIT, &words, &desk.replaced(&desk.address(0), &nobody));
    let key = desk.path("another");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    let own_key = bench.lab.key().display().to_string();
    let text = desk.replaced(&own_key, key.to_str().unwrap());
    desk.refused(
        UNFIT,
        &["does not let root in", "authorized_keys", unchanged],
        &text,
    );
}
