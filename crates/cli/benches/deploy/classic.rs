//! The shape on which eggo was measured: Kubernetes 1.20.2, three masters that are also workers, two more workers, a
//! load balancer.

use std::{path::Path, process::Command};

use hatchery_sandbox::{
    fixtures::{self, Fixtures},
    lab::Options,
};

use crate::{
    assert_ready, deploy,
    median::{self, Times},
    place::Place,
};

/// How long eggo's `deploy` took on such machines, without waiting for nodes to be Ready.
const EGGO: f64 = 132.8;
/// And its `cleanup`.
const EGGO_CLEANUP: f64 = 14.8;

pub(crate) async fn beside_eggo() {
    let fixtures = fixtures::ensure(&["classic"]).await.unwrap();
    let place = Place::bare(Options::new("bench".parse().unwrap(), 6)).await;
    println!("HA with set classic, on 6 machines");
    let archive = place.lab.home().join("package.tar.gz");
    pack(&fixtures, &archive);
    let size = std::fs::metadata(&archive).unwrap().len() / 1_000_000;
    println!("  a package of {size} MB; eggo's had 152");
    place.write(&text(&place, &archive.to_string_lossy()));
    let mut first = Times::new("deploy from bare machines");
    let mut again = Times::new("deploy again");
    let mut cleanups = Times::new("cleanup");
    for round in 0..median::rounds() {
        let timeline = deploy(&place, "from bare machines");
        first.add(timeline.seconds());
        let unchanged = place.deploy();
        again.add(unchanged.seconds());
        if round == 0 {
            println!("{}", timeline.table());
            println!("  again:\n{}", unchanged.table());
            assert_ready(&place, "/etc/kubernetes/admin.conf", 5).await;
        }
        let cleanup = place.cleanup();
        cleanups.add(cleanup.seconds());
        if round == 0 {
            println!("  cleanup:\n{}", cleanup.table());
        }
    }
    println!(
        "  {first}; eggo took {EGGO} s: {:.1} times as fast (aim: 45 s)",
        EGGO / first.median()
    );
    println!("  {again} (aim: 2 s)");
    println!("  {cleanups} (aim: 5 s; eggo: {EGGO_CLEANUP} s)");
}

/// As eggo had it: the programs of these roles, and no image but what the cluster itself needs.
fn pack(fixtures: &Fixtures, archive: &Path) {
    let script = "set -e -o pipefail; cd \"$(mktemp -d)\"; trap 'rm -rf \"$PWD\"' EXIT
        mkdir bin image file pkg
        tar -xzf \"$1/packages-classic/classic.tar.gz\" -C bin --exclude='docker*' --exclude=images.tar --exclude=addons
        cp \"$1/packages-classic/addons/flannel.yaml\" file
        cp \"$1\"/packages-classic/apt/nginx_*.deb pkg
        cp \"$1/images-classic/pause.tar\" \"$1/images-classic/flannel.tar\" image
        tar -c * | pigz >\"$2\"";
    let done = Command::new("bash")
        .args(["-c", script, "pack"])
        .args([fixtures.items(), archive])
        .status();
    assert!(done.unwrap().success());
}

fn text(place: &Place, archive: &str) -> String {
    let entries = |range: std::ops::Range<usize>| -> String {
        let machines = place.lab.machines[range].iter();
        machines
            .map(|machine| {
                format!(
                    "- {{name: {}, ip: {}, arch: amd64}}\n",
                    machine.name, machine.address
                )
            })
            .collect()
    };
    let balancer = &place.lab.machines[5];
    format!(
        "cluster-id: bench\nusername: {}\nprivate-key-path: {}\nruntime: containerd\n\
         masters:\n{}workers:\n{}loadbalance: {{name: {}, ip: {}, bind-port: 8443}}\n\
         {REST}install:\n  package-source: {{type: tar.gz, srcpath: {{amd64: {archive}}}}}\n{INSTALL}",
        place.lab.settings.user,
        place.lab.key().display(),
        entries(0..3),
        entries(0..5),
        balancer.name,
        balancer.address,
    )
}

const REST: &str = "\
service:
  cidr: 10.32.0.0/16
  dnsaddr: 10.32.0.10
  gateway: 10.32.0.1
  dns: {corednstype: binary}
network:
  podcidr: 10.244.0.0/16
  plugin: flannel
pause-image: k8s.gcr.io/pause:3.2
network-plugin: cni
cni-bin-dir: /opt/cni/bin
";

const INSTALL: &str = "  etcd: [{name: 'etcd,etcdctl', type: bin, dst: /usr/bin}]
  kubernetes-master: [{name: 'kube-apiserver,kube-controller-manager,kube-scheduler,kubectl', type: bin, dst: /usr/bin}]
  kubernetes-worker: [{name: 'kubelet,kube-proxy,kubectl', type: bin, dst: /usr/bin}]
  container: [{name: 'containerd,containerd-shim-runc-v2,ctr,runc', type: bin, dst: /usr/bin}]
  network: [{name: 'bridge,host-local,loopback,portmap', type: bin, dst: /opt/cni/bin}]
  image: [{name: 'pause.tar,flannel.tar', type: image}]
  dns: [{name: coredns, type: bin, dst: /usr/bin}]
  loadbalance: [{name: nginx, type: pkg}]
  addition: {master: [{name: flannel.yaml, type: yaml}]}
";
