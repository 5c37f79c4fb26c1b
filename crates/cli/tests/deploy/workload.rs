//! What a user does with a cluster: pods on every node that reach each other in every way.

use hatchery_sandbox::lab::Machine;

use crate::bench::Bench;

/// Pods on both nodes talk to each other by pod address, Service address and name; from outside by NodePort; logs, exec and
/// port-forward; a name outside is resolved.
pub(crate) async fn works(bench: &Bench, domain: &str, pods: &str, services: &str) {
    let nodes = bench.kubectl("get nodes --no-headers").await;
    assert_eq!(
        nodes.matches(" Ready ").count(),
        bench.lab.machines.len(),
        "{nodes}"
    );
    let machines: Vec<_> = bench.lab.machines.iter().collect();
    begin(bench, &machines, "hatchery/agnhost:1.37.0").await;
    let addresses = bench
        .kubectl("get pods -l app=trial -o jsonpath='{.items[*].status.podIP}'")
        .await;
    let service = bench
        .kubectl("get service trial -o jsonpath='{.spec.clusterIP}'")
        .await;
    assert!(
        addresses
            .split_whitespace()
            .all(|address| address.starts_with(pods)),
        "{addresses}"
    );
    assert!(service.starts_with(services), "{service}");
    reach_each_other(bench, &machines, domain).await;
    answer_from_outside(bench, &machines).await;
    for from in &bench.lab.machines {
        let resolve = format!(
            "exec trial-{} -- /agnhost connect --timeout=5s www.outside.test:80",
            from.name
        );
        bench.eventually(0, &kubectl(&resolve)).await;
    }
    let first = &bench.machine(0).name;
    let logs = bench
        .kubectl(&format!("logs trial-{}", bench.machine(1).name))
        .await;
    assert!(logs.contains("8080"), "{logs}");
    let forward = format!(
        "timeout 20 {} & for i in $(seq 40); do curl -sf http://127.0.0.1:18080/hostname && exit 0; sleep 0.25; done; exit 1",
        kubectl(&format!("port-forward pod/trial-{first} 18080:8080"))
    );
    let answer = bench.inside(0, &forward).await;
    assert!(answer.contains(&format!("trial-{first}")), "{answer}");
}

/// A pod on each of these machines, and a Service for all of them.
pub(crate) async fn begin(bench: &Bench, machines: &[&Machine], image: &str) {
    let mut manifest = String::from(SERVICE);
    for machine in machines {
        manifest += &POD.replace("NODE", &machine.name).replace("IMAGE", image);
    }
    bench
        .inside(0, &format!("cat >/tmp/trial.yaml <<'END'\n{manifest}\nEND"))
        .await;
    bench
        .eventually(0, &kubectl("get serviceaccount default"))
        .await;
    bench.kubectl("apply -f /tmp/trial.yaml").await;
    bench
        .kubectl("wait --for=condition=Ready pod -l app=trial --timeout=120s")
        .await;
}

/// From each pod of [`begin`] to each by its address, to the Service by its address and by its name, and from outside by the
/// Service's port on each machine.
pub(crate) async fn reach_each_other(bench: &Bench, machines: &[&Machine], domain: &str) {
    let addresses = bench
        .kubectl("get pods -l app=trial -o jsonpath='{.items[*].status.podIP}'")
        .await;
    assert_eq!(addresses.split_whitespace().count(), machines.len());
    let service = bench
        .kubectl("get service trial -o jsonpath='{.spec.clusterIP}'")
        .await;
    for from in machines {
        let mut targets: Vec<_> = addresses
            .split_whitespace()
            .map(|address| format!("{address}:8080"))
            .collect();
        targets.push(format!("{service}:80"));
        targets.push(format!("trial.default.svc.{domain}:80"));
        for target in targets {
            // Inside the pod, by Kubernetes' own test program: exec through the API server too.
            let connect = format!(
                "exec trial-{} -- /agnhost connect --timeout=5s {target}",
                from.name
            );
            bench.eventually(0, &kubectl(&connect)).await;
        }
    }
}

/// From the control machine, which is outside of the cluster.
async fn answer_from_outside(bench: &Bench, machines: &[&Machine]) {
    for url in node_ports(bench, machines).await {
        let answer = curl(&url).await;
        assert!(answer.starts_with("trial-"), "{url}: {answer}");
    }
}

/// Where each machine offers the pods to whoever is outside of the cluster.
pub(crate) async fn node_ports(bench: &Bench, machines: &[&Machine]) -> Vec<String> {
    let port = bench
        .kubectl("get service trial -o jsonpath='{.spec.ports[0].nodePort}'")
        .await;
    let url = |machine: &&Machine| format!("http://{}:{port}/hostname", machine.address);
    machines.iter().map(url).collect()
}

pub(crate) fn kubectl(arguments: &str) -> String {
    format!("kubectl --kubeconfig /etc/kubernetes/admin.conf --cache-dir /tmp/kubectl {arguments}")
}

async fn curl(url: &str) -> String {
    for _ in 0..20 {
        let output = tokio::process::Command::new("curl")
            .args(["-sf", "--max-time", "5", url])
            .output()
            .await
            .unwrap();
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    panic!("{url} does not answer");
}

const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: trial}
spec:
  type: NodePort
  selector: {app: trial}
  ports: [{port: 80, targetPort: 8080}]
";

const POD: &str = "---
apiVersion: v1
kind: Pod
metadata: {name: trial-NODE, labels: {app: trial}}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers:
  - name: agnhost
    image: IMAGE
    imagePullPolicy: IfNotPresent
    args: [netexec, --http-port=8080]
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
";
