//! Whether a workload runs everywhere as it was applied last, judged from what the API server says of it.

use std::fmt;

use serde_json::Value;

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

    /// `Ok` when it runs as applied, otherwise what is missing.
    pub(super) fn judge(self, object: &Value) -> Result<(), String> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let generation = number(&object["metadata"]["generation"]);
        if number(&status["observedGeneration"]) < generation {
            return Err("its controller has not seen it yet".into());
        }
        match self {
            Self::Deployment => deployment(spec, status),
            Self::DaemonSet => daemon_set(spec, status),
            Self::StatefulSet => stateful_set(spec, status),
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

fn deployment(spec: &Value, status: &Value) -> Result<(), String> {
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let updated = number(&status["updatedReplicas"]);
    let old = number(&status["replicas"]) - updated;
    let judged = at_least(updated, wanted, "pods are new")
        .and_then(|()| match old > 0 {
            true => Err(format!("{old} old pods are still there")),
            false => Ok(()),
        })
        .and_then(|()| {
            at_least(
                number(&status["availableReplicas"]),
                wanted,
                "pods are available",
            )
        });
    // Why it does not go on is in its conditions.
    judged.map_err(|missing| match trouble(status) {
        Some(trouble) => format!("{missing}; {trouble}"),
        None => missing,
    })
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

fn daemon_set(spec: &Value, status: &Value) -> Result<(), String> {
    let wanted = number(&status["desiredNumberScheduled"]);
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

fn stateful_set(spec: &Value, status: &Value) -> Result<(), String> {
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
    at_least(number(&status["readyReplicas"]), wanted, "pods are ready")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(kind: Workload, spec: &Value, status: &Value) -> String {
        let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
        kind.judge(&object).err().unwrap_or_else(|| "done".into())
    }

    #[test]
    fn a_deployment() {
        let of = |status: Value| judge(Workload::Deployment, &json!({"replicas": 3}), &status);
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
        let of = |spec: Value, status: Value| judge(Workload::DaemonSet, &spec, &status);
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
    fn a_stateful_set() {
        let of = |spec: Value, status: Value| judge(Workload::StatefulSet, &spec, &status);
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
