//! Variables that become arguments of the cluster's components.

use super::Reader;
use crate::cluster::Component::{
    self, Etcd, KubeApiserver, KubeControllerManager, KubeProxy, KubeScheduler, Kubelet,
};
use crate::draft::Field;
use crate::source::{Span, Spanned};
use crate::tree::Node;
use crate::value::Mismatch;
use crate::walk::{report_expected, report_mismatch, section, values, word};

/// A variable, and the arguments that it is the value of; for etcd environment variables.
const FLAGS: [(&str, &[(Component, &str)]); 21] = [
    ("kubelet_max_pods", &[(Kubelet, "--max-pods")]),
    ("kubelet_pods_per_core", &[(Kubelet, "--pods-per-core")]),
    (
        "kubelet_status_update_frequency",
        &[(Kubelet, "--node-status-update-frequency")],
    ),
    ("kube_read_only_port", &[(Kubelet, "--read-only-port")]),
    (
        "kube_log_level",
        &[
            (KubeApiserver, "--v"),
            (KubeControllerManager, "--v"),
            (KubeScheduler, "--v"),
            (KubeProxy, "--v"),
            (Kubelet, "--v"),
        ],
    ),
    (
        "kube_apiserver_node_port_range",
        &[(KubeApiserver, "--service-node-port-range")],
    ),
    (
        "kube_apiserver_pod_eviction_not_ready_timeout_seconds",
        &[(KubeApiserver, "--default-not-ready-toleration-seconds")],
    ),
    (
        "kube_apiserver_pod_eviction_unreachable_timeout_seconds",
        &[(KubeApiserver, "--default-unreachable-toleration-seconds")],
    ),
    (
        "kube_api_anonymous_auth",
        &[(KubeApiserver, "--anonymous-auth")],
    ),
    ("event_ttl_duration", &[(KubeApiserver, "--event-ttl")]),
    ("tls_min_version", &[(KubeApiserver, "--tls-min-version")]),
    (
        "kube_controller_node_monitor_grace_period",
        &[(KubeControllerManager, "--node-monitor-grace-period")],
    ),
    (
        "kube_controller_node_monitor_period",
        &[(KubeControllerManager, "--node-monitor-period")],
    ),
    (
        "kube_controller_terminated_pod_gc_threshold",
        &[(KubeControllerManager, "--terminated-pod-gc-threshold")],
    ),
    ("kube_proxy_strict_arp", &[(KubeProxy, "--ipvs-strict-arp")]),
    (
        "etcd_quota_backend_bytes",
        &[(Etcd, "ETCD_QUOTA_BACKEND_BYTES")],
    ),
    (
        "etcd_heartbeat_interval",
        &[(Etcd, "ETCD_HEARTBEAT_INTERVAL")],
    ),
    ("etcd_election_timeout", &[(Etcd, "ETCD_ELECTION_TIMEOUT")]),
    ("etcd_snapshot_count", &[(Etcd, "ETCD_SNAPSHOT_COUNT")]),
    (
        "etcd_compaction_retention",
        &[(Etcd, "ETCD_AUTO_COMPACTION_RETENTION")],
    ),
    (
        "etcd_max_request_bytes",
        &[(Etcd, "ETCD_MAX_REQUEST_BYTES")],
    ),
];

/// Variables that hold arguments by name.
const SECTIONS: [(&str, Component); 3] = [
    ("kube_kubeadm_apiserver_extra_args", KubeApiserver),
    ("kube_kubeadm_controller_extra_args", KubeControllerManager),
    ("kube_kubeadm_scheduler_extra_args", KubeScheduler),
];

impl Reader<'_, '_> {
    /// Those with a variable of their own first, so that those given by name replace them.
    pub(super) fn arguments(&mut self) {
        for (name, flags) in FLAGS {
            if let Field::Given(given) = self.cluster_field(&[name], "bad-argument", plain) {
                for (component, flag) in flags {
                    self.argument(*component, flag, given.span, given.value.clone());
                }
            }
        }
        for (name, component) in SECTIONS {
            if let Ok(Some(node)) = self.node(name) {
                self.by_name(component, &node);
            }
        }
        if let Ok(Some(node)) = self.node("kubelet_custom_flags") {
            for flag in values(&node, "bad-argument", flag, self.diagnostics) {
                let (name, value) = flag.value;
                self.argument(Kubelet, &name, flag.span, value);
            }
        }
    }

    fn by_name(&mut self, component: Component, node: &Node) {
        for (key, node) in section(node, self.diagnostics).unwrap_or_default() {
            let text = match node.text() {
                Some(text) => text,
                None if node.is_null() => "",
                None => {
                    report_expected("a single value", node, self.diagnostics);
                    continue;
                }
            };
            let whole = format!("--{}={text}", key.text.trim_start_matches('-'));
            match flag(&whole) {
                Ok((name, value)) => self.argument(component, &name, key.span, value),
                Err(wrong) => {
                    report_mismatch(&whole, key.span, "bad-argument", wrong, self.diagnostics);
                }
            }
        }
    }

    /// Gives a component an argument, instead of an earlier one of the same name.
    pub(super) fn argument(&mut self, component: Component, name: &str, span: Span, value: String) {
        let all = &mut self.draft.extra_args;
        all.retain(|(of, one, _)| *of != component || one.value != name);
        all.push((component, Spanned::new(name.to_owned(), span), value));
    }
}

/// A single word; truth in the way that programs want it.
fn plain(text: &str) -> Result<String, Mismatch> {
    let text = word(text)?;
    Ok(match text.as_str() {
        "True" | "TRUE" | "yes" => "true".to_owned(),
        "False" | "FALSE" | "no" => "false".to_owned(),
        _ => text,
    })
}

/// `--name=value`, or `--name` for true.
fn flag(text: &str) -> Result<(String, String), Mismatch> {
    let (name, value) = text.split_once('=').unwrap_or((text, "true"));
    let bare = name.strip_prefix("--").unwrap_or_default();
    let valid = bare
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && bare.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !valid || value.chars().any(char::is_control) {
        return Err(Mismatch::new(
            "not an argument",
            "write --name=value, on one line",
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}
