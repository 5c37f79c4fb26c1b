//! A cluster from the distribution's own packages, whose scripts enable and start services by themselves.

use crate::{
    ROOM,
    bench::{Bench, assert_ready, entry, inside, lists},
    workload::assert_pods_work,
};

/// What Debian has comes from its repository, Kubernetes and the rest from the archive.
fn packages() -> String {
    let of_debian = |names: &[&str]| -> String {
        names
            .iter()
            .map(|name| format!("  - {{name: {name}, type: repo}}\n"))
            .collect()
    };
    let runtime = of_debian(&["containerd", "docker.io"]);
    let balancer = of_debian(&["nginx-light", "libnginx-mod-stream"]);
    let text = lists(&[]);
    let etcd = "  - {name: etcd, type: pkg, dstpath: \"\"}\n";
    let nginx = "  - {name: nginx, type: pkg, dstpath: \"\"}\n";
    assert!(text.contains(etcd) && text.ends_with(nginx), "{text}");
    text.replace(etcd, &of_debian(&["etcd-server"]))
        .replace("  loadbalance:\n", &format!("{runtime}  loadbalance:\n"))
        .replace(nginx, &balancer)
}

#[tokio::test(flavor = "multi_thread")]
async fn debians_own_packages_serve_the_cluster_and_nobody_else() {
    let _room = ROOM.lock().await;
    let mut bench = Bench::new("t-debian", 2).await;
    let machines = bench.lab.machines.clone();
    let [node, balancer] = &machines[..] else {
        panic!("two machines")
    };
    for machine in &machines {
        inside(machine, "apt-get -qq update").await;
    }
    let text = format!(
        "runtime: containerd\nmasters:\n{0}nodes:\n{0}loadbalance: {{name: {1}, ip: {2}, bind-port: 8443}}\n{3}",
        entry(node),
        balancer.name,
        balancer.address,
        packages(),
    );
    bench.begin(&text).await;

    bench.hatchery(0, "deploy");
    assert_ready(node, 1, "containerd://1.6").await;
    assert_pods_work(node, 1).await;
    // What the cluster did not ask for is not up: neither the web server nor docker nor an etcd without certificates.
    let unasked = "systemctl is-active docker.service docker.socket nginx.service | sort -u; ss -Hltn 'sport = :80'; ls /usr/sbin/policy-rc.d 2>/dev/null || :";
    for machine in &machines {
        assert_eq!(inside(machine, unasked).await.trim(), "inactive");
    }
    let plain = "curl -s --max-time 5 http://127.0.0.1:2379/version || echo refused";
    assert!(!inside(node, plain).await.contains("etcdserver"));

    let again = bench.hatchery(0, "deploy");
    assert!(again.contains("nothing had to be changed"), "{again}");
    bench.cleanup().await;
}
