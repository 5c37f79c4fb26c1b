//! Ports that processes listen on, and which processes.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use serde::{Deserialize, Serialize};

use super::{answer::Answer, network::bytes_of_word, os::Arch};

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Protocol {
    Tcp,
    Udp,
}

/// A socket that waits for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Listener {
    pub protocol: Protocol,
    /// The address it listens on; an unspecified one stands for all.
    pub address: IpAddr,
    pub port: u16,
    /// Processes that hold it; empty where that is not known, or it is the kernel's own.
    pub processes: Vec<Process>,
}

/// The process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Its name, of at most 15 bytes.
    pub name: String,
}

pub(super) fn listeners(answer: &Answer, arch: Option<&Arch>) -> Option<Vec<Listener>> {
    let sockets = answer.lines("sockets")?;
    let mut owners: BTreeMap<u64, Vec<Process>> = BTreeMap::new();
    for (inode, process) in answer.each("socket-owners").filter_map(owner) {
        let known = owners.entry(inode).or_default();
        // A process may hold the same socket more than once.
        if !known.contains(&process) {
            known.push(process);
        }
    }
    let mut listeners: Vec<_> = sockets
        .iter()
        .filter_map(|line| {
            let (mut listener, inode) = socket(line, arch)?;
            listener.processes = owners.get(&inode).cloned().unwrap_or_default();
            listener.processes.sort();
            Some(listener)
        })
        .collect();
    listeners.sort_by_key(|listener| (listener.protocol, listener.port, listener.address));
    Some(listeners)
}

const LISTENING: &str = "0A";
const UNCONNECTED: &str = "07";

/// `/proc/net/tcp:   0: 00000000:0016 00000000:0000 0A … … … 0 0 1060 …`: after the table and
/// the number come the own and the other address, the state, five more words and the inode.
fn socket(line: &str, arch: Option<&Arch>) -> Option<(Listener, u64)> {
    let (table, rest) = line.strip_prefix("/proc/net/")?.split_once(':')?;
    let (_, rest) = rest.split_once(':')?;
    let words: Vec<_> = rest.split_whitespace().collect();
    let &[own, _, state, _, _, _, _, _, inode, ..] = words.as_slice() else {
        return None;
    };
    let protocol = match (table, state) {
        ("tcp" | "tcp6", LISTENING) => Protocol::Tcp,
        ("udp" | "udp6", UNCONNECTED) => Protocol::Udp,
        _ => return None,
    };
    let (address, port) = own.split_once(':')?;
    let listener = Listener {
        protocol,
        address: address_of_words(address, arch)?,
        port: u16::from_str_radix(port, 16).ok()?,
        processes: Vec::new(),
    };
    Some((listener, inode.parse().ok()?))
}

fn address_of_words(words: &str, arch: Option<&Arch>) -> Option<IpAddr> {
    if words.len() == 8 {
        return Some(Ipv4Addr::from(bytes_of_word(words, arch)?).into());
    }
    let mut bytes = [0; 16];
    if words.len() != 32 {
        return None;
    }
    for (index, place) in bytes.chunks_exact_mut(4).enumerate() {
        let word = words.get(8 * index..8 * (index + 1))?;
        place.copy_from_slice(&bytes_of_word(word, arch)?);
    }
    Some(Ipv6Addr::from(bytes).into())
}

/// `1060 1 systemd`: inode, process and its name.
fn owner(line: &str) -> Option<(u64, Process)> {
    let mut words = line.splitn(3, ' ');
    let inode = words.next()?.parse().ok()?;
    let process = Process {
        pid: words.next()?.parse().ok()?,
        name: words.next()?.to_owned(),
    };
    Some((inode, process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::answer::with_sections;

    #[test]
    fn listeners_have_their_processes() {
        let rest = "00000000:00000000 00:00000000 00000000     0        0";
        let any6 = "00000000000000000000000000000000";
        let sockets = format!(
            "/proc/net/tcp:   0: 0100007F:18EB 00000000:0000 0A {rest} 1060 1 0\n\
             /proc/net/tcp6:10000: {any6}:0016 {any6}:0000 0A {rest} 99 1 0\n\
             /proc/net/tcp6:   1: 00000000000000000000000001000000:0050 {any6}:0000 0A {rest} 0 1 0\n\
             /proc/net/udp:  12: 3500007F:0035 00000000:0000 07 {rest} 7 1 0\n\
             /proc/net/tcp:   3: 0100007F:18EB 00000000:0000 07 {rest} 1061 1 0\n"
        );
        let owners = "99 812 sshd\n99 1 systemd\n99 1 systemd\n7 3 two words\nbad\n";
        let found = listeners(
            &with_sections(&[("sockets", &sockets), ("socket-owners", owners)]),
            None,
        )
        .unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|l| {
                let names: Vec<_> = l.processes.iter().map(|p| p.name.as_str()).collect();
                format!(
                    "{:?} {} {} {}",
                    l.protocol,
                    l.address,
                    l.port,
                    names.join(",")
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "Tcp :: 22 systemd,sshd",
                "Tcp ::1 80 ",
                "Tcp 127.0.0.1 6379 ",
                "Udp 127.0.0.53 53 two words",
            ]
        );
    }

    #[test]
    fn an_unread_table_is_unknown() {
        assert_eq!(listeners(&with_sections(&[]), None), None);
        assert_eq!(
            listeners(&with_sections(&[("sockets", "")]), None),
            Some(vec![])
        );
        assert_eq!(address_of_words("ä0000000", None), None);
    }
}
