//! A machine's SSH host key, pinned in the file.

use std::fmt;

use super::Mismatch;

/// What the machine's key must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostKey {
    /// The SHA-256 fingerprint as `ssh-keygen -l` prints it, without `SHA256:`.
    Fingerprint(String),
    /// The public key as it stands in `/etc/ssh/ssh_host_*_key.pub`.
    PublicKey {
        /// The algorithm, such as `ssh-ed25519`.
        algorithm: String,
        /// The key in base64.
        key: String,
    },
}

impl HostKey {
    /// Parses a fingerprint or a public key.
    pub fn parse(text: &str) -> Result<Self, Mismatch> {
        let wrong = || {
            Mismatch::new(
                "neither a public key nor a fingerprint",
                "write the line of /etc/ssh/ssh_host_ed25519_key.pub, or the SHA256:… that 'ssh-keygen -lf' prints for it",
            )
        };
        if let Some(print) = text.strip_prefix("SHA256:") {
            let print = print.trim_end_matches('=');
            return if print.len() == 43 && print.bytes().all(is_base64) {
                Ok(Self::Fingerprint(print.to_owned()))
            } else {
                Err(wrong())
            };
        }
        let mut words = text.split_whitespace();
        let (Some(algorithm), Some(key)) = (words.next(), words.next()) else {
            return Err(wrong());
        };
        let known = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"]
            .iter()
            .any(|prefix| algorithm.starts_with(prefix));
        let plausible = key.len() >= 40 && key.trim_end_matches('=').bytes().all(is_base64);
        if !known || !plausible {
            return Err(wrong());
        }
        Ok(Self::PublicKey {
            algorithm: algorithm.to_owned(),
            key: key.to_owned(),
        })
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fingerprint(print) => write!(f, "SHA256:{print}"),
            Self::PublicKey { algorithm, key } => write!(f, "{algorithm} {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_fingerprints() {
        let print = format!("SHA256:{}", "a".repeat(43));
        assert_eq!(HostKey::parse(&print).unwrap().to_string(), print);
        let key = format!("ssh-ed25519 {}", "AAAA".repeat(17));
        assert_eq!(
            HostKey::parse(&format!("{key} root@host"))
                .unwrap()
                .to_string(),
            key
        );
        for bad in [
            "",
            "SHA256:abc",
            "MD5:aa:bb",
            "ssh-ed25519",
            "ssh-ed25519 short",
            "rsa AAAA",
        ] {
            assert!(HostKey::parse(bad).is_err(), "{bad}");
        }
    }
}
