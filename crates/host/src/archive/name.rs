//! The paths that an archive may use: relative, plain text, and inside its tree.

use super::{flaw::Fault, limits::Limits};

/// An entry's path without `.` components and repeated slashes; empty for the root itself.
pub(super) fn normalise(raw: &[u8], limits: &Limits) -> Result<String, Fault> {
    let path = text(raw, limits)?;
    if path.is_empty() {
        return Err(Fault::NoName);
    }
    if path.starts_with('/') {
        return Err(Fault::Absolute);
    }
    let mut normal = String::with_capacity(path.len());
    for component in components(path) {
        if component == ".." {
            return Err(Fault::Parent);
        }
        if !normal.is_empty() {
            normal.push('/');
        }
        normal.push_str(component);
    }
    Ok(normal)
}

/// The target of a symbolic link, as written. Where it leads is for the index to find out.
pub(super) fn target<'a>(raw: &'a [u8], limits: &Limits) -> Result<&'a str, Fault> {
    let shown = || display(raw);
    let target = text(raw, limits).map_err(|fault| Fault::BadTarget {
        target: shown(),
        why: Box::new(fault),
    })?;
    if target.is_empty() {
        return Err(Fault::NoTarget);
    }
    if target.starts_with('/') {
        return Err(Fault::LeadsOut { target: shown() });
    }
    Ok(target)
}

/// The components that mean something.
pub(super) fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/')
        .filter(|component| !component.is_empty() && *component != ".")
}

/// A name from an archive for an error message: escaped, and not endless.
pub(super) fn display(raw: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&raw[..raw.len().min(4 * SHOWN)]);
    let cut = text.chars().nth(SHOWN).is_some() || raw.len() > 4 * SHOWN;
    let start: String = text.chars().take(SHOWN).collect();
    format!("\"{}{}\"", start.escape_debug(), if cut { "…" } else { "" })
}

fn text<'a>(raw: &'a [u8], limits: &Limits) -> Result<&'a str, Fault> {
    if raw.len() > limits.path {
        return Err(Fault::LongPath { most: limits.path });
    }
    let text = std::str::from_utf8(raw).map_err(|_| Fault::NotUtf8)?;
    if text.chars().any(char::is_control) {
        return Err(Fault::ControlCharacter);
    }
    if text.split('/').any(|part| part.len() > limits.component) {
        return Err(Fault::LongComponent {
            most: limits.component,
        });
    }
    if components(text).count() > limits.depth {
        return Err(Fault::Deep { most: limits.depth });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(raw: &str) -> Result<String, Fault> {
        normalise(raw.as_bytes(), &Limits::default())
    }

    #[test]
    fn harmless_spellings_become_one() {
        for spelling in ["a/b", "./a/b", "a//b", "a/./b", "a/b/", "././/a/b//."] {
            assert_eq!(normal(spelling).unwrap(), "a/b", "{spelling}");
        }
        assert_eq!(normal("./").unwrap(), "");
        assert_eq!(normal("a/...").unwrap(), "a/...");
        assert_eq!(normal("包/ü").unwrap(), "包/ü");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        assert!(matches!(normal("/a"), Err(Fault::Absolute)));
        for name in ["..", "../a", "a/..", "a/../b", "./.."] {
            assert!(matches!(normal(name), Err(Fault::Parent)), "{name}");
        }
    }

    #[test]
    fn names_that_are_no_plain_text_are_refused() {
        assert!(matches!(normal(""), Err(Fault::NoName)));
        for name in ["a\nb", "a\0b", "\u{1b}[2J", "a\u{7f}", "a\u{9b}b"] {
            assert!(matches!(normal(name), Err(Fault::ControlCharacter)));
        }
        let latin1 = normalise(b"caf\xe9", &Limits::default());
        assert!(matches!(latin1, Err(Fault::NotUtf8)));
    }

    #[test]
    fn long_and_deep_names_are_refused() {
        assert!(normal(&"a".repeat(255)).is_ok());
        let long = normal(&"a".repeat(256));
        assert!(matches!(long, Err(Fault::LongComponent { most: 255 })));
        assert!(normal(&["a"; 64].join("/")).is_ok());
        let deep = normal(&["a"; 65].join("/"));
        assert!(matches!(deep, Err(Fault::Deep { most: 64 })));
        let long = normal(&["a"; 2100].join("/"));
        assert!(matches!(long, Err(Fault::LongPath { most: 4096 })));
    }

    #[test]
    fn names_in_messages_are_escaped_and_short() {
        assert_eq!(display(b"a\n\x1b[2J"), r#""a\n\u{1b}[2J""#);
        assert!(display(&[b'x'; 5000]).chars().count() < 210);
    }
}
