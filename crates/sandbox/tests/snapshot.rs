//! The comparison that says whether a machine is as it was notices what is strewn about on it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use hatchery_sandbox::{
    docker,
    lab::{Machine, Options},
    snapshot::Snapshot,
    test_lab::TestLab,
};

/// What is planted, how it is taken away again, and by what name it has to be reported.
const STRAYS: &[(&str, &str, &str)] = &[
    // Volumes: file systems of their own.
    (
        "echo x >/var/lib/etcd/stray",
        "rm /var/lib/etcd/stray",
        "file /var/lib/etcd/stray",
    ),
    (
        "mkdir /var/lib/kubelet/stray",
        "rmdir /var/lib/kubelet/stray",
        "file /var/lib/kubelet/stray",
    ),
    (
        "echo x >/var/lib/containerd/stray",
        "rm /var/lib/containerd/stray",
        "file /var/lib/containerd/stray",
    ),
    (
        "ln -s nowhere /var/lib/docker/stray",
        "rm /var/lib/docker/stray",
        "file /var/lib/docker/stray",
    ),
    // Logs, caches and what is in memory only.
    (
        "mkdir -p /var/log/pods/stray",
        "rm -r /var/log/pods",
        "file /var/log/pods/stray",
    ),
    (
        "echo x >/var/cache/stray",
        "rm /var/cache/stray",
        "file /var/cache/stray",
    ),
    (
        "mkdir /run/stray && echo x >/run/stray/file",
        "rm -r /run/stray",
        "file /run/stray/file",
    ),
    (
        "echo x >/run/systemd/system/stray.service",
        "rm /run/systemd/system/stray.service",
        "file /run/systemd/system/stray.service",
    ),
    ("echo x >/tmp/stray", "rm /tmp/stray", "file /tmp/stray"),
    (
        "echo x >/dev/shm/stray",
        "rm /dev/shm/stray",
        "file /dev/shm/stray",
    ),
    // Programs: other bytes of the same size and time.
    (
        "cp -a /usr/bin/wall /root/kept && printf X | dd of=/usr/bin/wall bs=1 seek=1 conv=notrunc status=none && touch -r /root/kept /usr/bin/wall",
        "cat /root/kept >/usr/bin/wall && touch -r /root/kept /usr/bin/wall && rm /root/kept",
        "file /usr/bin/wall",
    ),
    (
        "echo x >/usr/libexec/stray",
        "rm /usr/libexec/stray",
        "file /usr/libexec/stray",
    ),
    (
        "echo x >/usr/lib/stray",
        "rm /usr/lib/stray",
        "file /usr/lib/stray",
    ),
    (
        "echo x >/usr/sbin/stray",
        "rm /usr/sbin/stray",
        "file /usr/sbin/stray",
    ),
    (
        "setsid -f sleep 9999 >/dev/null 2>&1 </dev/null",
        "pkill -fx 'sleep 9999'",
        "process sleep",
    ),
    // Packet filters: chains without any rule, in both back ends and families.
    (
        "iptables-nft -t nat -N STRAY-N",
        "iptables-nft -t nat -X STRAY-N",
        "chain iptables-nft nat STRAY-N",
    ),
    (
        "iptables-legacy -N STRAY-L",
        "iptables-legacy -X STRAY-L",
        "chain iptables-legacy filter STRAY-L",
    ),
    (
        "ip6tables-nft -t mangle -N STRAY-6",
        "nft delete table ip6 mangle",
        "chain ip6tables-nft mangle STRAY-6",
    ),
    (
        "nft add table inet stray",
        "nft delete table inet stray",
        "nft table inet stray",
    ),
    (
        "ipset create stray hash:ip",
        "ipset destroy stray",
        "ipset create stray",
    ),
    // Users.
    (
        "useradd --no-create-home stray-user",
        "userdel stray-user",
        "user stray-user",
    ),
    (
        "groupadd stray-group",
        "groupdel stray-group",
        "group stray-group",
    ),
    // Mounts, also one on top of another.
    (
        "mount -t tmpfs stray /srv",
        "umount /srv",
        "mount /srv tmpfs",
    ),
    (
        "mount --bind /tmp /tmp",
        "umount /tmp",
        "mount /tmp tmpfs (2)",
    ),
    // The network.
    (
        "ip netns add stray",
        "ip netns delete stray && umount /run/netns && rmdir /run/netns",
        "network-namespace stray",
    ),
    (
        "ip link add stray0 type vxlan id 7 dstport 4789",
        "ip link delete stray0",
        "link stray0",
    ),
    (
        "ip address add 10.99.0.1/32 dev lo",
        "ip address delete 10.99.0.1/32 dev lo",
        "address lo inet 10.99.0.1/32",
    ),
    (
        "ip route add blackhole 10.98.0.0/26 table 77",
        "ip route delete blackhole 10.98.0.0/26 table 77",
        "route 4 blackhole 10.98.0.0/26 table 77",
    ),
    (
        "ip rule add fwmark 7 lookup 77",
        "ip rule delete fwmark 7 lookup 77",
        "rule 4 32765:",
    ),
    (
        "mkdir $(ls -d /sys/fs/cgroup/pids || echo /sys/fs/cgroup)/stray",
        "rmdir /sys/fs/cgroup/stray /sys/fs/cgroup/pids/stray || [ ! -e /sys/fs/cgroup/pids/stray ]",
        "control-group stray",
    ),
];

async fn inside(machine: &Machine, script: &str) -> String {
    docker::run(&["exec", &machine.container(), "bash", "-ec", script])
        .await
        .unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stray_thing_is_reported_by_name() {
    let options = Options::new("t-stray".parse().unwrap(), 1);
    let lab = TestLab::up(options).await.unwrap();
    let machine = &lab.machines[0];
    let before = Snapshot::take(machine).await.unwrap();
    let again = Snapshot::take(machine).await.unwrap();
    again.assert_same(&before, "looking changes nothing");

    let plants: Vec<_> = STRAYS.iter().map(|(plant, _, _)| *plant).collect();
    inside(machine, &plants.join("\n")).await;
    let found = Snapshot::take(machine).await.unwrap().differences(&before);
    for (plant, _, name) in STRAYS {
        let (section, name) = name.split_once(' ').unwrap();
        let reported = found.iter().any(|one| {
            let title = one.lines().next().and_then(|title| title.split_once(' '));
            title.is_some_and(|title| title.0 == section && title.1.contains(name))
        });
        assert!(reported, "{plant}: {name} is not among {found:#?}");
    }

    let removals: Vec<_> = STRAYS.iter().rev().map(|(_, remove, _)| *remove).collect();
    inside(machine, &removals.join("\n")).await;
    let after = Snapshot::take(machine).await.unwrap();
    after.assert_same(&before, "all of it taken away again");
}
