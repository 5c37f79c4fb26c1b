//! A network of its own for each sandbox: a free /24 that disturbs nothing on this machine.

use std::{fs, net::Ipv4Addr};

use ipnet::Ipv4Net;

/// Machines a sandbox can have: addresses from .11 on, with some room left above.
pub(crate) const MAX_MACHINES: usize = 200;

/// Where networks are taken from, in this order. None of them is a default of Docker, of
/// Kubernetes' pods (10.244) or of eggo's services (10.32).
const POOLS: [(Ipv4Addr, u8); 3] = [
    (Ipv4Addr::new(10, 201, 0, 0), 16),
    (Ipv4Addr::new(172, 27, 0, 0), 16),
    (Ipv4Addr::new(192, 168, 128, 0), 17),
];

/// The network of a sandbox and who has which address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(Ipv4Net);

impl Subnet {
    /// A network that Docker reports; `None` unless it is one of ours, a /24.
    pub(crate) fn from_network(network: Ipv4Net) -> Option<Self> {
        (network.prefix_len() == 24).then(|| Self(network.trunc()))
    }

    /// The network itself.
    pub fn network(self) -> Ipv4Net {
        self.0
    }

    /// The control machine's side of the bridge.
    pub(crate) fn gateway(self) -> Ipv4Addr {
        self.host(1)
    }

    /// The resolver and web server that stand for the world outside.
    pub(crate) fn outside(self) -> Ipv4Addr {
        self.host(2)
    }

    /// The address of the bastion.
    pub(crate) fn bastion(self) -> Ipv4Addr {
        self.host(10)
    }

    /// The `number`th machine, counted from one.
    pub(crate) fn machine(self, number: usize) -> Ipv4Addr {
        self.host(10 + u8::try_from(number.min(MAX_MACHINES)).unwrap_or(u8::MAX - 10))
    }

    fn host(self, last: u8) -> Ipv4Addr {
        let [a, b, c, _] = self.0.network().octets();
        Ipv4Addr::new(a, b, c, last)
    }
}

/// The first /24 that overlaps nothing in use.
pub(crate) fn choose(in_use: &[Ipv4Net]) -> Option<Subnet> {
    let pools = POOLS
        .iter()
        .filter_map(|(address, length)| Ipv4Net::new(*address, *length).ok());
    pools
        .filter_map(|pool| pool.subnets(24).ok())
        .flatten()
        .find(|network| !in_use.iter().any(|used| overlap(network, used)))
        .map(Subnet)
}

fn overlap(a: &Ipv4Net, b: &Ipv4Net) -> bool {
    a.contains(b) || b.contains(a)
}

/// Networks this machine has routes to, the default route aside.
pub(crate) fn routed() -> Vec<Ipv4Net> {
    routes(&fs::read_to_string("/proc/net/route").unwrap_or_default())
}

/// `/proc/net/route`: destination and mask in hexadecimal, in the machine's byte order.
fn routes(table: &str) -> Vec<Ipv4Net> {
    let address = |hex: &str| {
        u32::from_str_radix(hex, 16)
            .ok()
            .map(|number| Ipv4Addr::from(number.to_ne_bytes()))
    };
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let columns: Vec<_> = line.split_whitespace().collect();
            let network = address(columns.get(1)?)?;
            Ipv4Net::with_netmask(network, address(columns.get(7)?)?).ok()
        })
        .filter(|network| network.prefix_len() > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(list: &[&str]) -> Vec<Ipv4Net> {
        list.iter().map(|net| net.parse().unwrap()).collect()
    }

    fn chosen(in_use: &[&str]) -> Option<String> {
        choose(&nets(in_use)).map(|subnet| subnet.network().to_string())
    }

    #[test]
    fn the_first_free_network_is_taken() {
        assert_eq!(chosen(&[]).unwrap(), "10.201.0.0/24");
        assert_eq!(
            chosen(&["10.201.0.0/24", "10.201.1.128/25"]).unwrap(),
            "10.201.2.0/24"
        );
    }

    #[test]
    fn a_wide_route_moves_us_to_another_pool() {
        assert_eq!(chosen(&["10.0.0.0/8"]).unwrap(), "172.27.0.0/24");
        assert_eq!(
            chosen(&["10.0.0.0/8", "172.16.0.0/12"]).unwrap(),
            "192.168.128.0/24"
        );
        assert_eq!(
            chosen(&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]),
            None
        );
    }

    #[test]
    fn addresses_are_fixed() {
        let subnet = choose(&[]).unwrap();
        assert_eq!(subnet.gateway().to_string(), "10.201.0.1");
        assert_eq!(subnet.outside().to_string(), "10.201.0.2");
        assert_eq!(subnet.bastion().to_string(), "10.201.0.10");
        assert_eq!(subnet.machine(1).to_string(), "10.201.0.11");
        assert_eq!(subnet.machine(MAX_MACHINES).to_string(), "10.201.0.210");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_of_the_kernel_are_read() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
            tun0\t0000C90A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        assert_eq!(routes(table), nets(&["192.0.2.0/24", "10.201.0.0/16"]));
    }
}
