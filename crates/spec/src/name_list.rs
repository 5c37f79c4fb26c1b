//! Long lists of names in messages.

use std::{borrow::Borrow, fmt};

/// Shows the first few names and counts the rest: `m0, m1, m2 and 997 more`.
#[derive(Clone, Copy, Debug)]
pub struct NameList<'a, T>(pub &'a [T]);

/// The number of names shown in full. A single further name is shown too, since counting it would save nothing.
const SHOWN: usize = 5;

impl<T: Borrow<str>> fmt::Display for NameList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names) = self;
        match names.split_at_checked(SHOWN) {
            Some((first, rest)) if rest.len() > 1 => {
                write!(f, "{} and {} more", first.join(", "), rest.len())
            }
            _ => f.write_str(&names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_counted() {
        let shown = |count: usize| {
            let names: Vec<_> = (0..count).map(|n| format!("m{n}")).collect();
            NameList(&names).to_string()
        };
        assert_eq!(shown(0), "");
        assert_eq!(shown(2), "m0, m1");
        assert_eq!(shown(6), "m0, m1, m2, m3, m4, m5");
        assert_eq!(shown(7), "m0, m1, m2, m3, m4 and 2 more");
    }
}
