//! A program's flags: ours, then the user's, each once.

use std::collections::BTreeMap;

use hatchery_spec::cluster::Arguments;
use serde_json::{Map, Value};

/// Flags by name, without their dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(BTreeMap<String, String>);

impl Flags {
    pub(crate) fn new<K: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let pairs = pairs.into_iter();
        Self(pairs.map(|(k, v)| (k.into(), v.into())).collect())
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// What the user says replaces what we say; a name may be written with its dashes.
    pub(crate) fn overridden(mut self, user: Option<&Arguments>) -> Self {
        for (name, value) in user.into_iter().flat_map(Arguments::iter) {
            self.set(name.trim_start_matches('-'), value);
        }
        self
    }

    /// A command for `ExecStart=`, one flag on a line.
    pub(crate) fn command(&self, program: &str) -> String {
        let mut text = systemd_word(program);
        for (name, value) in &self.0 {
            text += " \\\n  ";
            text += &systemd_word(&format!("--{name}={value}"));
        }
        text
    }
}

/// A configuration file of JSON without what the user sets on the command line: some programs refuse a setting that is in both.
/// `called` gives what an argument is called in the file.
pub(crate) fn without_said(
    mut settings: Map<String, Value>,
    user: Option<&Arguments>,
    called: fn(&str) -> &str,
) -> String {
    for (name, _) in user.into_iter().flat_map(Arguments::iter) {
        settings.remove(called(name));
    }
    format!("{:#}\n", Value::Object(settings))
}

/// One word of a command line in a unit file, whatever it holds: systemd expands `%` and `$`, and splits at spaces.
pub(crate) fn systemd_word(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => word += "%%",
            '$' => word += "$$",
            '"' => word += "\\\"",
            '\\' => word += "\\\\",
            '\n' => word += "\\n",
            other => word.push(other),
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@+%".contains(c);
    if word.chars().all(plain) {
        word
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_systemd() {
        assert_eq!(systemd_word("--v=2"), "--v=2");
        assert_eq!(systemd_word("100% $HOME"), "\"100%% $$HOME\"");
        assert_eq!(systemd_word("say \"a\\b\""), "\"say \\\"a\\\\b\\\"\"");
    }

    #[test]
    fn a_flag_is_given_once() {
        let flags = Flags::new([("v", "2"), ("bind-address", "127.0.0.1")]);
        assert_eq!(
            flags.command("/usr/bin/x"),
            "/usr/bin/x \\\n  --bind-address=127.0.0.1 \\\n  --v=2"
        );
    }
}
