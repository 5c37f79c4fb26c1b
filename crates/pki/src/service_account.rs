//! The key pair that signs service-account tokens.

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use secrecy::{ExposeSecret, SecretString};
use snafu::{ResultExt, Snafu};

use crate::private_key;

/// Why a service-account key cannot be used.
#[derive(Debug, Snafu)]
#[snafu(display("the service-account key {problem}"))]
pub struct InvalidServiceAccountKey {
    problem: &'static str,
    source: rcgen::Error,
}

/// The key pair that signs (controller manager, API server) and verifies (API server) service-account tokens.
///
/// A cluster keeps its pair for life: with another one, all its tokens become invalid.
#[derive(Clone, Debug)]
pub struct ServiceAccountKey {
    private_pem: SecretString,
    public_pem: String,
}

impl ServiceAccountKey {
    /// Generates a pair (P-256, tokens are signed with ES256).
    ///
    /// # Errors
    /// When the system provides no randomness.
    pub fn generate() -> Result<Self, InvalidServiceAccountKey> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context(
            InvalidServiceAccountKeySnafu {
                problem: "cannot be generated",
            },
        )?;
        Ok(Self {
            public_pem: pair.public_key_pem(),
            private_pem: pair.serialize_pem().into(),
        })
    }

    /// Parses the private key of an existing pair, RSA or ECDSA, and derives the public one.
    ///
    /// # Errors
    /// When the text is not an unencrypted private key in PEM format.
    pub fn from_pem(private_pem: SecretString) -> Result<Self, InvalidServiceAccountKey> {
        let pair = private_key::read(private_pem.expose_secret()).context(
            InvalidServiceAccountKeySnafu {
                problem: "cannot be parsed; it must be an unencrypted PEM key, RSA or ECDSA",
            },
        )?;
        Ok(Self {
            public_pem: pair.public_key_pem(),
            private_pem,
        })
    }

    /// The signing key, usually `sa.key`.
    pub fn private_pem(&self) -> &SecretString {
        &self.private_pem
    }

    /// The verification key, usually `sa.pub`.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }
}
