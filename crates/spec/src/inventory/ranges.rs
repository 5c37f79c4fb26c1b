//! Ranges in the names of hosts: `node[1:9]`, `node[01:10]`, `node[a:f]`, `node[1:9:2]`.

use crate::value::Mismatch;

/// The names that a pattern stands for: one if it has no range. More than `limit` are refused
/// before they are made.
pub(super) fn expand(pattern: &str, limit: usize) -> Result<Vec<String>, Mismatch> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once('[') {
        let (inner, after) = behind
            .split_once(']')
            .ok_or_else(|| Mismatch::new("not a range: its ']' is missing", EXPECTED))?;
        let steps = range(inner, limit)?;
        if names.len().saturating_mul(steps.len()) > limit {
            return Err(too_many(limit));
        }
        names = names
            .iter()
            .flat_map(|name| {
                steps
                    .iter()
                    .map(move |step| format!("{name}{before}{step}"))
            })
            .collect();
        rest = after;
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

const EXPECTED: &str =
    "write a range as node[1:9], node[01:10], node[a:f] or, with a step, node[1:9:2]";

fn too_many(limit: usize) -> Mismatch {
    Mismatch::new(
        format!("more than {limit} hosts"),
        "check the end of the range, or divide the machines among several clusters",
    )
}

fn range(text: &str, limit: usize) -> Result<Vec<String>, Mismatch> {
    let wrong = || Mismatch::new("not a range", EXPECTED);
    let parts: Vec<&str> = text.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, number(step).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    };
    let first = if first.is_empty() { "0" } else { first };
    if step == 0 {
        return Err(Mismatch::new("an endless range", "use a step of 1 or more"));
    }
    if let (Some(from), Some(to)) = (letter(first), letter(last)) {
        if from > to {
            return Err(backwards());
        }
        return Ok((from..=to)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .map(|index| char::from(LETTERS[index]).to_string())
            .collect());
    }
    let (Some(from), Some(to)) = (number(first), number(last)) else {
        return Err(wrong());
    };
    let padded = first.len() > 1 && first.starts_with('0');
    if padded && first.len() != last.len() {
        return Err(Mismatch::new(
            "not a range: with leading zeros both ends need the same number of digits",
            EXPECTED,
        ));
    }
    if from > to {
        return Err(backwards());
    }
    if (to - from) / step >= limit as u64 {
        return Err(too_many(limit));
    }
    let width = if padded { first.len() } else { 0 };
    Ok((0..=(to - from) / step)
        .map(|index| format!("{:0width$}", from + index * step))
        .collect())
}

fn backwards() -> Mismatch {
    Mismatch::new("an empty range", "write the smaller end first")
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// In Ansible's order small letters come before capitals.
const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn letter(text: &str) -> Option<usize> {
    let [byte] = text.as_bytes() else {
        return None;
    };
    LETTERS.iter().position(|one| one == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &str) -> Vec<String> {
        expand(pattern, 5000).unwrap()
    }

    #[test]
    fn ranges_as_ansible_has_them() {
        assert_eq!(names("node"), ["node"]);
        assert_eq!(names("node[1:3]"), ["node1", "node2", "node3"]);
        assert_eq!(names("node[08:10]"), ["node08", "node09", "node10"]);
        assert_eq!(names("n[:2]x"), ["n0x", "n1x", "n2x"]);
        assert_eq!(names("n[1:7:3]"), ["n1", "n4", "n7"]);
        assert_eq!(names("n[1:6:3]"), ["n1", "n4"]);
        assert_eq!(names("db-[a:c]"), ["db-a", "db-b", "db-c"]);
        assert_eq!(names("db-[a:e:2]"), ["db-a", "db-c", "db-e"]);
        assert_eq!(
            names("r[1:2]n[a:b].lan"),
            ["r1na.lan", "r1nb.lan", "r2na.lan", "r2nb.lan"]
        );
        assert_eq!(names("n[0:4999]").len(), 5000);
    }

    #[test]
    fn wrong_and_endless_ranges() {
        for bad in [
            "n[1:3",
            "n[]",
            "n[1]",
            "n[1:2:3:4]",
            "n[3:1]",
            "n[c:a]",
            "n[01:100]",
            "n[1:x]",
            "n[a:9]",
            "n[1:9:0]",
            "n[1:9:x]",
            "n[1:]",
            "n[-1:3]",
            "n[0:5000]",
            "n[0:99][0:99]",
            "n[0:18446744073709551615]",
            "n[0:99999999999999999999999]",
            "n[1:5][1:5][1:5][1:5][1:5][1:5][1:5]",
        ] {
            assert!(expand(bad, 5000).is_err(), "{bad}");
        }
    }
}
