//! Parsing of private keys written by other tools.

use rcgen::KeyPair;

/// Parses the first private key of a text, whatever precedes it: `openssl ecparam -genkey` writes the curve first.
pub(crate) fn read(pem: &str) -> Result<KeyPair, rcgen::Error> {
    let mut start = 0;
    for line in pem.split_inclusive('\n') {
        let label = line.trim_end();
        if label.starts_with("-----BEGIN ") && label.ends_with("PRIVATE KEY-----") {
            break;
        }
        start += line.len();
    }
    KeyPair::from_pem(pem.get(start..).unwrap_or_default())
}
