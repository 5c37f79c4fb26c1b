//! Manifests: YAML text with any number of objects.

use kube::core::DynamicObject;
use serde_json::Value;
use serde_saphyr::{Options, Spanned};
use snafu::Snafu;

/// Why a text is not a valid manifest.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("document {document}, line {line}: {problem}"))]
pub struct Error {
    /// Which document, counted from 1, empty ones included.
    pub document: usize,
    /// The line in the whole text, counted from 1: where the error is, or where the object begins.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// Reads all objects of a text, in their order. Empty documents are skipped, lists unfolded.
///
/// ```
/// let text = "kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Pod\n";
/// let wrong = hatchery_engine::api::parse(text).unwrap_err();
/// assert_eq!(wrong.to_string(), "document 3, line 7: an object without apiVersion");
/// ```
///
/// # Errors
/// For the first document that is not valid YAML or not an object.
pub fn parse(text: &str) -> Result<Vec<DynamicObject>, Error> {
    let documents: Vec<Spanned<Value>> = serde_saphyr::from_multiple_with_options(text, options())
        .map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            // Without what stands there: it may be a secret. The place is told by us.
            fault(text, line, &words(&error))
        })?;
    let mut objects = Vec::with_capacity(documents.len());
    for document in documents {
        let line = document.referenced.line();
        unfold(document.value, &mut objects).map_err(|problem| fault(text, line, &problem))?;
    }
    Ok(objects)
}

/// As kubectl reads: `defaultMode: 0644` is octal. Definitions of kinds are large, so more is let in than usual.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 100_000,
            max_events: 10_000_000,
            max_nodes: 5_000_000,
        },
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

fn words(error: &serde_saphyr::Error) -> String {
    let words = error.to_string();
    let first = words.lines().next().unwrap_or_default();
    match first.rsplit_once(" at line ") {
        Some((words, place)) if place.starts_with(|c: char| c.is_ascii_digit()) => words.into(),
        _ => first.into(),
    }
}

fn fault(text: &str, line: u64, problem: &str) -> Error {
    let line = usize::try_from(line).unwrap_or(usize::MAX).max(1);
    let is_mark =
        |line: &str| line == "---" || line.starts_with("--- ") || line.starts_with("---\t");
    let before = || text.lines().take(line);
    let marks = before().filter(|line| is_mark(line)).count();
    let mut head = before().take_while(|line| !is_mark(line));
    let begins_unmarked = head.any(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(['#', '%'])
    });
    Error {
        document: (marks + usize::from(begins_unmarked)).max(1),
        line,
        problem: problem.into(),
    }
}

/// Adds an object, or those of a list.
fn unfold(value: Value, objects: &mut Vec<DynamicObject>) -> Result<(), String> {
    let Value::Object(mut fields) = value else {
        return Err("not an object".into());
    };
    for field in ["apiVersion", "kind"] {
        match fields.get(field) {
            Some(Value::String(text)) if !text.is_empty() => {}
            None => return Err(format!("an object without {field}")),
            Some(_) => return Err(format!("{field} is not a word")),
        }
    }
    let is_list = fields["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    if is_list
        && fields
            .get("items")
            .is_some_and(|items| items.is_array() || items.is_null())
    {
        let Some(Value::Array(items)) = fields.remove("items") else {
            return Ok(());
        };
        for (number, item) in items.into_iter().enumerate() {
            unfold(item, objects).map_err(|problem| format!("items[{number}]: {problem}"))?;
        }
        return Ok(());
    }
    let object = serde_json::from_value(Value::Object(fields));
    objects.push(object.map_err(|error| format!("its metadata is not valid: {error}"))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        let objects = parse(text).unwrap();
        objects.iter().map(ResourceExt::name_any).collect()
    }

    fn told(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn documents_and_lists_in_their_order() {
        let text = "\
# a comment
---
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, creationTimestamp: null}
---
# nothing here
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: b}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
---
apiVersion: v1
kind: List
items:
...
---
{apiVersion: v1, kind: Pod, metadata: {name: d}}
";
        assert_eq!(names(text), ["a", "b", "c", "d"]);
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("---\n# only a comment\n"), [""; 0]);
    }

    #[test]
    fn values_are_what_kubectl_reads() {
        let text = "\
apiVersion: v1
kind: Thing
metadata: {name: a}
spec:
  mode: 0644
  text: \"0644\"
  truth: true
  other: [yes, on, off, y, n, No, 0o644, 1_000, 0x1F, 2001-01-01, 12:30:00]
  y: key
  number: 1.5
  long: 9223372036854775807
  nothing: ~
  block: |
    --- not a mark
    x: y
  base: &base {a: 1}
  merged: {<<: *base, b: 2}
";
        let spec = &parse(text).unwrap()[0].data["spec"];
        let expected = serde_json::json!({
            "mode": 420, "text": "0644", "truth": true, "other": [true, true, false, true, false, false, 420, 1000, 31, "2001-01-01", "12:30:00"], "y": "key", "number": 1.5, "long": i64::MAX, "nothing": null,
            "block": "--- not a mark\nx: y\n", "base": {"a": 1}, "merged": {"a": 1, "b": 2},
        });
        assert_eq!(*spec, expected);
    }

    #[test]
    fn faults_have_a_place() {
        let good = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n";
        assert_eq!(told("just words"), "document 1, line 1: not an object");
        assert_eq!(
            told(&format!("{good}\n\nkind: Pod\n")),
            "document 2, line 7: an object without apiVersion"
        );
        let labels = "apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: 1}}\n";
        let wrong = told(&format!("---\n{good}{labels}"));
        assert!(
            wrong.starts_with("document 2, line 6: its metadata is not valid: invalid type"),
            "{wrong}"
        );
        let broken = told(&format!("{good}---\na: [1\nb: 2\n"));
        assert!(broken.starts_with("document 3, line "), "{broken}");
        let twice = told(&format!("{good}kind: a\nkind: b\n"));
        assert!(twice.starts_with("document 2, line 6: "), "{twice}");
        let items = "apiVersion: v1\nkind: List\nitems: [{kind: Pod}]\n";
        assert_eq!(
            told(items),
            "document 1, line 1: items[0]: an object without apiVersion"
        );
    }

    #[test]
    fn a_fault_does_not_repeat_a_secret() {
        let text = "apiVersion: v1\nkind: Secret\nstringData:\n  password: \"hunter2\n";
        let wrong = parse(text).unwrap_err();
        assert!(
            !format!("{wrong} {wrong:?}").contains("hunter2"),
            "{wrong:?}"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_told(text in "(apiVersion: v1\n|kind: (Pod|List)\n|items:\n|- |---\n|[ -~\n]{0,8}|\\PC{0,4}){0,12}") {
            if let Err(error) = parse(&text) {
                proptest::prop_assert!(error.document >= 1 && error.line >= 1);
                proptest::prop_assert!(error.line <= text.lines().count() + 1, "{error}");
            }
        }
    }
}
