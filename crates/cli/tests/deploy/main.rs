//! Clusters made, seen working and taken away again by the program, on real machines.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

mod archive;
mod bench;
mod changes;
mod drift;
mod external_ca;
mod firewalld;
mod interrupt;
mod living;
mod planned;
mod polled;
mod refusals;
mod rpm;
mod saved;
mod secrets;
mod workers;
mod workload;
#[path = "../classic/writer.rs"]
mod writer;

use std::fs;

use hatchery_sandbox::fault::Fault;

use crate::bench::Bench;

const THEIRS: &str = "
set -e
ip netns add cni-theirs
ip link add vethbeef type veth peer name vethcafe
ip link set vethcafe netns cni-theirs
iptables -A INPUT -p tcp --dport 9999 -m comment --comment 'kubernetes of ours' -j ACCEPT
iptables -t nat -N CNI-theirs
iptables -t nat -A CNI-theirs -j RETURN
iptables -t nat -A PREROUTING -p tcp --dport 9998 -j CNI-theirs
";

/// Whom etcd runs as, whose its data is, and whose its key.
const WHOSE_ETCD: &str = "ps -o user= -C etcd; stat -c '%U:%G %a' /var/lib/etcd/default.etcd /etc/kubernetes/pki/etcd/server.key";

/// The cluster of the manual's first chapter, from an offline package: made, used, made again, changed by hand, removed.
#[tokio::test(flavor = "multi_thread")]
async fn one_master_and_one_worker() {
    let bench = Bench::new("t-deploy", 2, |text| {
        // Nothing as it usually is, so that a value written down somewhere is found out.
        text.replace("10.244.0.0/16", "10.77.0.0/16")
            .replace("10.32.0.", "10.88.0.")
            .replace("cluster.local", "site.test")
            .replace("cni-bin-dir: ", "cni-bin-dir: /usr/local/bin,")
            .replace(
                "corednstype: binary",
                "corednstype: pod\n    imageversion: 1.15.0\n    replicas: 2",
            )
    })
    .await;
    // Somebody's own things, called as Kubernetes and its plugins call theirs.
    for number in 0..2 {
        bench.inside(number, THEIRS).await;
    }
    let before = bench.snapshots().await;

    let bare = bench.hatchery(4, "plan --exit-code");
    assert!(bare.contains("unit kube-apiserver.service: "), "{bare}");
    assert!(bare.contains(" on 2 machines"), "{bare}");
    assert!(
        !bench
            .home()
            .join("clusters")
            .join(&bench.id)
            .join("pki")
            .exists()
    );

    let watched = secrets::Watch::begin();
    let made = bench.hatchery(0, "deploy");
    let seen = watched.end().await;
    assert!(made.contains("is up: Kubernetes 1.37.0"), "{made}");
    workload::works(&bench, "site.test", "10.77.", "10.88.").await;
    let etcd = bench.inside(0, WHOSE_ETCD).await;
    assert_eq!(etcd, "etcd\netcd:etcd 700\nroot:root 600\n");
    secrets::are_nowhere(&bench, &[&made, &seen]).await;

    // Again: nothing changes and nothing is restarted.
    let running = bench.started().await;
    let again = bench.hatchery(0, "deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    assert_eq!(bench.started().await, running);
    let nothing = bench.hatchery(0, "plan --exit-code");
    assert!(nothing.contains("nothing to do"), "{nothing}");

    drift::is_put_right(&bench).await;
    saved::is_done_or_nothing_is(&bench).await;
    // An API server ends by itself, although kubelets watch it.
    let ended = "systemctl restart kube-apiserver; journalctl -u kube-apiserver -o cat | grep -c stop-sigterm || :";
    assert_eq!(bench.inside(0, ended).await.trim(), "0");

    // Among plugins, but nobody's but theirs.
    bench
        .inside(
            1,
            "echo theirs | tee /usr/local/bin/tool >/usr/local/bin/bridge",
        )
        .await;
    let hooks = bench.scripts(&[
        ("before.sh", "systemctl -q is-active kubelet"),
        (
            "after.sh",
            "! systemctl -q is-active kubelet && [ \"$EGGO_OPERATOR\" = cleanup ]",
        ),
    ]);
    let refused = bench.hatchery(1, &format!("cleanup --yes --prehook {},worker", hooks[1]));
    assert!(refused.contains("nothing was changed"), "{refused}");
    let hooks = format!(
        "--cluster-prehook {},worker --posthook {},worker",
        hooks[0], hooks[1]
    );
    let gone = bench.hatchery(0, &format!("cleanup --yes {hooks}"));
    assert!(gone.contains("is gone"), "{gone}");
    let theirs = "cd /usr/local/bin && cat tool bridge && rm tool bridge";
    assert_eq!(bench.inside(1, theirs).await, "theirs\ntheirs\n");
    bench.assert_as_before(&before).await;
    assert!(!bench.home().join("clusters").join(&bench.id).exists());
}

/// The process is killed at random moments, then the same command again: a working cluster.
#[tokio::test(flavor = "multi_thread")]
async fn killed_and_run_again() {
    let bench = Bench::new("t-again", 2, str::to_owned).await;
    let mut seed = bench::seed("killed deploys");
    let rounds = bench::rounds(3);
    for round in 0..rounds {
        let after = seed.below(bench::DEPLOY_TAKES);
        if round % 2 == 1 {
            bench.cut_power_during_deploy(1, after).await;
        } else {
            bench.kill_deploy(after).await;
        }
        let made = bench.hatchery(0, "deploy");
        assert!(
            made.contains("is up"),
            "round {round} after {after:?}: {made}"
        );
        let nodes = bench.kubectl("get nodes --no-headers").await;
        assert_eq!(nodes.matches(" Ready ").count(), 2, "{nodes}");
        if round + 1 == rounds {
            // One that is gone for good is forgotten when the user says so.
            let missing = &bench.machine(1).name;
            bench.lab.fault(missing, Fault::Stop).await.unwrap();
            let gone = bench.hatchery(0, "cleanup --yes --forget-missing");
            let forgotten = format!("is gone\n  forgotten without being cleaned: {missing}\n");
            assert!(gone.contains(&forgotten), "{gone}");
            bench.inside(0, "[ ! -e /var/lib/hatchery ]").await;
        } else {
            bench.hatchery(0, "cleanup --yes");
        }
        println!("round {round}: stopped after {after:?}, went on, cleaned up");
    }
}

/// Scripts of the user's that tell what they find, in a place that is theirs.
const SCRIPTS: [(&str, &str); 4] = [
    (
        "prejoin",
        "#!/bin/bash\n[[ ! -e /etc/kubernetes/kubelet.kubeconfig ]] || exit 1\n\
         echo $EGGO_HOOK_TYPE $EGGO_OPERATOR $HATCHERY_NODE_NAME $EGGO_NODE_ROLE >>/root/told\necho told of it\n",
    ),
    (
        "postjoin",
        "curl -sk https://$EGGO_CLUSTER_API_ENDPOINT/healthz >>/root/told\necho \" postjoin\" >>/root/told\n",
    ),
    (
        "precleanup",
        "systemctl is-active kubelet >>/root/told\necho saving\n[ -e /root/saved ]\n",
    ),
    (
        "postcleanup",
        "echo postcleanup $(systemctl is-active kubelet) $(ls /etc/kubernetes 2>&1 | grep -c 'No such') >>/root/told\n",
    ),
];

/// One of three workers is not there: the others work, and a later run adds it, with another kubelet for all. A machine of
/// another cluster is refused, and so is what would harm this one. Scripts of the user's run in their time, and only once.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_missing_comes_later() {
    let bench = Bench::new("t-later", 3, |text| {
        let worker = "-2, ip:";
        assert!(text.contains(worker), "{text}");
        text.replace(worker, "-2, labels: {rack: left}, ip:")
    })
    .await;
    bench.bring_scripts(&SCRIPTS).await;
    let missing = bench.machine(2).name.clone();
    bench.lab.fault(&missing, Fault::Stop).await.unwrap();
    let planned = bench.hatchery(0, "plan");
    assert!(
        planned.contains("step prejoin-prejoin.sh: run"),
        "{planned}"
    );
    assert!(planned.contains("kept until cleanup"), "{planned}");
    let made = bench.hatchery(3, "deploy");
    assert!(made.contains("is partly up"), "{made}");
    assert!(made.contains(&missing), "{made}");
    let nodes = bench.kubectl("get nodes --no-headers").await;
    assert_eq!(nodes.matches(" Ready ").count(), 2, "{nodes}");

    bench.lab.fault(&missing, Fault::Start).await.unwrap();
    one_bad_node_and_one_bad_addon(&bench).await;
    bench.bring_other_kubelet();
    let running = bench.started().await;
    bench.hatchery(0, "deploy");
    let nodes = bench.kubectl("get nodes --no-headers").await;
    assert_eq!(nodes.matches(" Ready ").count(), 3, "{nodes}");
    let mut now = bench.started().await;
    now.retain(|unit| unit.starts_with(['0', '1']) && !running.contains(unit));
    assert_eq!(now.len(), 2, "{now:?}");
    assert!(now.iter().all(|unit| unit.contains("kubelet")), "{now:?}");
    let again = bench.hatchery(0, "deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    for number in 0..3 {
        let roles = ["master,worker,etcd", "worker", "worker"][number];
        let name = &bench.machine(number).name;
        let told = bench.inside(number, "cat /root/told").await;
        assert_eq!(told, format!("prehook join {name} {roles}\nok postjoin\n"));
    }

    // Another cluster's file names one of its machines.
    let other = bench.other("t-other", 2);
    let refused = bench.hatchery_with(1, "deploy", &other);
    assert!(refused.contains("is held by another cluster"), "{refused}");
    assert!(refused.contains("nothing was changed"), "{refused}");

    living::is_not_harmed(&bench).await;

    // A machine that is gone does not keep the others from being cleaned, nor does one whose script fails: it stays. Those
    // that the file leaves out belong to the cluster all the same.
    bench.lab.fault(&missing, Fault::Stop).await.unwrap();
    bench.inside(1, "touch /root/saved").await;
    std::fs::remove_file(bench.home().join("own.tar")).unwrap();
    let short = bench.with_machines(&[0], &[0]);
    let gone = bench.hatchery_with(3, "cleanup --yes", &short);
    assert!(
        gone.contains(&format!(
            "not clean: {}, {missing}\n",
            bench.machine(0).name
        )),
        "{gone}"
    );
    bench.inside(1, "[ ! -e /var/lib/hatchery ]").await;
    fs::write(bench.home().join("own.tar"), "not looked into").unwrap();
    let refused = bench.hatchery(2, "deploy");
    assert!(refused.contains("error[removing]: "), "{refused}");
    fs::remove_file(bench.home().join("own.tar")).unwrap();
    assert!(gone.contains("saving"), "{gone}");
    bench
        .inside(0, "systemctl is-active kubelet && touch /root/saved")
        .await;
    bench.lab.fault(&missing, Fault::Start).await.unwrap();
    bench.inside(2, "touch /root/saved").await;
    bench.hatchery_with(0, "cleanup --yes", &short);
    for number in 0..3 {
        let told = bench.inside(number, "cat /root/told").await;
        assert!(told.ends_with("active\npostcleanup inactive 1\n"), "{told}");
        bench.inside(number, "[ ! -e /var/lib/hatchery ]").await;
    }
}

/// Pods of the first never stay up, those of the second do.
const ADDONS: [(&str, &str); 2] = [("bad.yaml", "[no-such-command]"), ("good.yaml", "[pause]")];

/// The last worker does not reach the API, and one addon does not come up: the rest of the cluster does, and both are named
/// with what they say of it.
async fn one_bad_node_and_one_bad_addon(bench: &Bench) {
    let (bad, address) = (&bench.machine(2).name, bench.machine(0).address);
    let cut = format!("OUTPUT -p tcp -d {address} --dport 6443 -j REJECT");
    bench.inside(2, &format!("iptables -I {cut}")).await;
    bench.bring_addons(&ADDONS);
    let worker = &bench.machine(1).name;
    bench.kubectl(&format!("label node {worker} rack-")).await;
    fs::remove_file(bench.admin_conf()).unwrap();
    let partly = bench.hatchery(3, "deploy --timeout 30s --rollback");
    let not_done = format!("  not done: {bad}, addon bad.yaml\n");
    assert!(partly.contains(&not_done), "{partly}");
    let node = format!(
        "    {bad}: waited 30 s for node {bad} to be Ready: not registered\n      kubelet on {bad}: "
    );
    assert!(partly.contains(&node), "{partly}");
    let addon = "    addon bad.yaml: waited 30 s for Deployment default/bad to be rolled out: Deployment default/bad: \
                 0 of 1 pods are available";
    assert!(partly.contains(addon), "{partly}");
    assert!(partly.contains("pod default/bad-"), "{partly}");
    // All the others are as they should be.
    let nodes = bench.kubectl("get nodes --no-headers -L rack").await;
    assert_eq!(nodes.matches(" Ready ").count(), 2, "{nodes}");
    assert!(nodes.contains("left"), "{nodes}");
    let good = bench
        .kubectl("get deployment good -o jsonpath='{.status.availableReplicas}'")
        .await;
    assert_eq!(good, "1");
    assert!(bench.admin_conf().exists());
    bench.inside(2, &format!("iptables -D {cut}")).await;
    bench.bring_addons(&[]);
    bench.kubectl("delete deployment good bad").await;
}
