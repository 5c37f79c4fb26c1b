//! The yardstick: kubeadm, as its manual says.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use futures::future;

use crate::{
    Shape,
    place::{Place, settle},
};

/// What kubeadm's packages bring beside programs, and what machines that are containers need.
const OUTFIT: &str = "
set -e
mkdir -p /etc/systemd/system/kubelet.service.d /etc/kubernetes/manifests
cat >/etc/systemd/system/kubelet.service <<'END'
[Unit]
Description=kubelet
After=containerd.service
[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10
[Install]
WantedBy=multi-user.target
END
cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<'END'
[Service]
Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf\"
Environment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
END
systemctl daemon-reload
systemctl enable kubelet
";

const CONFIGURATION: &str = "apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ADDRESS}
nodeRegistration: {criSocket: 'unix:///run/containerd/containerd.sock', imagePullPolicy: Never}
bootstrapTokens: [{token: TOKEN}]
certificateKey: KEY
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
controlPlaneEndpoint: ADDRESS:6443
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.32.0.0/16}
dns: {imageRepository: docker.io/coredns, imageTag: COREDNS}
etcd: {local: {imageRepository: registry.k8s.io, imageTag: ETCD}}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0}
";

const JOIN: &str = "apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: 'FIRST:6443', token: TOKEN, unsafeSkipCAVerification: true}}
nodeRegistration: {criSocket: 'unix:///run/containerd/containerd.sock', imagePullPolicy: Never}
";

const CONTROL_PLANE: &str =
    "controlPlane: {certificateKey: KEY, localAPIEndpoint: {advertiseAddress: ADDRESS}}\n";

/// Machines that live for minutes need no better ones.
const TOKEN: &str = "abcdef.0123456789abcdef";
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Removes a cluster, so that the next one starts like the first. Not measured.
const RESET: &str = "
kubeadm reset --force --skip-phases=remove-etcd-member --cri-socket unix:///run/containerd/containerd.sock 2>&1
rm -rf /etc/cni/net.d/* /var/lib/etcd/* /run/flannel /root/.kube
for link in cni0 flannel.1; do ip link delete $link 2>/dev/null; done
for table in filter nat mangle; do iptables -t $table -F; iptables -t $table -X; done
systemctl is-active containerd && [ -z \"$(ctr -n k8s.io containers list -q)\" ]
";

/// How long it took.
pub(crate) struct Took {
    pub(crate) ready: f64,
    pub(crate) steps: String,
}

/// Not measured.
pub(crate) async fn outfit(place: &Place, shape: Shape) {
    place.everywhere(OUTFIT).await;
    let flannel = include_str!("../../../../fixtures/addons/flannel.yaml")
        .replace("__POD_CIDR__", "10.244.0.0/16")
        .replace(
            "__FLANNEL_IMAGE__",
            &format!("docker.io/hatchery/flannel:v{}", version("FLANNEL")),
        );
    file(place, 0, "flannel.yaml", &flannel).await;
    file(place, 0, "kubeadm.yaml", &filled(place, 0, CONFIGURATION)).await;
    for machine in 1..shape.machines {
        let role = if machine < shape.masters {
            CONTROL_PLANE
        } else {
            ""
        };
        let text = filled(place, machine, &[JOIN, role].concat());
        file(place, machine, "kubeadm-join.yaml", &text).await;
    }
}

fn filled(place: &Place, machine: usize, text: &str) -> String {
    let address = |machine: usize| place.lab.machines[machine].address.to_string();
    text.replace("FIRST", &address(0))
        .replace("ADDRESS", &address(machine))
        .replace("TOKEN", TOKEN)
        .replace("KEY", KEY)
        .replace("VERSION", version("KUBERNETES_NEW"))
        .replace("COREDNS", version("COREDNS_NEW"))
        .replace("ETCD", version("ETCD_NEW"))
}

fn version(name: &str) -> &'static str {
    let versions = include_str!("../../../../fixtures/versions.env");
    let mut lines = versions.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap()
}

async fn file(place: &Place, machine: usize, name: &str, text: &str) {
    let script = format!("cat >/root/{name} <<'END'\n{text}END\n");
    place.inside(machine, &script).await;
}

/// Removes the cluster from all machines.
pub(crate) async fn reset(place: &Place) {
    place.everywhere(RESET).await;
}

/// The first master's address is the endpoint. Control planes join one after the other, then all workers at once; the
/// pod network is applied as soon as the API takes it.
pub(crate) async fn make(place: &Place, shape: Shape) -> Took {
    settle();
    let begin = Instant::now();
    let since = || begin.elapsed().as_secs_f64();
    let init = place.inside(
        0,
        "kubeadm init --config /root/kubeadm.yaml --upload-certs --ignore-preflight-errors=all 2>&1",
    );
    let network = place.inside(
        0,
        "until kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f /root/flannel.yaml; do sleep 0.5; done",
    );
    future::join(init, network).await;
    let mut steps = format!("init until {:.1} s", since());
    for machine in 1..shape.masters {
        join(place, machine).await;
        let _ = write!(steps, ", control plane until {:.1} s", since());
    }
    future::join_all((shape.masters..shape.machines).map(|machine| join(place, machine))).await;
    let _ = write!(steps, ", workers until {:.1} s", since());
    let nodes = "kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes --no-headers";
    loop {
        let said = place.inside(0, nodes).await;
        if said.matches(" Ready ").count() == shape.machines {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "{said}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Took {
        ready: since(),
        steps,
    }
}

async fn join(place: &Place, machine: usize) {
    let command =
        "kubeadm join --config /root/kubeadm-join.yaml --ignore-preflight-errors=all 2>&1";
    place.inside(machine, command).await;
}
