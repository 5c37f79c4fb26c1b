//! Names, interfaces with their addresses, and default routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::{answer::Answer, os::Arch};

/// What a machine is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The kernel's word.
    pub hostname: Option<String>,
    /// What `/etc/hostname` says, for the next boot.
    pub static_hostname: Option<String>,
    /// With its domain, as far as the machine itself knows: no name server is asked.
    pub fqdn: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Interface {
    pub name: String,
    /// Whether it was set up.
    pub up: bool,
    /// Whether the link has a peer.
    pub carrier: bool,
    /// The longest packet, in bytes.
    pub mtu: Option<u32>,
    /// Its hardware address, if it has one.
    pub mac: Option<String>,
    pub addresses: Vec<Address>,
}

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Address {
    pub address: IpAddr,
    /// The length of the prefix.
    pub prefix: u8,
}

/// A way to everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DefaultRoute {
    /// The next machine on it; none on a line to just one.
    pub gateway: Option<IpAddr>,
    pub interface: String,
    /// Of several the one with the smallest is taken.
    pub metric: u32,
    /// Whether it is for IPv6.
    pub ipv6: bool,
}

pub(super) fn names(answer: &Answer) -> Names {
    let hostname = answer.value("hostname").filter(|name| name != "(none)");
    let fqdn = hostname
        .as_ref()
        .and_then(|hostname| fqdn(answer, hostname));
    Names {
        static_hostname: answer.value("static-hostname"),
        fqdn,
        hostname,
    }
}

fn fqdn(answer: &Answer, hostname: &str) -> Option<String> {
    if hostname.contains('.') {
        return Some(hostname.to_owned());
    }
    answer.each("hosts").find_map(|line| {
        let line = line.split('#').next()?;
        let names: Vec<_> = line.split_whitespace().skip(1).collect();
        let is_full = |name: &&&str| {
            let domain = name
                .strip_prefix(hostname)
                .and_then(|rest| rest.strip_prefix('.'));
            domain.is_some_and(|domain| !domain.is_empty())
        };
        names.iter().find(is_full).map(|&name| name.to_owned())
    })
}

pub(super) fn interfaces(answer: &Answer) -> Option<Vec<Interface>> {
    let links = answer.lines("links").filter(|lines| !lines.is_empty())?;
    let mut interfaces: Vec<_> = links.iter().filter_map(|line| interface(line)).collect();
    for (name, address) in answer.each("addresses").filter_map(address) {
        if let Some(interface) = interfaces.iter_mut().find(|i| i.name == name) {
            interface.addresses.push(address);
        }
    }
    Some(interfaces)
}

/// `4: eth0@if5: <BROADCAST,UP,LOWER_UP> mtu 1400 …\    link/ether 02:fc:00:00:00:01 brd …`
fn interface(line: &str) -> Option<Interface> {
    let mut words = line.split_whitespace().skip(1);
    let name = words.next()?.strip_suffix(':')?;
    let flags = words.next()?.strip_prefix('<')?.strip_suffix('>')?;
    let has = |flag| flags.split(',').any(|own| own == flag);
    let words: Vec<_> = words.collect();
    let after = |word: &str| {
        let at = words.iter().position(|own| *own == word)?;
        words.get(at + 1).copied()
    };
    Some(Interface {
        name: name.split('@').next()?.to_owned(),
        up: has("UP"),
        carrier: has("LOWER_UP"),
        mtu: after("mtu").and_then(|mtu| mtu.parse().ok()),
        mac: after("link/ether").map(str::to_owned),
        addresses: Vec::new(),
    })
}

/// `4: eth0    inet 192.0.2.2/24 brd 192.0.2.255 scope global eth0\ …`, of a point-to-point
/// interface `inet 10.0.0.1 peer 10.0.0.2/32`.
fn address(line: &str) -> Option<(&str, Address)> {
    let mut words = line.split_whitespace().skip(1);
    let name = words.next()?;
    if !matches!(words.next()?, "inet" | "inet6") {
        return None;
    }
    let word = words.next()?;
    let (address, prefix) = word.split_once('/').unwrap_or((word, ""));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        "" => most,
        prefix => prefix.parse().ok().filter(|&prefix| prefix <= most)?,
    };
    Some((name, Address { address, prefix }))
}

pub(super) fn default_routes(answer: &Answer, arch: Option<&Arch>) -> Option<Vec<DefaultRoute>> {
    answer.lines("routes-4")?;
    let ipv4 = answer
        .each("routes-4")
        .filter_map(|line| ipv4_route(line, arch));
    let ipv6 = answer.each("routes-6").filter_map(ipv6_route);
    Some(ipv4.chain(ipv6).collect())
}

const GATEWAY: u32 = 0x2;
const REJECT: u32 = 0x200;

/// `eth0 00000000 010200C0 0003 0 0 0 00000000 …`: interface, destination, gateway, flags, two
/// counters, metric, mask.
fn ipv4_route(line: &str, arch: Option<&Arch>) -> Option<DefaultRoute> {
    let words: Vec<_> = line.split_whitespace().collect();
    let &[
        interface,
        "00000000",
        gateway,
        flags,
        _,
        _,
        metric,
        "00000000",
        ..,
    ] = words.as_slice()
    else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    if flags & REJECT != 0 {
        return None;
    }
    let gateway = Ipv4Addr::from(bytes_of_word(gateway, arch)?);
    Some(DefaultRoute {
        gateway: (flags & GATEWAY != 0).then_some(gateway.into()),
        interface: interface.to_owned(),
        metric: metric.parse().ok()?,
        ipv6: false,
    })
}

/// Destination and its length, source and its length, next hop, metric, two counters, flags,
/// interface.
fn ipv6_route(line: &str) -> Option<DefaultRoute> {
    let words: Vec<_> = line.split_whitespace().collect();
    let &[_, "00", _, _, gateway, metric, _, _, flags, interface] = words.as_slice() else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    if flags & REJECT != 0 || interface == "lo" {
        return None;
    }
    let gateway = Ipv6Addr::from(u128::from_str_radix(gateway, 16).ok()?);
    Some(DefaultRoute {
        gateway: (flags & GATEWAY != 0).then_some(gateway.into()),
        interface: interface.to_owned(),
        metric: u32::from_str_radix(metric, 16).ok()?,
        ipv6: true,
    })
}

/// The bytes of an address that the kernel printed as if it were a number of its own.
pub(super) fn bytes_of_word(word: &str, arch: Option<&Arch>) -> Option<[u8; 4]> {
    let number = u32::from_str_radix(word, 16)
        .ok()
        .filter(|_| word.len() == 8)?;
    let big = arch.is_some_and(Arch::is_big_endian);
    Some(if big {
        number.to_be_bytes()
    } else {
        number.to_le_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn interfaces_have_their_addresses() {
        let links = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT\\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n\
            4: eth0@if7: <NO-CARRIER,BROADCAST,UP> mtu 1400 qdisc x\\    link/ether 02:fc:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n";
        let addresses = "1: lo    inet 127.0.0.1/8 scope host lo\\  valid_lft forever\n\
            4: eth0    inet 192.0.2.2/24 brd 192.0.2.255 scope global eth0\\  valid\n\
            4: eth0    inet6 fd00::2/64 scope global nodad \\ valid\n\
            4: eth0    inet 10.0.0.1 peer 10.0.0.2/32 scope global eth0\\ valid\n\
            4: eth0    inet 10.0.0.1/99 scope global\n9: gone inet 10.1.1.1/8\n";
        let found = interfaces(&with_sections(&[
            ("links", links),
            ("addresses", addresses),
        ]))
        .unwrap();
        assert_eq!(found.len(), 2);
        let eth0 = &found[1];
        assert_eq!(
            (eth0.name.as_str(), eth0.mtu, eth0.up, eth0.carrier),
            ("eth0", Some(1400), true, false)
        );
        assert_eq!(eth0.mac.as_deref(), Some("02:fc:00:00:00:01"));
        let addresses: Vec<_> = eth0
            .addresses
            .iter()
            .map(|a| format!("{}/{}", a.address, a.prefix))
            .collect();
        assert_eq!(addresses, ["192.0.2.2/24", "fd00::2/64", "10.0.0.1/32"]);
        assert_eq!(interfaces(&with_sections(&[("links", "")])), None);
    }

    #[test]
    fn default_routes_of_both_families() {
        let ipv4 = "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            eth1\t00000000\t010200C0\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        let zero = "00000000000000000000000000000000";
        let ipv6 = format!(
            "{zero} 00 {zero} 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n"
        );
        let answer = with_sections(&[("routes-4", ipv4), ("routes-6", &ipv6)]);
        let found = default_routes(&answer, Some(&Arch::Amd64)).unwrap();
        let gateways: Vec<_> = found
            .iter()
            .map(|r| (r.gateway.unwrap().to_string(), r.metric))
            .collect();
        assert_eq!(
            gateways,
            [("192.0.2.1".into(), 100), ("fd00::1".into(), 1024)]
        );
        let big = default_routes(&answer, Some(&Arch::S390x)).unwrap();
        assert_eq!(big[0].gateway.unwrap().to_string(), "1.2.0.192");
    }

    #[test]
    fn the_full_name_is_taken_from_the_machine_s_own_files() {
        let full = |hostname: &str, hosts: &str| {
            names(&with_sections(&[
                ("values", &format!("hostname {hostname}\n")),
                ("hosts", hosts),
            ]))
            .fqdn
        };
        assert_eq!(full("a.example.org", ""), Some("a.example.org".into()));
        let hosts = "127.0.0.1 localhost # a.not.this\n10.0.0.1 ab.example.org ab\n10.0.0.2 a.example.org a\n";
        assert_eq!(full("a", hosts), Some("a.example.org".into()));
        assert_eq!(full("c", hosts), None);
    }
}
