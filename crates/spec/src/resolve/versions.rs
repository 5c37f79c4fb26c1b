//! What the chosen version of Kubernetes has, and what it has no longer.

use super::RelatedTo;
use super::addresses::Networks;
use crate::cluster::Role;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::draft::Draft;
use crate::runtimes::RuntimeKind;
use crate::value::Release;
use crate::versions::{Parts, Subject, conflicts};

pub(super) fn check(draft: &Draft, networks: &Networks, diagnostics: &mut Diagnostics) {
    check_socket(draft, diagnostics);
    let Some(version) = draft.kubernetes_version.given() else {
        return;
    };
    let lists = draft.lists.iter();
    let workers = lists.filter(|list| list.list.role() == Role::Worker);
    let items = workers.flat_map(|list| list.items.iter().map(|item| &item.value));
    let runtime = draft.runtime.kind_or_default();
    let endpoint = draft.runtime.endpoint.value();
    let numbers = |release: &Release| (release.major, release.minor);
    let parts = Parts {
        kubernetes: version.value,
        runtime,
        runtime_adapter: runtime.is_adapter_socket(endpoint.map(String::as_str))
            || runtime.installs_adapter(items),
        proxy_mode: draft.kube_proxy.resolve().mode,
        dual_stack: networks.services.is_dual() || networks.pods.is_dual(),
        containerd: draft.containerd_version.value().map(numbers),
        etcd: draft.etcd_version.value().map(numbers),
        coredns: draft.coredns_program_version.value().map(numbers),
    };
    for conflict in conflicts(&parts) {
        let span = match conflict.subject {
            Subject::Runtime => draft.runtime.kind.span(),
            Subject::ProxyMode => draft.kube_proxy.mode.span(),
            Subject::Networks => draft.pod_cidrs.span().or(draft.service_cidrs.span()),
            Subject::Containerd => draft.containerd_version.span(),
            Subject::Etcd => draft.etcd_version.span(),
            Subject::CoreDns => draft.coredns_program_version.span(),
            Subject::Kubernetes => None,
        };
        let make = match conflict.severity {
            Severity::Error => Diagnostic::error,
            Severity::Warning => Diagnostic::warning,
        };
        let is_default = conflict.subject == Subject::Runtime && draft.runtime.kind.is_absent();
        let message = if is_default {
            format!("{}, the default runtime", conflict.message)
        } else {
            conflict.message
        };
        diagnostics.push(
            make(conflict.code, span.unwrap_or(version.span), message)
                .related_to(span.map(|_| version.span), "the version")
                .remedy(conflict.remedy),
        );
    }
}

/// A socket that by its name belongs to another runtime.
fn check_socket(draft: &Draft, diagnostics: &mut Diagnostics) {
    let Some(socket) = draft.runtime.endpoint.given() else {
        return;
    };
    let runtime = draft.runtime.kind_or_default();
    let owner = RuntimeKind::from_socket(&socket.value);
    if let Some(kind) = owner.filter(|kind| *kind != runtime) {
        let message = format!(
            "the socket looks like {}'s, but the runtime is {}",
            kind.as_str(),
            runtime.as_str()
        );
        diagnostics.push(
            Diagnostic::warning("other-socket", socket.span, message)
                .related_to(draft.runtime.kind.span(), "the runtime")
                .remedy(
                    "remove the line to use the runtime's default socket, or correct one of the two",
                ),
        );
    }
}
