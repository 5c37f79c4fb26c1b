//! The shape on which eggo was measured: Kubernetes 1.20.2, three masters that are also workers, two more workers, a
//! load balancer.

use hatchery_sandbox::{fixtures, lab::Options};

use crate::{assert_ready, cleanup, deploy, place::Place};

/// How long eggo's `deploy` took on such machines, without waiting for nodes to be Ready.
const EGGO: f64 = 132.8;
/// And its `cleanup`.
const EGGO_CLEANUP: f64 = 14.8;

pub(crate) async fn beside_eggo() {
    let fixtures = fixtures::ensure(&["packages-classic"]).await.unwrap();
    let place = Place::bare(Options::new("bench".parse().unwrap(), 6)).await;
    println!("HA with set classic, on 6 machines");
    place.write(&text(
        &place,
        &fixtures
            .path("packages-classic/deb.tar.gz")
            .to_string_lossy(),
    ));
    let first = deploy(&place, "from bare machines");
    println!("{}", first.table());
    println!(
        "  {:.1} s where eggo took {EGGO} s: {:.1} times as fast (aim: 45 s)",
        first.seconds(),
        EGGO / first.seconds()
    );
    assert_ready(&place, "/etc/kubernetes/admin.conf", 5).await;
    let again = place.deploy();
    println!("  deploy again: {:.1} s (aim: 2 s)", again.seconds());
    println!("{}", again.table());
    cleanup(
        &place,
        &format!("cleanup (aim: 5 s; eggo: {EGGO_CLEANUP} s)"),
    );
}

fn text(place: &Place, archive: &str) -> String {
    let entries = |range: std::ops::Range<usize>| -> String {
        let machines = place.lab.machines[range].iter();
        machines
            .map(|machine| format!("- {{name: {}, ip: {}}}\n", machine.name, machine.address))
            .collect()
    };
    let balancer = &place.lab.machines[5];
    format!(
        "cluster-id: bench\nusername: {}\nprivate-key-path: {}\nruntime: containerd\n\
         masters:\n{}nodes:\n{}loadbalance: {{name: {}, ip: {}, bind-port: 8443}}\n\
         {REST}package-src: {{type: tar.gz, x86src: {archive}}}\n",
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
  plugin-args: {\"NetworkYamlPath\": \"/etc/kubernetes/addons/flannel.yaml\"}
pause-image: k8s.gcr.io/pause:3.2
network-plugin: cni
cni-bin-dir: /usr/libexec/cni,/opt/cni/bin
pacakges:
  etcd:
  - {name: etcd, type: pkg}
  master:
  - {name: kubernetes-client, type: pkg}
  - {name: kubernetes-master, type: pkg}
  - {name: coredns, type: pkg}
  - {name: addons, type: binary, dstpath: /etc/kubernetes}
  node:
  - {name: libnetfilter_cthelper, type: pkg}
  - {name: libnetfilter_cttimeout, type: pkg}
  - {name: libnetfilter_queue, type: pkg}
  - {name: conntrack-tools, type: pkg}
  - {name: socat, type: pkg}
  - {name: containernetworking-plugins, type: pkg}
  - {name: kubernetes-client, type: pkg}
  - {name: kubernetes-node, type: pkg}
  - {name: kubernetes-kubelet, type: pkg}
  - {name: containerd, type: pkg}
  - {name: runc, type: pkg}
  loadbalance:
  - {name: nginx, type: pkg}
";
