//! The JSON schema of a deploy file, for editors: made from the [key table](crate::keys), so that
//! it knows what the reader knows. It is milder than the reader, which also compares values.

mod kind;

use serde_json::{Map, Value, json};

use crate::keys::{self, KEYS, KeyInfo, Origin};

/// What must be given, per section.
const REQUIRED: [(&str, &[&str]); 7] = [
    ("", &["cluster-id", "masters"]),
    ("<host>", &["ip"]),
    ("<bastion>", &["host"]),
    ("<item>", &["name", "type"]),
    ("open-ports[]", &["port"]),
    ("config-extra-args", &["name"]),
    ("addons", &["filename"]),
];

/// The schema (draft 2020-12) of both eggo dialects.
pub fn schema() -> Value {
    let mut sections: Vec<&str> = KEYS.iter().map(|info| info.section).collect();
    sections.sort_unstable();
    sections.dedup();
    let definitions: Map<String, Value> = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .map(|section| (definition(section), object(section)))
        .collect();
    let mut root = object("");
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Hatchery deploy file");
    root["description"] =
        json!("A Kubernetes cluster, in the current or in the manual's dialect of eggo.");
    root["$defs"] = Value::Object(definitions);
    root
}

/// A section: its keys and no others.
fn object(section: &str) -> Value {
    let mut properties = Map::new();
    // The load balancer is a machine with one key more.
    let inherited = if section == "loadbalance" {
        "<host>"
    } else {
        section
    };
    for info in keys::for_section(inherited).chain(keys::for_section(section)) {
        properties.insert(info.key.to_owned(), property(info));
    }
    let required = REQUIRED.iter().find(|(one, _)| *one == section);
    let mut object = json!({
        "type": if required.is_some() { json!("object") } else { json!(["object", "null"]) },
        "additionalProperties": false,
        "properties": properties,
    });
    if let Some((_, required)) = required {
        object["required"] = json!(required);
    }
    object
}

fn property(info: &KeyInfo) -> Value {
    let mut value = kind::schema(info).unwrap_or_else(|| json!({}));
    value["description"] = json!(description(info));
    if let Some(default) = kind::default(info) {
        value["default"] = default;
    }
    if info.section.is_empty() && info.key == "masters" {
        value["minItems"] = json!(1);
        value["type"] = json!("array");
    }
    value
}

fn description(info: &KeyInfo) -> String {
    let mut text = info.doc.to_owned();
    if !info.default.is_empty() {
        text.push_str(&format!(" Default: {}.", info.default_in_words()));
    }
    match info.origin {
        Origin::Classic => text.push_str(" (The manual's dialect.)"),
        Origin::New => text.push_str(" (Hatchery's own.)"),
        Origin::Current | Origin::Both => {}
    }
    text
}

/// The name of a section's definition.
fn definition(section: &str) -> String {
    section.replace(['<', '>'], "").replace("[]", "-entry")
}

fn reference(section: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{}", definition(section)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_table_is_known() {
        for info in KEYS {
            assert!(kind::schema(info).is_some(), "{info:?}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let schema = schema();
        let text = schema.to_string();
        let parts: Vec<_> = text.split("#/$defs/").skip(1).collect();
        assert!(parts.len() > 10);
        for part in parts {
            let name = part.split('"').next().unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{name}");
        }
        // And every definition is used.
        for name in schema["$defs"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("#/$defs/{name}\"")), "{name}");
        }
    }
}
