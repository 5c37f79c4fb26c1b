use serde_json::{Value, from_value, json};

use super::*;

fn rollout(kind: Workload, object: Value) -> Rollout {
    match kind {
        Workload::Deployment => from_value::<Deployment>(object).unwrap().into(),
        Workload::DaemonSet => from_value::<DaemonSet>(object).unwrap().into(),
        Workload::StatefulSet => from_value::<StatefulSet>(object).unwrap().into(),
    }
}

fn check(kind: Workload, spec: &Value, status: &Value) -> String {
    let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
    let checked = rollout(kind, object).check(0, 0);
    checked.err().unwrap_or_else(|| "done".into())
}

#[test]
fn a_pod_that_has_just_been_started_again_is_not_settled() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let pod = |restarts: i64, seconds: i64| {
        let started = now - SignedDuration::from_secs(seconds);
        json!({"status": {"containerStatuses": [
            {"restartCount": restarts, "state": {"running": {"startedAt": started.to_string()}}},
        ]}})
    };
    let waiting = json!({"status": {"containerStatuses": [
        {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]}});
    let count = |pods: &[Value]| unsettled(&from_value::<Vec<Pod>>(json!(pods)).unwrap(), now);
    assert_eq!(count(&[pod(0, 1), pod(3, 60), waiting, json!({})]), 0);
    assert_eq!(count(&[pod(1, 1), pod(2, 9), pod(1, -3)]), 3);

    let web = json!({
        "spec": {"replicas": 1},
        "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    });
    let web = rollout(Workload::Deployment, web);
    assert_eq!(web.check(0, 0), Ok(()));
    assert_eq!(web.check(0, 1).unwrap_err(), "0 of 1 pods are available");
}

#[test]
fn a_deployment() {
    let of = |status: Value| check(Workload::Deployment, &json!({"replicas": 3}), &status);
    assert_eq!(
        of(json!({"observedGeneration": 1})),
        "its controller has not seen it yet"
    );
    assert_eq!(
        of(json!({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 3})),
        "1 of 3 pods are new"
    );
    assert_eq!(
        of(json!({"observedGeneration": 2, "updatedReplicas": 3, "replicas": 4})),
        "1 old pods are still there"
    );
    assert_eq!(
        of(json!({
            "observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 2,
            "conditions": [{"type": "Available", "status": "False", "message": "no"},
                {"type": "ReplicaFailure", "status": "True", "message": "quota exceeded"}],
        })),
        "2 of 3 pods are available; quota exceeded"
    );
    let done = json!({"observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 3});
    assert_eq!(of(done), "done");
}

#[test]
fn a_daemon_set() {
    let of = |spec: Value, status: Value| check(Workload::DaemonSet, &spec, &status);
    let status = json!({
        "observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberAvailable": 3,
    });
    assert_eq!(of(json!({}), status.clone()), "2 of 3 pods are new");
    let by_hand = json!({"updateStrategy": {"type": "OnDelete"}});
    assert_eq!(of(by_hand, status), "done");
    let none = json!({"observedGeneration": 2, "desiredNumberScheduled": 0});
    assert_eq!(of(json!({}), none), "done");
}

#[test]
fn nobody_waits_for_pods_on_nodes_that_are_away() {
    let of = |kind: Workload, away, status: Value| {
        let object = json!({"spec": {"replicas": 2}, "status": status});
        rollout(kind, object).check(away, 0).is_ok()
    };
    let each =
        json!({"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2});
    assert!(!of(Workload::DaemonSet, 0, each.clone()));
    assert!(of(Workload::DaemonSet, 1, each.clone()));
    let fewer =
        json!({"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 1});
    assert!(!of(Workload::DaemonSet, 1, fewer));
    let some = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1});
    assert!(!of(Workload::Deployment, 0, some.clone()));
    assert!(of(Workload::Deployment, 1, some));
    let none = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 0});
    assert!(!of(Workload::Deployment, 1, none));
}

#[test]
fn its_pods_are_found_by_node() {
    let pods = json!([
        {"spec": {"nodeName": "w0"}},
        {"spec": {"nodeName": "w1"}},
        {"spec": {"nodeName": "w1"}, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"spec": {}},
    ]);
    let pods: Vec<Pod> = from_value(pods).unwrap();
    assert_eq!(pods_on(&pods, &["w1", "w2"]), 1);
}

#[test]
fn a_stateful_set() {
    let of = |spec: Value, status: Value| check(Workload::StatefulSet, &spec, &status);
    let status = json!({
        "observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 1,
        "currentRevision": "a", "updateRevision": "b",
    });
    assert_eq!(
        of(json!({"replicas": 2}), status.clone()),
        "1 of 2 pods are new"
    );
    let partition = json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
    assert_eq!(of(partition, status), "done");
    let fresh = json!({"observedGeneration": 2, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "a"});
    assert_eq!(of(json!({"replicas": 2}), fresh), "1 of 2 pods are ready");
}
