//! What a service complained of last. Nothing is changed by asking.

use std::time::Duration;

use super::{Error, Machine};
use crate::{path::Word, quote::quote, report::readable};

/// The maximum number of lines.
const LINES: usize = 3;

const SCRIPT: &str = r"
LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
exec journalctl -q --no-pager -o cat -n 200 -u $1 2>/dev/null
";

impl Machine {
    /// The last complaints of a service of systemd's, or its last lines where none looks like one.
    pub async fn last_words(&self, unit: &Word, deadline: Duration) -> Result<String, Error> {
        let question = format!("set -- {}{SCRIPT}", quote(unit.as_str()));
        let (output, _) = self.ask(&question, deadline, "journal").await?;
        Ok(chosen(&readable(&output)))
    }
}

fn chosen(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    // klog begins such lines with a letter and the date.
    let complains = |line: &&&str| {
        let bytes = line.as_bytes();
        matches!(bytes.first(), Some(b'E' | b'F')) && bytes.get(1).is_some_and(u8::is_ascii_digit)
            || line.to_ascii_lowercase().contains("error")
    };
    let mut complaints: Vec<_> = lines.iter().filter(complains).copied().collect();
    if complaints.is_empty() {
        complaints = lines;
    }
    complaints[complaints.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn complaints_come_first() {
        let text = "E1116 07:00:00 one\nE1116 07:00:01 two\nError: three\nI1116 07:00:02 fine\nF1116 07:00:03 four\n\nStarted it\n";
        assert_eq!(
            chosen(text),
            "E1116 07:00:01 two\nError: three\nF1116 07:00:03 four"
        );
        assert_eq!(chosen("a\nb\nc\nd\n"), "b\nc\nd");
        assert_eq!(chosen(""), "");
    }
}
