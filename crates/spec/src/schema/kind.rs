//! What the words for a key's kind mean as a schema.
//!
//! YAML takes `123456` and `1.28` for numbers where the reader takes text, and a key with nothing
//! behind it for null where the reader takes it as not written; the schema allows both.

use serde_json::{Value, json};

use super::reference;
use crate::cluster::Component;
use crate::keys::{KEYS, KeyInfo, RUNTIME};
use crate::value::{Arch, Cidrs, GoDuration};

const NAME: &str = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$";
const NETWORK: &str = "^([0-9a-fA-F.:]+/[0-9]{1,3}( *, *[0-9a-fA-F.:]+/[0-9]{1,3})?)?$";
const DURATION: &str = "^(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h))*$";
/// Other names of architectures that the reader knows.
const OTHER_ARCHITECTURES: [&str; 5] = ["x86_64", "x86", "aarch64", "arm", "loongarch64"];

/// A key's value; nothing for words that have no meaning here.
pub(super) fn schema(info: &KeyInfo) -> Option<Value> {
    Some(match info.kind {
        "section" => reference(&section(info)),
        "machine" => reference("loadbalance"),
        "list of machines" => list(&reference("<host>")),
        "list of packages" => list(&reference("<item>")),
        "list of ports" => list(&reference("open-ports[]")),
        "list" => list(&reference(info.key)),
        "keys with values" => keys_with_values(),
        "keys with values, or a list of key=value" => json!({
            "type": ["object", "array", "string", "null"],
            "additionalProperties": text(),
            "items": { "type": "string" },
        }),
        "architectures with paths" => json!({
            "type": ["object", "null"],
            "propertyNames": architecture(),
            "additionalProperties": text(),
        }),
        "true or false" => {
            json!({ "anyOf": [{ "type": ["boolean", "null"] }, { "enum": ["yes", "no", "on", "off"] }] })
        }
        "text" | "path" | "file name" | "text, or several separated by commas" => text(),
        "name" | "DNS name" => digits_or(NAME),
        "name of a variable" => pattern("^(\\$?[A-Za-z_][A-Za-z0-9_]*)?$"),
        "version" => digits_or("^(v?1\\.[0-9]+(\\.[0-9]+)?)?$"),
        "version of a program" => digits_or("^(v?[0-9]+\\.[0-9]+(\\.[0-9]+)?)?$"),
        "address" => pattern("^([0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)?$"),
        "network, or an IPv4 and an IPv6 network separated by a comma" => pattern(NETWORK),
        "host:port" => pattern("^(\\S+:[0-9]{1,5})?$"),
        "port" => json!({
            "type": ["integer", "string", "null"],
            "minimum": 1,
            "maximum": 65535,
            "pattern": "^[0-9]*$",
        }),
        "number" => {
            json!({ "type": ["integer", "string", "null"], "minimum": 0, "pattern": "^[0-9]*$" })
        }
        "duration" => pattern(DURATION),
        "absolute path, or below ~/" => pattern("^(~?/.*)?$"),
        "absolute path" | "absolute paths, comma separated" => pattern("^(/.*)?$"),
        "image" => pattern("^[A-Za-z0-9._/:@-]*$"),
        "unix:// address" => pattern("^((unix://)?/\\S+)?$"),
        "architecture" => architecture(),
        "component" => json!({ "enum": Component::ALL.map(Component::as_str) }),
        "public key or SHA256 fingerprint" => {
            pattern("^((SHA256:|ssh-|ecdsa-sha2-|sk-)\\S+( .*)?)?$")
        }
        "list of registries, or registries with lists" => json!({
            "type": ["object", "array", "string", "null"],
            "additionalProperties": texts(),
            "items": { "type": "string" },
        }),
        "user@host:port or a section, or a list of them" => {
            let one = json!({ "anyOf": [{ "type": "string" }, reference("<bastion>")] });
            json!({ "anyOf": [{ "type": ["string", "null"] }, reference("<bastion>"), list(&one)] })
        }
        "host" => pattern("^\\S*$"),
        "list of registries" | "list of DNS names" | "list of addresses" => texts(),
        "list of key=value:Effect" => {
            let taint = pattern("^\\S+:(NoSchedule|PreferNoSchedule|NoExecute)$");
            json!({ "type": ["array", "string", "null"], "items": taint })
        }
        // Here the reader does not mind capitals.
        RUNTIME | "pod or binary" | "tcp or udp" | "cni" => {
            let words = info.kind_in_words();
            let choices = choices(&words)?;
            let any_case: Vec<String> = choices.iter().map(|one| any_case(one)).collect();
            json!({ "anyOf": [{ "enum": choices }, pattern(&format!("^({})?$", any_case.join("|")))] })
        }
        words => json!({ "enum": choices(words)? }),
    })
}

/// The default as a value, where the words for it are one.
pub(super) fn default(info: &KeyInfo) -> Option<Value> {
    let text = info.default;
    let is_word = !text.is_empty() && text != "none" && !text.contains(' ');
    if !is_word || KEYS.iter().any(|other| other.key == text) {
        return None;
    }
    match info.kind {
        "true or false" => text.parse::<bool>().ok().map(Value::from),
        "port" | "number" => text.parse::<u32>().ok().map(Value::from),
        "duration" => GoDuration::parse(text).is_ok().then(|| json!(text)),
        "network, or an IPv4 and an IPv6 network separated by a comma" => {
            Cidrs::parse(text).is_ok().then(|| json!(text))
        }
        "text" | "image" | "DNS name" | "architecture" => Some(json!(text)),
        _ => {
            let words = info.kind_in_words();
            choices(&words)?.contains(&text).then(|| json!(text))
        }
    }
}

/// The section that a key opens.
fn section(info: &KeyInfo) -> String {
    match (info.section, info.key) {
        ("", "pacakges") => "packages".to_owned(),
        ("", key) => key.to_owned(),
        (section, key) => format!("{section}.{key}"),
    }
}

/// `a, b or c` as its words; nothing if one of them is more than a word.
fn choices(words: &str) -> Option<Vec<&str>> {
    let choices: Vec<&str> = words
        .split(", ")
        .flat_map(|part| part.split(" or "))
        .collect();
    let plain = choices.iter().all(|one| {
        one.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
    });
    plain.then_some(choices)
}

fn any_case(word: &str) -> String {
    word.chars()
        .map(|c| format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()))
        .collect()
}

fn architecture() -> Value {
    let known = Arch::ALL.map(|arch| json!(arch));
    let others = OTHER_ARCHITECTURES.map(Value::from);
    json!({ "enum": known.iter().chain(&others).collect::<Vec<_>>() })
}

fn keys_with_values() -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": text() })
}

fn text() -> Value {
    json!({ "type": ["string", "number", "boolean", "null"] })
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": ["string", "null"], "pattern": pattern })
}

/// A text that may look like a number.
fn digits_or(pattern: &str) -> Value {
    json!({ "type": ["string", "number", "null"], "pattern": pattern })
}

/// Several texts, or a single one.
fn texts() -> Value {
    json!({ "type": ["array", "string", "null"], "items": { "type": "string" } })
}

fn list(item: &Value) -> Value {
    json!({ "type": ["array", "null"], "items": item })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_choices() {
        assert_eq!(choices("a, b or c.d").unwrap(), ["a", "b", "c.d"]);
        assert_eq!(choices("something else"), None);
        assert_eq!(any_case("tcp"), "[tT][cC][pP]");
    }

    #[test]
    fn other_names_of_architectures_are_known_to_the_reader() {
        for name in OTHER_ARCHITECTURES {
            assert!(Arch::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn only_values_are_defaults() {
        let of = |section: &str, key: &str| {
            let mut all = KEYS.iter();
            let info = all.find(|info| (info.section, info.key) == (section, key));
            default(info.unwrap())
        };
        assert_eq!(of("", "username"), Some(json!("root")));
        assert_eq!(of("", "external-ca"), Some(json!(false)));
        assert_eq!(of("<host>", "port"), Some(json!(22)));
        assert_eq!(of("service", "cidr"), Some(json!("10.32.0.0/16")));
        assert_eq!(of("", "runtime"), Some(json!("docker")));
        assert_eq!(of("<host>", "user"), None);
        assert_eq!(of("", "dns-vip"), None);
        assert_eq!(of("", "workers"), None);
    }
}
