//! Machines of the rpm kind: reached as a user with sudo through a bastion, with root kept out and forwarding forbidden.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hatchery_sandbox::{
    docker, fixtures,
    lab::Options,
    settings::{RequestedSettings, Sudo, System},
};

use crate::{bench::Bench, external_ca::Company, firewalld};

/// Two get their packages from their repository and their images from a registry, and their authority from a company; another
/// gets packages and images from an archive. firewalld runs on all of them.
#[tokio::test(flavor = "multi_thread")]
async fn packages_of_a_repository_and_packages_of_an_archive() {
    let fixtures = fixtures::ensure(&["packages-classic", "images-new", "crane"]).await;
    let fixtures = fixtures.unwrap();
    let settings = RequestedSettings {
        system: Some(System::Rpm),
        user: Some("ops".into()),
        sudo: Some(Sudo::Password),
        bastion: Some(true),
    };
    let options = Options {
        settings,
        ..Options::new("t-rpm".parse().unwrap(), 3)
    };
    let bench = Bench::with(options, str::to_owned).await;
    for number in 0..3 {
        let only_sudo = "echo 'PermitRootLogin no' >/etc/ssh/sshd_config.d/0-test.conf; systemctl restart sshd || systemctl restart ssh; \
             sshd -T | grep -E 'permitrootlogin|allowtcpforwarding'";
        let told = bench.inside(number, only_sudo).await;
        assert!(told.contains("permitrootlogin no"), "{told}");
        assert!(told.contains("allowtcpforwarding no"), "{told}");
    }
    let registry = Registry::begin(&bench).await;
    for (archive, name) in [
        ("pause", "library/pause:3.10"),
        ("flannel", "flannel/flannel:v0.26.7"),
        ("coredns", "coredns/coredns:1.15.0"),
        ("agnhost", "trial/agnhost:1"),
    ] {
        registry.push(archive, name).await;
    }
    registry.push_plugin().await;
    let firewall = firewalld::begin(&bench).await;
    let before = bench.snapshots().await;

    let at = &registry.address;
    let company = Company::new(bench.home());
    let online = company.keys() + &ONLINE.replace("REGISTRY", at);
    let online = bench.variant("online", 0, &online);
    bench.add_worker(&online, 2);
    let archive = fixtures.path("packages-classic/rpm.tar.gz");
    let archive = ARCHIVED.replace("ARCHIVE", &archive.display().to_string());
    let offline = bench.variant("offline", 1, &archive);
    for file in [&online, &offline] {
        let made = bench.hatchery_with(0, "deploy", file);
        assert!(made.contains("is up"), "{made}");
        let again = bench.hatchery_with(0, "deploy", file);
        assert!(again.contains("nothing had to be changed"), "{again}");
    }
    for (number, version, image) in [
        (0, "v1.37.0", format!("{at}/trial/agnhost:1")),
        (1, "v1.20.2", "hatchery/agnhost:1.37.0".to_owned()),
    ] {
        let nodes = bench.kubectl_on(number, "get nodes --no-headers").await;
        assert!(
            nodes.contains(" Ready ") && nodes.contains(version),
            "{nodes}"
        );
        let run = format!(
            "run trial --image={image} --image-pull-policy=IfNotPresent -- netexec --http-port=8080"
        );
        bench.kubectl_on(number, &run).await;
        let ready = "wait --for=condition=Ready pod/trial --timeout=90s";
        bench.kubectl_on(number, ready).await;
        let resolve = "exec trial -- nslookup kubernetes.default.svc.cluster.local";
        let answer = bench.kubectl_on(number, resolve).await;
        assert!(answer.contains("10.32.0.1"), "{answer}");
        let logs = bench.kubectl_on(number, "logs trial").await;
        assert!(logs.contains("HTTP"), "{logs}");
    }
    company.vouches(&bench, 0).await;
    company.lets_no_others_in(&bench, 0).await;
    company.renews_a_kubelet(&bench, 0).await;
    let nodes = [bench.machine(0), bench.machine(2)];
    firewalld::lets_pods_through(&bench, &nodes, &format!("{at}/trial/agnhost:1")).await;
    firewalld::a_port_opens_and_closes(&bench, &online, &[0, 2]).await;
    // On a master CoreDNS is a user of its own, and answers the cluster and its subnet, and nobody else.
    assert_eq!(bench.inside(1, "ps -o user= -C coredns").await, "coredns\n");
    let [master, stranger] = [1, 2].map(|number| bench.machine(number).address);
    let ask = format!("busybox nslookup www.outside.test {master} 2>&1 || :");
    let there =
        format!("ip addr add 10.99.0.5/32 dev lo; ip route add {master} dev eth0 src 10.99.0.5");
    bench.inside(2, &there).await;
    let back = format!("ip route add 10.99.0.5 via {stranger}");
    bench.inside(1, &back).await;
    let asked = bench.inside(2, &ask).await;
    assert!(asked.contains("REFUSED"), "{asked}");
    bench.inside(1, &back.replace("add", "del")).await;
    bench
        .inside(
            2,
            &format!("ip route del {master}; ip addr del 10.99.0.5/32 dev lo"),
        )
        .await;
    for file in [&online, &offline] {
        bench.hatchery_with(0, "cleanup --yes", file);
    }
    firewalld::is_as_it_was(&bench, &firewall).await;
    bench.assert_as_before(&before).await;
}

/// Everything by its package's name, from wherever the machine gets its packages.
const ONLINE: &str = "\
service:
  cidr: 10.32.0.0/16
  dnsaddr: 10.32.0.10
  gateway: 10.32.0.1
  dns: {corednstype: pod, imageversion: 1.15.0, replicas: 1}
network: {podcidr: 10.244.0.0/16, plugin: flannel}
runtime: containerd
pause-image: REGISTRY/library/pause:3.10
registry-mirrors: ['http://REGISTRY']
insecure-registries: [REGISTRY]
install:
  etcd: [{name: etcd, type: repo}]
  kubernetes-master:
    - {name: kubernetes-client, type: repo}
    - {name: kubernetes-master, type: repo}
  kubernetes-worker:
    - {name: kubernetes-node, type: repo}
    - {name: kubernetes-kubelet, type: repo}
    - {name: conntrack-tools, type: repo}
    - {name: socat, type: repo}
  container:
    - {name: containerd, type: repo}
    - {name: runc, type: repo}
  network: [{name: containernetworking-plugins, type: repo}]
";

/// The manual's list.
const ARCHIVED: &str = "\
service:
  cidr: 10.32.0.0/16
  dnsaddr: 10.32.0.10
  gateway: 10.32.0.1
  dns: {corednstype: binary}
network:
  podcidr: 10.244.0.0/16
  plugin: flannel
  plugin-args: {\"NetworkYamlPath\": \"/etc/kubernetes/addons/flannel.yaml\"}
runtime: containerd
pause-image: k8s.gcr.io/pause:3.2
cni-bin-dir: /usr/libexec/cni,/opt/cni/bin
pacakges:
  etcd:
  - {name: etcd, type: pkg, dstpath: \"\"}
  master:
  - {name: kubernetes-client, type: pkg, dstpath: \"\"}
  - {name: kubernetes-master, type: pkg, dstpath: \"\"}
  - {name: coredns, type: pkg, dstpath: \"\"}
  - {name: addons, type: binary, dstpath: /etc/kubernetes}
  node:
  - {name: libnetfilter_cthelper, type: pkg, dstpath: \"\"}
  - {name: libnetfilter_cttimeout, type: pkg, dstpath: \"\"}
  - {name: libnetfilter_queue, type: pkg, dstpath: \"\"}
  - {name: conntrack-tools, type: pkg, dstpath: \"\"}
  - {name: socat, type: pkg, dstpath: \"\"}
  - {name: containernetworking-plugins, type: pkg, dstpath: \"\"}
  - {name: kubernetes-client, type: pkg, dstpath: \"\"}
  - {name: kubernetes-node, type: pkg, dstpath: \"\"}
  - {name: kubernetes-kubelet, type: pkg, dstpath: \"\"}
  - {name: containerd, type: pkg, dstpath: \"\"}
  - {name: runc, type: pkg, dstpath: \"\"}
package-src:
  type: tar.gz
  x86src: ARCHIVE
";

/// A registry of images in the sandbox's world outside.
struct Registry {
    container: String,
    address: String,
}

impl Registry {
    async fn begin(bench: &Bench) -> Self {
        let mut octets = bench.machine(0).address.octets();
        octets[3] = 2;
        let registry = Self {
            container: format!("hatchery-{}-outside", bench.id),
            address: format!("{}:5000", std::net::Ipv4Addr::from(octets)),
        };
        registry
            .crane("-d", &["registry", "serve", "--address", &registry.address])
            .await;
        registry
    }

    async fn push(&self, archive: &str, name: &str) {
        let archive = format!("/srv/items/images-new/{archive}.tar");
        let name = format!("{}/{name}", self.address);
        self.crane("-i", &["push", "--insecure", &archive, &name])
            .await;
    }

    /// flannel's own images keep daemon and plugin apart.
    async fn push_plugin(&self) {
        let pack =
            "tar -cf /tmp/plugin.tar --transform 's/.*/flannel/' -C /srv/items/flannel flannel-cni";
        docker::run(&["exec", &self.container, "sh", "-c", pack])
            .await
            .unwrap();
        let base = format!("{}/flannel/flannel:v0.26.7", self.address);
        let name = format!(
            "{}/flannel/flannel-cni-plugin:v1.6.2-flannel1",
            self.address
        );
        let append = ["append", "--insecure", "-b", &base, "-f", "/tmp/plugin.tar"];
        self.crane("-i", &[&append[..], &["-t", &name]].concat())
            .await;
    }

    async fn crane(&self, how: &str, arguments: &[&str]) {
        let begin = ["exec", how, &self.container, "/srv/items/crane/crane"];
        docker::run(&[&begin, arguments].concat()).await.unwrap();
    }
}

impl Bench {
    /// A deploy file of its own for one machine, reached as the sandbox says.
    fn variant(&self, id: &str, machine: usize, text: &str) -> PathBuf {
        let path = self.other(id, machine);
        let given = fs::read_to_string(&path).unwrap();
        let reached = &given[..given.find("service:").unwrap()];
        let own = self.home().join(format!("{id}.yaml"));
        fs::rename(&path, &own).unwrap();
        fs::write(&own, format!("{reached}{text}{}", crate::bench::ROOM)).unwrap();
        own
    }

    /// One of the other machines too.
    fn add_worker(&self, file: &Path, number: usize) {
        let machine = self.machine(number);
        let host = format!(
            "  - {{name: {}, ip: {}, arch: amd64}}\n",
            machine.name, machine.address
        );
        let text = fs::read_to_string(file).unwrap();
        fs::write(
            file,
            text.replace("workers:\n", &format!("workers:\n{host}")),
        )
        .unwrap();
    }
}
