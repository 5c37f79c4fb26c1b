//! A cluster that lives while its file is edited: a plan shows what an edit changes, `deploy` changes just that, and pods go
//! on answering.

use std::{collections::BTreeSet, fs};

use hatchery_sandbox::fault::Fault;
use serde_json::Value;

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

/// What an edit of the file does.
struct Edit {
    what: &'static str,
    from: String,
    to: String,
    /// The machines on which something changes.
    machines: &'static [usize],
    /// Each is in one line of the plan.
    planned: Vec<String>,
}

/// Machines that a plan, or a run, changes.
fn changed(bench: &Bench, names: impl Iterator<Item = String>) -> Vec<usize> {
    let names: BTreeSet<_> = names.collect();
    let machines = bench.lab.machines.iter().enumerate();
    machines
        .filter(|(_, machine)| names.contains(&machine.name))
        .map(|(number, _)| number)
        .collect()
}

impl Bench {
    fn edit(&self, edit: &Edit) {
        let text = fs::read_to_string(self.file()).unwrap();
        assert!(text.contains(&edit.from), "{}: {text}", edit.what);
        fs::write(self.file(), text.replacen(&edit.from, &edit.to, 1)).unwrap();
        let plan = self.hatchery(0, "plan -o json");
        let line = plan.lines().find(|line| line.starts_with('{')).unwrap();
        let plan: Value = serde_json::from_str(line).unwrap();
        let parts = plan["parts"].as_array().unwrap();
        let parts = parts
            .iter()
            .filter(|part| !part["changes"].as_array().unwrap().is_empty());
        let on = parts
            .clone()
            .filter_map(|part| part["machine"].as_str().map(str::to_owned));
        assert_eq!(changed(self, on), edit.machines, "{}: {plan:#}", edit.what);
        let mut lines = Vec::new();
        for part in parts {
            for change in part["changes"].as_array().unwrap() {
                lines.push(format!(
                    "{} {}",
                    change["kind"].as_str().unwrap(),
                    change["what"].as_str().unwrap()
                ));
            }
        }
        for planned in &edit.planned {
            assert!(
                lines.contains(planned),
                "{}: {planned:?} is not in {lines:#?}",
                edit.what
            );
        }

        let done = self.hatchery(0, "deploy --yes -o json");
        let events = done
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let finished = events.filter(|event| event["event"] == "finished" && event["changes"] != 0);
        let on = finished.filter_map(|event| event["machine"].as_str().map(str::to_owned));
        let on = changed(self, on);
        // A node that is labelled or deleted is told with its machine, and so is one that becomes ready.
        assert!(
            edit.machines.iter().all(|one| on.contains(one)),
            "{}: {done}",
            edit.what
        );
        let nothing = self.hatchery(0, "plan --exit-code");
        assert!(
            nothing.contains("nothing to do"),
            "{}: {nothing}",
            edit.what
        );
        println!("{}: as planned", edit.what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_the_file() {
    let bench = Bench::new("t-change", 3, str::to_owned).await;
    bench
        .bring_scripts(&[("prejoin", "true\n"), ("postjoin", "true\n")])
        .await;
    let before = bench.snapshots().await;
    bench.hatchery(0, "deploy");
    let (first, worker) = (&bench.machine(0).name, &bench.machine(2).name);
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
    bench
        .inside(1, &POLL.replace("ADDRESS", address.trim()))
        .await;

    let here = |number: usize| {
        let machine = bench.machine(number);
        format!(
            "  - {{name: {}, ip: {}, port: 22, arch: amd64}}\n",
            machine.name, machine.address
        )
    };
    let labelled = here(2).replace("ip:", "labels: {rack: left}, ip:");
    let tainted = labelled.replace("ip:", "taints: ['story=told:NoSchedule'], ip:");
    let masters = format!("masters:\n{}workers:\n", here(0));
    let edit = |what, from: &str, to: &str, machines, planned: &[&str]| Edit {
        what,
        from: from.to_owned(),
        to: to.to_owned(),
        machines,
        planned: planned.iter().map(|line| (*line).to_owned()).collect(),
    };
    let node = format!("changed node {worker}");
    let gone = format!("gone node {worker}");
    let no_node = format!("gone node {first}");
    let names = "apiserver-cert-sans: {dnsnames: [api.story.test]}\n";
    let endpoint = format!("apiserver-endpoint: {first}:6443\n");
    let certificate = "changed certificate /etc/kubernetes/pki/apiserver.crt";
    let kubelet = "changed unit kubelet.service";
    let edits = [
        edit("a label", &here(2), &labelled, &[], &[&node]),
        // A kubelet that registers anew would bring its taints along.
        edit("a taint", &labelled, &tainted, &[2], &[&node, kubelet]),
        edit("neither", &tainted, &here(2), &[2], &[&node, kubelet]),
        edit(
            "a name of the API",
            "service:\n",
            &format!("{names}service:\n"),
            &[0],
            &[certificate],
        ),
        edit(
            "an argument of kubelets",
            "      \"--image-gc-high",
            "      \"--max-pods\": 99\n      \"--image-gc-high",
            &[0, 1, 2],
            &[kubelet],
        ),
        edit(
            "another endpoint",
            "service:\n",
            &format!("{endpoint}service:\n"),
            &[0, 1, 2],
            &["changed file /etc/kubernetes/kubelet.conf", kubelet],
        ),
        edit("the former endpoint", &endpoint, "", &[0, 1, 2], &[kubelet]),
        edit(
            "a mirror",
            "service:\n",
            "registry-mirrors: [http://mirror.story.test:5000]\nservice:\n",
            &[0, 1, 2],
            &["new file /etc/containerd/certs.d/docker.io/hosts.toml"],
        ),
        edit(
            "no mirror",
            "registry-mirrors: [http://mirror.story.test:5000]\n",
            "",
            &[0, 1, 2],
            &["gone file /etc/containerd/certs.d/docker.io/hosts.toml"],
        ),
        edit(
            "a master that runs no pods",
            &format!("{masters}{}", here(0)),
            &masters,
            &[0],
            &["gone unit kubelet.service", &no_node],
        ),
        edit(
            "a master that runs pods again",
            &masters,
            &format!("{masters}{}", here(0)),
            &[0],
            &["new file /etc/systemd/system/kubelet.service", kubelet],
        ),
        edit(
            "a script less",
            "      - {name: prejoin.sh, type: shell, schedule: prejoin, timeout: 20s}\n",
            "",
            &[0, 1, 2],
            &["gone script prejoin-prejoin.sh"],
        ),
        edit("a worker less", &here(2), "", &[0, 2], &[&gone]),
    ];
    for one in &edits {
        bench.edit(one);
    }
    bench.inside(2, "[ ! -e /var/lib/hatchery ]").await;

    // Addons and scripts come and go with the file that names them.
    bench.bring_addons(&[("story.yaml", "[pause]")]);
    bench.hatchery(0, "deploy");
    bench.kubectl("get deployment story").await;
    bench.bring_addons(&[]);
    let plan = bench.hatchery(4, "plan --exit-code");
    assert!(
        plan.contains("- Deployment default/story: no addon brings it any more"),
        "{plan}"
    );
    bench.hatchery(0, "deploy");
    let left = bench.kubectl("get deployments -o name").await;
    assert_eq!(left, "deployment.apps/web\n");

    let answers = bench.inside(1, "systemctl stop poll; wc -l </tmp/answers; cat /tmp/silence 2>/dev/null; rm -f /tmp/answers /tmp/silence").await;
    let (count, silence) = answers.split_once('\n').unwrap();
    assert!(count.trim().parse::<usize>().unwrap() > 100, "{answers}");
    assert_eq!(silence, "", "nobody answered");
    joined_and_deleted(&bench).await;
    bench.hatchery(0, "cleanup --yes");
    bench.assert_as_before(&before).await;
}

/// The last machine, which is not the cluster's, joins it; a budget keeps it; its power fails, it is deleted, and cleaned when it
/// is back.
async fn joined_and_deleted(bench: &Bench) {
    let (first, last) = (bench.machine(0), bench.machine(2));
    let name = last.name.as_str();
    let refused = [
        ("delete", vec!["nobody"], "has no machine nobody"),
        (
            "delete",
            vec![&first.name[..], name],
            "these cannot leave a cluster yet",
        ),
        (
            "join",
            vec!["--type", "master", "10.9.9.9"],
            "cannot join a cluster yet",
        ),
        ("join", vec!["10.9.9.9", "--name", &first.name], "error["),
    ];
    for (command, words, said) in refused {
        let told = bench.hatchery_by_id(2, command, &words);
        assert!(told.contains(said), "{told}");
    }
    let address = last.address.to_string();
    let hook = bench.scripts(&[(
        "joins.sh",
        "[ \"$EGGO_OPERATOR\" = join ] && hostname >/root/joined",
    )]);
    let hook = hook[0].clone();
    let words = [
        "--name",
        name,
        "--arch",
        "amd64",
        "--posthook",
        &hook,
        &address,
    ];
    let joined = bench.hatchery_by_id(0, "join", &words);
    assert!(joined.contains(", 3 workers, "), "{joined}");
    bench.inside(2, "rm /root/joined").await;
    let again = bench.hatchery_by_id(0, "join", &["--name", name, &address]);
    assert!(again.contains("nothing had to be changed"), "{again}");
    for number in 0..2 {
        bench.inside(number, "[ ! -e /root/joined ]").await;
    }

    // Every pod has to stay where it is.
    bench.kubectl("scale deployment web --replicas=6").await;
    bench
        .kubectl("rollout status deployment/web --timeout=120s")
        .await;
    bench.kubectl("delete pdb web").await;
    bench
        .kubectl("create pdb web --selector=app=web --min-available=6")
        .await;
    let held = bench.hatchery_by_id(3, "delete", &["--drain-timeout", "5s", name]);
    for word in [
        "waited 5 s for pods to leave node",
        "disruption budget web needs 6 healthy pods",
        "--force",
    ] {
        assert!(held.contains(word), "{word:?} is not in: {held}");
    }
    bench.inside(2, "systemctl is-active kubelet").await;

    // A budget cannot keep pods that are lost with their machine.
    bench.lab.fault(name, Fault::Stop).await.unwrap();
    let lost = bench.hatchery_by_id(3, "delete", &[name]);
    assert!(lost.contains(&format!("  not done: {name}\n")), "{lost}");
    let nodes = bench.kubectl("get nodes -o name").await;
    assert!(!nodes.contains(name), "{nodes}");
    bench
        .kubectl("rollout status deployment/web --timeout=120s")
        .await;
    bench.lab.fault(name, Fault::Start).await.unwrap();
    bench.hatchery_by_id(0, "delete", &[name]);
    bench.inside(2, "[ ! -e /var/lib/hatchery ]").await;
    let nodes = bench.kubectl("get nodes -o name").await;
    assert!(!nodes.contains(name), "{nodes}");
    let gone = bench.hatchery_by_id(2, "delete", &[name]);
    assert!(gone.contains(&format!("has no machine {name}")), "{gone}");
}
