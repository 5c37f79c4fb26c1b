//! Which fields of two objects differ. Fields only, never values: those may be secret.

use serde_json::Value;

/// The maximum number of differing fields that are listed.
const MOST: usize = 20;

/// The fields that differ, for example `spec.replicas`, without those that the server keeps for itself.
pub(super) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    compare(before, after, "", &mut fields);
    fields.truncate(MOST);
    fields
}

fn is_the_servers(path: &str) -> bool {
    matches!(
        path,
        "status"
            | "metadata.managedFields"
            | "metadata.resourceVersion"
            | "metadata.generation"
            | "metadata.creationTimestamp"
            | "metadata.uid"
            | "metadata.selfLink"
    )
}

fn compare(before: &Value, after: &Value, path: &str, fields: &mut Vec<String>) {
    if before == after || fields.len() > MOST || is_the_servers(path) {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let new = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(new) {
                let inner = match (path, key.contains(['.', '/'])) {
                    ("", _) => key.clone(),
                    (path, true) => format!("{path}[{key}]"),
                    (path, false) => format!("{path}.{key}"),
                };
                let field = |object: &serde_json::Map<_, _>| {
                    object.get(key).cloned().unwrap_or(Value::Null)
                };
                compare(&field(before), &field(after), &inner, fields);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (number, (before, after)) in before.iter().zip(after).enumerate() {
                compare(before, after, &format!("{path}[{number}]"), fields);
            }
        }
        _ => fields.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_named_and_the_servers_own_left_out() {
        let before = json!({
            "metadata": {"resourceVersion": "1", "labels": {"a/b": "1"}, "managedFields": []},
            "spec": {"list": [{"x": 1}, {"x": 2}], "gone": 1, "same": {"y": 1}},
            "status": {"ready": 1},
        });
        let after = json!({
            "metadata": {"resourceVersion": "2", "labels": {"a/b": "2"}, "managedFields": [{}]},
            "spec": {"list": [{"x": 1}, {"x": 3}], "same": {"y": 1}, "new": [1]},
            "status": {"ready": 2},
        });
        let changed = changed_fields(&before, &after);
        assert_eq!(
            changed,
            [
                "metadata.labels[a/b]",
                "spec.gone",
                "spec.list[1].x",
                "spec.new"
            ]
        );
        assert_eq!(changed_fields(&after, &after), [""; 0]);
    }
}
