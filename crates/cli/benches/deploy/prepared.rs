//! Machines on which nothing is left to distribute: programs, a running containerd, and all images in it.

use std::{path::Path, process::Stdio};

use hatchery_sandbox::fixtures;
use tokio::process::Command;

use crate::place::Place;

const SCRIPT: &str = "
set -e
mkdir -p /opt/cni/bin /etc/containerd
cat >/etc/containerd/config.toml <<'END'
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'registry.k8s.io/pause:3.10'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
END
cat >/etc/systemd/system/containerd.service <<'END'
[Unit]
Description=containerd
[Service]
Type=notify
ExecStart=/usr/bin/containerd
Delegate=yes
KillMode=process
LimitNOFILE=1048576
[Install]
WantedBy=multi-user.target
END
cat >/etc/sysctl.d/90-kubernetes.conf <<'END'
net.bridge.bridge-nf-call-iptables = 1
net.ipv4.ip_forward = 1
END
sysctl -q -p /etc/sysctl.d/90-kubernetes.conf
systemctl daemon-reload
systemctl enable --now containerd
";

/// Fixtures whose files are programs, and those of them that a machine has.
const PROGRAMS: [(&str, &str); 7] = [
    (
        "kubernetes-new",
        "kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubectl kubelet",
    ),
    ("etcd-new", "etcd etcdctl"),
    ("containerd-new", "containerd containerd-shim-runc-v2 ctr"),
    ("runc-new", "runc"),
    ("crictl", "crictl"),
    ("coredns-new", "coredns"),
    ("kubeadm", "kubeadm"),
];

/// Not measured.
pub(crate) async fn put_in_place(place: &Place) {
    let wanted = ["new", "bench"];
    let fixtures = fixtures::ensure(&wanted).await.unwrap();
    let mut pack = "set -o pipefail; tar -c --owner=0 --group=0 --mode=755".to_owned();
    for (fixture, programs) in PROGRAMS {
        pack += &format!(" -C {} {programs}", fixtures.path(fixture).display());
    }
    for machine in &place.lab.machines {
        let container = machine.container();
        shell(
            fixtures.items(),
            &format!("{pack} | docker exec -i {container} tar -x -C /usr/bin"),
        )
        .await;
    }
    place.everywhere(SCRIPT).await;
    for machine in &place.lab.machines {
        let container = machine.container();
        shell(
            fixtures.items(),
            &format!(
                "docker exec -i {container} tar -x -C /opt/cni/bin < <(tar -c --owner=0 --group=0 --mode=755 -C cni-new bridge host-local loopback portmap)
                for set in new kubeadm; do docker exec -i {container} ctr -n k8s.io images import - <images-$set/images.tar; done"
            ),
        )
        .await;
    }
}

async fn shell(directory: &Path, script: &str) {
    let output = Command::new("bash")
        .args(["-e", "-c", script])
        .current_dir(directory)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
}
