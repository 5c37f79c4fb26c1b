//! CoreDNS: in pods, or as a service on each master.

mod clients;

use std::net::{IpAddr, Ipv4Addr};

use hatchery_pki::Request;
use hatchery_spec::{Cluster, cluster::CoreDns};

use super::{CA, NodeContext, PKI, host_port, kubeconfig, unprivileged, yaml};
use crate::{
    arguments::systemd_word,
    resource::{Error, Issuer, Resources},
    unit_file::Service,
    versions::{Feature, Versions},
};

const COREFILE: &str = "/etc/dns/Corefile";
const KUBECONFIG: &str = "/etc/kubernetes/coredns.conf";
const USER: &str = "system:coredns";
/// Whom the service runs as.
const ACCOUNT: &str = "coredns";

/// As a service, on a master.
pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let base = format!("{PKI}/coredns");
    resources.leaf(Issuer::Cluster, &base, Request::client(USER))?;
    let (cluster, server) = (node_context.cluster.id.as_str(), node_context.own_api());
    let mut lines = vec!["LimitNOFILE=65536".to_owned()];
    let readable = if node_context.can_drop_privileges() {
        resources.user(ACCOUNT, &format!("/run/{ACCOUNT}"))?;
        let files = [
            CA.into(),
            KUBECONFIG.into(),
            format!("{base}.crt"),
            format!("{base}.key"),
        ];
        lines.extend(unprivileged(ACCOUNT, &files, ""));
        let capability = "CAP_NET_BIND_SERVICE";
        lines.push(format!("AmbientCapabilities={capability}"));
        lines.push(format!("CapabilityBoundingSet={capability}"));
        let own = format!("/run/{ACCOUNT}");
        let (ca, base) = (format!("{own}/ca.crt"), format!("{own}/coredns"));
        let text = kubeconfig(cluster, &server, USER, &ca, &base);
        resources.file(KUBECONFIG, 0o600, text)?;
        format!("{own}/coredns.conf")
    } else {
        let text = kubeconfig(cluster, &server, USER, CA, &base);
        resources.file(KUBECONFIG, 0o600, text)?;
        KUBECONFIG.to_owned()
    };
    let master = Master {
        kubeconfig: &readable,
        address: node_context.node.address,
        clients: &clients::allowed(node_context),
    };
    let text = corefile(node_context.cluster, Some(master), &upstream(node_context));
    resources.file(COREFILE, 0o644, text)?;
    let start = systemd_word(&node_context.program("coredns"));
    let unit = Service {
        description: "CoreDNS",
        notifies: false,
        after: &["kube-apiserver.service"],
        stamp: node_context.stamp(&["coredns"]),
        command: format!("{start} -conf {COREFILE}"),
        lines,
    };
    resources.service(
        "coredns",
        unit.render(),
        &[COREFILE, KUBECONFIG, &format!("{base}.crt")],
    )
}

/// Name servers for names outside: the machine's own file, unless that names CoreDNS or a loopback one.
fn upstream(node_context: &NodeContext<'_>) -> String {
    let Some(addresses) = node_context.upstream_resolvers() else {
        return "/etc/resolv.conf".into();
    };
    let words: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    words.join(" ")
}

/// CoreDNS as a service on a master.
#[derive(Clone, Copy)]
struct Master<'a> {
    /// Where it finds its kubeconfig.
    kubeconfig: &'a str,
    /// Where clients reach it.
    address: IpAddr,
    /// Whom it answers.
    clients: &'a str,
}

/// For a master, or without one for pods. A master shares its network with others, and answers the cluster alone.
fn corefile(cluster: &Cluster, master: Option<Master<'_>>, upstream: &str) -> String {
    let domain = cluster.dns.domain.as_str();
    let forward = if upstream.is_empty() {
        String::new()
    } else {
        format!("    forward . {upstream} {{\n        max_concurrent 1000\n    }}\n")
    };
    let listen = |port: u16| host_port(Ipv4Addr::LOCALHOST.into(), port);
    let [bind, health, ready, kubernetes, metrics] = match master {
        // Pods answer for a while after they are told to end: it takes time until nobody asks them any more. A service's
        // address does not go away with it.
        None => [
            String::new(),
            " {\n        lameduck 5s\n    }".into(),
            String::new(),
            String::new(),
            ":9153".into(),
        ],
        Some(Master {
            kubeconfig,
            address,
            clients,
        }) => [
            format!(
                "    bind {address}\n    acl {{\n        allow net {clients}\n        block\n    }}\n"
            ),
            format!(" {}", listen(8080)),
            format!(" {}", listen(8181)),
            format!("        kubeconfig {kubeconfig} default\n"),
            host_port(address, 9153),
        ],
    };
    format!(
        ".:53 {{
{bind}    errors
    health{health}
    ready{ready}
    kubernetes {domain} in-addr.arpa ip6.arpa {{
{kubernetes}        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus {metrics}
{forward}    cache 30
    loop
    reload
    loadbalance
}}
"
    )
}

/// What the API has to know of it: rights and the Service in any case, the pods where it runs in pods.
pub(crate) fn manifest(cluster: &Cluster, versions: &Versions, images: &[String]) -> String {
    let address = yaml(&cluster.dns.address.to_string());
    let mut text = role();
    match &cluster.dns.coredns {
        CoreDns::Pod {
            image_version,
            replicas,
        } => {
            let image = image(images, image_version);
            let corefile = corefile(cluster, None, "/etc/resolv.conf");
            text += &pods(&image, *replicas, &corefile);
            text += &service(&address, "\n  selector: {k8s-app: kube-dns}");
        }
        CoreDns::Binary => {
            text += &service(&address, "");
            text += &endpoints(cluster, versions);
        }
    }
    text
}

/// What runs in pods in any cluster that has them.
pub(crate) fn manifest_of_pods(cluster: &Cluster, images: &[String]) -> String {
    let corefile = corefile(cluster, None, "/etc/resolv.conf");
    pods(&image(images, ""), 1, &corefile)
}

/// Of the archives' images the one of this version, otherwise the usual name.
fn image(images: &[String], version: &str) -> String {
    let wanted = version.trim_start_matches('v');
    let fits = |image: &&String| {
        image.rsplit_once(':').is_some_and(|(path, tag)| {
            path.rsplit('/').next() == Some("coredns") && tag.trim_start_matches('v') == wanted
        })
    };
    images
        .iter()
        .find(fits)
        .cloned()
        .unwrap_or_else(|| format!("docker.io/coredns/coredns:{version}"))
}

fn role() -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: '{USER}'}}
rules:
- {{apiGroups: [''], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}}
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: '{USER}'}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '{USER}'}}
subjects:
- {{kind: ServiceAccount, name: coredns, namespace: kube-system}}
- {{apiGroup: rbac.authorization.k8s.io, kind: User, name: '{USER}'}}
---
"
    )
}

fn service(address: &str, selector: &str) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {{k8s-app: kube-dns, kubernetes.io/name: CoreDNS}}
  annotations: {{prometheus.io/port: '9153', prometheus.io/scrape: 'true'}}
spec:{selector}
  clusterIP: {address}
  ports:
  - {{name: dns, port: 53, protocol: UDP, targetPort: 53}}
  - {{name: dns-tcp, port: 53, protocol: TCP, targetPort: 53}}
  - {{name: metrics, port: 9153, protocol: TCP, targetPort: 9153}}
---
"
    )
}

/// The masters stand behind a Service that has no pods.
fn endpoints(cluster: &Cluster, versions: &Versions) -> String {
    let masters: Vec<_> = cluster.masters().map(|master| master.address).collect();
    let ports = [
        ("dns", 53, "UDP"),
        ("dns-tcp", 53, "TCP"),
        ("metrics", 9153, "TCP"),
    ];
    if versions.has(Feature::EndpointSlices) {
        let family = if masters.iter().all(std::net::IpAddr::is_ipv6) {
            "IPv6"
        } else {
            "IPv4"
        };
        let list: Vec<_> = masters
            .iter()
            .map(|address| format!("- {{addresses: ['{address}'], conditions: {{ready: true}}}}\n"))
            .collect();
        let ports: Vec<_> = ports
            .iter()
            .map(|(name, port, protocol)| {
                format!("- {{name: {name}, port: {port}, protocol: {protocol}}}\n")
            })
            .collect();
        return format!(
            "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns-masters
  namespace: kube-system
  labels: {{kubernetes.io/service-name: kube-dns, endpointslice.kubernetes.io/managed-by: hatchery}}
addressType: {family}
endpoints:
{}ports:
{}",
            list.concat(),
            ports.concat()
        );
    }
    let addresses: Vec<_> = masters
        .iter()
        .map(|address| format!("  - {{ip: '{address}'}}\n"))
        .collect();
    let ports: Vec<_> = ports
        .iter()
        .map(|(name, port, protocol)| {
            format!("  - {{name: {name}, port: {port}, protocol: {protocol}}}\n")
        })
        .collect();
    format!(
        "apiVersion: v1
kind: Endpoints
metadata: {{name: kube-dns, namespace: kube-system}}
subsets:
- addresses:
{}  ports:
{}",
        addresses.concat(),
        ports.concat()
    )
}

fn pods(image: &str, replicas: u32, corefile: &str) -> String {
    let corefile: String = corefile
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    let image = yaml(image);
    format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: coredns, namespace: kube-system}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
{corefile}---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: coredns
  namespace: kube-system
  labels: {{k8s-app: kube-dns}}
spec:
  replicas: {replicas}
  strategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 1}}}}
  selector: {{matchLabels: {{k8s-app: kube-dns}}}}
  template:
    metadata: {{labels: {{k8s-app: kube-dns}}}}
    spec:
      priorityClassName: system-cluster-critical
      serviceAccountName: coredns
      tolerations:
      - {{key: CriticalAddonsOnly, operator: Exists}}
      - {{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}}
      - {{key: node-role.kubernetes.io/master, effect: NoSchedule}}
      nodeSelector: {{kubernetes.io/os: linux}}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              labelSelector: {{matchLabels: {{k8s-app: kube-dns}}}}
              topologyKey: kubernetes.io/hostname
      containers:
      - name: coredns
        image: {image}
        imagePullPolicy: IfNotPresent
        args: [-conf, /etc/coredns/Corefile]
        resources: {{limits: {{memory: 170Mi}}, requests: {{cpu: 100m, memory: 70Mi}}}}
        ports:
        - {{containerPort: 53, name: dns, protocol: UDP}}
        - {{containerPort: 53, name: dns-tcp, protocol: TCP}}
        - {{containerPort: 9153, name: metrics, protocol: TCP}}
        livenessProbe: {{httpGet: {{path: /health, port: 8080}}, initialDelaySeconds: 60, timeoutSeconds: 5, failureThreshold: 5}}
        readinessProbe: {{httpGet: {{path: /ready, port: 8181}}, periodSeconds: 2}}
        securityContext:
          allowPrivilegeEscalation: false
          capabilities: {{add: [NET_BIND_SERVICE], drop: [all]}}
          readOnlyRootFilesystem: true
        volumeMounts:
        - {{name: config, mountPath: /etc/coredns, readOnly: true}}
      dnsPolicy: Default
      volumes:
      - name: config
        configMap: {{name: coredns, items: [{{key: Corefile, path: Corefile}}]}}
---
"
    )
}
