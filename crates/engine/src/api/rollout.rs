//! Whether a workload runs everywhere as it was applied last, judged from what the API server says of it.

use std::fmt;

use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::kinds::escaped;

/// A kind of workload that is rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Some pods, anywhere.
    Deployment,
    /// One pod on each node.
    DaemonSet,
    /// Some pods with names.
    StatefulSet,
}

impl Workload {
    /// The one of this kind.
    pub fn of_kind(kind: &str) -> Option<Self> {
        let all = [Self::Deployment, Self::DaemonSet, Self::StatefulSet];
        all.into_iter().find(|one| one.to_string() == kind)
    }

    /// The word in paths.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::DaemonSet => "daemonsets",
            Self::StatefulSet => "statefulsets",
        }
    }

    /// `Ok` when it runs as applied, otherwise what is missing. `absent` of its pods are on nodes that are away, and not
    /// waited for.
    pub(super) fn check(self, object: &Value, absent: usize) -> Result<(), String> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let generation = number(&object["metadata"]["generation"]);
        if number(&status["observedGeneration"]) < generation {
            return Err("its controller has not seen it yet".into());
        }
        match self {
            Self::Deployment => deployment(spec, status, absent),
            Self::DaemonSet => daemon_set(spec, status, absent),
            Self::StatefulSet => stateful_set(spec, status, absent),
        }
    }
}

impl Workload {
    /// Takes so many pods from those that are said to be available.
    pub(super) fn discount(self, object: &mut Value, pods: usize) {
        let fields: &[&str] = match self {
            Self::Deployment => &["availableReplicas"],
            Self::DaemonSet => &["numberAvailable"],
            Self::StatefulSet => &["readyReplicas", "availableReplicas"],
        };
        for field in fields {
            let said = &mut object["status"][field];
            if let (Some(count), true) = (said.as_i64(), pods > 0) {
                *said = without(count, pods).into();
            }
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

fn at_least(have: i64, want: i64, what: &str) -> Result<(), String> {
    match have >= want {
        true => Ok(()),
        false => Err(format!("{have} of {want} {what}")),
    }
}

fn deployment(spec: &Value, status: &Value, absent: usize) -> Result<(), String> {
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let updated = number(&status["updatedReplicas"]);
    let old = number(&status["replicas"]) - updated;
    let judged = at_least(updated, wanted, "pods are new")
        .and_then(|()| match old > 0 {
            true => Err(format!("{old} old pods are still there")),
            false => Ok(()),
        })
        .and_then(|()| {
            let available = number(&status["availableReplicas"]);
            at_least(available, without(wanted, absent), "pods are available")
        });
    // Why it does not go on is in its conditions.
    judged.map_err(|missing| match trouble(status) {
        Some(trouble) => format!("{missing}; {trouble}"),
        None => missing,
    })
}

fn without(wanted: i64, absent: usize) -> i64 {
    wanted.saturating_sub_unsigned(absent as u64).max(0)
}

/// Where the pods of a workload are listed.
pub(super) fn pods_path(workload: &Value) -> String {
    let namespace = workload["metadata"]["namespace"].as_str();
    let labels = workload["spec"]["selector"]["matchLabels"].as_object();
    let labels: Vec<_> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    format!(
        "/api/v1/namespaces/{}/pods?labelSelector={}",
        escaped(namespace.unwrap_or("default")),
        escaped(&labels.join(","))
    )
}

/// How many of the listed pods are on these nodes. Those that are to go are not counted by their controllers either.
pub(super) fn pods_on(pods: &Value, nodes: &[&str]) -> usize {
    let pods = pods["items"].as_array().into_iter().flatten();
    let is_there = |pod: &&Value| {
        let node = pod["spec"]["nodeName"].as_str();
        pod["metadata"]["deletionTimestamp"].is_null()
            && node.is_some_and(|node| nodes.contains(&node))
    };
    pods.filter(is_there).count()
}

/// How long a container that ended before has to run until it is taken for good.
const SETTLED: time::Duration = time::Duration::seconds(10);

/// How many of the listed pods have a container that was started again a moment ago. Clocks may differ a little.
pub(super) fn unsettled(pods: &Value, now: OffsetDateTime) -> usize {
    let pods = pods["items"].as_array().into_iter().flatten();
    let is_unsettled = |pod: &&Value| {
        let containers = pod["status"]["containerStatuses"].as_array();
        let mut containers = containers.into_iter().flatten();
        containers.any(|container| {
            let started = container["state"]["running"]["startedAt"].as_str();
            let started = started.and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
            number(&container["restartCount"]) > 0
                && started.is_some_and(|started| (now - started).abs() < SETTLED)
        })
    };
    pods.filter(is_unsettled).count()
}

fn trouble(status: &Value) -> Option<&str> {
    let conditions = status["conditions"].as_array()?;
    let bad = conditions.iter().find(|condition| {
        let word = |field: &str| condition[field].as_str().unwrap_or_default();
        matches!(
            (word("type"), word("status")),
            ("ReplicaFailure", "True") | ("Progressing", "False")
        )
    })?;
    bad["message"].as_str()
}

fn daemon_set(spec: &Value, status: &Value, absent: usize) -> Result<(), String> {
    let wanted = without(number(&status["desiredNumberScheduled"]), absent);
    // One that is updated by hand may stay old.
    if spec["updateStrategy"]["type"] != "OnDelete" {
        let updated = number(&status["updatedNumberScheduled"]);
        at_least(updated, wanted, "pods are new")?;
    }
    at_least(
        number(&status["numberAvailable"]),
        wanted,
        "pods are available",
    )
}

fn stateful_set(spec: &Value, status: &Value, absent: usize) -> Result<(), String> {
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let strategy = &spec["updateStrategy"];
    if strategy["type"] != "OnDelete" {
        let kept = number(&strategy["rollingUpdate"]["partition"]);
        let is_new = status["updateRevision"] == status["currentRevision"];
        if kept > 0 || !is_new {
            let updated = number(&status["updatedReplicas"]);
            at_least(updated, (wanted - kept).max(0), "pods are new")?;
        }
    }
    let ready = number(&status["readyReplicas"]);
    at_least(ready, without(wanted, absent), "pods are ready")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: Workload, spec: &Value, status: &Value) -> String {
        let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
        kind.check(&object, 0)
            .err()
            .unwrap_or_else(|| "done".into())
    }

    #[test]
    fn a_pod_that_has_just_been_started_again_is_not_settled() {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000);
        let pod = |restarts: i64, seconds: i64| {
            let started = now - time::Duration::seconds(seconds);
            let started = started.format(&Rfc3339).unwrap();
            json!({"status": {"containerStatuses": [
                {"restartCount": restarts, "state": {"running": {"startedAt": started}}},
            ]}})
        };
        let waiting = json!({"status": {"containerStatuses": [
            {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        ]}});
        let count = |pods: &[Value]| unsettled(&json!({"items": pods}), now);
        assert_eq!(count(&[pod(0, 1), pod(3, 60), waiting, json!({})]), 0);
        assert_eq!(count(&[pod(1, 1), pod(2, 9), pod(1, -3)]), 3);

        let mut web = json!({
            "spec": {"replicas": 1},
            "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        });
        Workload::Deployment.discount(&mut web, 0);
        assert_eq!(Workload::Deployment.check(&web, 0), Ok(()));
        Workload::Deployment.discount(&mut web, 1);
        let missing = Workload::Deployment.check(&web, 0).unwrap_err();
        assert_eq!(missing, "0 of 1 pods are available");
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
        let of = |kind: Workload, absent, status: Value| {
            let object = json!({"spec": {"replicas": 2}, "status": status});
            kind.check(&object, absent).is_ok()
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
    fn its_pods_are_found_by_label_and_node() {
        let workload = json!({
            "metadata": {"namespace": "web"},
            "spec": {"selector": {"matchLabels": {"app": "front", "tier": "a b"}}},
        });
        assert_eq!(
            pods_path(&workload),
            "/api/v1/namespaces/web/pods?labelSelector=app%3Dfront%2Ctier%3Da%20b"
        );
        let pods = json!({"items": [
            {"spec": {"nodeName": "w0"}},
            {"spec": {"nodeName": "w1"}},
            {"spec": {"nodeName": "w1"}, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            {"spec": {}},
        ]});
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
        let partition =
            json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
        assert_eq!(of(partition, status), "done");
        let fresh = json!({"observedGeneration": 2, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "a"});
        assert_eq!(of(json!({"replicas": 2}), fresh), "1 of 2 pods are ready");
    }
}
