//! Labels and taints of nodes, in Kubernetes' syntax.

use std::fmt;

use super::{DnsName, Mismatch};

/// A label of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The key, with its prefix.
    pub key: String,
    /// The value; may be empty.
    pub value: String,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key and value.
    pub label: Label,
    /// What it does to pods.
    pub effect: Effect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Effect {
    /// No pod is scheduled.
    NoSchedule,
    /// Pods are scheduled only if no other node is suitable.
    PreferNoSchedule,
    /// No pod is scheduled, and running pods are evicted.
    NoExecute,
}

impl Label {
    /// Parses `key=value`.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        Self::new(key, value)
    }

    /// A label of key and value.
    pub fn new(key: &str, value: &str) -> Result<Self, Mismatch> {
        let (prefix, name) = match key.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, key),
        };
        if let Some(prefix) = prefix {
            DnsName::parse(prefix).map_err(|_| {
                Mismatch::new(
                    "not a label: the part before '/' is not a DNS name",
                    "write the key as example.org/name",
                )
            })?;
        }
        let words = "use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit";
        if name.is_empty() || !is_word(name) {
            return Err(Mismatch::new("not a label: its key is not valid", words));
        }
        if !is_word(value) {
            return Err(Mismatch::new("not a label: its value is not valid", words));
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// Whether this can be the value of a label.
fn is_word(text: &str) -> bool {
    text.len() <= 63
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

impl Taint {
    /// Parses `key=value:Effect` or `key:Effect`.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let expected = "write key=value:NoSchedule (or PreferNoSchedule, NoExecute)";
        let (label, effect) = text
            .rsplit_once(':')
            .ok_or_else(|| Mismatch::new("a taint without an effect", expected))?;
        let effect = match effect {
            "NoSchedule" => Effect::NoSchedule,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            "NoExecute" => Effect::NoExecute,
            _ => return Err(Mismatch::new("a taint with an unknown effect", expected)),
        };
        let label = Label::parse(label).map_err(|wrong| {
            Mismatch::new(wrong.problem.replace("a label", "a taint"), wrong.remedy)
        })?;
        Ok(Self { label, effect })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label.key)?;
        if !self.label.value.is_empty() {
            write!(f, "={}", self.label.value)?;
        }
        write!(f, ":{:?}", self.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        for good in ["zone=a", "example.org/zone=A_b.c", "gpu="] {
            assert_eq!(Label::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "=a",
            "a b=c",
            "/a=b",
            "x_y/a=b",
            "a/=c",
            "a=-b",
            "a=b c",
            &format!("{}=b", "a".repeat(64)),
        ] {
            assert!(Label::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn taints() {
        for good in [
            "gpu=yes:NoSchedule",
            "example.org/x:NoExecute",
            "a:PreferNoSchedule",
        ] {
            assert_eq!(Taint::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "gpu",
            "gpu=yes",
            "gpu:noschedule",
            ":NoSchedule",
            "a b:NoExecute",
        ] {
            assert!(Taint::parse(bad).is_err(), "{bad}");
        }
    }
}
