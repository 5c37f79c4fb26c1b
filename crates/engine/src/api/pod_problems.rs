//! Why pods do not run, in the words of those who tried to run them.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use kube::{ResourceExt as _, api::ListParams};

use super::{Api, error::Operation};

/// The maximum number of problems shown; the rest is mostly the same on other nodes.
const MOST: usize = 3;
/// The maximum length of one problem, in characters.
const LONGEST: usize = 240;

/// What every pod goes through on its way.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Pods that are asked about.
pub(super) struct PodSelection {
    namespace: Option<String>,
    parameters: ListParams,
    /// How their names begin.
    prefix: String,
}

impl PodSelection {
    /// All on this node.
    pub(super) fn on_node(name: &str) -> Self {
        Self {
            namespace: None,
            parameters: ListParams::default().fields(&format!("spec.nodeName={name}")),
            prefix: String::new(),
        }
    }

    /// Those that a controller of this name has made.
    pub(super) fn made_by(namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.into()),
            parameters: ListParams::default(),
            prefix: format!("{name}-"),
        }
    }
}

impl Api {
    /// What keeps pods from running, or nothing when that cannot be found out.
    pub(super) async fn pod_problems(&self, selection: &PodSelection) -> Vec<String> {
        let pods: kube::Api<Pod> = match &selection.namespace {
            Some(namespace) => kube::Api::namespaced(self.client(), namespace),
            None => kube::Api::all(self.client()),
        };
        let parameters = selection.parameters.clone().limit(500);
        let operation = Operation::new("list", "Pod");
        let listed = self.request_once(&operation, pods.list(&parameters)).await;
        let listed = listed.map(|list| list.items).unwrap_or_default();
        problems(&listed, &selection.prefix)
    }
}

fn problems(pods: &[Pod], prefix: &str) -> Vec<String> {
    let mut problems: Vec<(String, String)> = Vec::new();
    for pod in pods {
        let name = pod.name_any();
        let problem = pod.status.as_ref().and_then(problem);
        let Some((kind, text)) = problem.filter(|_| name.starts_with(prefix)) else {
            continue;
        };
        // The same image fails in the same way on every node.
        if problems.iter().any(|(known, _)| *known == kind) {
            continue;
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = text.chars().take(LONGEST).collect();
        let namespace = pod.namespace().unwrap_or_default();
        problems.push((kind, format!("pod {namespace}/{name}: {short}")));
    }
    let told = problems.into_iter().map(|(_, told)| told);
    told.take(MOST).collect()
}

/// What is wrong with a pod: what makes it the same as another's, and in words.
fn problem(status: &PodStatus) -> Option<(String, String)> {
    let containers = [&status.init_container_statuses, &status.container_statuses];
    let mut containers = containers.into_iter().flatten().flatten();
    containers.find_map(container_problem).or_else(|| {
        let mut conditions = status.conditions.iter().flatten();
        let unscheduled =
            conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some((text(&unscheduled.reason), text(&unscheduled.message)))
    })
}

fn container_problem(container: &ContainerStatus) -> Option<(String, String)> {
    let states = [&container.state, &container.last_state];
    let mut exit_codes = states
        .into_iter()
        .flatten()
        .filter_map(|state| Some(state.terminated.as_ref()?.exit_code));
    let failed = exit_codes.find(|code| *code != 0);
    let waiting = container
        .state
        .as_ref()
        .and_then(|state| state.waiting.as_ref());
    let reason = waiting.and_then(|waiting| waiting.reason.as_deref());
    let (reason, mut text) = match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) if USUAL.contains(&reason) => return None,
        Some(reason) => {
            let message = waiting.and_then(|waiting| waiting.message.as_deref());
            (reason, format!("{reason}: {}", message.unwrap_or_default()))
        }
        // Between its end and the next try, or in a try that lasts no longer than the one before.
        None if failed.is_some() && !container.ready => {
            ("Error", "Error: its container does not stay up".into())
        }
        None => return None,
    };
    if let Some(code) = failed {
        text += &format!(" (ended with {code})");
    }
    Some((format!("{reason} {}", container.image), text))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, status: &Value) -> Value {
        json!({"metadata": {"namespace": "ns", "name": name}, "status": status})
    }

    fn told(list: Value, prefix: &str) -> Vec<String> {
        let pods: Vec<Pod> = serde_json::from_value(list).unwrap();
        problems(&pods, prefix)
    }

    #[test]
    fn a_container_that_ends_is_told_whatever_it_does_now() {
        let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        let states = [
            json!({"state": ended, "ready": false}),
            json!({"state": {"running": {}}, "lastState": ended, "ready": false}),
        ];
        for state in states {
            let list = json!([pod("a-1", &json!({"containerStatuses": [state]}))]);
            let expected = "pod ns/a-1: Error: its container does not stay up (ended with 3)";
            assert_eq!(told(list, "a-"), [expected]);
        }
        // It may have ended once, long ago; and a job's container ends well.
        let well = [
            json!({"state": {"running": {}}, "lastState": ended, "ready": true}),
            json!({"state": {"terminated": {"exitCode": 0}}, "ready": false}),
        ];
        for state in well {
            let list = json!([pod("a-1", &json!({"containerStatuses": [state]}))]);
            assert!(told(list, "a-").is_empty());
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
        let list = json!([
            pod(
                "fine",
                &json!({"containerStatuses": [{"state": {"running": {}}}]})
            ),
            pod("begins", &waiting("ContainerCreating", "")),
            pod("a", &waiting("ErrImagePull", "no\nsuch   host")),
            pod("b", &waiting("ErrImagePull", "no such host")),
            pod("c", &waiting("CrashLoopBackOff", &"x".repeat(1000))),
            pod(
                "d",
                &json!({"conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
                ]})
            ),
            pod("e", &waiting("InvalidImageName", "")),
        ]);
        assert_eq!(told(list.clone(), "d"), ["pod ns/d: no room"]);
        let told = told(list, "");
        assert_eq!(told.len(), MOST);
        assert_eq!(
            told[0],
            "pod ns/a: ErrImagePull: no such host (ended with 7)"
        );
        assert!(told[1].starts_with("pod ns/c: CrashLoopBackOff: xxx"));
        assert!(told[1].len() < LONGEST + 20);
        assert_eq!(told[2], "pod ns/d: no room");
    }
}
