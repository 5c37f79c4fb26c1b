//! Lines of a file: settings, settings switched off, and their explanation out of the key table.

use std::fmt::Display;

use crate::keys::{self, KeyInfo};

/// Where explanations are broken.
const WIDTH: usize = 100;
/// Where remarks behind a setting begin.
const COMMENT: usize = 44;

#[derive(Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn blank(&mut self) {
        self.line("");
    }

    /// A setting with its explanation above; for a section or a list, with nothing behind it.
    pub(crate) fn set(&mut self, section: &str, key: &str, value: impl Display) {
        self.explain(section, key);
        let indent = indent(section);
        self.line(format!("{indent}{key}: {value}").trim_end());
    }

    /// A setting that is switched off: taking away the # switches it on.
    pub(crate) fn disabled(&mut self, section: &str, key: &str, value: impl Display) {
        self.explain(section, key);
        let indent = indent(section);
        self.line(&format!("{indent}#{key}: {value}"));
    }

    /// A line with what its key means behind it.
    pub(super) fn with_comment(&mut self, line: &str, section: &str, key: &str) {
        let doc = find(section, key).map_or("", |info| info.doc);
        self.line(&format!("{line:<COMMENT$}# {doc}"));
    }

    fn explain(&mut self, section: &str, key: &str) {
        let indent = indent(section);
        if let Some(info) = find(section, key) {
            self.comment(&indent, &explanation(info));
        }
    }

    pub(super) fn comment(&mut self, indent: &str, text: &str) {
        let mut line = format!("{indent}#");
        for word in text.split(' ') {
            if line.len() + 1 + word.len() > WIDTH && line.len() > indent.len() + 1 {
                self.line(&line);
                line = format!("{indent}#");
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(&line);
    }
}

/// The meaning of a key, its values where they need explanation, and its default.
fn explanation(info: &KeyInfo) -> String {
    let kind = info.kind_in_words();
    let kind = match &*kind {
        "section" | "list" | "text" | "name" | "machine" | "image" | "number" | "cni"
        | "version" | "path" | "name of a variable" => "",
        kind if kind.starts_with("list of") => "",
        kind => kind,
    };
    let default = match &*info.default_in_words() {
        "" | "none" => String::new(),
        text => format!("default: {text}"),
    };
    let facts: Vec<&str> = [kind, &default]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    if facts.is_empty() {
        info.doc.to_owned()
    } else {
        format!("{} ({})", info.doc, facts.join("; "))
    }
}

fn find(section: &str, key: &str) -> Option<&'static KeyInfo> {
    keys::for_section(section).find(|info| info.key == key)
}

/// Two spaces for each section around a key.
fn indent(section: &str) -> String {
    let depth = if section.is_empty() {
        0
    } else {
        section.split('.').count()
    };
    "  ".repeat(depth)
}

/// A text as YAML takes it for the same text.
pub(super) fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        // A JSON string is a YAML string.
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_what_they_are() {
        assert_eq!(scalar("k8s-cluster"), "k8s-cluster");
        for special in [
            "null", "~", "a: b", "x#y", "\"", "a\\b", "fd00::1", "-a", "'",
        ] {
            let yaml = scalar(special);
            let read: String = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(read, special, "{yaml}");
        }
    }

    #[test]
    fn long_explanations_are_broken() {
        let mut page = Page::default();
        page.comment("  ", &"word ".repeat(50));
        let text = page.into_text();
        assert!(text.lines().count() > 2);
        assert!(
            text.lines()
                .all(|line| line.starts_with("  # ") && line.len() <= WIDTH)
        );
    }
}
