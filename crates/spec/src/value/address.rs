//! Network addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::Serialize;

use super::{DnsName, Mismatch};

/// A TCP or UDP port; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Port(u16);

/// An IP address or a DNS name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An IP address.
    Address(IpAddr),
    /// A DNS name.
    Name(DnsName),
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IPv6 addresses are displayed in brackets.
    pub host: Host,
    /// Never left out.
    pub port: Port,
}

/// A jump host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bastion {
    /// The login user; that of the target machine if `None`.
    pub user: Option<String>,
    /// The jump host's address or name.
    pub host: Host,
    /// The SSH port.
    pub port: Port,
}

/// One network, or one per address family (dual-stack).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidrs {
    /// The network whose family comes first.
    pub primary: IpNet,
    /// The network of the other family.
    pub secondary: Option<IpNet>,
}

impl Port {
    /// The API server's port on each master.
    pub const API_SERVER: Self = Self(6443);
    /// The default SSH port.
    pub const SSH: Self = Self(22);

    /// Parses a port.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        match text.parse::<u16>() {
            Ok(port) if port > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(Self(port)),
            _ => Err(Mismatch::new("not a port", "use a number from 1 to 65535")),
        }
    }

    /// The port as a number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parses the address of a machine: neither loopback nor link-local, multicast or unspecified.
pub fn machine_address(text: &str) -> Result<IpAddr, Mismatch> {
    let address = address(text)?;
    if address.is_unspecified()
        || address.is_multicast()
        || address == IpAddr::V4(Ipv4Addr::BROADCAST)
    {
        return Err(Mismatch::new(
            "not the address of a machine",
            "use the address by which the other machines reach it",
        ));
    }
    if address.is_loopback() || matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
        return Err(Mismatch::new(
            "an address that other machines cannot reach",
            "use the address by which the other machines reach it",
        ));
    }
    Ok(address)
}

/// Parses any address.
pub fn address(text: &str) -> Result<IpAddr, Mismatch> {
    text.parse().map_err(|_| {
        let remedy = if text.contains('/') {
            "write only the address, without the mask"
        } else if text.matches(':').count() == 1 {
            "write only the address; the port has its own key"
        } else {
            "write an IPv4 or IPv6 address, such as 192.168.0.1 or fd00::1"
        };
        Mismatch::new("not an IP address", remedy)
    })
}

/// Parses a network.
pub fn cidr(text: &str) -> Result<IpNet, Mismatch> {
    let expected = "write a network such as 10.244.0.0/16 or fd00:10::/56";
    if !text.contains('/') {
        return Err(Mismatch::new(
            "not a network: the prefix length is missing",
            expected,
        ));
    }
    let net: IpNet = text
        .parse()
        .map_err(|_| Mismatch::new("not a network", expected))?;
    if net.trunc() != net {
        return Err(Mismatch::new(
            "not a network: host bits are set",
            format!("write {}", net.trunc()),
        ));
    }
    Ok(net)
}

impl Cidrs {
    /// Parses one network, or two of different families with a comma between.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let nets = text
            .split(',')
            .map(|part| cidr(part.trim()))
            .collect::<Result<Vec<_>, _>>()?;
        let pair =
            "for dual-stack give one IPv4 and one IPv6 network, such as 10.244.0.0/16,fd00:10::/56";
        match nets[..] {
            [primary] => Ok(Self {
                primary,
                secondary: None,
            }),
            [primary, second] if is_v4(primary) != is_v4(second) => Ok(Self {
                primary,
                secondary: Some(second),
            }),
            [_, _] => Err(Mismatch::new("two networks of the same family", pair)),
            _ => Err(Mismatch::new("more than two networks", pair)),
        }
    }

    /// The primary network, then the secondary.
    pub fn iter(&self) -> impl Iterator<Item = IpNet> {
        std::iter::once(self.primary).chain(self.secondary)
    }

    /// Whether it is dual-stack.
    pub fn is_dual(&self) -> bool {
        self.secondary.is_some()
    }
}

impl fmt::Display for Cidrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.primary.fmt(f)?;
        self.secondary
            .map_or(Ok(()), |second| write!(f, ",{second}"))
    }
}

fn is_v4(net: IpNet) -> bool {
    matches!(net, IpNet::V4(_))
}

/// The address of this number in the network, counted from its first; nothing outside it.
pub fn nth_address(net: IpNet, n: u32) -> Option<IpAddr> {
    let address = match net {
        IpNet::V4(net) => IpAddr::V4(Ipv4Addr::from_bits(net.network().to_bits().checked_add(n)?)),
        IpNet::V6(net) => IpAddr::V6(Ipv6Addr::from_bits(
            net.network().to_bits().checked_add(n.into())?,
        )),
    };
    net.contains(&address).then_some(address)
}

impl Host {
    /// Parses an address, with or without brackets, or a name.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::Address(address));
        }
        // Digits and dots alone are an address with a mistake, never a name.
        if bare.bytes().all(|b| b.is_ascii_digit() || b == b'.') || bare.contains(':') {
            return Err(Mismatch::new(
                "neither an IP address nor a name",
                "write an address such as 192.168.0.1 or a DNS name",
            ));
        }
        DnsName::parse(bare).map(Self::Name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Endpoint {
    /// Parses `host:port`.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let expected =
            "write host:port, such as 192.168.0.5:6443, [fd00::5]:6443 or k8s.example.org:6443";
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(Mismatch::new(
                format!("a URL; {scheme}:// does not belong here"),
                expected,
            ));
        }
        let (host, port) = text
            .rsplit_once(':')
            .filter(|(host, _)| !host.contains(':') || host.ends_with(']'))
            .ok_or_else(|| Mismatch::new("missing a port", expected))?;
        Ok(Self {
            host: Host::parse(host)?,
            port: Port::parse(port)
                .map_err(|_| Mismatch::new("missing a port from 1 to 65535", expected))?,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

impl Bastion {
    /// Parses `user@host:port`; user and port may be left out.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let expected = "write user@host:port; user and port may be left out";
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, text),
        };
        if user.is_some_and(|user| !is_login(user)) {
            return Err(Mismatch::new(
                "not a jump host: the user's name is not valid",
                expected,
            ));
        }
        let bracketed = rest.ends_with(']');
        let several_colons = rest.matches(':').count() > 1 && !rest.starts_with('[');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !bracketed && !several_colons => (
                host,
                Port::parse(port).map_err(|_| {
                    Mismatch::new("not a jump host: the port is not valid", expected)
                })?,
            ),
            _ => (rest, Port::SSH),
        };
        let host = Host::parse(host).map_err(|_| Mismatch::new("not a jump host", expected))?;
        Ok(Self {
            user: user.map(str::to_owned),
            host,
            port,
        })
    }
}

/// The name of a user to log in as.
///
/// # Errors
/// When no system would take it as one.
pub fn login(text: &str) -> Result<String, Mismatch> {
    if is_login(text) {
        Ok(text.to_owned())
    } else {
        Err(Mismatch::new(
            "not a user name",
            "write only the login name, such as root",
        ))
    }
}

fn is_login(user: &str) -> bool {
    !user.is_empty()
        && user.len() <= 256
        && !user.starts_with('-')
        && !user
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || ":/@'\"`$\\;&|<>(){}*?!".contains(c))
}

impl fmt::Display for Bastion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        Endpoint {
            host: self.host.clone(),
            port: self.port,
        }
        .fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for good in ["192.168.0.1:6443", "[fd00::1]:443", "k8s.example.org:6443"] {
            assert_eq!(Endpoint::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "192.168.0.1",
            "192.168.0.1:0",
            "https://a:1",
            "fd00::1",
            "a_b:1",
            ":1",
            "a:99999",
            "1.2.3:4",
        ] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bastions() {
        for (text, shown) in [
            ("jump", "jump:22"),
            ("root@10.0.0.1", "root@10.0.0.1:22"),
            ("u@[fd00::1]:2222", "u@[fd00::1]:2222"),
            ("fd00::1", "[fd00::1]:22"),
            ("[fd00::1]", "[fd00::1]:22"),
            ("host:2200", "host:2200"),
        ] {
            assert_eq!(Bastion::parse(text).unwrap().to_string(), shown);
        }
        for bad in [
            "", "@host", "u@", "host:", "host:x", "a b@host", "-o@host", "u@ho st",
        ] {
            assert!(Bastion::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks() {
        assert_eq!(cidr("10.1.2.3/16").unwrap_err().remedy, "write 10.1.0.0/16");
        assert!(cidr("10.0.0.0").is_err() && cidr("10.0.0.0/33").is_err());
        let both = Cidrs::parse("10.0.0.0/16, fd00::/108").unwrap();
        assert!(both.is_dual());
        assert_eq!(both.to_string(), "10.0.0.0/16,fd00::/108");
        assert!(Cidrs::parse("10.0.0.0/16,10.1.0.0/16").is_err());
        let net = "10.32.0.0/28".parse().unwrap();
        assert_eq!(nth_address(net, 10), Some("10.32.0.10".parse().unwrap()));
        assert_eq!(nth_address(net, 16), None);
        assert_eq!(nth_address("255.255.255.0/24".parse().unwrap(), 300), None);
    }

    #[test]
    fn ports_and_machine_addresses() {
        assert_eq!(Port::parse("022").unwrap().number(), 22);
        for bad in ["0", "65536", "-1", "+22", "x", "", "2 2"] {
            assert!(Port::parse(bad).is_err(), "{bad}");
        }
        assert!(machine_address("192.168.0.1").is_ok() && machine_address("fd00::1").is_ok());
        for bad in [
            "0.0.0.0",
            "127.0.0.1",
            "::1",
            "fe80::1",
            "224.0.0.1",
            "1.2.3",
            "1.2.3.4/24",
            "host",
        ] {
            assert!(machine_address(bad).is_err(), "{bad}");
        }
    }
}
