//! What the chosen version of Kubernetes has, and what it has no longer.

use super::RelatedTo;
use super::addresses::Networks;
use crate::cluster::{KubeProxyMode, RuntimeKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::Draft;

pub(super) fn check(draft: &Draft, networks: &Networks, diagnostics: &mut Diagnostics) {
    check_socket(draft, diagnostics);
    let Some(version) = draft.kubernetes_version.given() else {
        return;
    };
    let minor = version.value.minor;
    let place = |span: Option<crate::source::Span>| span.unwrap_or(version.span);
    let runtime = draft.runtime.unwrap_or(RuntimeKind::Docker);
    let bridged = draft
        .runtime_endpoint
        .value()
        .is_some_and(|socket| socket.contains("cri-dockerd"));
    if runtime == RuntimeKind::Docker && minor >= 24 && !bridged {
        let said = if draft.runtime.is_absent() {
            "the default runtime, docker,"
        } else {
            "docker"
        };
        let message = format!(
            "Kubernetes {} no longer works with {said} by itself",
            version.value
        );
        diagnostics.push(
            Diagnostic::warning("runtime-gone", place(draft.runtime.span()), message)
                .related_to(draft.runtime.span().map(|_| version.span), "the version")
                .remedy("use runtime: containerd or isulad, or install cri-dockerd and set runtime-endpoint: unix:///run/cri-dockerd.sock"),
        );
    }
    if draft.kube_proxy_mode.value() == Some(&KubeProxyMode::Nftables) && minor < 31 {
        let message = format!(
            "Kubernetes {} has no nftables mode that is on by default",
            version.value
        );
        diagnostics.push(
            Diagnostic::error(
                "version-too-old",
                place(draft.kube_proxy_mode.span()),
                message,
            )
            .related(version.span, "the version")
            .remedy("use iptables or ipvs, or Kubernetes 1.31 or later"),
        );
    }
    let dual = networks.services.is_dual() || networks.pods.is_dual();
    if dual && minor < 21 {
        let span = draft.pod_cidrs.span().or(draft.service_cidrs.span());
        let message = format!(
            "Kubernetes {} has no dual-stack that is on by default",
            version.value
        );
        diagnostics.push(
            Diagnostic::error("version-too-old", place(span), message)
                .related(version.span, "the version")
                .remedy("give one network each, or use Kubernetes 1.21 or later (1.23 for stable dual-stack)"),
        );
    } else if dual && minor < 23 {
        let span = draft.pod_cidrs.span().or(draft.service_cidrs.span());
        let message = format!("dual-stack is still beta in Kubernetes {}", version.value);
        diagnostics.push(
            Diagnostic::warning("beta-feature", place(span), message)
                .related(version.span, "the version")
                .remedy("use Kubernetes 1.23 or later"),
        );
    }
}

/// A socket that by its name belongs to another runtime.
fn check_socket(draft: &Draft, diagnostics: &mut Diagnostics) {
    let Some(socket) = draft.runtime_endpoint.given() else {
        return;
    };
    let runtime = draft.runtime.unwrap_or(RuntimeKind::Docker);
    let name = socket.value.to_ascii_lowercase();
    let other = [
        ("isula", RuntimeKind::Isulad),
        ("containerd.sock", RuntimeKind::Containerd),
        ("docker", RuntimeKind::Docker),
    ]
    .into_iter()
    .find(|(word, kind)| {
        *kind != runtime
            && name.contains(word)
            && !(runtime == RuntimeKind::Containerd && name.contains("containerd"))
    });
    if let Some((_, kind)) = other {
        let message = format!(
            "the socket looks like {}'s, but the runtime is {}",
            kind.as_str(),
            runtime.as_str()
        );
        diagnostics.push(
            Diagnostic::warning("other-socket", socket.span, message)
                .related_to(draft.runtime.span(), "the runtime")
                .remedy(
                    "remove the line to use the runtime's usual socket, or correct one of the two",
                ),
        );
    }
}
