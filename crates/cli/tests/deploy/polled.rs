//! A Service that is asked all the time while its cluster changes.

use crate::{bench::Bench, workload::kubectl};

/// Three pods that answer, spread over the nodes. One that ends goes on answering until everybody knows.
const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{key: story, operator: Exists}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: hatchery/agnhost:1.37.0
        imagePullPolicy: Never
        args: [netexec, --http-port=8080]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 3}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

/// Asks ten times a second, and tells of each time that nobody answered within five seconds.
const POLL: &str = "systemd-run -q --unit=poll sh -c 'while :; do \
    curl -sf -m 5 http://ADDRESS/hostname >>/tmp/answers || date >>/tmp/silence; echo >>/tmp/answers; sleep 0.1; done'";
const END: &str = "systemctl stop poll; wc -l </tmp/answers; cat /tmp/silence 2>/dev/null; rm -f /tmp/answers /tmp/silence";

/// A Service that is being asked from a machine.
pub(crate) struct Polled {
    from: usize,
}

impl Polled {
    /// Makes it, and begins to ask.
    pub(crate) async fn begin(bench: &Bench, from: usize) -> Self {
        bench
            .inside(0, &format!("cat >/tmp/trial.yaml <<'END'\n{WEB}\nEND"))
            .await;
        bench
            .eventually(0, &kubectl("get serviceaccount default"))
            .await;
        bench.kubectl("apply -f /tmp/trial.yaml").await;
        bench
            .kubectl("rollout status deployment/web --timeout=120s")
            .await;
        let address = bench
            .kubectl("get service web -o jsonpath='{.spec.clusterIP}'")
            .await;
        // Rules for a new Service come a moment later.
        let ask = format!("curl -sf -m 5 http://{}/hostname", address.trim());
        bench.eventually(from, &ask).await;
        let poll = POLL.replace("ADDRESS", address.trim());
        bench.inside(from, &poll).await;
        Self { from }
    }

    /// It was never silent.
    pub(crate) async fn end(self, bench: &Bench) {
        let answers = bench.inside(self.from, END).await;
        let (count, silence) = answers.split_once('\n').unwrap();
        assert!(count.trim().parse::<usize>().unwrap() > 100, "{answers}");
        assert_eq!(silence, "", "nobody answered");
    }
}
