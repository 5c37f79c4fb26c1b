//! How a machine resolves names.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// `resolv.conf`, and what stands behind systemd-resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolver {
    /// Name servers in `/etc/resolv.conf`.
    pub nameservers: Vec<IpAddr>,
    /// Domains that names are looked up in.
    pub search: Vec<String>,
    /// The real name servers where systemd-resolved runs, from its own file.
    pub upstream: Option<Vec<IpAddr>>,
}

impl Resolver {
    /// Whether a name server is the machine's own, which pods cannot reach.
    pub fn has_loopback(&self) -> bool {
        self.nameservers.iter().any(IpAddr::is_loopback)
    }
}

pub(super) fn resolver(answer: &Answer) -> Option<Resolver> {
    let own = answer.lines("resolv-conf")?;
    let upstream = answer.lines("resolved-resolv-conf");
    // The last line of its kind counts.
    let search = own
        .iter()
        .rev()
        .find_map(|line| after(line, &["search", "domain"]));
    let search = search.unwrap_or_default().split_whitespace();
    Some(Resolver {
        nameservers: nameservers(own),
        search: search.map(str::to_owned).collect(),
        upstream: upstream.map(nameservers),
    })
}

fn nameservers(lines: &[String]) -> Vec<IpAddr> {
    let server = |line: &String| {
        let server = after(line, &["nameserver"])?.split_whitespace().next()?;
        // A link-local address may name its interface.
        server.split('%').next()?.parse().ok()
    };
    lines.iter().filter_map(server).collect()
}

fn after<'a>(line: &'a str, keys: &[&str]) -> Option<&'a str> {
    let (key, value) = line.trim_start().split_once(' ')?;
    keys.contains(&key).then(|| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn loopback_servers_and_what_stands_behind() {
        let own = "# nameserver 9.9.9.9\nnameserver 127.0.0.53\nsearch a.test\nsearch b.test c.test\noptions edns0\n";
        let upstream = "nameserver\t10.0.0.53\nnameserver fe80::1%eth0\nnameserver nobody\n";
        let found = resolver(&with_sections(&[
            ("resolv-conf", own),
            ("resolved-resolv-conf", upstream),
        ]))
        .unwrap();
        assert!(found.has_loopback());
        assert_eq!(found.nameservers.len(), 1);
        assert_eq!(found.search, ["b.test", "c.test"]);
        let upstream: Vec<_> = found
            .upstream
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(upstream, ["10.0.0.53", "fe80::1"]);
        assert_eq!(resolver(&with_sections(&[])), None);
    }
}
