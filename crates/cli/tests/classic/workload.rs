//! Pods that find each other and the API by name.

use hatchery_sandbox::lab::Machine;

use crate::bench::{KUBECTL, inside, kubectl, shell_eventually};

/// A pod on every node that takes pods finds the API's Service by its name, and each other by a Service of their own.
pub(crate) async fn assert_pods_work(machine: &Machine, count: usize) {
    let version = include_str!("../../../../fixtures/versions.env")
        .lines()
        .find_map(|line| line.strip_prefix("KUBERNETES_NEW="))
        .unwrap();
    let manifest = PODS.replace("VERSION", version);
    let apply = format!("{KUBECTL} apply -f - <<'END'\n{manifest}END\n");
    inside(machine, &apply).await;
    kubectl(machine, "rollout status daemonset/agnhost --timeout=120s").await;
    let addresses = kubectl(
        machine,
        "get pods -l app=agnhost -o jsonpath='{.items[*].status.podIP}'",
    )
    .await;
    assert_eq!(addresses.split_whitespace().count(), count, "{addresses}");
    for address in addresses.split_whitespace() {
        assert!(address.starts_with("10.55."), "{address}");
        let lookup = format!(
            "curl -sS --max-time 20 'http://{address}:8080/shell?cmd=nslookup%20kubernetes.default.svc.cluster.local'"
        );
        // What stands behind a Service reaches the nodes a moment after the pods are ready.
        let found = |answer: &str| answer.contains("Address: 10.66.0.1\\n");
        shell_eventually(machine, &lookup, found).await;
        let dial = format!(
            "curl -sS --max-time 20 'http://{address}:8080/dial?host=agnhost&port=80&request=hostname&protocol=http'"
        );
        shell_eventually(machine, &dial, |answer| answer.contains("[\"agnhost-")).await;
    }
}

const PODS: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agnhost}
spec:
  selector: {matchLabels: {app: agnhost}}
  template:
    metadata: {labels: {app: agnhost}}
    spec:
      containers:
      - name: agnhost
        image: hatchery/agnhost:VERSION
        imagePullPolicy: Never
        args: [netexec, --http-port=8080]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: agnhost}
spec:
  selector: {app: agnhost}
  ports: [{port: 80, targetPort: 8080}]
";
