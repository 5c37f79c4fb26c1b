//! Why pods do not run, in the words of those who tried to run them.

use http::Method;
use serde_json::Value;

use super::{Api, error::Asked, kinds::escaped};

/// So many troubles are told; the rest is mostly the same on other nodes.
const TOLD: usize = 3;
/// So much of one, in characters.
const LONG: usize = 240;

/// What every pod goes through on its way.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Pods that are asked about.
#[derive(Debug)]
pub(super) struct Pods {
    path: String,
    /// How their names begin.
    prefix: String,
}

impl Pods {
    /// All on this node.
    pub(super) fn on_node(name: &str) -> Self {
        let selector = format!("spec.nodeName={name}");
        Self {
            path: format!(
                "/api/v1/pods?limit=500&fieldSelector={}",
                escaped(&selector)
            ),
            prefix: String::new(),
        }
    }

    /// Those that a controller of this name has made.
    pub(super) fn named(namespace: &str, name: &str) -> Self {
        Self {
            path: format!("/api/v1/namespaces/{}/pods?limit=500", escaped(namespace)),
            prefix: format!("{name}-"),
        }
    }
}

impl Api {
    /// What keeps pods from running, or nothing when that cannot be found out.
    pub(super) async fn troubles(&self, pods: &Pods) -> Vec<String> {
        let asked = Asked::of("list", "Pod");
        let body = self.ask(&asked, Method::GET, &pods.path, None).await;
        let list = body.and_then(|body| super::client::read::<Value>(&asked, &body));
        list.map(|list| of(&list, &pods.prefix)).unwrap_or_default()
    }
}

fn of(list: &Value, prefix: &str) -> Vec<String> {
    let mut troubles: Vec<(String, String)> = Vec::new();
    for pod in list["items"].as_array().into_iter().flatten() {
        let name = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        if !name("name").starts_with(prefix) {
            continue;
        }
        let Some((kind, words)) = trouble(&pod["status"]) else {
            continue;
        };
        // The same image fails in the same way on every node.
        if troubles.iter().any(|(known, _)| *known == kind) {
            continue;
        }
        let words: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = words.chars().take(LONG).collect();
        let told = format!("pod {}/{}: {short}", name("namespace"), name("name"));
        troubles.push((kind, told));
    }
    troubles.truncate(TOLD);
    troubles.into_iter().map(|(_, told)| told).collect()
}

/// What is wrong with a pod: what makes it the same as another's, and in words.
fn trouble(status: &Value) -> Option<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists
        .iter()
        .flat_map(|list| status[list].as_array().into_iter().flatten());
    for container in containers {
        let waiting = &container["state"]["waiting"];
        let mut reason = word(&waiting["reason"]);
        let ended =
            ["state", "lastState"].map(|state| container[state]["terminated"]["exitCode"].as_i64());
        let ended = ended.into_iter().flatten().find(|code| *code != 0);
        let mut words = format!("{reason}: {}", word(&waiting["message"]));
        if USUAL.contains(&reason.as_str()) {
            continue;
        }
        if reason.is_empty() {
            // Between its end and the next try, or in a try that lasts no longer than the one before.
            if ended.is_none() || container["ready"] == true {
                continue;
            }
            reason = "Error".into();
            words = "Error: its container does not stay up".into();
        }
        if let Some(code) = ended {
            words += &format!(" (ended with {code})");
        }
        return Some((format!("{reason} {}", word(&container["image"])), words));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .map(|condition| (word(&condition["reason"]), word(&condition["message"])))
        .next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, status: &Value) -> Value {
        json!({"metadata": {"namespace": "ns", "name": name}, "status": status})
    }

    #[test]
    fn a_container_that_ends_is_told_whatever_it_does_now() {
        let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        let states = [
            json!({"state": ended, "ready": false}),
            json!({"state": {"running": {}}, "lastState": ended, "ready": false}),
        ];
        for state in states {
            let list = json!({"items": [pod("a-1", &json!({"containerStatuses": [state]}))]});
            let told = "pod ns/a-1: Error: its container does not stay up (ended with 3)";
            assert_eq!(of(&list, "a-"), [told]);
        }
        // It may have ended once, long ago; and a job's container ends well.
        let well = [
            json!({"state": {"running": {}}, "lastState": ended, "ready": true}),
            json!({"state": {"terminated": {"exitCode": 0}}, "ready": false}),
        ];
        for state in well {
            let list = json!({"items": [pod("a-1", &json!({"containerStatuses": [state]}))]});
            assert!(of(&list, "a-").is_empty());
        }
    }

    #[test]
    fn what_others_said_is_told_once() {
        let waiting = |reason: &str, message: &str| {
            json!({"containerStatuses": [{
                "image": "example.org/a:1",
                "state": {"waiting": {"reason": reason, "message": message}},
                "lastState": {"terminated": {"exitCode": 7}},
            }]})
        };
        let list = json!({"items": [
            pod("fine", &json!({"containerStatuses": [{"state": {"running": {}}}]})),
            pod("begins", &waiting("ContainerCreating", "")),
            pod("a", &waiting("ErrImagePull", "no\nsuch   host")),
            pod("b", &waiting("ErrImagePull", "no such host")),
            pod("c", &waiting("CrashLoopBackOff", &"x".repeat(1000))),
            pod("d", &json!({"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
            ]})),
            pod("e", &waiting("InvalidImageName", "")),
        ]});
        let told = of(&list, "");
        assert_eq!(told.len(), TOLD);
        assert_eq!(
            told[0],
            "pod ns/a: ErrImagePull: no such host (ended with 7)"
        );
        assert!(told[1].starts_with("pod ns/c: CrashLoopBackOff: xxx"));
        assert!(told[1].len() < LONG + 20);
        assert_eq!(told[2], "pod ns/d: no room");
        assert_eq!(of(&list, "d"), ["pod ns/d: no room"]);
        assert_eq!(of(&json!({"kind": "Status"}), ""), Vec::<String>::new());
    }
}
