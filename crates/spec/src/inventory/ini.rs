//! Inventories of the older kind, which begin with `[group]`: recognised, and explained once.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Input, SIZE_LIMIT, Source, Span};

/// Refuses a file whose first line is the head of an INI section; false if it is none.
pub(crate) fn refuse(input: Input<'_>, diagnostics: &mut Diagnostics) -> bool {
    let Some(text) = (input.bytes.len() <= SIZE_LIMIT)
        .then(|| std::str::from_utf8(input.bytes).ok())
        .flatten()
    else {
        return false;
    };
    let mut start = 0;
    let head = text.split_inclusive('\n').find(|line| {
        let blank = line.trim().is_empty() || line.starts_with(['#', ';']);
        start += if blank { line.len() } else { 0 };
        !blank
    });
    let Some(head) = head.map(str::trim_end).filter(|line| is_head(line)) else {
        return false;
    };
    let file = diagnostics.add_source(Source::new(input.name, text));
    let end = start + head.len();
    diagnostics.push(
        Diagnostic::error(
            "ini-inventory",
            Span { file, start, end },
            "this is an inventory in INI format; only YAML is supported",
        )
        .remedy("convert it with ansible-inventory -i FILE --list --yaml > hosts.yml"),
    );
    true
}

fn is_head(line: &str) -> bool {
    let name = line
        .strip_prefix('[')
        .and_then(|line| line.strip_suffix(']'));
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<usize> {
        let mut all = Diagnostics::default();
        refuse(Input::private("f", text.as_bytes()), &mut all)
            .then(|| all.place(all.sorted()[0].span).unwrap().start.line)
    }

    #[test]
    fn heads_of_sections() {
        assert_eq!(refused("[all]\nnode1 ansible_host=10.0.0.1\n"), Some(1));
        assert_eq!(refused("# hosts\n\n[kube_node:vars]\r\n"), Some(3));
        for other in ["", "all:\n", "[a, b]\n", "[]\n", "- a\n[b]\n", "[a] b\n"] {
            assert_eq!(refused(other), None, "{other}");
        }
    }
}
