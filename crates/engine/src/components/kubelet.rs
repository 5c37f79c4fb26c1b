//! kubelet, on each worker.
//!
//! Its first client certificate is ours; from then on it asks the cluster for the next one by itself. Its serving
//! certificate is ours too and renewed with the others.

use std::fmt::Write as _;

use hatchery_pki::Request;
use hatchery_spec::cluster::Component;

use super::{CA, CIPHER_SUITES, NodeContext, PKI, SIGNER, api_client, yaml};
use crate::{
    arguments::Flags,
    resource::{Error, Issuer, Resources},
    taints,
    unit_file::Service,
    versions::Feature,
};

/// Where kubeadm puts them, and so where tools look for them.
const CONFIGURATION: &str = "/var/lib/kubelet/config.yaml";
const KUBECONFIG: &str = "/etc/kubernetes/kubelet.conf";
/// What eggo calls the same files; scripts may know these names.
const LINKS: [(&str, &str); 2] = [
    ("/etc/kubernetes/kubelet_config.yaml", CONFIGURATION),
    ("/etc/kubernetes/kubelet.kubeconfig", KUBECONFIG),
];
const RESOLVER: &str = "/etc/kubernetes/resolv.conf";

pub(crate) fn resources(
    node_context: &NodeContext<'_>,
    resources: &mut Resources,
) -> Result<(), Error> {
    let (client, serving) = (format!("{PKI}/kubelet-client"), format!("{PKI}/kubelet"));
    let user = format!("system:node:{}", node_context.node.name);
    let request = Request::client(user.as_str()).in_group("system:nodes");
    api_client(
        node_context,
        resources,
        &node_context.api(),
        KUBECONFIG,
        &client,
        request,
    )?;
    if node_context.cluster.kubelet.serving_certificate {
        let request = Request::server(user.as_str())
            .in_group("system:nodes")
            .with_dns_names([node_context.node.name.as_str()])
            .with_ips([node_context.node.address]);
        resources.leaf(Issuer::Cluster, &serving, request)?;
    }
    resources.own_directory("/var/lib/kubelet", 0o750)?;
    resources.file(CONFIGURATION, 0o600, configuration(node_context))?;
    for (path, target) in LINKS {
        resources.link(path, target)?;
    }
    let mut files = vec![
        CONFIGURATION.to_owned(),
        KUBECONFIG.into(),
        CA.into(),
        SIGNER.into(),
        format!("{client}.crt"),
    ];
    if let Some(text) = upstream_resolvers(node_context) {
        resources.file(RESOLVER, 0o644, text)?;
        files.push(RESOLVER.into());
    }
    if node_context.cluster.kubelet.serving_certificate {
        files.push(format!("{serving}.crt"));
    }
    resources.own_directory("/var/log/pods", 0o750)?;
    resources.own_directory("/var/log/containers", 0o755)?;
    let mut lines = node_context.protected(-999);
    lines.extend([
        "LimitNOFILE=1048576".into(),
        "KillMode=process".into(),
        "Delegate=yes".into(),
    ]);
    let unit = Service {
        description: "Kubernetes node agent",
        notifies: false,
        after: &[node_context.runtime().unit()],
        stamp: node_context.stamp(&["kubelet"]),
        command: flags(node_context).command(&node_context.program("kubelet")),
        lines,
    };
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    resources.service("kubelet", unit.render(), &files)
}

pub(crate) fn flags(node_context: &NodeContext<'_>) -> Flags {
    let mut flags = Flags::new([
        ("config", CONFIGURATION.to_owned()),
        ("hostname-override", node_context.node.name.to_string()),
        ("kubeconfig", KUBECONFIG.into()),
        ("node-ip", node_context.node.address.to_string()),
    ]);
    if node_context.has_built_in_runtime() {
        let runtime = node_context.runtime();
        for (name, value) in runtime.built_in_flags(node_context.cluster) {
            flags.set(name, value);
        }
    } else {
        if node_context.versions.has(Feature::RemoteRuntimeFlag) {
            flags.set("container-runtime", "remote");
        }
        if !node_context
            .versions
            .has(Feature::RuntimeEndpointInConfiguration)
            && let Some(endpoint) = node_context.runtime_endpoint()
        {
            flags.set("container-runtime-endpoint", endpoint);
        }
    }
    // With the taint from its first moment on, nothing is put there by chance.
    let taints: Vec<_> = taints::for_node(
        node_context.cluster,
        node_context.versions,
        node_context.node,
    )
    .iter()
    .map(ToString::to_string)
    .collect();
    if !taints.is_empty() {
        flags.set("register-with-taints", taints.join(","));
    }
    flags.overridden(node_context.extra(Component::Kubelet))
}

fn configuration(node_context: &NodeContext<'_>) -> String {
    let cluster = node_context.cluster;
    let mut text = format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: {SIGNER}}}
authorization: {{mode: Webhook}}
cgroupDriver: {driver}
clusterDNS: [{dns}]
clusterDomain: {domain}
eventRecordQPS: 5
kubeAPIBurst: 100
kubeAPIQPS: 50
makeIPTablesUtilChains: true
protectKernelDefaults: {protect}
readOnlyPort: 0
resolvConf: {resolver}
rotateCertificates: true
runtimeRequestTimeout: 15m0s
tlsCipherSuites: [{suites}]
tlsMinVersion: VersionTLS12
volumePluginDir: /var/lib/kubelet/volume-plugins
",
        driver = node_context.cgroup_driver(),
        dns = yaml(&cluster.dns.address.to_string()),
        domain = yaml(cluster.dns.domain.as_str()),
        protect = !node_context.is_container(),
        suites = CIPHER_SUITES.join(", "),
        resolver = upstream_resolvers(node_context).map_or("/etc/resolv.conf", |_| RESOLVER),
    );
    if cluster.kubelet.serving_certificate {
        let _ = writeln!(
            text,
            "tlsCertFile: {PKI}/kubelet.crt\ntlsPrivateKeyFile: {PKI}/kubelet.key"
        );
    }
    if node_context
        .versions
        .has(Feature::RuntimeEndpointInConfiguration)
        && let Some(endpoint) = node_context.runtime_endpoint()
    {
        let _ = writeln!(text, "containerRuntimeEndpoint: {}", yaml(endpoint));
    }
    if node_context.has_cgroup_v1() && node_context.versions.has(Feature::FailCgroupV1) {
        text += "failCgroupV1: false\n";
    }
    if !node_context.versions.has(Feature::ImmediateReadiness) {
        // It looks at itself more often than every ten seconds, and tells as rarely as ever unless something changed.
        text += "nodeStatusReportFrequency: 5m0s\nnodeStatusUpdateFrequency: 3s\n";
    }
    if node_context.is_container() {
        // How full the disk is, is the outer machine's affair: images that came from archives would be thrown away
        // for the sake of others, and no registry brings them back.
        text += "imageGCHighThresholdPercent: 100\nevictionHard: {memory.available: 100Mi}\n";
    } else if !node_context.installation.images.is_empty() {
        // A kubelet that evicts deletes unused images first, and would begin when 15 % of the disk are left.
        text += "imageGCHighThresholdPercent: 100\nevictionHard: {imagefs.available: 5%, memory.available: 100Mi, \
                 nodefs.available: 5%, nodefs.inodesFree: 5%}\n";
    }
    // Swap of a machine that is a container belongs to another; elsewhere preflight has spoken of it.
    let swap = node_context
        .facts
        .swap
        .as_ref()
        .is_some_and(|swap| !swap.is_empty());
    if swap || node_context.is_container() {
        text += "failSwapOn: false\n";
    }
    text
}

/// Name servers for pods where the machine's own is on its loopback, which pods cannot reach.
fn upstream_resolvers(node_context: &NodeContext<'_>) -> Option<String> {
    let addresses = node_context.upstream_resolvers()?;
    let mut text = String::new();
    for address in &addresses {
        let _ = writeln!(text, "nameserver {address}");
    }
    let search = node_context
        .facts
        .resolver
        .as_ref()
        .map(|resolver| &resolver.search);
    if let Some(search) = search.filter(|search| !addresses.is_empty() && !search.is_empty()) {
        let _ = writeln!(text, "search {}", search.join(" "));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use hatchery_host::content::Content;

    use super::*;
    use crate::{components::trial::Trial, package::ImageArchive};

    #[test]
    fn images_that_cannot_be_pulled_again_are_kept() {
        let mut trial = Trial::new(37, "");
        assert!(!configuration(&trial.node_context()).contains("imageGC"));
        let archive = Content::bytes(*b"images");
        trial.installation.images.push(ImageArchive {
            content: archive,
            references: vec!["docker.io/a/b:1".into()],
        });
        let text = configuration(&trial.node_context());
        assert!(text.contains(
            "imageGCHighThresholdPercent: 100\nevictionHard: {imagefs.available: 5%, memory"
        ));
    }
}
