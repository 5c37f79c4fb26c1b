//! One machine of a cluster: programs, configuration and plain systemd units, all below one
//! directory.

use std::{collections::BTreeMap, fs, net::Ipv4Addr, os::unix::fs::symlink, path::Path};

use hatchery_sandbox::lab::Machine;

use crate::{material::Material, now, set::Set};

/// The pod network, other than any default, so that a value written down somewhere is found out.
pub(crate) const POD_CIDR: &str = "10.55.0.0/16";
/// The Service `kubernetes`.
pub(crate) const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);
const SERVICE_CIDR: &str = "10.66.0.0/16";
const DIR: &str = "/opt/plain";

/// The container runtime of a worker.
#[derive(Clone, Copy)]
pub(crate) enum Runtime {
    Containerd,
    Docker,
}

/// A machine being put together.
pub(crate) struct Node<'a> {
    set: &'a Set,
    material: &'a Material,
    machine: &'a Machine,
    /// Path below the node's directory to text.
    files: BTreeMap<String, String>,
    /// Directories whose programs go to `bin`.
    programs: Vec<std::path::PathBuf>,
    /// Units in the order they are started.
    units: Vec<&'static str>,
    /// Run between copying and starting.
    preparations: Vec<String>,
    /// Run when everything was started.
    completions: Vec<String>,
}

impl<'a> Node<'a> {
    pub(crate) fn new(set: &'a Set, material: &'a Material, machine: &'a Machine) -> Self {
        Self {
            set,
            material,
            machine,
            files: BTreeMap::new(),
            programs: Vec::new(),
            units: Vec::new(),
            preparations: Vec::new(),
            completions: Vec::new(),
        }
    }

    fn unit(&mut self, name: &'static str, kind: &str, command: &str) {
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        self.files.insert(
            format!("units/{name}.service"),
            format!(
                "[Unit]\nAfter=network-online.target\nStartLimitIntervalSec=0\n\
                 [Service]\nType={kind}\nExecStart={DIR}/bin/{command}\nRestart=always\nRestartSec=1\n\
                 Environment=PATH=/usr/local/sbin:{DIR}/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
                 Delegate=yes\nKillMode=process\nLimitNOFILE=65536\nTimeoutStartSec=120\n\
                 [Install]\nWantedBy=multi-user.target\n"
            ),
        );
        self.units.push(name);
    }

    /// etcd member and control plane.
    pub(crate) fn master(mut self) -> Self {
        let Material { masters, .. } = self.material;
        let (name, address) = (&self.machine.name, self.machine.address);
        let peers: Vec<_> = masters
            .iter()
            .map(|(name, address)| format!("{name}=https://{address}:2380"))
            .collect();
        let members: Vec<_> = masters
            .iter()
            .map(|(_, address)| format!("https://{address}:2379"))
            .collect();
        self.files.extend(self.material.of_master(self.machine));
        self.programs.push(self.set.path("kubernetes"));
        self.programs.push(self.set.path("etcd"));
        let etcd = format!(
            "etcd --name={name} --data-dir=/var/lib/etcd/data
            --listen-client-urls=https://{address}:2379,https://127.0.0.1:2379 --advertise-client-urls=https://{address}:2379
            --listen-peer-urls=https://{address}:2380 --initial-advertise-peer-urls=https://{address}:2380
            --initial-cluster={} --initial-cluster-token=plain --initial-cluster-state=new
            --cert-file={DIR}/pki/etcd.crt --key-file={DIR}/pki/etcd.key --trusted-ca-file={DIR}/pki/etcd-ca.crt --client-cert-auth
            --peer-cert-file={DIR}/pki/etcd.crt --peer-key-file={DIR}/pki/etcd.key --peer-trusted-ca-file={DIR}/pki/etcd-ca.crt --peer-client-cert-auth",
            peers.join(","),
        );
        let apiserver = format!(
            "kube-apiserver --advertise-address={address} --secure-port=6443 --allow-privileged=true
            --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --client-ca-file={DIR}/pki/ca.crt
            --etcd-servers={} --etcd-cafile={DIR}/pki/etcd-ca.crt --etcd-certfile={DIR}/pki/etcd-client.crt --etcd-keyfile={DIR}/pki/etcd-client.key
            --tls-cert-file={DIR}/pki/apiserver.crt --tls-private-key-file={DIR}/pki/apiserver.key
            --kubelet-client-certificate={DIR}/pki/kubelet-client.crt --kubelet-client-key={DIR}/pki/kubelet-client.key
            --service-account-issuer=https://kubernetes.default.svc --service-account-key-file={DIR}/pki/sa.pub
            --service-account-signing-key-file={DIR}/pki/sa.key --service-cluster-ip-range={SERVICE_CIDR}",
            members.join(","),
        );
        let controller_manager = format!(
            "kube-controller-manager --kubeconfig={DIR}/conf/controller-manager.kubeconfig --leader-elect=true
            --allocate-node-cidrs=true --cluster-cidr={POD_CIDR} --service-cluster-ip-range={SERVICE_CIDR}
            --cluster-signing-cert-file={DIR}/pki/ca.crt --cluster-signing-key-file={DIR}/pki/ca.key --root-ca-file={DIR}/pki/ca.crt
            --service-account-private-key-file={DIR}/pki/sa.key --use-service-account-credentials=true"
        );
        let scheduler = format!(
            "kube-scheduler --kubeconfig={DIR}/conf/scheduler.kubeconfig --leader-elect=true"
        );
        self.unit("etcd", "notify", &etcd);
        self.unit("kube-apiserver", "notify", &apiserver);
        self.unit("kube-controller-manager", "simple", &controller_manager);
        self.unit("kube-scheduler", "simple", &scheduler);
        // Short words for the test's own commands.
        let environment = format!(
            "ETCDCTL_API=3 ETCDCTL_ENDPOINTS=https://127.0.0.1:2379 ETCDCTL_CACERT={DIR}/pki/etcd-ca.crt ETCDCTL_CERT={DIR}/pki/etcd.crt ETCDCTL_KEY={DIR}/pki/etcd.key"
        );
        for (program, prefix) in [
            ("kubectl", format!("KUBECONFIG={DIR}/conf/admin.kubeconfig")),
            ("etcdctl", environment),
        ] {
            self.preparations.push(format!(
                "printf '#!/bin/sh\\n{prefix} exec {DIR}/bin/{program} \"$@\"\\n' >/usr/local/bin/{program}; chmod 755 /usr/local/bin/{program}"
            ));
        }
        self
    }

    /// Container runtime, kubelet and kube-proxy.
    pub(crate) fn worker(mut self, runtime: Runtime) -> Self {
        self.files.extend(self.material.of_worker(self.machine));
        for what in ["kubernetes", "containerd"] {
            self.programs.push(self.set.path(what));
        }
        if !self.set.is_classic() {
            self.programs.push(self.set.path("runc"));
            self.programs.push(self.set.shared("crictl"));
        }
        self.preparations.push(format!(
            "mkdir -p /opt/cni /etc/cni/net.d && ln -sfn {DIR}/cni /opt/cni/bin"
        ));
        self.preparations
            .push("sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1".into());
        let runtime_flags = match runtime {
            Runtime::Containerd => self.containerd(),
            Runtime::Docker => self.docker(),
        };
        self.files
            .insert("conf/kubelet.yaml".into(), self.kubelet_configuration());
        self.files.insert(
            "conf/kube-proxy.yaml".into(),
            format!(
                "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\nclusterCIDR: {POD_CIDR}\n\
                 hostnameOverride: {}\nclientConnection: {{kubeconfig: {DIR}/conf/kube-proxy.kubeconfig}}\n\
                 conntrack: {{maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}\n",
                self.machine.name
            ),
        );
        let kubelet = format!(
            "kubelet --config={DIR}/conf/kubelet.yaml --kubeconfig={DIR}/conf/kubelet.kubeconfig
            --hostname-override={} --node-ip={} {runtime_flags}",
            self.machine.name, self.machine.address
        );
        self.unit("kubelet", "simple", &kubelet);
        self.unit(
            "kube-proxy",
            "simple",
            &format!("kube-proxy --config={DIR}/conf/kube-proxy.yaml"),
        );
        self
    }

    /// The configuration that the kubelet's version understands. A machine that is a container
    /// has no say in its control groups' version, nor over swap.
    fn kubelet_configuration(&self) -> String {
        let by_version = if self.set.is_classic() {
            ""
        } else {
            "failCgroupV1: false\ncontainerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n"
        };
        format!(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
             authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {DIR}/pki/ca.crt}}}}\n\
             authorization: {{mode: Webhook}}\ncgroupDriver: cgroupfs\nfailSwapOn: false\nresolvConf: /etc/resolv.conf\n\
             evictionHard: {{memory.available: 10Mi}}\nimageGCHighThresholdPercent: 100\n{by_version}"
        )
    }

    fn containerd(&mut self) -> String {
        let pause = self.set.pause_image();
        // Refused where the outer machine lacks a capability, so containerd is told to do without.
        let configuration = if self.set.is_classic() {
            format!(
                "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"{pause}\"\nrestrict_oom_score_adj = true\n"
            )
        } else {
            format!(
                "version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = '{pause}'\n\
                 [plugins.'io.containerd.cri.v1.runtime']\nrestrict_oom_score_adj = true\n"
            )
        };
        self.files
            .insert("conf/containerd.toml".into(), configuration);
        self.unit(
            "containerd",
            "notify",
            &format!("containerd --config {DIR}/conf/containerd.toml"),
        );
        self.completions.push(format!(
            "{DIR}/bin/ctr -n k8s.io images import {DIR}/images.tar >/dev/null"
        ));
        if self.set.is_classic() {
            "--container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock".into()
        } else {
            String::new()
        }
    }

    fn docker(&mut self) -> String {
        self.programs.push(self.set.path("docker"));
        self.unit("docker", "notify", "dockerd --iptables=false --bridge=none");
        self.completions.push(format!(
            "{DIR}/bin/docker load -qi {DIR}/images.tar >/dev/null"
        ));
        format!(
            "--network-plugin=cni --cni-bin-dir=/opt/cni/bin --cni-conf-dir=/etc/cni/net.d --pod-infra-container-image={}",
            self.set.pause_image()
        )
    }

    /// nginx in front of the masters.
    pub(crate) fn load_balancer(mut self) -> Self {
        let servers: String = self
            .material
            .masters
            .iter()
            .map(|(_, address)| format!("server {address}:6443 max_fails=3 fail_timeout=5s;\n"))
            .collect();
        self.files.insert(
            "conf/nginx.conf".into(),
            format!(
                "load_module {DIR}/nginx/usr/lib/nginx/modules/ngx_stream_module.so;\nuser root;\nworker_processes 1;\ndaemon off;\n\
                 pid /run/plain-nginx.pid;\nerror_log stderr;\nevents {{ worker_connections 1024; }}\n\
                 stream {{\nupstream masters {{\n{servers}}}\nserver {{ listen 8443; proxy_connect_timeout 1s; proxy_pass masters; }}\n}}\n"
            ),
        );
        self.programs.push(self.set.path("nginx").join("usr/sbin"));
        self.unit(
            "load-balancer",
            "simple",
            &format!("nginx -e stderr -c {DIR}/conf/nginx.conf"),
        );
        self
    }

    /// Puts it all on the machine and starts it.
    pub(crate) async fn start(self) {
        let stage = tempfile::tempdir().unwrap();
        self.lay_out(stage.path());
        self.machine.copy_to(stage.path(), DIR).await.unwrap();
        for preparation in &self.preparations {
            now(self.machine, preparation).await;
        }
        let units: Vec<_> = self
            .units
            .iter()
            .map(|name| format!("{name}.service"))
            .collect();
        let files: Vec<_> = units
            .iter()
            .map(|unit| format!("{DIR}/units/{unit}"))
            .collect();
        now(
            self.machine,
            &format!(
                "systemctl enable -q {} && systemctl daemon-reload",
                files.join(" ")
            ),
        )
        .await;
        // Members of a quorum wait for each other, so nothing here waits for one of them.
        let (of_worker, others): (Vec<_>, Vec<_>) = units
            .into_iter()
            .partition(|unit| ["kubelet.service", "kube-proxy.service"].contains(&&**unit));
        self.start_units(&others).await;
        if !of_worker.is_empty() {
            self.wait_for_api_service().await;
            self.start_units(&of_worker).await;
        }
        for completion in &self.completions {
            crate::eventually(self.machine, completion).await;
        }
    }

    async fn start_units(&self, units: &[String]) {
        let start = format!("systemctl start --no-block {}", units.join(" "));
        now(self.machine, &start).await;
    }

    /// Waits until every API server tells of the Service `kubernetes` from its cache. A kubelet that listed Services before
    /// depends on a watch to hear of it, and Kubernetes 1.20's cache may lag for minutes when several API servers start at
    /// once; until then, pods get no address of the API.
    async fn wait_for_api_service(&self) {
        for (_, address) in &self.material.masters {
            let path = "/api/v1/namespaces/default/services/kubernetes?resourceVersion=0";
            let ask = format!("kubectl --server=https://{address}:6443 get --raw '{path}'");
            crate::eventually(self.machine, &ask).await;
        }
    }

    fn lay_out(&self, stage: &Path) {
        for (path, text) in &self.files {
            let path = stage.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let bin = stage.join("bin");
        fs::create_dir_all(&bin).unwrap();
        for directory in &self.programs {
            for program in fs::read_dir(directory).unwrap() {
                let program = program.unwrap();
                let place = bin.join(program.file_name());
                if program.file_name() != "MANIFEST" && !place.exists() {
                    symlink(program.path(), place).unwrap();
                }
            }
        }
        if self.units.contains(&"kubelet") {
            let cni = stage.join("cni");
            fs::create_dir_all(&cni).unwrap();
            for plugin in fs::read_dir(self.set.path("cni")).unwrap() {
                let plugin = plugin.unwrap();
                symlink(plugin.path(), cni.join(plugin.file_name())).unwrap();
            }
            symlink(
                self.set.path("images").join("images.tar"),
                stage.join("images.tar"),
            )
            .unwrap();
        }
        if self.units.contains(&"load-balancer") {
            symlink(self.set.path("nginx"), stage.join("nginx")).unwrap();
        }
    }
}
