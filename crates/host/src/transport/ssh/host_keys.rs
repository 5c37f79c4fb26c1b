//! Which host keys are trusted: pinned ones, those in files of the user, those recorded at
//! first use. Decided before anything secret is sent.

use std::{
    io,
    path::{Path, PathBuf},
    str::FromStr,
};

use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey, parse_public_key_base64};
use snafu::Snafu;

mod mismatch;

pub use mismatch::{Mismatch, Place};

use super::known_hosts::{self, Entry, Kind, host_name};

/// A key that the machine must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// A public key.
    Key(Box<PublicKey>),
    /// A key's fingerprint, as `ssh-keygen -l` shows it: `SHA256:…`.
    Fingerprint(String),
}

/// Not a host key.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display(
    "'{text}' is not a host key; give a line like 'ssh-ed25519 AAAA…' from /etc/ssh/ssh_host_ed25519_key.pub, or a fingerprint like 'SHA256:…' from 'ssh-keygen -l'"
))]
pub struct InvalidPin {
    text: String,
}

impl FromStr for Pin {
    type Err = InvalidPin;

    fn from_str(text: &str) -> Result<Self, InvalidPin> {
        let invalid = || InvalidPin { text: text.into() };
        let text = text.trim();
        if let Some(hash) = text.strip_prefix("SHA256:") {
            let hash = hash.trim_end_matches('=');
            let good = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
            return match hash.len() == 43 && hash.chars().all(good) {
                true => Ok(Self::Fingerprint(format!("SHA256:{hash}"))),
                false => Err(invalid()),
            };
        }
        let mut words = text.split_whitespace();
        let (algorithm, key) = (words.next(), words.next());
        let key = key.and_then(|key| parse_public_key_base64(key).ok());
        let key = key.filter(|key| algorithm == Some(key.algorithm().as_str()));
        key.map(|key| Self::Key(Box::new(key))).ok_or_else(invalid)
    }
}

impl Pin {
    fn is(&self, key: &PublicKey) -> bool {
        match self {
            Self::Key(pinned) => pinned.key_data() == key.key_data(),
            Self::Fingerprint(pinned) => *pinned == fingerprint(key),
        }
    }

    fn fingerprint(&self) -> String {
        match self {
            Self::Key(pinned) => fingerprint(pinned),
            Self::Fingerprint(pinned) => pinned.clone(),
        }
    }
}

/// Which host keys are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostKey {
    /// One of these.
    Pinned(Vec<Pin>),
    /// Those in files.
    Known {
        /// Read only, such as the user's `~/.ssh/known_hosts`.
        files: Vec<PathBuf>,
        /// Where a key that no file knows is recorded, and trusted from then on. `None` refuses.
        record: Option<PathBuf>,
    },
}

fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

impl HostKey {
    /// Checks the key that a machine shows, and records it where that is wanted. Blocks.
    pub(super) fn check(&self, host: &str, port: u16, shown: &PublicKey) -> Result<(), Mismatch> {
        let host = host_name(host, port);
        match self {
            Self::Pinned(pins) if pins.iter().any(|pin| pin.is(shown)) => Ok(()),
            Self::Pinned(pins) => Err(Mismatch::Changed {
                shown: fingerprint(shown),
                expected: pins.iter().map(Pin::fingerprint).collect(),
                place: Place::Pinned,
                host,
            }),
            Self::Known { record, .. } => {
                if decide(&self.entries(&host)?, &host, shown)? {
                    return Ok(());
                }
                let Some(file) = record else {
                    return Err(Mismatch::Unknown {
                        shown: fingerprint(shown),
                        key: shown.to_openssh().unwrap_or_default(),
                        host,
                    });
                };
                let there = known_hosts::record(file, &host, shown);
                let there = there.map_err(|error| unusable(file, &error))?;
                decide(&there, &host, shown).map(|_known| ())
            }
        }
    }

    fn entries(&self, host: &str) -> Result<Vec<Entry>, Mismatch> {
        let Self::Known { files, record } = self else {
            return Ok(Vec::new());
        };
        let mut entries = Vec::new();
        for file in files.iter().chain(record) {
            let read = known_hosts::read(file, host);
            entries.extend(read.map_err(|error| unusable(file, &error))?);
        }
        Ok(entries)
    }

    /// The orders of algorithms to ask for, one handshake each until one fits: the kinds of key
    /// that are known come first, so that a machine's other key gives no false alarm. A
    /// fingerprint does not contain its algorithm, so that each is asked for in turn.
    pub(super) fn algorithms(&self, host: &str, port: u16) -> Vec<Vec<Algorithm>> {
        match self {
            Self::Pinned(pins) => {
                let kinds = |pin: &Pin| match pin {
                    Pin::Key(key) => vec![family(&key.algorithm())],
                    Pin::Fingerprint(_) => families().to_vec(),
                };
                let mut orders: Vec<Vec<Algorithm>> = Vec::new();
                for order in pins.iter().flat_map(kinds) {
                    if !orders.contains(&order) {
                        orders.push(order);
                    }
                }
                orders
            }
            Self::Known { .. } => {
                let entries = self.entries(&host_name(host, port)).unwrap_or_default();
                let known = entries.iter().filter(|entry| entry.kind == Kind::Known);
                let known = known.map(|entry| family(&entry.key.algorithm()));
                let mut order: Vec<Algorithm> = Vec::new();
                for algorithm in known.chain(families()).flatten() {
                    if !order.contains(&algorithm) {
                        order.push(algorithm);
                    }
                }
                vec![order]
            }
        }
    }
}

/// Whether the key is known; an error when it must not be trusted.
fn decide(entries: &[Entry], host: &str, shown: &PublicKey) -> Result<bool, Mismatch> {
    let same = |entry: &&Entry| entry.key.key_data() == shown.key_data();
    let place = |entry: &Entry| Place::Line {
        file: entry.file.clone(),
        line: entry.line,
    };
    let of_kind = |kind| entries.iter().filter(move |entry| entry.kind == kind);
    if let Some(entry) = of_kind(Kind::Revoked).find(same) {
        return Err(Mismatch::Revoked {
            shown: fingerprint(shown),
            place: place(entry),
        });
    }
    if of_kind(Kind::Known).any(|entry| same(&entry)) {
        return Ok(true);
    }
    match of_kind(Kind::Known).next() {
        None => Ok(false),
        Some(first) => Err(Mismatch::Changed {
            shown: fingerprint(shown),
            expected: of_kind(Kind::Known)
                .map(|entry| fingerprint(&entry.key))
                .collect(),
            place: place(first),
            host: host.into(),
        }),
    }
}

fn unusable(file: &Path, error: &io::Error) -> Mismatch {
    Mismatch::File {
        file: file.to_owned(),
        reason: error.to_string(),
    }
}

/// The kinds of host key that sshd makes by itself, most wanted first.
fn families() -> [Vec<Algorithm>; 3] {
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    let rsa = |hash| Algorithm::Rsa { hash: Some(hash) };
    [
        vec![Algorithm::Ed25519],
        [
            EcdsaCurve::NistP256,
            EcdsaCurve::NistP384,
            EcdsaCurve::NistP521,
        ]
        .map(ecdsa)
        .into(),
        [HashAlg::Sha512, HashAlg::Sha256].map(rsa).into(),
    ]
}

/// The algorithms that use the same kind of key.
fn family(algorithm: &Algorithm) -> Vec<Algorithm> {
    match algorithm {
        Algorithm::Rsa { .. } => families()[2].clone(),
        other => vec![other.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const OTHER: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";

    fn key(line: &str) -> PublicKey {
        match line.parse().unwrap() {
            Pin::Key(key) => *key,
            Pin::Fingerprint(_) => panic!("{line}"),
        }
    }

    #[test]
    fn pins_are_keys_or_fingerprints() {
        let print = fingerprint(&key(ONE));
        for good in [ONE, &format!("{ONE} root@host\n"), &print] {
            let policy = HostKey::Pinned(vec![good.parse().unwrap()]);
            assert_eq!(policy.check("h", 22, &key(ONE)), Ok(()));
            let refused = policy.check("h", 22, &key(OTHER)).unwrap_err();
            assert!(refused.to_string().contains(&print), "{refused}");
            assert!(
                refused.to_string().contains(&fingerprint(&key(OTHER))),
                "{refused}"
            );
        }
        for bad in [
            "",
            "SHA256:short",
            "MD5:aa:bb",
            "ssh-ed25519",
            &ONE.replace("ssh-ed25519", "ssh-rsa"),
        ] {
            assert!(bad.parse::<Pin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn first_use_is_recorded_and_a_change_refused() {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("own");
        let policy = HostKey::Known {
            files: vec![dir.path().join("none")],
            record: Some(record.clone()),
        };
        assert_eq!(policy.check("h", 2222, &key(ONE)), Ok(()));
        assert_eq!(policy.check("h", 2222, &key(ONE)), Ok(()));
        let changed = policy.check("h", 2222, &key(OTHER)).unwrap_err();
        let place = Place::Line {
            file: record.clone(),
            line: 1,
        };
        assert!(
            matches!(&changed, Mismatch::Changed { place: p, .. } if *p == place),
            "{changed:?}"
        );
        assert!(
            changed.remedy().contains("ssh-keygen -R '[h]:2222'"),
            "{}",
            changed.remedy()
        );
        assert_eq!(
            policy.check("h", 22, &key(OTHER)),
            Ok(()),
            "another port is another host"
        );
    }

    #[test]
    fn without_a_record_the_unknown_is_refused_and_the_revoked_always() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known_hosts");
        std::fs::write(&file, format!("@revoked * {OTHER}\nh {OTHER}\nh {ONE}\n")).unwrap();
        let policy = HostKey::Known {
            files: vec![file],
            record: None,
        };
        assert_eq!(policy.check("h", 22, &key(ONE)), Ok(()));
        let revoked = policy.check("h", 22, &key(OTHER)).unwrap_err();
        assert!(matches!(revoked, Mismatch::Revoked { .. }), "{revoked:?}");
        let unknown = policy.check("g", 22, &key(ONE)).unwrap_err();
        assert!(unknown.remedy().contains(ONE), "{}", unknown.remedy());
    }

    #[test]
    fn known_kinds_of_key_are_asked_for_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known_hosts");
        let ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHwf2HMM5TRXvo2SQJjsNkiDD5KqiiNjrGVv3UUh+mMT5RHxiRtOnlqvjhQtBq0VpmpCV/PwUdhOig4vkbqAcEc=";
        std::fs::write(&file, format!("h {ecdsa}\n")).unwrap();
        let policy = HostKey::Known {
            files: vec![file],
            record: None,
        };
        let first = |host| policy.algorithms(host, 22)[0][0].to_string();
        assert_eq!(first("h"), "ecdsa-sha2-nistp256");
        assert_eq!(first("g"), "ssh-ed25519");
        let print = HostKey::Pinned(vec![fingerprint(&key(ONE)).parse().unwrap()]);
        assert_eq!(print.algorithms("h", 22).len(), 3);
        let pinned = HostKey::Pinned(vec![ONE.parse().unwrap()]);
        assert_eq!(pinned.algorithms("h", 22), [[Algorithm::Ed25519]]);
    }
}
