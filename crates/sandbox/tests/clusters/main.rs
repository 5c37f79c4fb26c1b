//! Both sets of fixtures run as real clusters on sandbox machines, by plain systemd units
//! written here. This proves the fixtures and that their versions fit together, before any of
//! Hatchery's own ways of deploying come into it.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on must fail"
)]

mod material;
mod node;
mod set;

use std::time::Duration;

use hatchery_sandbox::{
    fault::Fault,
    fixtures,
    lab::{Machine, Options},
    test_lab::TestLab,
};

use crate::{
    material::Material,
    node::{Node, POD_CIDR, Runtime},
    set::Set,
};

const MINUTES: Duration = Duration::from_secs(240);

/// What tells why something did not come: the units' own words, and those of every pod that is not ready.
const VIEW: &str = r#"journalctl --no-pager -p notice -n 200 -o cat | grep -v pam_env | tail -n 60
for unit in kube-proxy kube-controller-manager kubelet; do
  echo "== $unit"
  journalctl --no-pager -u "$unit" -n 15 -o cat
done
kubectl get nodes,pods,endpoints -A -o wide
kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name} has pod range {.spec.podCIDR}{"\n"}{end}'
kubectl describe pods | tail -n 40
kubectl get pods -A --no-headers | while read -r namespace pod ready _; do
  test "${ready%/*}" != "${ready#*/}" || continue
  echo "== $namespace/$pod"
  kubectl -n "$namespace" logs "$pod" --all-containers --tail=30 2>&1
  kubectl -n "$namespace" logs "$pod" --all-containers --tail=30 --previous 2>&1
done
true"#;

/// Waits until a command succeeds on a machine and gives its output. When it does not, the
/// machine's own view of its units goes into the message.
async fn eventually(machine: &Machine, command: &str) -> String {
    let deadline = tokio::time::Instant::now() + MINUTES;
    let mut last = String::new();
    while tokio::time::Instant::now() < deadline {
        match machine.run(command).await {
            Ok(output) if output.success() => return output.stdout,
            Ok(output) => last = format!("{}{}", output.stdout, output.stderr),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let view = machine.run(VIEW).await;
    let view = view.map_or_else(|error| error.to_string(), |output| output.stdout);
    panic!(
        "{}: `{command}` did not succeed: {last}\n{view}",
        machine.name
    );
}

async fn now(machine: &Machine, command: &str) -> String {
    let output = machine.run(command).await.unwrap();
    assert!(
        output.success(),
        "{}: `{command}`: {}{}",
        machine.name,
        output.stdout,
        output.stderr
    );
    output.stdout
}

async fn apply(machine: &Machine, manifest: &str) {
    let output = machine
        .run_with_input("kubectl apply -f -", manifest.as_bytes())
        .await
        .unwrap();
    assert!(output.success(), "kubectl apply: {}", output.stderr);
}

/// The pods every node has to bring to Ready: Kubernetes' own test program, serving HTTP, and
/// the cluster's DNS server.
fn trial_pods(set: &Set, node: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: agnhost-{node}
  labels: {{app: agnhost}}
spec:
  nodeName: {node}
  containers:
  - name: agnhost
    image: {agnhost}
    imagePullPolicy: Never
    args: [netexec, --http-port=8080]
    readinessProbe: {{httpGet: {{path: /healthz, port: 8080}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Pod
metadata:
  name: coredns-{node}
spec:
  nodeName: {node}
  containers:
  - name: coredns
    image: {coredns}
    imagePullPolicy: Never
    readinessProbe: {{tcpSocket: {{port: 53}}, periodSeconds: 1}}
---
",
        agnhost = set.agnhost_image(),
        coredns = set.coredns_image(),
    )
}

const SERVICE: &str = "apiVersion: v1
kind: Service
metadata:
  name: agnhost
spec:
  selector: {app: agnhost}
  ports: [{port: 80, targetPort: 8080}]
";

fn network_addon(set: &Set) -> String {
    let template = include_str!("../../../../fixtures/addons/flannel.yaml");
    template
        .replace("__POD_CIDR__", POD_CIDR)
        .replace("__FLANNEL_IMAGE__", &set.flannel_image())
}

/// Nodes become Ready through the network addon, then the trial pods do, reachable by their
/// own addresses from every node and through a Service.
async fn pods_become_ready(set: &Set, master: &Machine, nodes: &[&Machine]) {
    apply(master, &network_addon(set)).await;
    eventually(
        master,
        &format!(
            "test $(kubectl get nodes --no-headers | grep -cw Ready) = {}",
            nodes.len()
        ),
    )
    .await;
    // The controller manager makes it a moment after the namespace.
    eventually(master, "kubectl get serviceaccount default").await;
    let pods: String = nodes
        .iter()
        .map(|node| trial_pods(set, &node.name))
        .collect();
    apply(master, &pods).await;
    apply(master, SERVICE).await;
    for node in nodes {
        for pod in ["agnhost", "coredns"] {
            eventually(
                master,
                &format!(
                    "kubectl wait --for=condition=Ready --timeout=60s pod/{pod}-{}",
                    node.name
                ),
            )
            .await;
        }
    }
    let addresses = now(
        master,
        "kubectl get pods -l app=agnhost -o jsonpath='{.items[*].status.podIP}'",
    )
    .await;
    for address in addresses.split_whitespace() {
        assert!(
            address.starts_with("10.55."),
            "{address} is not of {POD_CIDR}"
        );
        for node in nodes {
            eventually(
                node,
                &format!("curl -sf --max-time 5 http://{address}:8080/hostname"),
            )
            .await;
        }
    }
    let service = now(
        master,
        "kubectl get service agnhost -o jsonpath='{.spec.clusterIP}'",
    )
    .await;
    for node in nodes {
        let name = eventually(
            node,
            &format!("curl -sf --max-time 5 http://{service}/hostname"),
        )
        .await;
        assert!(name.starts_with("agnhost-"), "{name}");
    }
}

/// A kubelet that is restarted while flannel waits for its pod range: the node gets its network all the same.
async fn the_network_comes_although_the_kubelet_restarts(master: &Machine, node: &Machine) {
    let api = "kubectl get service kubernetes -o jsonpath='{.spec.clusterIP}'";
    let cut = format!("OUTPUT -d {} -j DROP", now(master, api).await);
    let files = "/etc/cni/net.d/10-flannel.conflist /run/flannel/subnet.env";
    let before = now(node, "pgrep -x flanneld").await.trim().to_owned();
    now(
        node,
        &format!("iptables -t raw -I {cut} && rm {files} && kill {before}"),
    )
    .await;
    let restarted = format!("pgrep -x flanneld | grep -vx {before}");
    eventually(node, &restarted).await;
    // What it waits for cannot come yet, and its container runs for long enough that whatever goes with it has begun.
    tokio::time::sleep(Duration::from_secs(1)).await;
    now(node, "systemctl restart kubelet").await;
    now(node, &format!("iptables -t raw -D {cut}")).await;
    eventually(node, &format!("ls {files}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_on_one_machine() {
    let set = Set::new(fixtures::ensure(&["new"]).await.unwrap());
    let lab = TestLab::up(Options::new("new".parse().unwrap(), 1))
        .await
        .unwrap();
    let machine = &lab.machines[0];
    let material = Material::new(&[machine], machine.address);
    Node::new(&set, &material, machine)
        .master()
        .worker(Runtime::Containerd)
        .start()
        .await;
    eventually(machine, "kubectl get --raw /readyz").await;
    assert!(now(machine, "kubectl version").await.contains("v1.37.0"));
    pods_become_ready(&set, machine, &[machine]).await;
    the_network_comes_although_the_kubelet_restarts(machine, machine).await;
    let crictl = "/opt/plain/bin/crictl --runtime-endpoint unix:///run/containerd/containerd.sock";
    let pods = now(machine, &format!("{crictl} pods")).await;
    assert!(
        pods.contains(&format!("agnhost-{}", machine.name)),
        "{pods}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn classic_with_three_masters_behind_a_load_balancer() {
    let set = Set::classic(fixtures::ensure(&["classic"]).await.unwrap());
    let lab = TestLab::up(Options::new("classic".parse().unwrap(), 4))
        .await
        .unwrap();
    let [first, second, third, balancer] = &lab.machines[..] else {
        unreachable!("four machines were asked for")
    };
    let masters = [first, second, third];
    let material = Material::new(&masters, balancer.address);
    let node = |machine| Node::new(&set, &material, machine);
    tokio::join!(
        node(first).master().worker(Runtime::Containerd).start(),
        node(second).master().worker(Runtime::Docker).start(),
        node(third).master().start(),
        node(balancer).load_balancer().start(),
    );
    // The administrator's kubeconfig names the load balancer.
    eventually(first, "kubectl get --raw /readyz").await;
    assert!(
        now(first, "kubectl version --short")
            .await
            .contains("v1.20.2")
    );
    pods_become_ready(&set, first, &[first, second]).await;

    let members = now(first, "etcdctl member list").await;
    assert_eq!(members.matches("started").count(), 3, "{members}");
    lab.fault(&third.name, Fault::Stop).await.unwrap();
    // Two of three are a quorum, and the load balancer leads around the lost one.
    eventually(first, "kubectl create namespace after-the-power-cut").await;
    lab.fault(&third.name, Fault::Start).await.unwrap();
    eventually(first, "etcdctl endpoint health --cluster").await;
}
