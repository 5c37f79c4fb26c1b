//! Kubernetes 1.20 with companions of its age, as the manual describes it: three masters behind a load balancer, etcd on
//! machines of its own, and docker as the runtime. Machines are real, and afterwards as before.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

mod bench;
mod debian;
mod ended;
mod existing_docker;
mod workload;
mod writer;

use std::{collections::BTreeSet, time::Duration};

use hatchery_sandbox::{fault::Fault, lab::Machine};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::{
    bench::{
        Bench, assert_ready, entries, entry, eventually, inside, kubectl, lists, shell_eventually,
    },
    workload::assert_pods_work,
    writer::Writer,
};

/// Writes go on within this time after a machine lost its power.
const BREAK: Duration = Duration::from_secs(60);

/// Beside the six machines of one test there is room for those of one other: root has 128 inotify instances on all of them
/// together by default, of which a machine takes 6 and one with a kubelet 12.
static ROOM: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn three_masters_behind_a_load_balancer_outlive_each_of_them() {
    let mut bench = Bench::new("t-classic", 6).await;
    let machines = bench.lab.machines.clone();
    let [first, second, third, worker, other, balancer] = &machines[..] else {
        panic!("six machines")
    };
    let text = format!(
        "runtime: containerd\nmasters:\n{}nodes:\n{}loadbalance: {{name: {}, ip: {}, bind-port: 8443}}\n{}",
        entries(&[first, second, third]),
        entries(&[first, second, third, worker]),
        balancer.name,
        balancer.address,
        lists(&["containerd", "runc"]),
    );
    bench.begin(&text).await;

    bench.hatchery(0, "deploy");
    assert_ready(first, 4, "containerd://1.6").await;
    bench.add_node(worker, other);
    let cluster = [first, second, third, worker, balancer];
    only_written_to(&bench, other, &cluster).await;
    assert_ready(first, 5, "containerd://1.6").await;
    let view = kubectl(second, "config view").await;
    let endpoint = format!("{}:8443", balancer.address);
    assert!(
        view.contains(&format!("server: https://{endpoint}")),
        "{view}"
    );
    // Masters take no pods where there are other workers.
    assert_pods_work(second, 2).await;

    // While the first master's API is down another one's is asked.
    inside(first, "systemctl stop kube-apiserver").await;
    let plan = bench.hatchery(0, "plan");
    assert!(
        plan.contains("unit kube-apiserver.service: started"),
        "{plan}"
    );
    assert!(!plan.contains("after the masters are up"), "{plan}");
    inside(first, "systemctl start kube-apiserver").await;

    // Two of three are a quorum, and the load balancer leads around the lost one.
    let writer = Writer::begin(worker, first, &endpoint).await;
    for (lost, witness) in [(first, second), (second, third), (third, first)] {
        bench.lab.fault(&lost.name, Fault::Stop).await.unwrap();
        writer.goes_on(BREAK).await;
        if lost.name == first.name {
            let partly = bench.hatchery(3, "deploy");
            assert!(partly.contains("nothing had to be changed"), "{partly}");
            assert!(
                partly.contains(&format!("not done: {}\n", lost.name)),
                "{partly}"
            );
        }
        bench.lab.fault(&lost.name, Fault::Start).await.unwrap();
        let own = format!("--server=https://{}:6443 get --raw /readyz", lost.address);
        eventually(witness, &own, |answer| answer == "ok").await;
        eventually(witness, "get nodes --no-headers", |nodes| {
            nodes.matches(" Ready ").count() == 5
        })
        .await;
    }

    // New certificates for all: one member of etcd after the other, then one master after the other.
    let masters = [first, second, third];
    for master in masters {
        inside(
            master,
            "rm /etc/kubernetes/pki/etcd/server.crt /etc/kubernetes/pki/apiserver.crt",
        )
        .await;
    }
    let renewed = bench.hatchery(0, "deploy");
    assert!(renewed.contains("is up"), "{renewed}");
    for unit in ["etcd", "kube-apiserver"] {
        assert_one_at_a_time(&masters, unit).await;
    }
    writer.goes_on(BREAK).await;
    writer.lost_nothing(second).await;

    let again = bench.hatchery(0, "deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    bench.cleanup().await;
}

/// A deploy writes to one machine and to none of the others, be it only its own record or its lock.
async fn only_written_to(bench: &Bench, machine: &Machine, others: &[&Machine]) {
    for other in others {
        // Times of files are told in ticks of the kernel.
        inside(other, "touch /tmp/before && sleep 0.1").await;
    }
    let said = bench.hatchery(0, "deploy -o json");
    let events = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let changes = events.filter(|event| event["event"] == "finished" && event["changes"] != 0);
    let changed: BTreeSet<_> = changes.map(|event| event["machine"].to_string()).collect();
    assert_eq!(changed, BTreeSet::from([format!("\"{}\"", machine.name)]));
    let written = "find /etc /usr /opt /var/lib/hatchery -newer /tmp/before; rm /tmp/before";
    for other in others {
        assert_eq!(inside(other, written).await, "", "{}", other.name);
    }
    assert_ne!(inside(machine, "ls /var/lib/hatchery/record").await, "");
}

/// Each was restarted, and none was away before the one before it was ready. Machines here have one clock.
async fn assert_one_at_a_time(machines: &[&Machine], unit: &str) {
    let mut breaks = Vec::new();
    for machine in machines {
        let show = format!(
            "systemctl show {unit} -p ActiveExitTimestampMonotonic -p ActiveEnterTimestampMonotonic | sort"
        );
        let times = inside(machine, &show).await;
        let times: Vec<u64> = times
            .lines()
            .map(|line| line.split_once('=').unwrap().1.parse().unwrap())
            .collect();
        let [up, down] = times[..] else {
            panic!("{times:?}")
        };
        breaks.push((down, up, &machine.name));
    }
    breaks.sort_unstable();
    eprintln!("{unit} (from, to, in µs): {breaks:?}");
    assert!(breaks.iter().all(|(down, up, _)| down < up && *down > 0));
    let together = breaks.windows(2).find(|two| two[1].0 < two[0].1);
    assert_eq!(together, None, "two of {unit} were away together");
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_has_machines_of_its_own() {
    let _room = ROOM.lock().await;
    let mut bench = Bench::new("t-etcd", 4).await;
    let machines = bench.lab.machines.clone();
    let [master, members @ ..] = &machines[..] else {
        panic!("four machines")
    };
    let text = format!(
        "runtime: containerd\nmasters:\n{master}nodes:\n{master}etcds:\n{}{}",
        entries(&members.iter().collect::<Vec<_>>()),
        lists(&["containerd", "runc"]),
        master = entry(master),
    );
    bench.begin(&text).await;
    let lost = &members[0];

    // All members have to be there when etcd begins.
    bench.lab.fault(&lost.name, Fault::Stop).await.unwrap();
    let refused = bench.hatchery(1, "deploy");
    let needed = format!(
        "error[needed]: {}: cannot be left out: a cluster is made with",
        lost.name
    );
    assert!(refused.contains(&needed), "{refused}");
    assert!(refused.contains("nothing was changed"), "{refused}");
    bench.lab.fault(&lost.name, Fault::Start).await.unwrap();

    // One machine at a time: members of etcd are ready only together.
    bench.hatchery(0, "deploy --parallel 1");
    assert_ready(master, 1, "containerd://1.6").await;
    assert_pods_work(master, 1).await;
    let running = "ps ax -o comm= | grep -xE 'etcd|kube-apiserver|kubelet' | sort -u | xargs";
    assert_eq!(
        inside(master, running).await.trim(),
        "kube-apiserver kubelet"
    );
    for member in members {
        assert_eq!(
            inside(member, running).await.trim(),
            "etcd",
            "{}",
            member.name
        );
    }

    // Nobody came for a year.
    ended::give(bench.home(), members).await;
    bench.hatchery(0, "deploy");
    let again = bench.hatchery(0, "deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    eventually(master, "create namespace after-the-year", |_| true).await;

    bench.lab.fault(&lost.name, Fault::Stop).await.unwrap();
    let begin = std::time::Instant::now();
    eventually(master, "create namespace after-the-power-cut", |_| true).await;
    assert!(begin.elapsed() < BREAK);
    let partly = bench.hatchery(3, "deploy");
    assert!(
        partly.contains(&format!("not done: {}\n", lost.name)),
        "{partly}"
    );
    bench.lab.fault(&lost.name, Fault::Start).await.unwrap();
    let health = "curl -sS http://127.0.0.1:2381/health";
    shell_eventually(lost, health, |answer| answer.contains("\"true\"")).await;
    bench.cleanup().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_runs_the_pods() {
    let _room = ROOM.lock().await;
    let mut bench = Bench::new("t-docker", 2).await;
    let machines = bench.lab.machines.clone();
    let [master, worker] = &machines[..] else {
        panic!("two machines")
    };
    // What the user had told docker comes back in the end, also where there is no docker yet.
    inside(
        master,
        "mkdir /etc/docker && echo '{\"debug\": true}' >/etc/docker/daemon.json",
    )
    .await;
    existing_docker::begin(worker).await;
    let text = format!(
        "runtime: docker\ninsecure-registries: [registry.example:5000]\n\
         config-extra-args: [{{name: container-engine, extra-args: {{--log-level: warn}}}}]\n\
         masters:\n{}nodes:\n{}{}",
        entry(master),
        entries(&[master, worker]),
        lists(&["docker-engine"]),
    );
    bench.begin(&text).await;
    let refused = bench.hatchery(1, "deploy");
    let in_use = format!(
        "error[runtime-in-use]: {}: has docker in use already (1 container, settings in /etc/docker/daemon.json)",
        worker.name
    );
    assert!(refused.contains(&in_use), "{refused}");
    assert!(refused.contains("nothing was changed"), "{refused}");
    existing_docker::assert_untouched(worker).await;

    existing_docker::run_passing(worker).await;
    bench.say("allow-existing-runtime: true\n");
    bench.hatchery(0, "deploy");
    assert_ready(master, 2, "docker://20.10").await;
    existing_docker::assert_shared(worker).await;
    // The master takes no pods where there is another worker.
    assert_pods_work(master, 1).await;
    let told = inside(worker, "docker info; cat /etc/docker/daemon.json").await;
    for words in ["registry.example:5000", "\"log-level\": \"warn\""] {
        assert!(told.contains(words), "{told}");
    }
    let told = inside(
        master,
        "cat /etc/docker/daemon.json; systemctl cat docker.service",
    )
    .await;
    for words in ["\"debug\": true", "registry.example:5000"] {
        assert!(told.contains(words), "{told}");
    }
    // Pods go on while docker is restarted.
    let started = "docker inspect -f '{{.State.StartedAt}}' $(docker ps -q | sort) | sort";
    let before = inside(worker, started).await;
    inside(worker, "systemctl restart docker.service").await;
    assert_eq!(before, inside(worker, started).await);

    let again = bench.hatchery(0, "deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    bench.cleanup_but(&existing_docker::LIVING).await;
    existing_docker::assert_untouched(worker).await;
}
