//! How the lines of a file change, without what is secret in them.

use similar::{ChangeTag, TextDiff};

/// Lines around a change that are shown with it.
const CONTEXT: usize = 2;
/// No more lines of a file are shown.
const MOST: usize = 60;
/// What stands in place of a secret.
const HIDDEN: &str = "(hidden)";

/// The lines that change from one text to the other, each behind `+`, `-` or a blank, in groups behind `@@`. Nothing for what
/// is not text.
pub(super) fn changed(old: &[u8], new: &[u8]) -> Option<Vec<String>> {
    let (old, new) = (str::from_utf8(old).ok()?, str::from_utf8(new).ok()?);
    if old.contains('\0') || new.contains('\0') {
        return None;
    }
    let (hidden_old, hidden_new) = (hide(old), hide(new));
    // Lines are compared as they are, and shown without what is secret.
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        lines.push(format!(
            "@@ -{},{} +{},{} @@",
            first.old_range().start + 1,
            last.old_range().end - first.old_range().start,
            first.new_range().start + 1,
            last.new_range().end - first.new_range().start,
        ));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (mark, line) = match change.tag() {
                ChangeTag::Equal => (' ', change.new_index().and_then(|at| hidden_new.get(at))),
                ChangeTag::Delete => ('-', change.old_index().and_then(|at| hidden_old.get(at))),
                ChangeTag::Insert => ('+', change.new_index().and_then(|at| hidden_new.get(at))),
            };
            lines.push(format!("{mark}{}", line.map_or("", String::as_str)));
        }
    }
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("and {more} more lines"));
    }
    Some(lines)
}

/// The lines of a text without secrets and without what a terminal would obey.
fn hide(text: &str) -> Vec<String> {
    let mut is_in_key = false;
    let lines = text.lines().map(|line| {
        let begins = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
        let was_in_key = is_in_key;
        is_in_key = (is_in_key || begins) && !line.contains("-----END");
        match was_in_key && is_in_key {
            true => HIDDEN.to_owned(),
            false => printable(&hide_value(line)),
        }
    });
    lines.collect()
}

fn printable(line: &str) -> String {
    let shown = |c: char| {
        if c.is_control() && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    line.chars().map(shown).collect()
}

/// Words in a key, behind which the value is secret.
const SECRET: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "apikey",
    "api-key",
    "api_key",
    "auth",
];

/// A line in which what follows a key that sounds secret is hidden, and passwords in URLs.
fn hide_value(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let found = SECRET.iter().filter_map(|word| lower.find(word));
    if let Some(key) = found.min()
        && let Some(separator) = line[key..].find([':', '=']).map(|at| key + at)
    {
        let value = &line[separator + 1..];
        // A path or a switch is no secret.
        let plain = value.trim().trim_matches(['"', '\'', ',', '}', ']']);
        let is_plain = plain.is_empty()
            || plain.starts_with('/')
            || matches!(plain, "true" | "false" | "|" | ">")
            || plain.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain {
            return format!("{} {HIDDEN}", &line[..=separator]);
        }
    }
    hide_user_info(line)
}

/// `scheme://user:password@host` without the password.
fn hide_user_info(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        text += before;
        let end = after
            .find(|c: char| c == '/' || c.is_whitespace() || c == '"' || c == '\'')
            .unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split(':').next().unwrap_or_default();
                text += &format!("{user}:{HIDDEN}@{host}");
            }
            None => text += authority,
        }
        rest = tail;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let old = "a\nb\nc\nd\ne\nf\n";
        let new = "a\nb\nc\nD\ne\nf\ng\n";
        let lines = changed(old.as_bytes(), new.as_bytes()).unwrap();
        let expected = ["@@ -2,5 +2,6 @@", " b", " c", "-d", "+D", " e", " f", "+g"];
        assert_eq!(lines, expected);
        assert_eq!(changed(b"\xff", b"a"), None);
        assert_eq!(changed(b"a\0", b"a"), None);
        assert_eq!(changed(b"same\n", b"same\n"), Some(Vec::new()));
    }

    #[test]
    fn secrets_are_hidden_on_both_sides() {
        let text = |password: &str| {
            format!(
                "user: me\npassword: {password}\nurl: http://me:{password}@mirror:5000/v2\nTOKEN=\"{password}\"\n\
                 tokenFile: /etc/token\n-----BEGIN EC PRIVATE KEY-----\n{password}\n-----END EC PRIVATE KEY-----\n"
            )
        };
        let lines = changed(text("hunter2").as_bytes(), text("correct-horse").as_bytes());
        let lines = lines.unwrap().join("\n");
        assert!(
            !lines.contains("hunter2") && !lines.contains("correct-horse"),
            "{lines}"
        );
        assert!(lines.contains("-password: (hidden)"), "{lines}");
        assert!(
            lines.contains("+url: http://me:(hidden)@mirror:5000/v2"),
            "{lines}"
        );
        assert!(lines.contains(" tokenFile: /etc/token"), "{lines}");
    }

    #[test]
    fn long_changes_are_cut() {
        let new: String = (0..500).map(|number| format!("{number}\n")).collect();
        let lines = changed(b"", new.as_bytes()).unwrap();
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[MOST], "and 441 more lines");
    }

    proptest! {
        #[test]
        fn no_value_of_a_password_is_ever_shown(
            before in "[a-z_.-]{0,8}", separator in "[:=]", value in "[A-Z]{8,20}", other in "[a-z =:/@\"']{0,20}",
        ) {
            let line = format!("{before}password{separator} {value}{other}\n");
            let lines = changed(b"", line.as_bytes()).unwrap().join("\n");
            prop_assert!(!lines.contains(&value), "{lines}");
        }

        #[test]
        fn any_bytes_can_be_compared(old: Vec<u8>, new: Vec<u8>) {
            changed(&old, &new);
        }
    }
}
