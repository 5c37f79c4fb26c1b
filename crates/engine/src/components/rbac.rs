//! What may do what, beside Kubernetes' own rules.

use super::api_server::KUBELET_CLIENT;

/// Bindings that kubelets and the API server need.
pub(crate) fn manifest() -> String {
    let bindings = [
        // Kubelets renew their own certificates.
        (
            "hatchery:node-certificate-renewal",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "Group",
            "system:nodes",
        ),
        // Logs, exec and port-forward go through the API server to kubelets.
        (
            "hatchery:api-server-to-kubelets",
            "system:kubelet-api-admin",
            "User",
            KUBELET_CLIENT,
        ),
    ];
    let documents = bindings.map(|(name, role, kind, subject)| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: '{name}'}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '{role}'}}
subjects:
- {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: '{subject}'}}
"
        )
    });
    documents.join("---\n")
}
