//! What somebody changed by hand: a plan shows exactly that, and `deploy` puts exactly that right.

use std::collections::BTreeSet;

use crate::{bench::Bench, workload::kubectl};

/// A change by hand.
struct Drift {
    what: &'static str,
    /// On this machine.
    on: usize,
    change: String,
    /// Succeeds on the machine as long as all is well.
    is_well: String,
    /// What a plan says of it, behind the machine's number.
    shown: Vec<String>,
}

fn drift(
    what: &'static str,
    on: usize,
    change: impl Into<String>,
    is_well: impl Into<String>,
    shown: &[&str],
) -> Drift {
    Drift {
        what,
        on,
        change: change.into(),
        is_well: is_well.into(),
        shown: shown.iter().map(|line| format!("{on} {line}")).collect(),
    }
}

/// One that is made through the API.
fn of_api(what: &'static str, change: &str, is_well: &str, shown: &str) -> Drift {
    Drift {
        what,
        on: 0,
        change: kubectl(change),
        is_well: kubectl(is_well),
        shown: vec![format!("API {shown}")],
    }
}

const KUBELET: &str = "changed unit kubelet.service";
const PROXY: &str = "changed unit kube-proxy.service";
const API_SERVER: &str = "changed unit kube-apiserver.service";

/// In rounds of changes that do not touch each other.
fn rounds(bench: &Bench) -> Vec<Vec<Drift>> {
    let (master, worker) = (&bench.machine(0).name, &bench.machine(1).name);
    let address = bench.machine(0).address;
    // It is a mount of the machine's container, so nothing can be put in its place.
    let hosts = format!(
        "grep -v '^{address}[[:space:]]' /etc/hosts >/tmp/hosts; cat /tmp/hosts >/etc/hosts; rm /tmp/hosts"
    );
    let pause = "registry.k8s.io/pause:3.10";
    vec![
        vec![
            drift(
                "content of a file",
                1,
                "echo '# by hand' >>/var/lib/kubelet/config.yaml",
                "! grep -q 'by hand' /var/lib/kubelet/config.yaml && systemctl is-active kubelet",
                &["changed file /var/lib/kubelet/config.yaml", KUBELET],
            ),
            drift(
                "mode of a file",
                1,
                "chmod 644 /etc/kubernetes/kube-proxy.conf",
                "[ $(stat -c %a /etc/kubernetes/kube-proxy.conf) = 600 ]",
                &["changed file /etc/kubernetes/kube-proxy.conf", PROXY],
            ),
            drift(
                "file removed",
                0,
                "rm /etc/kubernetes/scheduler.conf",
                "[ -s /etc/kubernetes/scheduler.conf ] && systemctl is-active kube-scheduler",
                &[
                    "new file /etc/kubernetes/scheduler.conf",
                    "changed unit kube-scheduler.service",
                ],
            ),
            of_api(
                "ConfigMap edited",
                "-n kube-system patch configmap coredns --type merge -p '{\"data\": {\"Corefile\": \"by hand\"}}'",
                "-n kube-system get configmap coredns -o jsonpath={.data.Corefile} | grep kubernetes",
                "changed ConfigMap kube-system/coredns",
            ),
        ],
        vec![
            drift(
                "unit stopped",
                1,
                "systemctl stop kube-proxy",
                "systemctl is-active kube-proxy",
                &[PROXY],
            ),
            drift(
                "unit disabled",
                0,
                "systemctl disable kube-controller-manager",
                "systemctl is-enabled kube-controller-manager",
                &["changed unit kube-controller-manager.service"],
            ),
            drift(
                "line of /etc/hosts removed",
                1,
                hosts,
                format!("grep '^{address}[[:space:]].*{master}' /etc/hosts"),
                &[&format!("new hosts entry {address}")],
            ),
            drift(
                "program of the network replaced",
                1,
                "echo other >/tmp/other && mv /tmp/other /opt/cni/bin/host-local",
                "grep -q CNI_COMMAND /opt/cni/bin/host-local",
                &["changed file /opt/cni/bin/host-local"],
            ),
            of_api(
                "label of a node taken",
                &format!("label node {master} node-role.kubernetes.io/control-plane-"),
                &format!(
                    "get nodes -o name -l node-role.kubernetes.io/control-plane | grep -x node/{master}"
                ),
                &format!("changed node {master}"),
            ),
        ],
        vec![
            drift(
                "unit file edited",
                1,
                "sed -i 's/^Restart=.*/Restart=no/' /etc/systemd/system/kubelet.service",
                "! grep Restart=no /etc/systemd/system/kubelet.service",
                &["changed file /etc/systemd/system/kubelet.service", KUBELET],
            ),
            drift(
                "kernel parameter set back",
                0,
                "sysctl -w net.ipv4.conf.all.route_localnet=0",
                "[ $(cat /proc/sys/net/ipv4/conf/all/route_localnet) = 1 ]",
                &["changed sysctl net.ipv4.conf.all.route_localnet"],
            ),
            drift(
                "image removed",
                1,
                format!("ctr -n k8s.io images rm {pause}"),
                format!("ctr -n k8s.io images ls -q | grep -x {pause}"),
                &["new images"],
            ),
            drift(
                "certificate removed",
                0,
                "rm /etc/kubernetes/pki/apiserver.crt",
                "[ -s /etc/kubernetes/pki/apiserver.crt ] && systemctl is-active kube-apiserver",
                &[
                    "new certificate /etc/kubernetes/pki/apiserver.crt",
                    API_SERVER,
                ],
            ),
            of_api(
                "object deleted",
                "delete clusterrole system:coredns",
                "get clusterrole system:coredns",
                "new ClusterRole system:coredns",
            ),
        ],
        vec![
            drift(
                "link replaced by a file",
                1,
                "rm /etc/kubernetes/kubelet_config.yaml && echo other >/etc/kubernetes/kubelet_config.yaml",
                "[ -L /etc/kubernetes/kubelet_config.yaml ]",
                &["changed link /etc/kubernetes/kubelet_config.yaml"],
            ),
            drift(
                "unit masked",
                1,
                "systemctl stop kube-proxy && rm /etc/systemd/system/kube-proxy.service && systemctl mask kube-proxy",
                "systemctl is-enabled kube-proxy && systemctl is-active kube-proxy",
                &["changed file /etc/systemd/system/kube-proxy.service", PROXY],
            ),
            drift(
                "mode of a directory",
                1,
                "chmod 777 /etc/cni/net.d",
                "[ $(stat -c %a /etc/cni/net.d) = 755 ]",
                &["changed directory /etc/cni/net.d"],
            ),
            drift(
                "content of a secret",
                0,
                "echo >>/etc/kubernetes/pki/sa.pub",
                "! tail -n 1 /etc/kubernetes/pki/sa.pub | grep -x ''",
                &["changed file /etc/kubernetes/pki/sa.pub", API_SERVER],
            ),
            of_api(
                "node deleted",
                &format!("delete node {worker}"),
                &format!("get nodes --no-headers | grep '^{worker} *Ready '"),
                &format!("new node {worker}"),
            ),
            of_api(
                "object of an addon deleted",
                "-n kube-flannel delete configmap flannel",
                "-n kube-flannel get configmap flannel",
                "new ConfigMap kube-flannel/flannel",
            ),
        ],
    ]
}

/// Whether the machine is well in this respect.
async fn is_well(bench: &Bench, drift: &Drift) -> bool {
    let ask = format!(
        "({}) >/dev/null 2>&1 && echo well || echo ill",
        drift.is_well
    );
    bench.inside(drift.on, &ask).await == "well\n"
}

/// Of a cluster of one master and one worker whose CoreDNS runs in pods.
pub(crate) async fn is_put_right(bench: &Bench) {
    for round in rounds(bench) {
        let running = bench.started().await;
        for one in &round {
            assert!(is_well(bench, one).await, "{} before", one.what);
            bench.inside(one.on, &one.change).await;
            assert!(!is_well(bench, one).await, "{}: not seen", one.what);
        }
        let shown: BTreeSet<_> = round.iter().flat_map(|one| one.shown.clone()).collect();
        let what: Vec<_> = round.iter().map(|one| one.what).collect();
        bench.follows(&what.join(", "), bench.file(), &shown);
        for one in &round {
            assert!(is_well(bench, one).await, "{} afterwards", one.what);
        }
        // Only what the plan names is restarted, and the kubelet of a node that is to be registered anew.
        let restarted = |on: &str, name: &str| {
            let number: usize = on.parse().unwrap();
            let node = format!("API new node {}", bench.machine(number).name);
            shown.contains(&format!("{on} changed unit {name}"))
                || name == "kubelet.service" && shown.contains(&node)
        };
        for unit in bench.started().await {
            let (on, rest) = unit.split_once(' ').unwrap();
            let name = rest.split(' ').next().unwrap();
            assert!(
                running.contains(&unit) || restarted(on, name),
                "{what:?}: {unit} was restarted"
            );
        }
    }
}
