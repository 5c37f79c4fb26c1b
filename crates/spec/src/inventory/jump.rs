//! Arguments for ssh, as far as they say which hosts are on the way.

use crate::value::{Bastion, Mismatch};

/// What arguments for ssh ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    /// The hosts on the way; an empty list for none, whatever else was said.
    pub(super) bastions: Option<Vec<Bastion>>,
    /// Host keys shall not be checked.
    pub(super) unchecked: bool,
    /// Host keys that are not known shall be refused.
    pub(super) strict: bool,
}

/// Options that only tune ssh itself.
const HARMLESS: [&str; 21] = [
    "addressfamily",
    "batchmode",
    "checkhostip",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "controlmaster",
    "controlpath",
    "controlpersist",
    "forwardagent",
    "globalknownhostsfile",
    "gssapiauthentication",
    "identitiesonly",
    "kbdinteractiveauthentication",
    "loglevel",
    "numberofpasswordprompts",
    "preferredauthentications",
    "serveralivecountmax",
    "serveraliveinterval",
    "tcpkeepalive",
    "userknownhostsfile",
];

const EXPECTED: &str = "specify jump hosts as -o ProxyJump=user@host:port; use variables such as ansible_user, ansible_port and ansible_ssh_private_key_file for the rest";

/// Reads arguments for ssh; what is not understood is refused, since without it the host may be
/// out of reach, or another be reached.
pub(super) fn parse(text: &str) -> Result<Arguments, Mismatch> {
    let mut found = Arguments::default();
    let mut words = words(text)?.into_iter();
    while let Some(word) = words.next() {
        if let Some(rest) = word.strip_prefix("-o") {
            let option = if rest.is_empty() {
                words.next()
            } else {
                Some(rest.to_owned())
            };
            option_of_ssh(&option.ok_or_else(wrong)?, &mut found)?;
        } else if let Some(rest) = word.strip_prefix("-J") {
            let hosts = if rest.is_empty() {
                words.next()
            } else {
                Some(rest.to_owned())
            };
            found.bastions = Some(hops(&hosts.ok_or_else(wrong)?)?);
        } else if !matches!(
            word.as_str(),
            "-q" | "-C" | "-A" | "-4" | "-6" | "-T" | "-x"
        ) {
            return Err(wrong());
        }
    }
    Ok(found)
}

fn wrong() -> Mismatch {
    Mismatch::new("not supported as arguments for ssh", EXPECTED)
}

fn option_of_ssh(option: &str, found: &mut Arguments) -> Result<(), Mismatch> {
    let (name, value) = option
        .split_once(['=', ' '])
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .ok_or_else(wrong)?;
    match name.as_str() {
        "proxyjump" => found.bastions = Some(hops(value)?),
        "proxycommand" => found.bastions = Some(command(value)?),
        "stricthostkeychecking" => {
            found.unchecked |= matches!(value, "no" | "off");
            found.strict |= matches!(value, "yes" | "on");
        }
        name if HARMLESS.contains(&name) => {}
        _ => return Err(wrong()),
    }
    Ok(())
}

fn hops(text: &str) -> Result<Vec<Bastion>, Mismatch> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|hop| Bastion::parse(hop.trim().trim_start_matches("ssh://")))
        .collect()
}

/// `ssh -W %h:%p user@host`, with -p, -l, -q and options that only tune ssh.
fn command(text: &str) -> Result<Vec<Bastion>, Mismatch> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    let wrong = || Mismatch::new("not a supported ProxyCommand", EXPECTED);
    let mut words = words(text)?.into_iter();
    let program = words.next().unwrap_or_default();
    if program.rsplit('/').next() != Some("ssh") {
        return Err(wrong());
    }
    let (mut forwards, mut port, mut user, mut host) = (false, None, None, None);
    while let Some(word) = words.next() {
        let flag: String = word.chars().take(2).collect();
        let mut value = || match word.get(2..) {
            Some("") | None => words.next(),
            Some(rest) => Some(rest.to_owned()),
        };
        match flag.as_str() {
            "-W" => {
                let target = value().ok_or_else(wrong)?;
                forwards = matches!(target.as_str(), "%h:%p" | "[%h]:%p");
            }
            "-p" => port = Some(value().ok_or_else(wrong)?),
            "-l" => user = Some(value().ok_or_else(wrong)?),
            "-o" => {
                let mut inner = Arguments::default();
                option_of_ssh(&value().ok_or_else(wrong)?, &mut inner)?;
                if inner.bastions.is_some() {
                    return Err(wrong());
                }
            }
            _ if matches!(
                word.as_str(),
                "-q" | "-C" | "-A" | "-4" | "-6" | "-T" | "-x"
            ) => {}
            _ if !word.starts_with('-') && host.is_none() => host = Some(word),
            _ => return Err(wrong()),
        }
    }
    let host = host.filter(|_| forwards).ok_or_else(wrong)?;
    let named = match user {
        Some(user) if !host.contains('@') => format!("{user}@{host}"),
        Some(_) => return Err(wrong()),
        None => host,
    };
    let whole = match port {
        Some(port) => format!("{named}:{port}"),
        None => named,
    };
    Ok(vec![Bastion::parse(&whole)?])
}

/// Words as a shell divides them, as far as quotes and backslashes go.
fn words(text: &str) -> Result<Vec<String>, Mismatch> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = letters.next().ok_or_else(wrong)?;
                word.get_or_insert_default().push(next);
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(Mismatch::new("missing a closing quote", EXPECTED));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(text: &str) -> Option<Vec<String>> {
        let found = parse(text).ok()?.bastions?;
        Some(found.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ways_through_other_hosts() {
        for (text, hops) in [
            ("-o ProxyJump=jump", &["jump:22"][..]),
            ("-J u@a:2222,b", &["u@a:2222", "b:22"]),
            ("-Jssh://u@a:2222", &["u@a:2222"]),
            ("-oProxyJump=none", &[]),
            ("-o 'ProxyJump jump' -o ConnectTimeout=5", &["jump:22"]),
            (
                "-o ProxyCommand=\"ssh -W %h:%p -q ops@10.0.0.1\"",
                &["ops@10.0.0.1:22"],
            ),
            (
                "-o ProxyCommand='/usr/bin/ssh -p 2222 -l ops -W [%h]:%p jump'",
                &["ops@jump:2222"],
            ),
            (
                "-o ProxyCommand='ssh -o StrictHostKeyChecking=no -W %h:%p -p2222 jump'",
                &["jump:2222"],
            ),
        ] {
            assert_eq!(way(text).unwrap(), hops, "{text}");
        }
    }

    #[test]
    fn harmless_and_refused() {
        assert_eq!(parse("").unwrap(), Arguments::default());
        let usual = parse("-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null").unwrap();
        assert!(usual.unchecked && usual.bastions.is_none());
        let strict = parse("-o StrictHostKeyChecking=yes").unwrap();
        assert!(strict.strict && !strict.unchecked);
        assert!(!usual.strict);
        for bad in [
            "-F config",
            "-i key",
            "-o",
            "-J",
            "-o User=root",
            "-o ProxyJump='a b'",
            "-o ProxyCommand='nc -x proxy %h %p'",
            "-o ProxyCommand='ssh jump nc %h %p'",
            "-o ProxyCommand='ssh jump'",
            "-o ProxyCommand='ssh -W %h:%p -o ProxyJump=x jump'",
            "-o ProxyCommand='ssh -W other:22 jump'",
            "-o ProxyJump='",
            "host",
            "-o ProxyJump",
            "\\",
            "-ö",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
