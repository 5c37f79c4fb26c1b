//! Templates in values. Only a few that many inventories have are understood; Ansible itself would
//! be needed for the rest.

use std::borrow::Cow;

use crate::cluster::Password;
use crate::source::Span;
use crate::tree::{Kind, Node};
use crate::value::{LocalPath, cidr, nth_address};

/// References that lead to each other are not followed for ever.
const DEPTH: usize = 8;

/// A value without templates, or the place of a template that is not understood.
///
/// `{{ name }}` is the value of that variable, and kubespray's own
/// `{{ network | ipaddr('net') | ipaddr(3) | ipaddr('address') }}` the address of that number.
pub(super) fn render<'t>(
    node: &'t Node,
    variable: &dyn Fn(&str) -> Option<&'t Node>,
) -> Result<Cow<'t, Node>, Span> {
    let mut node = node;
    for _ in 0..DEPTH {
        let Some(span) = first_template(node) else {
            return Ok(Cow::Borrowed(node));
        };
        let expression = node.text().and_then(expression).ok_or(span)?;
        if let Some(address) = address(expression, variable) {
            return Ok(Cow::Owned(Node {
                span,
                kind: Kind::Scalar {
                    text: address,
                    quoted: true,
                },
            }));
        }
        node = variable(expression).ok_or(span)?;
    }
    Err(node.span)
}

/// Where the password comes from, if a template says so: `{{ lookup('env', 'NAME') }}` and
/// `{{ lookup('file', '/path') }}`.
pub(super) fn password(text: &str) -> Option<Password> {
    let arguments = expression(text)?
        .strip_prefix("lookup(")?
        .strip_suffix(')')?;
    let (kind, name) = arguments.split_once(',')?;
    let name = unquoted(name.trim())?;
    match unquoted(kind.trim())?.trim_start_matches("ansible.builtin.") {
        "env" => {
            let valid = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            valid.then(|| Password::Environment(name.to_owned()))
        }
        "file" => LocalPath::parse(name).ok().map(Password::File),
        _ => None,
    }
}

/// Whether a text is one for Ansible to work out.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

fn first_template(node: &Node) -> Option<Span> {
    match &node.kind {
        Kind::Scalar { text, .. } => is_template(text).then_some(node.span),
        Kind::Sequence(items) => items.iter().find_map(first_template),
        Kind::Mapping(entries) => entries.iter().find_map(|(_, node)| first_template(node)),
    }
}

/// What stands between `{{` and `}}`, when nothing stands around.
fn expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then(|| inner.trim().trim_matches('-').trim())
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(['\'', '"'])).then_some(inner)
    })
}

fn address<'t>(expression: &str, variable: &dyn Fn(&str) -> Option<&'t Node>) -> Option<String> {
    let filter = |text: &str| -> Option<String> {
        let name = text.trim().trim_start_matches("ansible.utils.");
        let argument = name.strip_prefix("ipaddr(")?.strip_suffix(')')?.trim();
        Some(unquoted(argument).unwrap_or(argument).to_owned())
    };
    let mut parts = expression.split('|');
    let network = parts.next()?.trim();
    let filters: Vec<String> = parts.map(filter).collect::<Option<_>>()?;
    let number = match &filters[..] {
        [net, number, address] if net == "net" && address == "address" => number.parse().ok()?,
        _ => return None,
    };
    let network = cidr(variable(network)?.text()?).ok()?;
    nth_address(network, number).map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(text: &str) -> Node {
        Node {
            span: Span::default(),
            kind: Kind::Scalar {
                text: text.to_owned(),
                quoted: true,
            },
        }
    }

    #[test]
    fn the_few_that_are_understood() {
        let known = [
            ("cluster_name", scalar("prod.local")),
            ("dns_domain", scalar("{{ cluster_name }}")),
            ("net", scalar("10.233.0.0/18")),
            ("one", scalar("{{ two }}")),
            ("two", scalar("{{one}}")),
        ];
        let rendered = |text: &str| {
            let node = scalar(text);
            let variable = |name: &str| {
                let found = known.iter().find(|(one, _)| *one == name);
                found.map(|(_, node)| node)
            };
            let answer = render(&node, &variable).ok()?;
            answer.text().map(str::to_owned)
        };
        assert_eq!(rendered("plain").unwrap(), "plain");
        assert_eq!(rendered("{{cluster_name}}").unwrap(), "prod.local");
        assert_eq!(rendered("{{ dns_domain }}").unwrap(), "prod.local");
        let third = "{{ net | ansible.utils.ipaddr('net') | ipaddr(3) | ipaddr('address') }}";
        assert_eq!(rendered(third).unwrap(), "10.233.0.3");
        for bad in [
            "{{ other }}",
            "{{ one }}",
            "x{{ cluster_name }}",
            "{{ cluster_name }}.{{ cluster_name }}",
            "{% if a %}b{% endif %}",
            "{{ net | ipaddr('net') }}",
            "{{ cluster_name | ipaddr('net') | ipaddr(3) | ipaddr('address') }}",
        ] {
            assert_eq!(rendered(bad), None, "{bad}");
        }
    }

    #[test]
    fn passwords_from_elsewhere() {
        let environment = password("{{ lookup('env', 'SSH_PASSWORD') }}");
        assert_eq!(
            environment,
            Some(Password::Environment("SSH_PASSWORD".to_owned()))
        );
        assert!(matches!(
            password("{{ lookup(\"file\",\"~/secret\") }}"),
            Some(Password::File(_))
        ));
        for bad in [
            "plain",
            "{{ lookup('env', name) }}",
            "{{ lookup('env', 'a b') }}",
            "{{ lookup('pipe', 'id') }}",
        ] {
            assert_eq!(password(bad), None, "{bad}");
        }
    }
}
