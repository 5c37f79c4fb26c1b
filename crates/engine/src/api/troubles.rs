//! Why pods do not run, in the words of those who tried to run them.

use http::Method;
use serde_json::Value;

use super::{Api, error::Asked};

/// So many troubles are told; the rest is mostly the same on other nodes.
const TOLD: usize = 3;
/// So much of one, in characters.
const LONG: usize = 240;

/// What every pod goes through on its way.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

impl Api {
    /// What keeps pods from running, or nothing when that cannot be found out.
    pub(super) async fn troubles(&self) -> Vec<String> {
        let asked = Asked::of("list", "Pod");
        let path = "/api/v1/pods?limit=500";
        let body = self.ask(&asked, Method::GET, path, None).await;
        let list = body.and_then(|body| super::client::read::<Value>(&asked, &body));
        list.map(|list| of(&list)).unwrap_or_default()
    }
}

fn of(list: &Value) -> Vec<String> {
    let mut troubles: Vec<(String, String)> = Vec::new();
    for pod in list["items"].as_array().into_iter().flatten() {
        let Some((kind, words)) = trouble(&pod["status"]) else {
            continue;
        };
        // The same image fails in the same way on every node.
        if troubles.iter().any(|(known, _)| *known == kind) {
            continue;
        }
        let name = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
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
        let reason = word(&waiting["reason"]);
        if reason.is_empty() || USUAL.contains(&reason.as_str()) {
            continue;
        }
        let mut words = format!("{reason}: {}", word(&waiting["message"]));
        if let Some(code) = container["lastState"]["terminated"]["exitCode"].as_i64() {
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
        let told = of(&list);
        assert_eq!(told.len(), TOLD);
        assert_eq!(
            told[0],
            "pod ns/a: ErrImagePull: no such host (ended with 7)"
        );
        assert!(told[1].starts_with("pod ns/c: CrashLoopBackOff: xxx"));
        assert!(told[1].len() < LONG + 20);
        assert_eq!(told[2], "pod ns/d: no room");
        assert_eq!(of(&json!({"kind": "Status"})), Vec::<String>::new());
    }
}
