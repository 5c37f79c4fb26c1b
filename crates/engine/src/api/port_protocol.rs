//! Ports say their protocol: API servers before 1.21 refuse to apply a list whose elements leave out a key, even one
//! that has a default.

use kube::core::DynamicObject;
use serde_json::{Value, json};

/// Says TCP wherever a port of a built-in kind says nothing, which means the same.
pub(super) fn with_protocols(object: &DynamicObject) -> Value {
    let mut object = json!(object);
    let kind = object["kind"].as_str().unwrap_or_default();
    let pod = match (object["apiVersion"].as_str().unwrap_or_default(), kind) {
        ("v1", "Service") => {
            add_tcp(object.pointer_mut("/spec/ports"));
            return object;
        }
        ("v1", "Pod") => "/spec",
        ("v1", "ReplicationController")
        | ("apps/v1", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet")
        | ("batch/v1", "Job") => "/spec/template/spec",
        ("batch/v1" | "batch/v1beta1", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        _ => return object,
    };
    for containers in ["containers", "initContainers"] {
        let list = object.pointer_mut(&format!("{pod}/{containers}"));
        for container in list.and_then(Value::as_array_mut).into_iter().flatten() {
            add_tcp(container.get_mut("ports"));
        }
    }
    object
}

fn add_tcp(ports: Option<&mut Value>) {
    let ports = ports.and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        let protocol = port.entry("protocol").or_insert(Value::Null);
        if protocol.is_null() {
            *protocol = json!("TCP");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec_with_protocols(api_version: &str, kind: &str, spec: &Value) -> Value {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec});
        let object = serde_json::from_value(object).unwrap();
        with_protocols(&object)["spec"].take()
    }

    #[test]
    fn only_what_is_missing_is_said() {
        let ports = json!({"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]});
        let said =
            json!({"ports": [{"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "UDP"}]});
        assert_eq!(spec_with_protocols("v1", "Service", &ports), said);
        // The kind of somebody else.
        assert_eq!(
            spec_with_protocols("serving.example.org/v1", "Service", &ports),
            ports
        );

        let pod =
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 1}]}, {"name": "b"}]});
        let said = json!({"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}, {"name": "b"}]});
        assert_eq!(spec_with_protocols("v1", "Pod", &pod), said);
        let template = |pod: &Value| json!({"template": {"spec": pod}});
        assert_eq!(
            spec_with_protocols("apps/v1", "DaemonSet", &template(&pod)),
            template(&said)
        );
        let job = |pod: &Value| json!({"jobTemplate": {"spec": template(pod)}});
        assert_eq!(
            spec_with_protocols("batch/v1beta1", "CronJob", &job(&pod)),
            job(&said)
        );
    }

    #[test]
    fn nonsense_is_left_to_the_server() {
        for spec in [
            json!(null),
            json!([1]),
            json!({"ports": 7}),
            json!({"ports": ["x", null]}),
        ] {
            assert_eq!(spec_with_protocols("v1", "Service", &spec), spec);
            assert_eq!(spec_with_protocols("apps/v1", "Deployment", &spec), spec);
        }
    }
}
