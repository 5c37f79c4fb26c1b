//! What would harm a cluster that lives is refused, and leaves no trace.

use std::fs;

use crate::bench::Bench;

/// Files of ours on a machine, and which processes its services are.
const TRACES: &str = "find /var/lib/hatchery /etc/kubernetes /etc/etcd /etc/systemd/system /usr/bin -type f -print0 | sort -z | \
    xargs -0 sha256sum | sha256sum";

/// Asks for what cannot be done to a cluster of one master and two workers whose archive is the test's own.
pub(crate) async fn is_not_harmed(bench: &Bench) {
    bench
        .kubectl("create configmap kept --from-literal=answer=42")
        .await;
    let before = traces(bench).await;
    let name = |number: usize| bench.machine(number).name.as_str();
    let refused: [(std::path::PathBuf, &[&str]); 2] = [
        (
            bench.with_machines(&[0, 1, 2], &[0, 1, 2]),
            &[
                &format!(
                    "error[etcd-members]: {}, {}: would become",
                    name(1),
                    name(2)
                ),
                &format!("error[masters]: {}, {}: would become", name(1), name(2)),
            ],
        ),
        (
            bench.bring_later_version("v1.37.0", "v1.39.0"),
            &[&format!(
                "error[kubernetes-version]: {}, {}, {}: run Kubernetes 1.37.0, and the file brings 1.39.0",
                name(0),
                name(1),
                name(2)
            )],
        ),
    ];
    for (file, words) in refused {
        for command in ["plan", "deploy"] {
            let said = bench.hatchery_with(2, command, &file);
            for word in words {
                assert!(said.contains(word), "{word:?} is not in: {said}");
            }
            assert!(said.contains("nothing was changed"), "{said}");
        }
        assert_eq!(traces(bench).await, before);
        let kept = bench.kubectl("get configmap kept -o jsonpath={.data.answer}");
        assert_eq!(kept.await, "42");
        fs::remove_file(file).unwrap();
    }
    fs::remove_file(bench.home().join("later.tar")).unwrap();
    let fewer = bench.with_machines(&[0], &[0, 1]);
    let said = bench.hatchery_with(2, "deploy", &fewer);
    assert!(
        said.contains(&format!("removed from cluster {}: {}", bench.id, name(2))),
        "{said}"
    );
    assert_eq!(traces(bench).await, before);
    let members = "ETCDCTL_API=3 etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt \
        --cert /etc/kubernetes/pki/etcd/healthcheck-client.crt --key /etc/kubernetes/pki/etcd/healthcheck-client.key member list";
    assert_eq!(bench.inside(0, members).await.lines().count(), 1);
}

/// What is remembered here, and what is on the machines.
async fn traces(bench: &Bench) -> Vec<String> {
    let mut traces = bench.started().await;
    for number in 0..bench.lab.machines.len() {
        traces.push(bench.inside(number, TRACES).await);
    }
    for name in ["cluster.json", "deploy.yaml"] {
        let path = bench.home().join("clusters").join(&bench.id).join(name);
        traces.push(fs::read_to_string(path).unwrap());
    }
    traces
}
