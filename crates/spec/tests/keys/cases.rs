//! A change of each key of a deploy file, on its own.

pub(crate) const CURRENT: &str = "\
cluster-id: base
kubernetes-version: 1.31.1
username: admin
masters:
- name: m0
  ip: 192.168.0.1
  port: 22
  arch: amd64
workers:
- {ip: 192.168.0.1}
- {name: w0, ip: 192.168.0.2}
loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}
external-ca: true
external-ca-path: /ca
service:
  cidr: 10.32.0.0/16
  dns: {corednstype: pod, imageversion: 1.8.4, replicas: 2}
network:
  podcidr: 10.244.0.0/16
  plugin: calico
  pluginargs: {NetworkYamlPath: /etc/kubernetes/a.yaml}
apiserver-cert-sans: {dnsnames: [a.example.org], ips: [1.2.3.4]}
runtime: containerd
config-extra-args:
- name: kubelet
  extra-args: {--v: 1}
open-ports:
  worker:
  - {port: 179, protocol: tcp}
install:
  package-source:
    type: tar.gz
    srcpath: {amd64: /a.tar.gz}
  etcd:
  - {name: etcd, type: bin, dst: /usr/bin}
  addition:
    worker:
    - {name: a.sh, type: shell, schedule: prejoin, timeout: 5s}
";

pub(crate) const CLASSIC: &str = "\
cluster-id: base
masters:
- {name: m0, ip: 192.168.0.1}
nodes:
- {name: m0, ip: 192.168.0.1}
- {name: w0, ip: 192.168.0.2, arch: arm64}
loadbalance: {name: lb, ip: 192.168.0.9}
network:
  plugin: calico
  plugin-args: {NetworkYamlPath: /etc/kubernetes/a.yaml}
open-ports:
  node:
  - {port: 179}
package-src:
  type: tar.gz
  armsrc: /arm.tar.gz
  x86src: /x86.tar.gz
pacakges:
  master:
  - {name: kubernetes-master, type: pkg}
  node:
  - {name: a, type: binary, dstpath: /usr/bin}
  etcd:
  - {name: etcd, type: pkg}
  loadbalance:
  - {name: nginx, type: pkg}
addons:
- {type: file, filename: a.yaml}
";

pub(crate) const DNS: &str = "\
cluster-id: base
masters: [{ip: 192.168.0.1}]
workers: [{ip: 192.168.0.1}]
install: {dns: [{name: coredns, type: repo}]}
";

pub(crate) const BASTION: &str = "\
cluster-id: base
bastion: [first@10.0.0.9, {host: 10.0.0.1}]
masters: [{ip: 192.168.0.1}]
workers: [{ip: 192.168.0.1}]
";

/// A key, a file that may have it, and a change that touches only this key.
pub(crate) type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const USER: &str = "username: admin\n";
const ARCH: &str = "  arch: amd64\n";
const PORTS: &str = "open-ports:\n";
const ETCD: &str = "  etcd:\n  - {name: etcd, type: bin, dst: /usr/bin}\n";
const WORKER: &str = "  addition:\n";

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("", "cluster-id", CURRENT, "cluster-id: base", "cluster-id: other"),
    ("", "kubernetes-version", CURRENT, "1.31.1", "1.31.2"),
    ("", "etcd-version", CURRENT, USER, "username: admin\netcd-version: 3.5.9\n"),
    ("", "containerd-version", CURRENT, USER, "username: admin\ncontainerd-version: 2.4\n"),
    ("", "coredns-version", CURRENT, USER, "username: admin\ncoredns-version: v1.11.1\n"),
    ("", "username", CURRENT, "username: admin", "username: other"),
    ("", "password", CURRENT, USER, "username: admin\npassword: s3cret\n"),
    ("", "password-env", CURRENT, USER, "username: admin\npassword-env: PASSWORD\n"),
    ("", "password-file", CURRENT, USER, "username: admin\npassword-file: ~/p\n"),
    ("", "private-key-path", CURRENT, USER, "username: admin\nprivate-key-path: ~/.ssh/id\n"),
    ("", "bastion", CURRENT, USER, "username: admin\nbastion: jump@10.0.0.1:2222\n"),
    ("", "host-key-checking", CURRENT, USER, "username: admin\nhost-key-checking: strict\n"),
    ("", "set-hostname", CURRENT, USER, "username: admin\nset-hostname: true\n"),
    ("", "masters", CURRENT, "workers:", "- {name: w0, ip: 192.168.0.2}\nworkers:"),
    ("", "workers", CURRENT, "- {name: w0, ip: 192.168.0.2}\n", ""),
    ("", "nodes", CLASSIC, "- {name: w0, ip: 192.168.0.2, arch: arm64}\n", ""),
    ("", "etcds", CURRENT, "workers:", "etcds: [{name: w0, ip: 192.168.0.2}]\nworkers:"),
    ("", "loadbalance", CURRENT, "loadbalance: {name: lb, ip: 192.168.0.9, bind-port: 8443}\n", ""),
    ("", "external-ca", CURRENT, "external-ca: true", "external-ca: false"),
    ("", "external-ca-path", CURRENT, "/ca", "/other"),
    ("", "service", CURRENT, "service:\n  cidr: 10.32.0.0/16", "service:\n  cidr: 10.33.0.0/16"),
    ("", "network", CURRENT, "podcidr: 10.244.0.0/16", "podcidr: 10.245.0.0/16"),
    ("", "apiserver-endpoint", CURRENT, USER, "username: admin\napiserver-endpoint: k8s.example.org:8443\n"),
    ("", "apiserver-cert-sans", CURRENT, "a.example.org", "b.example.org"),
    ("", "apiserver-timeout", CURRENT, USER, "username: admin\napiserver-timeout: 5m\n"),
    ("", "etcd-external", CURRENT, USER, "username: admin\netcd-external: true\n"),
    ("", "etcd-token", CURRENT, USER, "username: admin\netcd-token: other\n"),
    ("", "dns-vip", CURRENT, USER, "username: admin\ndns-vip: 10.32.0.11\n"),
    ("", "dns-domain", CURRENT, USER, "username: admin\ndns-domain: other.local\n"),
    ("", "pause-image", CURRENT, USER, "username: admin\npause-image: a/pause:1\n"),
    ("", "network-plugin", CURRENT, USER, "username: admin\nnetwork-plugin: kubenet\n"),
    ("", "cni-bin-dir", CURRENT, USER, "username: admin\ncni-bin-dir: /a,/b\n"),
    ("", "enable-kubelet-serving", CURRENT, USER, "username: admin\nenable-kubelet-serving: false\n"),
    ("", "runtime", CURRENT, "runtime: containerd", "runtime: iSulad"),
    ("", "runtime-endpoint", CURRENT, USER, "username: admin\nruntime-endpoint: unix:///a\n"),
    ("", "allow-existing-runtime", CURRENT, USER, "username: admin\nallow-existing-runtime: true\n"),
    ("", "registry-mirrors", CURRENT, USER, "username: admin\nregistry-mirrors: [a.example.org]\n"),
    ("", "insecure-registries", CURRENT, USER, "username: admin\ninsecure-registries: [a.example.org]\n"),
    ("", "config-extra-args", CURRENT, "{--v: 1}", "{--v: 2}"),
    ("", "open-ports", CURRENT, "port: 179", "port: 180"),
    ("", "kube-proxy", CURRENT, USER, "username: admin\nkube-proxy: {mode: ipvs}\n"),
    ("", "install", CURRENT, "/a.tar.gz", "/b.tar.gz"),
    ("", "package-src", CLASSIC, "/arm.tar.gz", "/b.tar.gz"),
    ("", "pacakges", CLASSIC, "name: nginx", "name: haproxy"),
    ("", "packages", CLASSIC, "pacakges:\n  master:\n  - {name: kubernetes-master", "packages:\n  master:\n  - {name: other"),
    ("", "addons", CLASSIC, "filename: a.yaml", "filename: b.yaml"),
    ("<host>", "name", CURRENT, "name: m0", "name: m1"),
    ("<host>", "ip", CURRENT, "  ip: 192.168.0.1\n", "  ip: 192.168.0.7\n"),
    ("<host>", "port", CURRENT, "port: 22", "port: 2222"),
    ("<host>", "arch", CLASSIC, "masters:\n- {name: m0,", "masters:\n- {name: m0, arch: arm64,"),
    ("<host>", "user", CURRENT, ARCH, "  arch: amd64\n  user: other\n"),
    ("<host>", "password", CURRENT, ARCH, "  arch: amd64\n  password: s3cret\n"),
    ("<host>", "password-env", CURRENT, ARCH, "  arch: amd64\n  password-env: P\n"),
    ("<host>", "password-file", CURRENT, ARCH, "  arch: amd64\n  password-file: /p\n"),
    ("<host>", "private-key-path", CURRENT, ARCH, "  arch: amd64\n  private-key-path: /k\n"),
    ("<host>", "bastion", CURRENT, ARCH, "  arch: amd64\n  bastion: [a, b]\n"),
    ("<host>", "host-key", CURRENT, ARCH, "  arch: amd64\n  host-key: SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"),
    ("<host>", "labels", CURRENT, ARCH, "  arch: amd64\n  labels: {disk: ssd}\n"),
    ("<host>", "taints", CURRENT, ARCH, "  arch: amd64\n  taints: ['gpu=yes:NoSchedule']\n"),
    ("<host>", "set-hostname", CURRENT, ARCH, "  arch: amd64\n  set-hostname: true\n"),
    ("<bastion>", "host", BASTION, "host: 10.0.0.1", "host: 10.0.0.2"),
    ("<bastion>", "port", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, port: 2222"),
    ("<bastion>", "user", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, user: jump"),
    ("<bastion>", "password", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, password: s3cret"),
    ("<bastion>", "password-env", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, password-env: P"),
    ("<bastion>", "password-file", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, password-file: /p"),
    ("<bastion>", "private-key-path", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, private-key-path: /k"),
    ("<bastion>", "host-key", BASTION, "host: 10.0.0.1", "host: 10.0.0.1, host-key: SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("loadbalance", "bind-port", CURRENT, "8443", "9443"),
    ("service", "cidr", CURRENT, "cidr: 10.32.0.0/16", "cidr: 10.33.0.0/16"),
    ("service", "dnsaddr", CURRENT, "  dns: {", "  dnsaddr: 10.32.0.53\n  dns: {"),
    ("service", "gateway", CURRENT, "cidr: 10.32.0.0/16", "cidr: 10.33.0.0/16\n  gateway: 10.33.0.1"),
    ("service", "dns", CURRENT, "replicas: 2", "replicas: 3"),
    ("service.dns", "corednstype", CURRENT, "corednstype: pod", "corednstype: binary"),
    ("service.dns", "imageversion", CURRENT, "1.8.4", "1.9.0"),
    ("service.dns", "replicas", CURRENT, "replicas: 2", "replicas: 3"),
    ("network", "podcidr", CURRENT, "10.244.0.0/16", "10.245.0.0/16"),
    ("network", "plugin", CURRENT, "plugin: calico", "plugin: flannel"),
    ("network", "pluginargs", CURRENT, "a.yaml", "b.yaml"),
    ("network", "plugin-args", CLASSIC, "/etc/kubernetes/a.yaml", "/etc/kubernetes/b.yaml"),
    ("apiserver-cert-sans", "dnsnames", CURRENT, "a.example.org", "b.example.org"),
    ("apiserver-cert-sans", "ips", CURRENT, "1.2.3.4", "1.2.3.5"),
    ("config-extra-args", "name", CURRENT, "name: kubelet", "name: kube-proxy"),
    ("config-extra-args", "extra-args", CURRENT, "--v", "--vmodule"),
    ("open-ports", "master", CURRENT, PORTS, "open-ports:\n  master: [{port: 53}]\n"),
    ("open-ports", "worker", CURRENT, "port: 179", "port: 180"),
    ("open-ports", "node", CLASSIC, "port: 179", "port: 180"),
    ("open-ports", "etcd", CURRENT, PORTS, "open-ports:\n  etcd: [{port: 53}]\n"),
    ("open-ports", "loadbalance", CURRENT, PORTS, "open-ports:\n  loadbalance: [{port: 53}]\n"),
    ("open-ports[]", "port", CURRENT, "port: 179", "port: 180"),
    ("open-ports[]", "protocol", CURRENT, "protocol: tcp", "protocol: udp"),
    ("kube-proxy", "mode", CURRENT, USER, "username: admin\nkube-proxy: {mode: nftables}\n"),
    ("install", "package-source", CURRENT, "/a.tar.gz", "/b.tar.gz"),
    ("install", "kubernetes-master", CURRENT, ETCD, "  kubernetes-master: [{name: a, type: repo}]\n"),
    ("install", "kubernetes-worker", CURRENT, ETCD, "  kubernetes-worker: [{name: a, type: repo}]\n"),
    ("install", "network", CURRENT, ETCD, "  network: [{name: a, type: repo}]\n"),
    ("install", "etcd", CURRENT, "{name: etcd,", "{name: etcd2,"),
    ("install", "loadbalance", CURRENT, ETCD, "  loadbalance: [{name: a, type: repo}]\n"),
    ("install", "container", CURRENT, ETCD, "  container: [{name: a, type: repo}]\n"),
    ("install", "image", CURRENT, ETCD, "  image: [{name: a, type: image}]\n"),
    ("install", "dns", DNS, "name: coredns", "name: other"),
    ("install", "addition", CURRENT, "a.sh", "b.sh"),
    ("install.package-source", "type", CURRENT, "type: tar.gz", "type: zip"),
    ("install.package-source", "dstpath", CURRENT, "    type: tar.gz", "    dstpath: /root/.eggo/package"),
    ("install.package-source", "srcpath", CURRENT, "/a.tar.gz", "/b.tar.gz"),
    ("install.addition", "master", CURRENT, WORKER, "  addition:\n    master: [{name: a.yaml, type: yaml}]\n"),
    ("install.addition", "worker", CURRENT, "a.sh", "b.sh"),
    ("install.addition", "etcd", CURRENT, WORKER, "  addition:\n    etcd: [{name: a, type: repo}]\n"),
    ("install.addition", "loadbalance", CURRENT, WORKER, "  addition:\n    loadbalance: [{name: a, type: repo}]\n"),
    ("<item>", "name", CURRENT, "{name: etcd,", "{name: etcd2,"),
    ("<item>", "type", CURRENT, "type: bin", "type: file"),
    ("<item>", "dst", CURRENT, "/usr/bin", "/usr/local/bin"),
    ("<item>", "dstpath", CLASSIC, "/usr/bin", "/usr/local/bin"),
    ("<item>", "schedule", CURRENT, "prejoin", "postjoin"),
    ("<item>", "timeout", CURRENT, "5s", "6s"),
    ("package-src", "type", CLASSIC, "type: tar.gz", "type: rar"),
    ("package-src", "armsrc", CLASSIC, "/arm.tar.gz", "/b.tar.gz"),
    ("package-src", "x86src", CLASSIC, "/x86.tar.gz", "/b.tar.gz"),
    ("packages", "master", CLASSIC, "name: kubernetes-master", "name: other"),
    ("packages", "node", CLASSIC, "name: a,", "name: b,"),
    ("packages", "etcd", CLASSIC, "name: etcd", "name: other"),
    ("packages", "loadbalance", CLASSIC, "name: nginx", "name: other"),
    ("addons", "type", CLASSIC, "type: file", "type: helm"),
    ("addons", "filename", CLASSIC, "filename: a.yaml", "filename: b.yaml"),
];
