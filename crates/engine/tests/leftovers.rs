//! What network plugins and runtimes leave on a machine goes with the cluster; what only looks like it stays.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::{
    collections::BTreeMap,
    sync::LazyLock,
    time::{Duration, Instant, UNIX_EPOCH},
};

use hatchery_engine::{
    observed::Observed,
    package::Installation,
    plan::{self, Work},
    resource::Resource,
    versions::Versions,
    wanted::Wanted,
};
use hatchery_host::{facts, machine::Managed, operation::Operation};
use hatchery_sandbox::{
    docker,
    lab::{Machine, Options},
    snapshot::Snapshot,
    test_lab::TestLab,
};
use hatchery_spec::{
    Input, read,
    value::{Name, Version},
};
use time::OffsetDateTime;

/// Somebody's own, from before the cluster, called as calico calls its things.
const BEFORE: &str = r#"
iptables -t nat -N cali-theirs
iptables -t nat -A cali-theirs -j RETURN
iptables -t nat -A PREROUTING -m comment --comment 'theirs' -j cali-theirs
ipset create cali40theirs hash:ip
mkdir -p /run/nodeagent && touch /run/nodeagent/theirs
ip route add blackhole 10.70.0.0/26 proto 80
ip link add cali00000000000 type veth peer name theirs0
"#;

/// Somebody else's, made while the cluster lives, with names of their own.
const OTHERS: &str = r#"
iptables -N calibre
iptables -t raw -N unused-of-ours
iptables -A INPUT -m comment --comment 'calico of ours' -j calibre
ipset create calitheirs hash:ip
ip link add calibre0 type veth peer name theirs1
ip link add vxlan.other type vxlan id 4097 dstport 4790
mkdir -p /var/lib/calico-theirs /run/calico-theirs /usr/libexec/kubernetes
touch /usr/libexec/kubernetes/theirs
ip route add blackhole 10.71.0.0/26 proto 99
ip rule add priority 98 not from all fwmark 0x300000/0x300000 lookup 8
"#;

/// Calico's objects as its manual lists them, and what iSulad leaves in memory.
const CALICO: &str = r#"
for v in iptables-nft iptables-legacy ip6tables-nft ip6tables-legacy; do
  for t in filter nat mangle raw; do
    case $t in filter) hooks='INPUT FORWARD OUTPUT' ;; nat) hooks='PREROUTING POSTROUTING OUTPUT' ;; mangle) hooks='PREROUTING POSTROUTING' ;; raw) hooks='PREROUTING OUTPUT' ;; esac
    for h in $hooks; do
      $v -t $t -N cali-$h
      $v -t $t -I $h -m comment --comment 'cali:Cz_u1IQiXIMmKD4c' -j cali-$h
    done
  done
  $v -N cali-tw-cali0123456789a
  $v -N cali-to-wl-dispatch
  $v -A cali-FORWARD -m comment --comment 'cali:vjrMJCRpqwy5oRoX' -j MARK --set-xmark 0x0/0xe0000
  $v -A cali-to-wl-dispatch -m comment --comment 'cali:x' -g cali-tw-cali0123456789a
  $v -A FORWARD -m comment --comment 'cali:S93hcgKJrXEqnTfs' -m comment --comment 'Policy explicitly accepted packet.' -m mark --mark 0x10000/0x10000 -j ACCEPT
done
ipset create cali40all-ipam-pools hash:net
ipset create cali40masq-ipam-pools hash:net
ipset create cali4t0 hash:net
ipset create cali60all-ipam-pools hash:net family inet6
ipset add cali40all-ipam-pools 10.9.0.0/16
iptables-nft -t nat -N cali-nat-outgoing
iptables-nft -t nat -A cali-nat-outgoing -m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40all-ipam-pools dst -j MASQUERADE
nft add table ip calico
nft add chain ip calico cali-all
ip link add vxlan.calico type vxlan id 4096 dstport 4789
ip link set vxlan.calico up
ip link add cali0123456789a type veth peer name pod0
ip link set cali0123456789a up
ip link add tunl0 type ipip 2>/dev/null || true
ip route add 10.9.1.0/26 via 10.0.0.9 dev vxlan.calico proto 80 onlink
ip route add 10.9.2.2/32 dev cali0123456789a scope link
ip route add blackhole 10.9.3.0/26 proto 12
ip route add blackhole 10.9.4.0/26 proto 80 table 7
ip rule add priority 99 not from all fwmark 0x200000/0x200000 lookup 1
mkdir -p /var/lib/calico /run/calico/cgroup /var/log/calico/cni
echo m0 >/var/lib/calico/nodename
touch /run/calico/bird.ctl /var/log/calico/cni/cni.log
mount -t tmpfs cgroup /run/calico/cgroup
mkdir -p '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/nodeagent~uds'
touch '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/nodeagent~uds/uds'
ip netns add isulacni-0123
mkdir -p /run/isulad/cri /run/flannel /run/containerd/io.containerd.grpc.v1.cri
mount -t tmpfs shm /run/isulad/cri
touch /run/isulad.sock /run/isulad.pid /run/flannel/subnet.env /run/containerd/containerd.sock
"#;

const SHELLS: [&str; 3] = ["dash", "bash", "busybox sh"];

/// What lists what is there, and what ends pods behind it, as machines get them.
static SCRIPTS: LazyLock<(String, String)> = LazyLock::new(scripts);

fn scripts() -> (String, String) {
    let text = "cluster-id: demo\nruntime: containerd\nmasters: [{name: m0, ip: 10.0.0.1}]\n\
        workers: [{name: m0, ip: 10.0.0.1}]\n";
    let reading = read(Input::private("deploy.yaml", text.as_bytes()));
    let answer = include_bytes!("../../host/src/facts/answers/debian.txt");
    let asked = UNIX_EPOCH + Duration::from_secs(1_794_787_750);
    let facts = facts::parse(answer, asked, asked).unwrap();
    let versions = Versions {
        kubernetes: Version::parse("1.37").unwrap(),
        containerd: None,
        etcd: None,
        coredns: None,
    };
    let name = Name::parse("m0").unwrap();
    let wanted = Wanted {
        cluster: reading.cluster.unwrap(),
        versions,
        installations: BTreeMap::from([(name.clone(), Installation::default())]),
        manifests: Vec::new(),
        images: Vec::new(),
    };
    let observed = Observed::new([(name, Ok((facts, Managed::default())))]);
    let plan = plan::make(&wanted, &observed, OffsetDateTime::UNIX_EPOCH).unwrap();
    let undo = |wanted: &str| {
        let resources = plan.tasks.iter().filter_map(|task| match &task.work {
            Work::Machine { resources, .. } => Some(resources),
            _ => None,
        });
        let mut scripts = resources.flatten().filter_map(|resource| match resource {
            Resource::Operation(Operation::Script(script)) => Some(script),
            _ => None,
        });
        let script = scripts.find(|script| script.name.as_str() == wanted);
        let undo = &script.unwrap().undo;
        let (_, script) = undo.split_once(" || exit 0\n").unwrap();
        script.to_owned()
    };
    let (before, pods) = (undo("look-around"), undo("pods"));
    let (around, _) = before.rsplit_once("remove_runtimes\n").unwrap();
    let (pods, _) = pods
        .strip_prefix(around)
        .unwrap()
        .rsplit_once("rm -f ")
        .unwrap();
    (around.to_owned(), pods.to_owned())
}

async fn inside(machine: &Machine, script: &str) -> String {
    docker::run(&["exec", &machine.container(), "bash", "-ec", script])
        .await
        .unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// As the machine's script does it.
async fn run(machine: &Machine, shell: &str, script: &str) {
    let around = &SCRIPTS.0;
    let script = format!("mark=/root/mark\n{around}\n{script}");
    let container = machine.container();
    let put = ["exec", "-i", &container, "sh", "-c", "cat >/root/script"];
    docker::run_with_input(&put, script.as_bytes())
        .await
        .unwrap();
    let command = format!("{shell} -c \"$(cat /root/script)\"; rm -f /root/script");
    docker::run(&["exec", &container, "bash", "-c", &command])
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calico_goes_and_what_looks_like_it_stays() {
    let lab = TestLab::up(Options::new("t-left".parse().unwrap(), 1))
        .await
        .unwrap();
    let machine = &lab.machines[0];
    let pods = &SCRIPTS.1;
    inside(machine, BEFORE).await;
    let list = "around >/root/mark\necho runtime containerd >>/root/mark\necho runtime isulad >>/root/mark";
    run(machine, "sh", list).await;
    inside(machine, OTHERS).await;
    let before = Snapshot::take(machine).await.unwrap();
    inside(machine, CALICO).await;
    let planted = Snapshot::take(machine).await.unwrap().differences(&before);
    assert!(planted.len() > 60, "{planted:#?}");
    for shell in SHELLS {
        if shell != "dash" {
            inside(machine, CALICO).await;
        }
        run(machine, shell, &format!("{pods}\nremove_runtimes")).await;
        let after = Snapshot::take(machine).await.unwrap();
        after.assert_same(&before, &format!("after cleanup under {shell}"));
    }
}

/// A program called as containerd's shim, with a child and a grandchild whose names try to be in the way.
const SHIM: &str = r#"
mkdir -p /root/bin /root/pids && cp /bin/sleep '/root/bin/a) S 1 b'
printf '%s\n' '#!/bin/sh' 'echo $$ >"/root/pids/$2-$4"' "(/root/bin/a*b 1000 & wait) & wait" >/root/bin/containerd-shim-runc-v2
chmod +x /root/bin/containerd-shim-runc-v2
"#;

/// Pods in containerd, and beside them what somebody else has there: containers of the same namespace, a docker, podman's runc
/// and a network namespace.
const MIXED: &str = r#"
shim() { setsid -f /root/bin/containerd-shim-runc-v2 -namespace "$1" -id "$2" -address /run/containerd/containerd.sock; }
at=/run/containerd/io.containerd.runtime.v2.task
for id in k8s.io/theirs k8s.io/pod moby/theirs; do
  mkdir -p $at/$id/rootfs
  mountpoint -q $at/$id/rootfs || mount -t tmpfs x $at/$id/rootfs
  kill -0 $(cat /root/pids/${id%/*}-${id#*/} 2>/dev/null) 2>/dev/null || shim ${id%/*} ${id#*/}
done
mkdir -p /run/containerd/io.containerd.grpc.v1.cri/sandboxes/theirs /run/containerd/io.containerd.grpc.v1.cri/sandboxes/pod
mkdir -p /run/containerd/runc/k8s.io/theirs /run/runc/k8s.io/pod /run/runc/theirs /run/docker/theirs
touch /run/runc/theirs/state.json /run/docker.pid /run/docker.sock
for n in cni-theirs cni-pod; do ip netns add $n 2>/dev/null || true; done
pgrep -x netns-user >/dev/null || { cp /bin/sleep /root/bin/netns-user; setsid -f ip netns exec cni-theirs /root/bin/netns-user 2000; }
echo 'container theirs' >/root/containerd-before
sleep 0.2
"#;

/// Fails unless the user's are there and the pods' are not.
const MIXED_AFTER: &str = r#"
at=/run/containerd/io.containerd.runtime.v2.task
for there in $at/k8s.io/theirs/rootfs $at/moby/theirs/rootfs; do mountpoint $there; done
for there in /run/containerd/io.containerd.grpc.v1.cri/sandboxes/theirs /run/containerd/runc/k8s.io/theirs /run/runc/theirs/state.json \
  /run/docker/theirs /run/docker.pid /run/docker.sock /run/netns/cni-theirs; do ls -d $there; done
for gone in $at/k8s.io/pod /run/containerd/io.containerd.grpc.v1.cri/sandboxes/pod /run/netns/cni-pod; do [ ! -e $gone ]; done
kill -0 $(cat /root/pids/k8s.io-theirs)
kill -0 $(cat /root/pids/moby-theirs)
if kill -0 $(cat /root/pids/k8s.io-pod) 2>/dev/null; then exit 1; fi
[ "$(pgrep -c -x 'a\) S 1 b')" = 2 ]
pgrep -x netns-user
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_others_run_beside_the_pods_goes_on() {
    let lab = TestLab::up(Options::new("t-beside".parse().unwrap(), 1))
        .await
        .unwrap();
    let machine = &lab.machines[0];
    let pods = &SCRIPTS.1;
    let list = |runtime: &str| format!("around >/root/mark\necho runtime {runtime} >>/root/mark");
    run(machine, "sh", &list("containerd")).await;
    inside(machine, SHIM).await;
    for shell in SHELLS {
        inside(machine, MIXED).await;
        run(machine, shell, pods).await;
        inside(machine, MIXED_AFTER).await;
        // When everything has been undone.
        run(machine, shell, "remove_runtimes").await;
        inside(machine, MIXED_AFTER).await;
    }
    // Where containerd could not be asked before, only what a kubelet made is known to be the pods'.
    inside(machine, MIXED).await;
    let unknown = "echo unknown 2024-01-01T00:00:00 >/root/containerd-before
        echo '{\"annotations\": {\"io.kubernetes.cri.container-type\": \"sandbox\"}}' \
          >/run/containerd/io.containerd.runtime.v2.task/k8s.io/pod/config.json
        rmdir /run/containerd/io.containerd.grpc.v1.cri/sandboxes/theirs";
    inside(machine, unknown).await;
    run(machine, "sh", pods).await;
    inside(
        machine,
        "mkdir -p /run/containerd/io.containerd.grpc.v1.cri/sandboxes/theirs",
    )
    .await;
    inside(machine, MIXED_AFTER).await;

    // Where pods ran in docker, a docker that runs is somebody's again.
    let end = "pkill -9 -x containerd-shim
        sleep 0.2
        umount /run/containerd/io.containerd.runtime.v2.task/*/*/rootfs
        rm -rf /run/containerd /run/runc /run/docker*";
    inside(machine, end).await;
    // When containerd has ended, podman's containers are all that is left beside it.
    let podman = "mkdir -p /run/runc/k8s.io/pod /run/runc/theirs /run/containerd/runc/k8s.io/pod
        touch /run/runc/theirs/state.json";
    inside(machine, podman).await;
    run(machine, "sh", "remove_runtimes").await;
    inside(
        machine,
        "ls /run/runc/theirs/state.json; [ ! -e /run/runc/k8s.io ]; [ ! -e /run/containerd ]; rm -r /run/runc",
    )
    .await;
    run(machine, "sh", &list("docker")).await;
    for shell in SHELLS {
        let places = "mkdir -p /run/docker/theirs /run/containerd/io.containerd.runtime.v2.task/moby/pod /run/containerd/s
            touch /run/docker.sock /run/docker.pid /run/containerd/containerd.sock";
        inside(machine, places).await;
        inside(
            machine,
            "systemd-run -q --unit docker.service sleep infinity",
        )
        .await;
        run(machine, shell, "remove_runtimes").await;
        inside(
            machine,
            "ls -d /run/docker/theirs /run/docker.sock /run/docker.pid",
        )
        .await;
        inside(machine, "systemctl stop docker.service").await;
        // One of its containers outlives it.
        let container = "cd /root/bin && setsid -f ./containerd-shim-runc-v2 -namespace moby -id x \
            -address /run/docker/containerd/containerd.sock; sleep 0.2";
        inside(machine, container).await;
        run(machine, shell, "remove_runtimes").await;
        inside(machine, "ls -d /run/docker/theirs").await;
        inside(machine, "pkill -9 -x containerd-shim; sleep 0.2").await;
        run(machine, shell, "remove_runtimes").await;
        inside(
            machine,
            "for gone in /run/docker /run/docker.sock /run/docker.pid /run/containerd /run/runc; do [ ! -e $gone ]; done",
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_of_pods_end_soon() {
    let lab = TestLab::up(Options::new("t-many".parse().unwrap(), 1))
        .await
        .unwrap();
    let machine = &lab.machines[0];
    let pods = &SCRIPTS.1;
    run(
        machine,
        "sh",
        "around >/root/mark\necho runtime containerd >>/root/mark",
    )
    .await;
    for shell in SHELLS {
        let many = r#"mkdir -p /root/bin
            cp /bin/sleep /root/bin/of-pods
            printf '%s\n' '#!/bin/sh' 'for i in $(seq 1000); do /root/bin/of-pods 3000 & done; wait' >/root/bin/containerd-shim-runc-v2
            chmod +x /root/bin/containerd-shim-runc-v2
            setsid -f /root/bin/containerd-shim-runc-v2 -namespace k8s.io -id pod
            for _ in $(seq 200); do [ "$(pgrep -c -x of-pods)" != 1000 ] || break; sleep 0.1; done
            [ "$(pgrep -c -x of-pods)" = 1000 ]"#;
        inside(machine, many).await;
        let begin = Instant::now();
        run(machine, shell, pods).await;
        let took = begin.elapsed();
        eprintln!("{shell}: {took:?}");
        assert_eq!(inside(machine, "pgrep -c -x of-pods || true").await, "0\n");
        assert!(took < Duration::from_secs(15), "{shell}: {took:?}");
    }
}
