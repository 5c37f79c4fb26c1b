//! The one way by which a value reaches a shell.

/// A value as one word of any POSIX shell, whatever it contains.
///
/// A NUL byte cannot be part of a word; it is left out, since no shell could carry it.
pub fn quote(value: &str) -> String {
    let mut word = String::with_capacity(value.len() + 2);
    word.push('\'');
    for character in value.chars() {
        match character {
            '\'' => word.push_str(r"'\''"),
            '\0' => {}
            other => word.push(other),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::quote;

    /// Each shell that is there, with the words before `-c`.
    const SHELLS: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "sh"]];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_shell_gives_back_what_was_quoted(values in prop::collection::vec("[^\\x00]*", 1..8)) {
            let words: Vec<_> = values.iter().map(|value| quote(value)).collect();
            let script = format!("printf '%s\\0' {}", words.join(" "));
            let expected: String = values.iter().map(|value| format!("{value}\0")).collect();
            for shell in SHELLS {
                let output = Command::new(shell[0]).args(&shell[1..]).args(["-c", &script]).output().unwrap();
                prop_assert_eq!(String::from_utf8_lossy(&output.stdout), expected.as_str(), "{:?}", shell);
            }
        }
    }

    #[test]
    fn no_word_carries_a_nul() {
        assert_eq!(quote("a\0b'c"), r"'ab'\''c'");
    }
}
